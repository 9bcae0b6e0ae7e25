#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- once: plans that a kept set determines --
//
//     kept 2     F1 F2 F3 F4 | B4       F3 B3 B2  F1 B1     After the last forward of the first pass a node
//     item 3           m~~u  |          m--u                runs again at most once: when a backward first
//     item 2        m--------------------------u            needs what is not kept. What it makes stays until
//                   first pass            made again        its last reader.
//
// Items are the tensors, then saved(v) of each node. The set of kept items is the whole decision: which nodes
// run again is the closure of what backwards read and the set lacks, when they do follows from the order of
// the backwards, and drops follow last uses. No forward runs in place. Executors that hand one set of tensors
// from their forward to their backward (PyTorch's partitioner, torch/_functorch/partitioners.py) can carry out
// exactly these plans.
//
// The search begins with sets of segments (what crosses a boundary of the listing) and of thresholds (what
// costs much per byte), fills the cheapest up to the budget, and changes the best ones at random. With few
// items every set is tried. o is the state of all this.

#define TLI_ONCE_STARTS 4
#define TLI_ONCE_EXACT 18    // items: so many are tried in all combinations, if the work allows

enum { TLI_ONCE_FORWARD, TLI_ONCE_SAVE, TLI_ONCE_BACKWARD };  // a call is 4 * node + one of these

typedef struct tli_once_set { uint8_t *keep; uint64_t cost, peak; } tli_once_set;  // no cost: UINT64_MAX

typedef struct tli_once {
    tl_env         *env;
    const tl_graph *graph;
    tli_remat_watch *watch;
    uint64_t  budget, input_bytes, base_cost;
    int32_t   inference, item_count, node_count;
    uint64_t *item_bytes;            // [items]
    uint8_t  *is_read;               // [items] by some backward
    uint8_t  *is_result;             // [items] resident at the end
    uint8_t  *is_fixed;              // [items] kept by every set: results, and what is made once only
    uint8_t  *runs;                  // [nodes] 1 = in the first pass
    uint64_t *gradients, *left;      // [nodes] gradients and scratch during a backward, gradients after it
    uint8_t  *here, *wanted;         // [items] scratch of a measurement
    uint8_t  *again;                 // [nodes] 1 = runs again
    int32_t  *stack, *cursors;       // [nodes]
    int32_t  *calls;  int32_t first_count, call_count;  // [3 * nodes]
    uint64_t *made, *beside, *freed; // [3 * nodes] bytes that a call adds, takes while it runs, frees
    int32_t  *rank;                  // [items] those that can be kept, costly ones per byte first
    int32_t   rank_count;
    uint64_t  cost, peak;            // of the set measured last
    int32_t   peak_node;
    tli_once_set now, trial, best, least, starts[TLI_ONCE_STARTS];  // least: of the least peak met so far
    int32_t   least_node;
    tl_random random;
    uint64_t  work, work_limit;
} tli_once;

static void tli_once_free(tli_once *o) {
    int32_t i;
    tli_release(o->env, o->item_bytes);
    tli_release(o->env, o->is_read);
    tli_release(o->env, o->runs);
    tli_release(o->env, o->gradients);
    tli_release(o->env, o->stack);
    tli_release(o->env, o->made);
    tli_release(o->env, o->rank);
    tli_release(o->env, o->now.keep);
    tli_release(o->env, o->trial.keep);
    tli_release(o->env, o->best.keep);
    tli_release(o->env, o->least.keep);
    for (i = 0; i < TLI_ONCE_STARTS; i++) tli_release(o->env, o->starts[i].keep);
}

static int tli_once_new_set(tli_once *o, tli_once_set *set) {
    set->keep = (uint8_t *)tli_alloc_array(o->env, (uint64_t)o->item_count + 1, 1);
    set->cost = set->peak = UINT64_MAX;
    return set->keep != NULL;
}

