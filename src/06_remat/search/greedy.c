#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- search: greedy: recomputation on demand, with eviction --
//
// The program, which has each call once, is walked: what a call needs and is not there is made before it, and
// where that exceeds the budget, what scores least is evicted. Rules with other exponents of the score give
// other first sequences.

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

// Evict until so many more bytes fit; 0 if everything that is left is pinned or must stay.
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

// Run a call whose inputs are resident and pinned. Returns 0 if it does not fit, a limit is reached, progress
// asks to stop, or there is no memory (g->failed).
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

// The first item, with rule.backwards the last, that the call of this frame uses and that is not resident; -1 =
// none.
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
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