static tl_result tli_once_alloc(tli_once *o) {
    uint64_t items = (uint64_t)o->item_count + 1, nodes = (uint64_t)o->node_count;
    int32_t i;
    int ok = tli_once_new_set(o, &o->now) && tli_once_new_set(o, &o->trial) && tli_once_new_set(o, &o->best) &&
             tli_once_new_set(o, &o->least);
    for (i = 0; i < TLI_ONCE_STARTS && ok; i++) ok = tli_once_new_set(o, &o->starts[i]);
    o->item_bytes = (uint64_t *)tli_alloc_array(o->env, items, sizeof *o->item_bytes);
    o->is_read = (uint8_t *)tli_alloc_array(o->env, 5 * items, 1);
    o->runs = (uint8_t *)tli_alloc_array(o->env, 2 * nodes, 1);
    o->gradients = (uint64_t *)tli_alloc_array(o->env, 2 * nodes, sizeof *o->gradients);
    o->stack = (int32_t *)tli_alloc_array(o->env, 5 * nodes + 1, sizeof *o->stack);
    o->made = (uint64_t *)tli_alloc_array(o->env, 9 * nodes, sizeof *o->made);
    o->rank = (int32_t *)tli_alloc_array(o->env, items, sizeof *o->rank);
    if (!ok || !o->item_bytes || !o->is_read || !o->runs || !o->gradients || !o->stack || !o->made || !o->rank)
        return TL_ERROR_NO_MEMORY;
    o->is_result = o->is_read + items;
    o->here = o->is_result + items;
    o->wanted = o->here + items;
    o->is_fixed = o->wanted + items;
    o->again = o->runs + nodes;
    o->left = o->gradients + nodes;
    o->cursors = o->stack + nodes + 1;
    o->calls = o->cursors + nodes;
    o->beside = o->made + 3 * nodes;
    o->freed = o->beside + 3 * nodes;
    return TL_OK;
}

static int tli_once_trains(const tli_once *o, int32_t id) {
    return !o->inference && o->graph->nodes[id].has_grad;
}

static int32_t tli_once_saved_item(const tli_once *o, int32_t id) { return o->graph->tensor_count + id; }

// -- once: what the graph says --

// Find the nodes that run in the first pass: those with a backward or a result, and what they need.
static void tli_once_find_runs(tli_once *o) {
    const tl_graph *graph = o->graph;
    int32_t id, i;
    for (id = o->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        o->runs[id] |= (uint8_t)tli_once_trains(o, id);
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            o->runs[id] |= o->is_result[i];
        if (node->is_input) o->runs[id] = 0;
        if (o->runs[id]) o->base_cost += node->fwd_cost;
        if (tli_once_trains(o, id)) o->base_cost += node->bwd_cost;
        if (!o->runs[id]) continue;
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            o->runs[graph->outputs[graph->inputs[i].tensor].node] = 1;
    }
}

// Count the bytes of gradients, which depend on the order of the backwards alone. here: scratch.
static void tli_once_count_gradients(tli_once *o) {
    const tl_graph *graph = o->graph;
    uint64_t live = 0;
    int32_t id, i;
    for (id = o->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        if (!tli_once_trains(o, id)) continue;
        for (i = node->first_output; i < tli_gradient_end(node); i++)
            if (!o->here[i]) { o->here[i] = 1; live += graph->outputs[i].bytes; }
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor;
            if (o->here[tensor] || !tli_gets_gradient(graph, tensor)) continue;
            o->here[tensor] = 1;
            live += graph->outputs[tensor].bytes;
        }
        o->gradients[id] = live + node->bwork_bytes;
        for (i = node->first_output; i < tli_gradient_end(node); i++)
            live -= graph->outputs[i].bytes;
        o->left[id] = live;
    }
}

static void tli_once_read_items(tli_once *o) {
    const tl_graph *graph = o->graph;
    int32_t id, i;
    tli_mark_results(graph, o->inference, o->is_result);
    for (id = 0; id < o->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        int trains = tli_once_trains(o, id);
        for (i = node->first_output; i < node->first_output + node->output_count; i++) {
            o->item_bytes[i] = graph->outputs[i].bytes;
            if (node->is_input) o->input_bytes += graph->outputs[i].bytes;
            if (trains && graph->outputs[i].needed) o->is_read[i] = 1;
        }
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            if (trains && graph->inputs[i].needed) o->is_read[graph->inputs[i].tensor] = 1;
        if (trains && node->saved_bytes) {
            o->item_bytes[tli_once_saved_item(o, id)] = node->saved_bytes;
            o->is_read[tli_once_saved_item(o, id)] = 1;
        }
    }
    for (i = 0; i < graph->tensor_count; i++)
        if (graph->nodes[graph->outputs[i].node].is_input) o->is_read[i] = 0;
}

static int32_t tli_once_maker(const tli_once *o, int32_t item) {
    return item < o->graph->tensor_count ? o->graph->outputs[item].node : item - o->graph->tensor_count;
}

static void tli_once_find_fixed(tli_once *o) {
    int32_t i;
    for (i = 0; i < o->item_count; i++)
        o->is_fixed[i] = o->is_result[i] || o->graph->nodes[tli_once_maker(o, i)].once;
}

// 256 log2 of the cost of making an item again alone, per byte.
static int64_t tli_once_worth(const tli_once *o, int32_t item) {
    return (tli_search_log(o->graph->nodes[tli_once_maker(o, item)].fwd_cost) -
            tli_search_log(o->item_bytes[item])) / 256;
}

// List the items that can be kept, those that cost most per byte first (shell sort: in place, and no ties).
static void tli_once_rank_items(tli_once *o) {
    int32_t item, gap, i, k;
    for (item = 0; item < o->item_count; item++) {
        int32_t id = tli_once_maker(o, item);
        int is_tensor = item < o->graph->tensor_count;
        if (!o->runs[id] || o->is_fixed[item] || (!is_tensor && !o->is_read[item])) continue;
        o->rank[o->rank_count++] = item;
    }
    for (gap = o->rank_count / 2; gap > 0; gap /= 2)
        for (i = gap; i < o->rank_count; i++) {
            int64_t worth = tli_once_worth(o, item = o->rank[i]);
            for (k = i; k >= gap; k -= gap) {
                int64_t other = tli_once_worth(o, o->rank[k - gap]);
                if (other > worth || (other == worth && o->rank[k - gap] < item)) break;
                o->rank[k] = o->rank[k - gap];
            }
            o->rank[k] = item;
        }
}

// -- once: the plan of a kept set --

static void tli_once_call(tli_once *o, int32_t id, int32_t kind) { o->calls[o->call_count++] = 4 * id + kind; }

// Add the forward of a node that runs again, after the forwards that make its missing inputs.
static void tli_once_run_again(tli_once *o, int32_t root) {
    const tl_graph *graph = o->graph;
    int32_t depth = 1, i;
    o->stack[0] = root;
    o->cursors[0] = 0;
    while (depth > 0) {
        int32_t id = o->stack[depth - 1], *cursor = &o->cursors[depth - 1];
        const tl_node *node = &graph->nodes[id];
        int32_t saved = tli_once_saved_item(o, id);
        const tl_node_input *inputs = tli_inputs_of(graph, node);
        while (*cursor < node->input_count && o->here[inputs[*cursor].tensor]) ++*cursor;
        if (*cursor < node->input_count) {
            o->stack[depth] = graph->outputs[inputs[*cursor].tensor].node;
            o->cursors[depth++] = 0;
            continue;
        }
        tli_once_call(o, id, o->is_read[saved] && !o->here[saved] ? TLI_ONCE_SAVE : TLI_ONCE_FORWARD);
        o->here[saved] = o->again[id] = 1;
        o->cost += node->fwd_cost;
        for (i = node->first_output; i < node->first_output + node->output_count; i++) o->here[i] = 1;
        depth--;
    }
}

static void tli_once_call_backward(tli_once *o, int32_t id) {
    const tl_graph *graph = o->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i, saved = tli_once_saved_item(o, id);
    int missing = o->is_read[saved] && !o->here[saved];
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        missing |= graph->outputs[i].needed && !o->here[i];
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        if (graph->inputs[i].needed && !o->here[graph->inputs[i].tensor])
            tli_once_run_again(o, graph->outputs[graph->inputs[i].tensor].node);
    if (missing) tli_once_run_again(o, id);
    tli_once_call(o, id, TLI_ONCE_BACKWARD);
}

// List the calls of the plan of a set; cost becomes its cost.
static void tli_once_list_calls(tli_once *o, const uint8_t *keep) {
    int32_t id, i;
    o->call_count = 0;
    o->cost = o->base_cost;
    tli_zero(o->again, (size_t)o->node_count);
    for (i = 0; i < o->item_count; i++) o->here[i] = (uint8_t)(keep[i] || o->is_fixed[i]);
    for (id = 0; id < o->node_count; id++) {
        int32_t saved = tli_once_saved_item(o, id);
        const tl_node *node = &o->graph->nodes[id];
        for (i = node->first_output; i < node->first_output + node->output_count && node->is_input; i++)
            o->here[i] = 1;
        if (o->runs[id])
            tli_once_call(o, id, o->is_read[saved] && o->here[saved] ? TLI_ONCE_SAVE : TLI_ONCE_FORWARD);
    }
    o->first_count = o->call_count;
    for (id = o->node_count; id-- > 0;)
        if (tli_once_trains(o, id)) tli_once_call_backward(o, id);
}

// An item is used by call `at`: if nothing later uses this copy, it is freed behind the call.
static void tli_once_use(tli_once *o, int32_t item, int32_t at) {
    if (o->wanted[item]) return;
    o->wanted[item] = 1;
    o->freed[at] += o->item_bytes[item];
}

// An item is made by call `at`. A copy that nothing uses, or a second one, lives while the call runs.
static void tli_once_make(tli_once *o, int32_t item, int32_t at, int is_second) {
    if (is_second || !o->wanted[item]) { o->beside[at] += o->item_bytes[item]; return; }
    o->wanted[item] = 0;
    o->made[at] += o->item_bytes[item];
}

// Walk the calls backwards in time and find what each adds and frees. A copy is freed behind its last use, as
// tli_place_drops does it.
static void tli_once_find_lives(tli_once *o, const uint8_t *keep) {
    const tl_graph *graph = o->graph;
    int32_t at, i;
    tli_zero(o->made, 9 * (size_t)o->node_count * sizeof *o->made);
    tli_copy(o->wanted, o->is_result, (size_t)o->item_count);
    for (at = o->call_count; at-- > 0;) {
        int32_t id = o->calls[at] / 4, kind = o->calls[at] % 4, saved = tli_once_saved_item(o, id);
        const tl_node *node = &graph->nodes[id];
        int are_here = at >= o->first_count && kind == TLI_ONCE_SAVE;  // then the call makes saved bytes alone
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            are_here &= (keep[i] || o->is_fixed[i]) && o->wanted[i];
        for (i = node->first_output; i < node->first_output + node->output_count; i++) {
            int stays = at >= o->first_count && (keep[i] || o->is_fixed[i]);
            int is_used = kind == TLI_ONCE_BACKWARD && graph->outputs[i].needed && !node->is_input;
            if (is_used) tli_once_use(o, i, at);
            else if (kind != TLI_ONCE_BACKWARD && !are_here) tli_once_make(o, i, at, stays);
        }
        if (kind == TLI_ONCE_BACKWARD && o->is_read[saved]) tli_once_use(o, saved, at);
        if (kind == TLI_ONCE_SAVE) tli_once_make(o, saved, at, 0);
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor;
            if (graph->nodes[graph->outputs[tensor].node].is_input) continue;
            if (kind != TLI_ONCE_BACKWARD || graph->inputs[i].needed) tli_once_use(o, tensor, at);
        }
        o->work += 4 + 2 * (uint64_t)(node->input_count + node->output_count);
    }
}

static uint64_t tli_once_scratch(const tli_once *o, int32_t call) {
    const tl_node *node = &o->graph->nodes[call / 4];
    return call % 4 == TLI_ONCE_SAVE ? node->swork_bytes : node->fwork_bytes;
}

// Find cost and peak of the plan of a set.
static void tli_once_measure(tli_once *o, const uint8_t *keep) {
    uint64_t live = o->input_bytes, gradients = 0, sum;
    int32_t at;
    tli_once_list_calls(o, keep);
    tli_once_find_lives(o, keep);
    o->peak = live;
    o->peak_node = -1;
    for (at = 0; at < o->call_count; at++) {
        int32_t id = o->calls[at] / 4;
        int backward = o->calls[at] % 4 == TLI_ONCE_BACKWARD;
        live += o->made[at];
        sum = live + o->beside[at];
        sum += backward ? o->gradients[id] : gradients + tli_once_scratch(o, o->calls[at]);
        if (sum > o->peak) { o->peak = sum; o->peak_node = id; }
        if (backward) gradients = o->left[id];
        live -= o->freed[at];
    }
    o->work += 12 * (uint64_t)o->node_count + 2 * (uint64_t)o->item_count + 4 * (uint64_t)o->call_count;
}

// -- once: the search --

static void tli_once_copy(const tli_once *o, tli_once_set *to, const tli_once_set *from) {
    tli_copy(to->keep, from->keep, (size_t)o->item_count);
    to->cost = from->cost;
    to->peak = from->peak;
}

// Measure a set and remember it if it is the cheapest that fits, or the one with the least peak.
static void tli_once_try(tli_once *o, tli_once_set *set) {
    tli_once_measure(o, set->keep);
    set->cost = o->cost;
    set->peak = o->peak;
    if (set->peak < o->least.peak || (set->peak == o->least.peak && set->cost < o->least.cost)) {
        tli_once_copy(o, &o->least, set);
        o->least_node = o->peak_node;
    }
    if (set->peak > o->budget || set->cost >= o->best.cost) return;
    tli_once_copy(o, &o->best, set);
    o->watch->now.cost = o->watch->now.cost && o->watch->now.cost < set->cost ? o->watch->now.cost : set->cost;
}

static int tli_once_goes_on(const tli_once *o, uint64_t limit) {
    return o->work < limit && o->best.cost > o->base_cost && !tli_remat_stops(o->watch, o->work);
}

// Keep more items, the costliest per byte first, as long as the budget allows: in groups, smaller after a group
// that does not fit.
static void tli_once_fill(tli_once *o, tli_once_set *set, uint64_t limit) {
    int32_t at = 0, size = o->rank_count / 4 + 1, i;
    while (at < o->rank_count && tli_once_goes_on(o, limit)) {
        int32_t end = size < o->rank_count - at ? at + size : o->rank_count, changed = 0;
        tli_once_copy(o, &o->trial, set);
        for (i = at; i < end; i++) {
            changed += !o->trial.keep[o->rank[i]];
            o->trial.keep[o->rank[i]] = 1;
        }
        if (!changed) { at = end; continue; }
        tli_once_try(o, &o->trial);
        if (o->trial.peak <= o->budget && o->trial.cost <= set->cost) {
            tli_once_copy(o, set, &o->trial);
            at = end;
            size = size < o->rank_count / 4 ? 2 * size : size;
        } else if (end - at > 1) {
            size = (end - at) / 2;
        } else {
            at = end;
        }
    }
}

// Set now.keep to what crosses boundaries of the listing that are about so many bytes of outputs apart: within
// half as much, that place is taken which the fewest bytes cross. across: [nodes] these bytes; last: [tensors]
// the last node that reads each.
static void tli_once_cut(tli_once *o, const uint64_t *across, const int32_t *last, uint64_t bytes) {
    const tl_graph *graph = o->graph;
    int32_t *next = o->stack, id, i, cut = -1;  // next: the boundary at or behind a node
    uint64_t since = 0;
    for (id = 0; id < o->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_output; i < node->first_output + node->output_count && o->runs[id]; i++)
            since += o->item_bytes[i];
        next[id] = 0;
        if (since > bytes / 2 && o->runs[id] && (cut < 0 || across[id] <= across[cut])) cut = id;
        if (since < bytes || cut < 0) continue;
        next[cut] = 1;
        id = cut;
        since = 0;
        cut = -1;
    }
    for (id = o->node_count, cut = INT32_MAX; id-- > 0;) next[id] = cut = next[id] ? id : cut;
    tli_zero(o->now.keep, (size_t)o->item_count);
    for (i = 0; i < graph->tensor_count; i++)
        o->now.keep[i] = last[i] > next[graph->outputs[i].node];
}

// Find the last node that reads each tensor, and how many bytes cross from each node to the next.
static void tli_once_find_across(const tli_once *o, uint64_t *across, int32_t *last) {
    const tl_graph *graph = o->graph;
    uint64_t live = 0;
    int32_t id, i;
    for (i = 0; i < graph->tensor_count; i++) last[i] = -1;
    for (id = 0; id < o->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            if (o->runs[id]) last[graph->inputs[i].tensor] = id;
    }
    tli_zero(across, ((size_t)o->node_count + 1) * sizeof *across);
    for (i = 0; i < graph->tensor_count; i++) {
        if (!o->runs[graph->outputs[i].node] || last[i] < 0) continue;
        across[graph->outputs[i].node] += o->item_bytes[i];
        across[last[i]] -= o->item_bytes[i];
    }
    for (id = 0; id < o->node_count; id++) across[id] = live += across[id];
}

// Keep a set that fits among the cheapest starts.
static void tli_once_add_start(tli_once *o, const tli_once_set *set) {
    int32_t i, worst = 0;
    if (set->peak > o->budget) return;
    for (i = 0; i < TLI_ONCE_STARTS; i++) {
        if (o->starts[i].cost == set->cost && o->starts[i].peak == set->peak) return;
        if (o->starts[i].cost > o->starts[worst].cost) worst = i;
    }
    if (set->cost < o->starts[worst].cost) tli_once_copy(o, &o->starts[worst], set);
}

#define TLI_ONCE_STEPS 8  // each length of segments that is tried is one part in so many less than the last

// Try the sets that do not depend on the budget: nothing, more and more of the items that cost most per byte,
// up to everything, and segments of all lengths.
static tl_result tli_once_begin(tli_once *o) {
    uint64_t nodes = (uint64_t)o->node_count + 1, tensors = (uint64_t)o->graph->tensor_count + 1, bytes = 0;
    uint64_t *across = (uint64_t *)tli_alloc_array(o->env, nodes, sizeof *across);
    int32_t *last = (int32_t *)tli_alloc_array(o->env, tensors, sizeof *last), i, k;
    if (across && last) {
        tli_once_find_across(o, across, last);
        for (i = 0; i < o->graph->tensor_count; i++) bytes += o->item_bytes[i];
        tli_zero(o->now.keep, (size_t)o->item_count);
        for (i = 0, k = 0; i <= 16; i++) {  // less and less costly items
            for (; k < o->rank_count * i / 16; k++) o->now.keep[o->rank[k]] = 1;
            tli_once_try(o, &o->now);
            tli_once_add_start(o, &o->now);
        }
        for (; bytes && tli_once_goes_on(o, o->work_limit / 4); bytes -= bytes / TLI_ONCE_STEPS + 1) {
            tli_once_cut(o, across, last, bytes);
            tli_once_try(o, &o->now);
            tli_once_add_start(o, &o->now);
            if (o->call_count && bytes < o->item_bytes[o->rank_count ? o->rank[0] : 0]) break;
        }
    }
    tli_release(o->env, across);
    tli_release(o->env, last);
    return across && last ? TL_OK : TL_ERROR_NO_MEMORY;
}

static int32_t tli_once_draw(tli_once *o, int32_t limit) {
    return (int32_t)tl_next_random_below(&o->random, (uint64_t)limit);
}

// Change the trial a little: keep, or no longer keep, a few items near a place of the listing, and keep up to
// two that are made again.
static void tli_once_change(tli_once *o) {
    int32_t count = 1 + tli_once_draw(o, 3), center = tli_once_draw(o, o->rank_count), reach, tries, id, i;
    reach = 1 + tli_once_draw(o, 1 << (1 + tli_once_draw(o, 6)));
    center = tli_once_maker(o, o->rank[center]);
    for (tries = 0; tries < 16 && count > 0; tries++) {
        id = center + tli_once_draw(o, 2 * reach + 1) - reach;
        if (id < 0 || id >= o->node_count || !o->runs[id] || !o->graph->nodes[id].output_count) continue;
        i = o->graph->nodes[id].first_output + tli_once_draw(o, o->graph->nodes[id].output_count);
        if (o->is_read[tli_once_saved_item(o, id)] && tli_once_draw(o, 2)) i = tli_once_saved_item(o, id);
        o->trial.keep[i] ^= 1;
        count--;
    }
    for (count = tli_once_draw(o, 3), tries = 0; tries < 16 && count > 0; tries++) {
        i = o->rank[tli_once_draw(o, o->rank_count)];
        if (o->trial.keep[i] || !o->again[tli_once_maker(o, i)]) continue;
        o->trial.keep[i] = 1;
        count--;
    }
}

// Lower the least peak at random until it fits, or o->work reaches the limit. What is tried does not depend on
// the budget.
static void tli_once_lower(tli_once *o, uint64_t limit) {
    o->random.state = 1;
    while (o->rank_count && o->least.peak > o->budget && o->work < limit &&
           !tli_remat_stops(o->watch, o->work)) {
        tli_once_copy(o, &o->trial, &o->least);
        tli_once_change(o);
        tli_once_try(o, &o->trial);
    }
}

// Improve in phases that cool down, as tli_search_improve does. The first begin with the starts.
static void tli_once_improve(tli_once *o) {
    static const uint8_t heats[] = { 16, 2, 128, 1 };  // of the mean cost of a forward, in 16ths
    int32_t phase, turn;
    o->random.state = 2 + tli_remat_seed(o->watch);
    for (phase = 0; tli_once_goes_on(o, o->work_limit); phase++) {
        int32_t length = 200 << (phase < 24 ? phase / 2 : 12);
        uint64_t heat = tli_search_find_heat(o->base_cost, o->node_count, heats[phase % 4]);
        tli_once_copy(o, &o->now, phase < TLI_ONCE_STARTS ? &o->starts[phase] : &o->best);
        if (o->now.cost == UINT64_MAX) continue;
        for (turn = 0; turn < length && tli_once_goes_on(o, o->work_limit); turn++) {
            int64_t u = 32 * 65536 - tli_search_log((tl_next_random(&o->random) >> 32) + 1);
            tli_once_copy(o, &o->trial, &o->now);
            tli_once_change(o);
            tli_once_try(o, &o->trial);
            if (o->trial.peak <= o->budget && o->trial.cost <= o->now.cost + (heat * (uint64_t)u >> 16))
                tli_once_copy(o, &o->now, &o->trial);
            if (turn % (length / 20 + 1) == length / 20) heat -= heat / 3;
        }
    }
}

// Try every set if they are few; 1 = all were tried, so the best is the optimum.
static int tli_once_try_all(tli_once *o) {
    uint64_t set, sets, start = o->work;
    int32_t i;
    if (o->rank_count > TLI_ONCE_EXACT) return 0;
    sets = (uint64_t)1 << o->rank_count;
    tli_zero(o->now.keep, (size_t)o->item_count);
    for (set = 0; set < sets; set++) {
        for (i = 0; i < o->rank_count; i++) o->now.keep[o->rank[i]] = set >> i & 1;
        tli_once_try(o, &o->now);
        if (!set && (o->work - start) * sets > o->work_limit / 2) return 0;
        if (tli_remat_stops(o->watch, o->work)) return 0;
    }
    return 1;
}

// Search; *proven = 1: the best set, or the least peak, is the optimum.
static tl_result tli_once_search(tli_once *o, int32_t *proven) {
    tl_result result;
    int32_t i;
    *proven = tli_once_try_all(o);
    if (*proven) return TL_OK;
    result = tli_once_begin(o);
    if (result) return result;
    if (o->best.cost == UINT64_MAX) {
        tli_once_lower(o, o->work + o->work_limit / 4);
        if (o->least.peak > o->budget) return TL_OK;
        tli_once_copy(o, &o->starts[0], &o->least);
    }
    for (i = 0; i < TLI_ONCE_STARTS; i++)
        if (o->starts[i].cost != UINT64_MAX && o->work < o->work_limit)
            tli_once_fill(o, &o->starts[i], o->work + (o->work_limit - o->work) / 8);
    if (o->rank_count) tli_once_improve(o);
    return TL_OK;
}

// Make the plan of a set.
static tl_result tli_once_make_plan(tli_once *o, const tli_once_set *set, tl_plan *plan) {
    static const tl_step_kind kinds[] = { TL_STEP_FORWARD, TL_STEP_FORWARD_SAVE, TL_STEP_BACKWARD };
    tli_steps calls = tli_steps_of(o->env);
    int32_t at;
    tli_once_list_calls(o, set->keep);
    for (at = 0; at < o->graph->tensor_count; at++)
        o->trial.keep[at] = set->keep[at] || o->is_fixed[at] ||
                            o->graph->nodes[o->graph->outputs[at].node].is_input;
    for (at = 0; at < o->call_count; at++)
        tli_add_step(&calls, tli_step_of(kinds[o->calls[at] % 4], o->calls[at] / 4, TL_ALL_OUTPUTS));
    return tli_plan_calls(&calls, o->first_count, o->trial.keep, TLI_IN(PLAN_REMAT), o->graph, o->inference,
                          plan);
}

// What was found; the plan is that of the least peak if nothing fits (TL_ERROR_INFEASIBLE). node: at which the
// least peak is; -1 = before the first call.
typedef struct tli_once_result { tl_plan plan; uint64_t work; int32_t node, proven; } tli_once_result;

// Find the cheapest plan of this form within the budget.
static tl_result tli_remat_once(const tli_remat_input *in, tli_once_result *found) {
    tli_once o;
    tl_result result;
    tli_zero(found, sizeof *found);
    tli_zero(&o, sizeof o);
    o.env = in->env;
    o.graph = in->graph;
    o.watch = in->watch;
    o.budget = in->budget;
    o.inference = in->inference;
    o.work_limit = in->work_limit;
    o.node_count = in->graph->node_count;
    o.item_count = in->graph->tensor_count + in->graph->node_count;
    result = tli_once_alloc(&o);
    if (!result) {
        tli_once_read_items(&o);
        tli_once_find_fixed(&o);
        tli_once_find_runs(&o);
        tli_once_count_gradients(&o);
        tli_once_rank_items(&o);
        result = tli_once_search(&o, &found->proven);
    }
    if (!result) {
        int fits = o.best.cost != UINT64_MAX;
        found->node = o.least_node;
        result = tli_once_make_plan(&o, fits ? &o.best : &o.least, &found->plan);
        if (!result && !fits) result = TL_ERROR_INFEASIBLE;
    }
    found->work = o.work;
    tli_once_free(&o);
    return result;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
