#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- exact: the optimum of small graphs --
//
// A* backwards in time, from the end of the plan to its start.
//
// A state is a position (the number of backwards before it) and the set of items that must be resident
// there because the rest of the plan needs them: the wanted items. Its cost is the cost of the rest. Items
// are the tensors that some call or result may need, saved bytes, and, for the few nodes of which no
// tensor shows that forward ran, that fact. Gradients follow from the position. The search starts after
// the last backward, where the results are wanted, and ends before the first call, where nothing is:
//   - before a backward, the items that it reads are wanted as well;
//   - before a forward, the items that it makes are no longer wanted, but its inputs are. Only calls that
//     make a wanted item are tried, so no plan makes an item in vain or keeps it too long, and the bytes
//     of a call follow from the state: there is no choice of what to drop;
//   - a node runs again while one of its outputs is resident only if that output is dropped before,
//     because the call makes it anyway. FORWARD_SAVE with all outputs resident has the same peak as
//     dropping them and running with save, so it is not tried;
//   - a call runs in place whenever the rest does not want the input: the same state for fewer bytes;
//   - a forward that saves nothing that is wanted is FORWARD_SAVE all the same where its backward is still
//     to come and that takes fewer bytes (swork far below fwork): what it saves is dropped at once.
// A node that may run once only has one more item, "it runs later": wanted before its forward, it says that no
// earlier call makes what the node makes, so no state wants both.
// A state is dominated by another of the same position that wants a subset of its items and costs no more.
// The estimate (a lower bound of the cost before a state) has two terms. The first is every earlier backward,
// and every forward that one of these or some wanted item needs, once. The second is taken at one of these
// backwards: items that are made before it, wanted after it and do not fit beside it are made twice; which of
// them is a fractional knapsack. The largest second term over these backwards counts.
// The least budget is found by the same search with the largest peak of the rest in place of its cost.
//
// The search may also run between two states of a plan, to plan again what lies between them, and be cut to a
// width: see the next part. It begins with the later state then, whose wanted items are the target, and ends
// where nothing is wanted but what the earlier state wants: the given items, which cost nothing.
//
// x is the search throughout this part.

#define TLI_EXACT_WORDS 2
#define TLI_EXACT_ITEMS (64 * TLI_EXACT_WORDS)
#define TLI_EXACT_STATES (1 << 19)  // at most, to limit memory

typedef struct tli_set { uint64_t word[TLI_EXACT_WORDS]; } tli_set;  // of items

// A node that may run.
typedef struct tli_exact_call {
    int32_t  node, turn;                // turn: position of its backward, -1 = none
    int32_t  latest;                    // the last position at which the states that it reads are not updated
    tli_set  inputs, made, saved;       // items: read by forward; made by any forward; made by S alone
    tli_set  source;                    // the input that output 0 may overwrite; empty = none
    tli_set  spent;                     // item of a node that may run once only; empty = may run again
    uint64_t fwd_cost, out_bytes, fwork_bytes, swork_bytes, saved_bytes, source_bytes;
} tli_exact_call;

// One element of the knapsack: the items of a call, to be kept across a backward or made again after it.
typedef struct tli_exact_load {
    tli_set  items;                     // except those that the backward reads
    uint64_t bytes, cost;               // of the items; of the call
} tli_exact_load;

typedef struct tli_exact_settled { tli_set wanted; uint64_t cost; } tli_exact_settled;

// The situation before backward number `position`; the last position is the end of the plan.
typedef struct tli_exact_position {
    int32_t  call;
    tli_set  reads;                     // by this backward
    tli_set  before;                    // needed by backwards before this one, or to make what they need
    uint64_t between_bytes;             // graph inputs and gradients that are live before it
    uint64_t during_bytes;              // the same during it, and its bwork
    uint64_t bwd_cost, before_cost;     // of this backward; of all before it and the forwards that these need
    uint64_t spare_bytes;               // budget less during_bytes and the items that it reads
    int32_t  first_load, end_load;      // in order of cost per byte, the cheapest first
    tli_set  load_items;                // of all its loads
    tli_set  fixed_items;               // made before it by calls that may run once only: they stay
    tli_exact_settled *settled;         // states that were expanded
    int32_t  settled_count, settled_capacity;
} tli_exact_position;

typedef struct tli_exact_state {
    tli_set  wanted;
    uint64_t cost, total;               // of the rest of the plan; with the estimate added
    int32_t  position;
    int32_t  after, call;               // the next state in time, and the call that leads to it
    int32_t  kind;                      // of that step: tl_step_kind
    int32_t  next;                      // in the same bucket of the hash table: 1 + its number; 0 = none
} tli_exact_state;

typedef struct tli_exact_entry { uint64_t total; int32_t state; } tli_exact_entry;

typedef struct tli_exact {
    tl_env             *env;
    const tl_graph     *graph;
    uint64_t            budget, pinned_bytes;
    int32_t             inference, peaks, found;  // peaks: 1 = minimise the peak, not the cost
    int32_t             item_count, call_count, position_count, load_count;
    int32_t             first_spent;        // item; those of nodes that may run once only stand last
    int32_t             spent_count;
    int32_t            *item_of;            // [tensor_count] -1 = none
    int32_t            *call_of;            // [node_count] -1 = none
    int32_t            *saved_of;           // [node_count] item of saved bytes or of "it ran"; -1 = none
    uint8_t            *wanted;             // [tensor_count] 1 = some call or result needs it; later scratch
    tli_exact_call     *calls;              // [call_count] in listing order
    tli_exact_position *positions;          // [position_count]: one per backward and the end
    tli_exact_load     *loads;
    uint64_t           *weights;            // [8 * TLI_EXACT_WORDS][256] sums of item_bytes, by byte of a set
    uint64_t            item_bytes[TLI_EXACT_ITEMS];
    int32_t             first, last;        // positions at which the plan, or a window of it, begins and ends
    tli_set             given, target;      // wanted at these; of a whole plan nothing but "it runs later", and
                                            // the results
    int32_t             width;              // most states that are expanded at a position; 0 = all, best first
    uint64_t            most_total;         // with a width: only states of less are looked at
    tli_remat_watch    *watch;
    tli_exact_state    *states;  int32_t state_count, state_capacity;
    tli_exact_entry    *heap;    int32_t heap_count, heap_capacity;
    int32_t            *buckets, bucket_count;      // a power of two; 1 + the first state of a bucket, 0 = none
    int32_t             full;               // 1 = the search ends: no memory, or a cost beyond 64 bits
    int32_t             failed;             // 1 = no memory
    int32_t             after, position, call;      // state and position being expanded; call being tried
    tli_set             wanted_after;       // by the state being expanded
    uint64_t            paid, work, work_limit;     // paid: cost of the state being expanded
} tli_exact;

// -- exact: sets --

static tli_set tli_no_items(void) {
    tli_set set;
    tli_zero(&set, sizeof set);
    return set;
}

static tli_set tli_set_of(int32_t item) {
    tli_set set = tli_no_items();
    set.word[item / 64] = (uint64_t)1 << item % 64;
    return set;
}

static tli_set tli_set_join(tli_set a, tli_set b) {
    int32_t k;
    for (k = 0; k < TLI_EXACT_WORDS; k++) a.word[k] |= b.word[k];
    return a;
}

static tli_set tli_set_meet(tli_set a, tli_set b) {
    int32_t k;
    for (k = 0; k < TLI_EXACT_WORDS; k++) a.word[k] &= b.word[k];
    return a;
}

static tli_set tli_set_less(tli_set a, tli_set b) {
    int32_t k;
    for (k = 0; k < TLI_EXACT_WORDS; k++) a.word[k] &= ~b.word[k];
    return a;
}

static int tli_set_is_within(tli_set a, tli_set b) {
    uint64_t rest = 0;
    int32_t k;
    for (k = 0; k < TLI_EXACT_WORDS; k++) rest |= a.word[k] & ~b.word[k];
    return !rest;
}

static int tli_set_is_empty(tli_set a) {
    uint64_t all = 0;
    int32_t k;
    for (k = 0; k < TLI_EXACT_WORDS; k++) all |= a.word[k];
    return !all;
}

static int tli_set_equals(tli_set a, tli_set b) {
    return tli_set_is_within(a, b) && tli_set_is_within(b, a);
}

static int tli_set_has(tli_set a, int32_t item) {
    return (int)(a.word[item / 64] >> item % 64 & 1);
}

static uint64_t tli_exact_weigh(const tli_exact *x, tli_set set) {
    const uint64_t *row;
    uint64_t sum = 0, word;
    int32_t k;
    for (k = 0; k < TLI_EXACT_WORDS; k++) {
        row = x->weights + k * 2048;
        for (word = set.word[k]; word; word >>= 8, row += 256) sum += row[word & 255];
    }
    return sum;
}

// -- exact: items and calls of the graph --

// Whether no item shows that the forward of this node ran: no backward reads its outputs, no node with a
// gradient reads them, and it saves nothing.
static int tli_exact_runs_unseen(const tl_graph *graph, const uint8_t *read_by_grad,
                                 const tl_node *node) {
    int32_t i;
    if (node->saved_bytes) return 0;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (graph->outputs[i].needed || read_by_grad[i]) return 0;
    return 1;
}

// Find the tensors that some call or result needs (x->wanted) and the nodes that may run (x->call_of >= 0).
static void tli_exact_find_wanted(tli_exact *x) {
    const tl_graph *graph = x->graph;
    int32_t id, i;
    tli_mark_results(graph, x->inference, x->wanted);
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        int grad = node->has_grad && !x->inference, runs = grad;
        x->call_of[id] = -1;
        for (i = node->first_output; i < node->first_output + node->output_count; i++) {
            if (grad && graph->outputs[i].needed) x->wanted[i] = 1;
            runs |= x->wanted[i];
        }
        if (!runs || (node->is_input && !grad)) continue;  // a state has an update alone
        x->call_of[id] = 0;
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            x->wanted[graph->inputs[i].tensor] = 1;
    }
}

static int tli_exact_add_item(tli_exact *x, uint64_t bytes) {
    if (x->item_count < TLI_EXACT_ITEMS) x->item_bytes[x->item_count] = bytes;
    return x->item_count++;
}

// Number the items, node by node. read_by_grad[] marks the tensors that nodes with a gradient read: if such
// a node ran, the makers of these tensors ran.
static void tli_exact_number(tli_exact *x, uint8_t *read_by_grad) {
    const tl_graph *graph = x->graph;
    int32_t id, i;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            if (node->has_grad) read_by_grad[graph->inputs[i].tensor] = 1;
    }
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        x->saved_of[id] = -1;
        for (i = node->first_output; i < node->first_output + node->output_count; i++) {
            x->item_of[i] = -1;
            if (node->is_input) x->pinned_bytes += graph->outputs[i].bytes;
            else if (x->wanted[i]) x->item_of[i] = tli_exact_add_item(x, graph->outputs[i].bytes);
        }
        if (x->call_of[id] < 0) continue;
        x->call_of[id] = x->call_count++;
        if (!node->has_grad || x->inference) continue;
        if (node->saved_bytes) x->saved_of[id] = tli_exact_add_item(x, node->saved_bytes);
        else if (tli_exact_runs_unseen(graph, read_by_grad, node))
            x->saved_of[id] = tli_exact_add_item(x, 0);
        x->position_count++;
    }
    x->position_count++;
    x->first_spent = x->item_count;
    for (id = 0; id < graph->node_count; id++)
        if (x->call_of[id] >= 0 && graph->nodes[id].once) tli_exact_add_item(x, 0);
}

static tl_result tli_exact_alloc(tli_exact *x) {
    uint64_t calls = (uint64_t)x->call_count, positions = (uint64_t)x->position_count;
    x->calls = (tli_exact_call *)tli_alloc_array(x->env, calls, sizeof *x->calls);
    x->positions = (tli_exact_position *)tli_alloc_array(x->env, positions, sizeof *x->positions);
    x->loads = (tli_exact_load *)tli_alloc_array(x->env, calls * positions, sizeof *x->loads);
    x->weights = (uint64_t *)tli_alloc_array(x->env, TLI_EXACT_WORDS * 2048, sizeof *x->weights);
    x->bucket_count = 1024;
    x->buckets = (int32_t *)tli_alloc_array(x->env, (uint64_t)x->bucket_count, sizeof *x->buckets);
    return x->calls && x->positions && x->loads && x->weights && x->buckets ? TL_OK : TL_ERROR_NO_MEMORY;
}

static tli_set tli_exact_items_read(const tli_exact *x, const tl_node *node, int by_backward) {
    const tl_graph *graph = x->graph;
    tli_set set = tli_no_items();
    int32_t i;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        int32_t item = x->item_of[graph->inputs[i].tensor];
        if (item >= 0 && (!by_backward || graph->inputs[i].needed))
            set = tli_set_join(set, tli_set_of(item));
    }
    return set;
}

// Find the input that the call may overwrite: it must be an item that the node reads only once.
static void tli_exact_find_source(const tli_exact *x, const tl_node *node, tli_exact_call *call) {
    const tl_graph *graph = x->graph;
    int32_t i, from, reads = 0;
    if (node->inplace < 0) return;
    from = graph->inputs[node->first_input + node->inplace].tensor;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        reads += graph->inputs[i].tensor == from;
    if (reads != 1 || x->item_of[from] < 0 || !graph->outputs[from].bytes) return;
    call->source = tli_set_of(x->item_of[from]);
    call->source_bytes = graph->outputs[from].bytes;
}

// The last position at which a node may run forward: the updates of the states that it reads, whose calls are
// read before it, come later.
static int32_t tli_exact_find_latest(const tli_exact *x, const tl_node *node) {
    int32_t i, latest = INT32_MAX;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        int32_t maker = x->graph->outputs[x->graph->inputs[i].tensor].node;
        int is_updated = x->graph->nodes[maker].state && x->call_of[maker] >= 0;
        int32_t turn = is_updated ? x->calls[x->call_of[maker]].turn : -1;
        if (turn >= 0 && turn < latest) latest = turn;
    }
    return latest;
}

static void tli_exact_read_call(tli_exact *x, int32_t id, int32_t *position) {
    const tl_graph *graph = x->graph;
    const tl_node *node = &graph->nodes[id];
    tli_exact_call *call = &x->calls[x->call_of[id]];
    int32_t i, item = x->saved_of[id];
    call->node = id;
    call->turn = -1;
    call->latest = tli_exact_find_latest(x, node);
    call->fwd_cost = node->fwd_cost;
    call->fwork_bytes = node->fwork_bytes;
    call->swork_bytes = node->swork_bytes;
    if (node->once) call->spent = tli_set_of(x->first_spent + x->spent_count++);
    x->given = tli_set_join(x->given, call->spent);
    call->inputs = tli_exact_items_read(x, node, 0);
    tli_exact_find_source(x, node, call);
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        call->out_bytes += graph->outputs[i].bytes;
        if (x->item_of[i] >= 0) call->made = tli_set_join(call->made, tli_set_of(x->item_of[i]));
    }
    if (item >= 0 && node->saved_bytes) call->saved = tli_set_of(item);
    if (item >= 0 && !node->saved_bytes) call->made = tli_set_join(call->made, tli_set_of(item));
    call->saved_bytes = node->saved_bytes;
    if (!node->has_grad || x->inference) return;
    call->turn = --*position;
    if (tli_reads_pieces(graph, node) && call->turn < call->latest) call->latest = call->turn;
}

static void tli_exact_read_calls(tli_exact *x) {
    int32_t id, position = x->position_count - 1, k, i;
    for (id = 0; id < x->graph->node_count; id++)
        if (x->call_of[id] >= 0) tli_exact_read_call(x, id, &position);
    for (k = 0; k < 8 * TLI_EXACT_WORDS; k++)
        for (i = 1; i < 256; i++) {
            int32_t bit = 0;
            while (!(i >> bit & 1)) bit++;
            x->weights[k * 256 + i] = x->weights[k * 256 + (i & (i - 1))] +
                                      (8 * k + bit < x->item_count ? x->item_bytes[8 * k + bit] : 0);
        }
    tli_mark_results(x->graph, x->inference, x->wanted);
    for (i = 0; i < x->graph->tensor_count; i++)
        if (x->item_of[i] >= 0 && x->wanted[i])
            x->target = tli_set_join(x->target, tli_set_of(x->item_of[i]));
}

// -- exact: positions --

// Sum the bytes of live gradients, from the first backward on; x->wanted marks tensors that have had one.
static void tli_exact_add_gradients(tli_exact *x) {
    const tl_graph *graph = x->graph;
    uint64_t alive = x->pinned_bytes;
    int32_t k, i;
    tli_zero(x->wanted, (size_t)graph->tensor_count);
    for (k = 0; k < x->position_count; k++) {
        tli_exact_position *p = &x->positions[k];
        const tl_node *node = &graph->nodes[x->calls[p->call].node];
        p->between_bytes = alive;
        if (k == x->position_count - 1) break;
        for (i = node->first_output; i < tli_gradient_end(node); i++) {
            if (!x->wanted[i]) alive += graph->outputs[i].bytes;
            x->wanted[i] = 1;
        }
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor;
            if (x->wanted[tensor] || !tli_gets_gradient(graph, tensor)) continue;
            x->wanted[tensor] = 1;
            alive += graph->outputs[tensor].bytes;
        }
        p->during_bytes = alive + node->bwork_bytes;
        for (i = node->first_output; i < tli_gradient_end(node); i++)
            alive -= graph->outputs[i].bytes;
    }
    TLI_INVARIANT(alive == x->pinned_bytes);
}

// Add to `wanted` everything that making it needs, but for what is given; returns the cost of making all of it,
// each call once.
static uint64_t tli_exact_close(const tli_exact *x, tli_set *wanted) {
    uint64_t cost = 0;
    int32_t k;
    *wanted = tli_set_less(*wanted, x->given);
    for (k = x->call_count; k-- > 0;) {
        const tli_exact_call *call = &x->calls[k];
        tli_set items = tli_set_join(call->made, call->saved);
        if (tli_set_is_empty(tli_set_meet(items, *wanted))) continue;
        *wanted = tli_set_join(*wanted, tli_set_less(call->inputs, x->given));
        cost += call->fwd_cost;
    }
    return cost;
}

static void tli_exact_read_positions(tli_exact *x) {
    const tl_graph *graph = x->graph;
    int32_t k, i;
    x->last = x->position_count - 1;
    for (k = 0; k < x->call_count; k++)
        if (x->calls[k].turn >= 0) x->positions[x->calls[k].turn].call = k;
    tli_exact_add_gradients(x);
    for (k = 0; k < x->last; k++) {
        tli_exact_position *p = &x->positions[k];
        const tl_node *node = &graph->nodes[x->calls[p->call].node];
        int32_t saved = x->saved_of[x->calls[p->call].node];
        p->reads = tli_exact_items_read(x, node, 1);
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (graph->outputs[i].needed && x->item_of[i] >= 0)
                p->reads = tli_set_join(p->reads, tli_set_of(x->item_of[i]));
        if (saved >= 0) p->reads = tli_set_join(p->reads, tli_set_of(saved));
        p->bwd_cost = node->bwd_cost;
    }
}

// Find the items that must have been made before each position, and their cost.
static void tli_exact_read_before(tli_exact *x) {
    uint64_t bwd_cost = 0;
    int32_t k;
    x->positions[x->first].before = tli_no_items();
    x->positions[x->first].before_cost = 0;
    for (k = x->first; k < x->last; k++) {
        tli_exact_position *p = &x->positions[k];
        bwd_cost += p->bwd_cost;
        p[1].before = tli_set_join(p->before, p->reads);
        p[1].before_cost = bwd_cost + tli_exact_close(x, &p[1].before);
    }
    TLI_INVARIANT(x->first <= x->last);
}

// -- exact: loads: items that do not fit beside a backward --

// Whether a * b < c * d, in 128 bits.
static int tli_exact_is_less(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    uint64_t p[2], q[2], *to[2], from[2][2];
    int32_t k;
    from[0][0] = a; from[0][1] = b; from[1][0] = c; from[1][1] = d;
    to[0] = p; to[1] = q;
    for (k = 0; k < 2; k++) {
        uint64_t ah = from[k][0] >> 32, al = from[k][0] & 0xFFFFFFFFu;
        uint64_t bh = from[k][1] >> 32, bl = from[k][1] & 0xFFFFFFFFu;
        uint64_t middle = (al * bl >> 32) + (ah * bl & 0xFFFFFFFFu) + (al * bh & 0xFFFFFFFFu);
        to[k][0] = ah * bh + (ah * bl >> 32) + (al * bh >> 32) + (middle >> 32);
        to[k][1] = from[k][0] * from[k][1];
    }
    return p[0] != q[0] ? p[0] < q[0] : p[1] < q[1];
}

static void tli_exact_add_load(tli_exact *x, tli_exact_position *p,
                               const tli_exact_call *call) {
    tli_set items = tli_set_join(call->made, call->saved);
    tli_exact_load load;
    int32_t at;
    // The call counts here only if the first term of the estimate has it before this backward, or never has it
    // because all that it makes is given.
    if (tli_set_is_empty(tli_set_meet(items, p[1].before)) && !tli_set_is_within(items, x->given)) return;
    load.items = tli_set_less(items, p->reads);
    if (!tli_set_is_empty(call->spent)) {
        p->fixed_items = tli_set_join(p->fixed_items, load.items);
        return;
    }
    load.bytes = tli_exact_weigh(x, load.items);
    load.cost = call->fwd_cost;
    if (!load.bytes || !load.cost) return;
    for (at = x->load_count++; at > p->first_load; at--) {
        const tli_exact_load *before = &x->loads[at - 1];
        if (!tli_exact_is_less(load.cost, before->bytes, before->cost, load.bytes)) break;
        x->loads[at] = *before;
    }
    x->loads[at] = load;
    p->load_items = tli_set_join(p->load_items, load.items);
    TLI_INVARIANT(x->load_count <= x->call_count * x->position_count && at >= p->first_load);
}

// Read what depends on the budget. Returns 0 if graph inputs or some backward alone exceed it.
static int tli_exact_read_budget(tli_exact *x) {
    int32_t k, i;
    if (x->pinned_bytes > x->budget) return 0;
    x->load_count = 0;
    for (k = x->first; k < x->last; k++) {
        tli_exact_position *p = &x->positions[k];
        uint64_t bytes = p->during_bytes + tli_exact_weigh(x, p->reads);
        if (bytes > x->budget) return 0;
        p->spare_bytes = x->budget - bytes;
        p->first_load = x->load_count;
        p->load_items = p->fixed_items = tli_no_items();
        for (i = 0; i < x->call_count; i++) tli_exact_add_load(x, p, &x->calls[i]);
        p->end_load = x->load_count;
    }
    TLI_INVARIANT(x->load_count <= x->call_count * x->position_count);
    return 1;
}

// -- exact: the estimate --

// Returns cost * part / whole rounded down, or less where the product does not fit; part < whole.
static uint64_t tli_exact_share(uint64_t cost, uint64_t part, uint64_t whole) {
    uint64_t product;
    if (tli_mul_u64(cost, part, &product)) return product / whole;
    return part ? cost / (whole / part + 1) : 0;
}

// A lower bound of the cost of making wanted items again after a backward because they do not fit beside it.
// If only some items of a call are wanted, the same share of its cost counts: cost per byte, and with it the
// order of the loads, stays the same.
static uint64_t tli_exact_overflow(tli_exact *x, const tli_exact_position *p, tli_set wanted) {
    const tli_exact_load *load = x->loads + p->first_load;
    tli_set held = tli_set_join(p->load_items, p->fixed_items);
    uint64_t bytes = tli_exact_weigh(x, tli_set_meet(wanted, held)), cost = 0, part;
    x->work += 4;
    for (; bytes > p->spare_bytes && load < x->loads + p->end_load; load++) {
        tli_set items = tli_set_meet(load->items, wanted);
        x->work++;
        if (tli_set_is_empty(items)) continue;
        part = tli_set_equals(items, load->items) ? load->bytes : tli_exact_weigh(x, items);
        if (bytes - p->spare_bytes < part) part = bytes - p->spare_bytes;
        cost += part == load->bytes ? load->cost : tli_exact_share(load->cost, part, load->bytes);
        bytes -= part;
    }
    return cost;
}

// A lower bound of what any plan costs from its start to this position with these items wanted.
static uint64_t tli_exact_estimate(tli_exact *x, int32_t position, tli_set wanted) {
    uint64_t cost = x->positions[position].before_cost, most = 0, again;
    tli_set all = tli_set_join(x->positions[position].before, wanted);
    int32_t k;
    if (x->peaks) return 0;
    if (!tli_set_is_within(tli_set_less(wanted, x->given), x->positions[position].before)) {
        cost = tli_exact_close(x, &all);
        for (k = x->first; k < position; k++) cost += x->positions[k].bwd_cost;
        x->work += (uint64_t)(x->call_count + position);
    }
    for (k = position; k-- > x->first;) {
        again = tli_exact_overflow(x, &x->positions[k], wanted);
        if (again > most) most = again;
        wanted = tli_set_join(wanted, x->positions[k].reads);
    }
    return cost + most;
}

// -- exact: states --

static uint32_t tli_exact_hash(tli_set wanted, int32_t position) {
    uint64_t h = (uint64_t)position;
    int32_t k;
    for (k = 0; k < TLI_EXACT_WORDS; k++) h = (h ^ (h >> 32) ^ wanted.word[k]) * 0xD6E8FEB86659FD93u;
    h = (h ^ (h >> 32)) * 0xD6E8FEB86659FD93u;
    return (uint32_t)(h >> 32);
}

// Of states with equal totals the one nearer to the start comes first, so that the start is reached without
// expanding all of them. With a width, positions come one after the other.
static int tli_exact_comes_first(const tli_exact *x, tli_exact_entry a, tli_exact_entry b) {
    const tli_exact_state *s = &x->states[a.state], *t = &x->states[b.state];
    if (x->width && s->position != t->position) return s->position > t->position;
    if (a.total != b.total) return a.total < b.total;
    if (s->position != t->position) return s->position < t->position;
    if (s->cost != t->cost) return s->cost > t->cost;
    return a.state > b.state;
}

#ifdef TLI_INVARIANTS
// An entry of the heap comes no earlier than the one above it. (Costs of states fall while old entries wait, so
// the order of equal totals is not kept.)
static int tli_exact_entry_holds(const tli_exact *x, int32_t at) {
    const tli_exact_entry *entry = &x->heap[at], *above = &x->heap[(at - 1) / 2];
    int32_t position = x->states[entry->state].position, other = x->states[above->state].position;
    if (!at) return 1;
    return x->width && position != other ? other > position : above->total <= entry->total;
}

// So do all entries; large heaps are looked at now and then.
static int tli_exact_heap_holds(const tli_exact *x) {
    int32_t at;
    if (x->work % ((uint64_t)x->heap_count / 16 + 1)) return 1;
    for (at = 0; at < x->heap_count; at++) if (!tli_exact_entry_holds(x, at)) return 0;
    return 1;
}
#endif

static void tli_exact_push(tli_exact *x, int32_t state) {
    void *heap = x->heap;
    tli_exact_entry entry;
    int32_t at = x->heap_count;
    if (!tli_grow(x->env, &heap, &x->heap_capacity, at, (int64_t)at + 1, sizeof *x->heap)) {
        x->full = x->failed = 1;
        return;
    }
    x->heap = (tli_exact_entry *)heap;
    x->heap_count++;
    entry.total = x->states[state].total;
    entry.state = state;
    for (; at && tli_exact_comes_first(x, entry, x->heap[(at - 1) / 2]); at = (at - 1) / 2)
        x->heap[at] = x->heap[(at - 1) / 2];
    x->heap[at] = entry;
    TLI_INVARIANT(tli_exact_entry_holds(x, at) && x->heap_count <= x->heap_capacity);
}

static tli_exact_entry tli_exact_pop(tli_exact *x) {
    tli_exact_entry top = x->heap[0], entry = x->heap[--x->heap_count];
    int32_t at = 0, child;
    while ((child = 2 * at + 1) < x->heap_count) {
        if (child + 1 < x->heap_count &&
            tli_exact_comes_first(x, x->heap[child + 1], x->heap[child])) child++;
        if (!tli_exact_comes_first(x, x->heap[child], entry)) break;
        x->heap[at] = x->heap[child];
        at = child;
    }
    x->heap[at] = entry;
    TLI_INVARIANT(tli_exact_heap_holds(x));
    return top;
}

// Enlarge the hash table when there are as many states as buckets; without memory the lists get longer.
static void tli_exact_rehash(tli_exact *x) {
    int32_t *buckets, i;
    if (x->state_count < x->bucket_count || x->bucket_count > INT32_MAX / 4) return;
    buckets = (int32_t *)tli_alloc_array(x->env, (uint64_t)x->bucket_count * 4, sizeof *buckets);
    if (!buckets) return;
    tli_release(x->env, x->buckets);
    x->buckets = buckets;
    x->bucket_count *= 4;
    for (i = 0; i < x->state_count; i++) {
        tli_exact_state *s = &x->states[i];
        uint32_t hash = tli_exact_hash(s->wanted, s->position) & (uint32_t)(x->bucket_count - 1);
        s->next = buckets[hash];
        buckets[hash] = i + 1;
    }
    TLI_INVARIANT(x->state_count < x->bucket_count);
}

static int32_t tli_exact_find(const tli_exact *x, tli_set wanted, int32_t position) {
    uint32_t hash = tli_exact_hash(wanted, position) & (uint32_t)(x->bucket_count - 1);
    int32_t at = x->buckets[hash];
    while (at) {
        const tli_exact_state *s = &x->states[at - 1];
        if (s->position == position && tli_set_equals(s->wanted, wanted)) break;
        at = s->next;
    }
    return at - 1;
}

// Add a state; -1 = no memory (x->failed), or a cost beyond 64 bits.
static int32_t tli_exact_add_state(tli_exact *x, tli_set wanted, int32_t position, uint64_t cost) {
    void *states = x->states;
    tli_exact_state *s;
    uint32_t hash;
    int32_t at = x->state_count;
    if (!tli_grow(x->env, &states, &x->state_capacity, at, (int64_t)at + 1, sizeof *s)) {
        x->failed = 1;
        return -1;
    }
    x->states = (tli_exact_state *)states;
    s = &x->states[at];
    s->wanted = wanted;
    s->position = position;
    if (!tli_add_u64(tli_exact_estimate(x, position, wanted), cost, &s->total)) return -1;
    hash = tli_exact_hash(wanted, position) & (uint32_t)(x->bucket_count - 1);
    s->next = x->buckets[hash];
    x->buckets[hash] = at + 1;
    x->state_count++;
    tli_exact_rehash(x);
    TLI_INVARIANT(x->state_count <= x->state_capacity && s->total >= cost);
    return at;
}

// Whether a state wants what a node makes that may run once only, and runs later.
static int tli_exact_is_too_late(const tli_exact *x, tli_set wanted) {
    int32_t k, left = x->spent_count;
    for (k = 0; k < x->call_count && left > 0; k++) {
        const tli_exact_call *call = &x->calls[k];
        if (tli_set_is_empty(call->spent)) continue;
        left--;
        if (tli_set_is_within(call->spent, wanted) &&
            !tli_set_is_empty(tli_set_meet(wanted, tli_set_join(call->made, call->saved)))) return 1;
    }
    return 0;
}

// Record that the step `kind` of x->call leads from this state to x->after, at this cost and peak.
static void tli_exact_reach(tli_exact *x, tli_set wanted, int32_t position, tl_step_kind kind,
                            uint64_t cost, uint64_t peak) {
    tli_exact_state *s;
    int32_t at;
    if (x->spent_count && tli_exact_is_too_late(x, wanted)) return;
    if (x->peaks) cost = peak > x->paid ? peak : x->paid;
    else if (peak > x->budget) return;
    else if (!tli_add_u64(cost, x->paid, &cost)) x->full = 1;
    at = tli_exact_find(x, wanted, position);
    x->work += 32;
    if (at >= 0 && x->states[at].cost <= cost) return;
    if (at >= 0) x->states[at].total -= x->states[at].cost - cost;
    else if (!x->full) at = tli_exact_add_state(x, wanted, position, cost);
    if (at < 0) { x->full = 1; return; }
    s = &x->states[at];
    s->cost = cost;
    s->after = x->after;
    s->call = x->call;
    s->kind = (int32_t)kind;
    if (!x->width || s->total < x->most_total) tli_exact_push(x, at);
    TLI_INVARIANT(s->total >= s->cost && (s->after < 0 || x->states[s->after].cost <= s->cost));
}

// -- exact: edges, backwards in time --

// How a forward runs that does not save what is wanted afterwards. *bytes: its outputs, scratch and what it
// saves nevertheless, less the input that it overwrites.
static tl_step_kind tli_exact_find_form(const tli_exact_call *call, tli_set wanted_after, int32_t position,
                                        uint64_t *bytes) {
    int inplace = !tli_set_is_empty(tli_set_less(call->source, wanted_after));
    int may_save = call->turn >= position && tli_set_is_empty(tli_set_meet(wanted_after, call->saved));
    uint64_t over = inplace ? call->source_bytes : 0, saving = call->saved_bytes + call->swork_bytes;
    *bytes = call->out_bytes + call->fwork_bytes - over;
    if (!call->saved_bytes || !may_save || saving + over >= call->fwork_bytes)
        return inplace ? TL_STEP_FORWARD_INPLACE : TL_STEP_FORWARD;
    *bytes = call->out_bytes + saving;
    return TL_STEP_FORWARD_SAVE;
}

static void tli_exact_undo_forward(tli_exact *x, const tli_exact_call *call) {
    tli_set before = tli_set_join(tli_set_less(x->wanted_after, call->made), call->inputs);
    uint64_t between = x->positions[x->position].between_bytes, bytes;
    int makes = !tli_set_is_empty(tli_set_meet(x->wanted_after, call->made));
    int saves = !tli_set_is_empty(tli_set_meet(x->wanted_after, call->saved));
    tl_step_kind kind;
    if (x->position > call->latest) return;
    before = tli_set_join(before, call->spent);
    if (!tli_set_is_within(call->spent, x->given)) return;
    if (saves)  // `before` still has the saved item, so its bytes count during the call
        tli_exact_reach(x, tli_set_less(before, call->saved), x->position, TL_STEP_FORWARD_SAVE,
                        call->fwd_cost,
                        between + call->out_bytes + call->swork_bytes + tli_exact_weigh(x, before));
    if (!makes) return;
    kind = tli_exact_find_form(call, x->wanted_after, x->position, &bytes);
    tli_exact_reach(x, before, x->position, kind, call->fwd_cost,
                    between + bytes + tli_exact_weigh(x, before));
}

static void tli_exact_undo_backward(tli_exact *x) {
    const tli_exact_position *p = &x->positions[x->position - 1];
    tli_set before = tli_set_join(x->wanted_after, p->reads);
    x->call = p->call;
    tli_exact_reach(x, before, x->position - 1, TL_STEP_BACKWARD, p->bwd_cost,
                    p->during_bytes + tli_exact_weigh(x, before));
}

// -- exact: the search --

// Whether an expanded state of the same position wants a subset and costs no more; if not, add this one.
static int tli_exact_is_needless(tli_exact *x, const tli_exact_state *s) {
    tli_exact_position *p = &x->positions[s->position];
    void *settled = p->settled;
    int32_t i;
    for (i = 0; i < p->settled_count; i++) {
        tli_exact_settled found = p->settled[i];
        if (found.cost > s->cost || !tli_set_is_within(found.wanted, s->wanted)) continue;
        p->settled[i] = p->settled[i / 2];  // move towards the front: it is likely to dominate again
        p->settled[i / 2] = found;
        x->work += (uint64_t)i;
        return 1;
    }
    x->work += (uint64_t)i;
    if (!tli_grow(x->env, &settled, &p->settled_capacity, i, (int64_t)i + 1, sizeof *p->settled)) {
        x->full = x->failed = 1;
        return 0;
    }
    p->settled = (tli_exact_settled *)settled;
    p->settled[i].wanted = s->wanted;
    p->settled[i].cost = s->cost;
    p->settled_count++;
    TLI_INVARIANT(p->settled_count <= p->settled_capacity);
    TLI_INVARIANT(!x->width || p->settled_count <= x->width);
    return 0;
}

// Returns the state at the start of the plan, or -1: *bound is then a lower bound of every plan's cost;
// UINT64_MAX = no plan fits. Without memory (x->failed), and with a width, *bound means nothing.
static int32_t tli_exact_search(tli_exact *x, uint64_t *bound) {
    int32_t k;
    *bound = 0;
    x->after = x->call = -1;
    tli_exact_reach(x, x->target, x->last, TL_STEP_COUNT, 0, 0);
    while (x->heap_count && !x->full) {
        tli_exact_entry top = x->heap[0];
        const tli_exact_state *s = &x->states[top.state];
        if (s->total > *bound && top.total == s->total) *bound = s->total;
        if (x->work > x->work_limit || x->state_count > TLI_EXACT_STATES ||
            tli_remat_stops(x->watch, x->work)) return -1;
        tli_exact_pop(x);
        if (top.total != s->total) continue;  // outdated: the state was reached again at a lower cost
        if (s->position == x->first && tli_set_is_within(s->wanted, x->given)) return top.state;
        TLI_INVARIANT(s->total >= s->cost && s->position >= x->first && s->position <= x->last);
        if (x->width && x->positions[s->position].settled_count >= x->width) continue;
        if (tli_exact_is_needless(x, s)) continue;
        x->after = top.state;
        x->wanted_after = s->wanted;
        x->position = s->position;
        x->paid = s->cost;
        if (x->position > x->first) tli_exact_undo_backward(x);
        for (k = 0; k < x->call_count && !x->full; k++) {
            x->call = k;
            tli_exact_undo_forward(x, &x->calls[k]);
        }
    }
    if (!x->full) *bound = UINT64_MAX;
    return -1;
}

// -- exact: steps --

static void tli_exact_add_drops(const tli_exact *x, tli_set items, tli_steps *steps) {
    int32_t i;
    for (i = 0; i < x->graph->tensor_count; i++)
        if (x->item_of[i] >= 0 && tli_set_has(items, x->item_of[i]))
            tli_add_tensor_step(steps, x->graph, TL_STEP_DROP, i);
    for (i = 0; i < x->graph->node_count; i++)
        if (x->saved_of[i] >= 0 && x->graph->nodes[i].saved_bytes && tli_set_has(items, x->saved_of[i]))
            tli_add_step(steps, tli_step_of(TL_STEP_DROP_SAVED, i, TL_ALL_OUTPUTS));
}

// Write the steps from the start on; after each step, what the next state does not want is dropped.
static void tli_exact_add_steps(const tli_exact *x, int32_t state, tli_steps *steps) {
    for (; x->states[state].after >= 0; state = x->states[state].after) {
        const tli_exact_state *s = &x->states[state], *t = &x->states[s->after];
        const tli_exact_call *call = &x->calls[s->call];
        const tl_node *node = &x->graph->nodes[call->node];
        tli_set gone = tli_set_less(s->wanted, t->wanted);
        int32_t i, end = s->kind == TL_STEP_BACKWARD ? 0 : node->first_output + node->output_count;
        tli_add_step(steps, tli_step_of((tl_step_kind)s->kind, call->node, TL_ALL_OUTPUTS));
        if (s->kind == TL_STEP_FORWARD_INPLACE) gone = tli_set_less(gone, call->source);
        if (s->kind == TL_STEP_BACKWARD) gone = tli_set_less(gone, call->saved);
        if (s->kind == TL_STEP_FORWARD_SAVE) gone = tli_set_join(gone, tli_set_less(call->saved, t->wanted));
        tli_exact_add_drops(x, gone, steps);
        for (i = node->first_output; i < end; i++)
            if (x->item_of[i] < 0 || !tli_set_has(t->wanted, x->item_of[i]))
                tli_add_tensor_step(steps, x->graph, TL_STEP_DROP, i);
    }
}

// -- exact: from graph to plan --

static void tli_exact_free(tli_exact *x) {
    int32_t k;
    for (k = 0; x->positions && k < x->position_count; k++)
        tli_release(x->env, x->positions[k].settled);
    tli_release(x->env, x->item_of);
    tli_release(x->env, x->call_of);
    tli_release(x->env, x->saved_of);
    tli_release(x->env, x->wanted);
    tli_release(x->env, x->calls);
    tli_release(x->env, x->positions);
    tli_release(x->env, x->loads);
    tli_release(x->env, x->weights);
    tli_release(x->env, x->states);
    tli_release(x->env, x->heap);
    tli_release(x->env, x->buckets);
    tli_zero(x, sizeof *x);
}

// Read a graph that passed tl_check_graph. If x->item_count > TLI_EXACT_ITEMS afterwards, the graph is too
// large and nothing more was read. Release with tli_exact_free, also after an error.
static tl_result tli_exact_init(tl_env *env, tli_exact *x, const tl_graph *graph,
                                int32_t inference) {
    uint64_t tensors = (uint64_t)graph->tensor_count, nodes = (uint64_t)graph->node_count;
    uint8_t *read_by_grad = (uint8_t *)tli_alloc_array(env, tensors, 1);
    tl_result result;
    tli_zero(x, sizeof *x);
    x->env = env;
    x->graph = graph;
    x->inference = inference;
    x->item_of = (int32_t *)tli_alloc_array(env, tensors, sizeof *x->item_of);
    x->call_of = (int32_t *)tli_alloc_array(env, nodes, sizeof *x->call_of);
    x->saved_of = (int32_t *)tli_alloc_array(env, nodes, sizeof *x->saved_of);
    x->wanted = (uint8_t *)tli_alloc_array(env, tensors, 1);
    if (read_by_grad && x->item_of && x->call_of && x->saved_of && x->wanted) {
        tli_exact_find_wanted(x);
        tli_exact_number(x, read_by_grad);
        result = x->item_count > TLI_EXACT_ITEMS ? TL_OK : tli_exact_alloc(x);
        if (!result && x->item_count <= TLI_EXACT_ITEMS) {
            tli_exact_read_calls(x);
            tli_exact_read_positions(x);
        }
    } else {
        result = TL_ERROR_NO_MEMORY;
    }
    tli_release(env, read_by_grad);
    return result;
}

static tl_result tli_exact_plan(tli_exact *x, uint64_t budget, tli_steps *best, uint64_t *cost,
                                uint64_t *bound) {
    int32_t start = -1;
    x->budget = budget;
    tli_exact_read_before(x);
    *bound = UINT64_MAX;
    if (tli_exact_read_budget(x)) start = tli_exact_search(x, bound);
    if (x->failed) return TL_ERROR_NO_MEMORY;
    x->found = start >= 0;
    if (start >= 0) {
        *cost = *bound = x->states[start].cost;
        tli_exact_add_steps(x, start, best);
        return best->failed ? TL_ERROR_NO_MEMORY : TL_OK;
    }
    if (*bound != UINT64_MAX) return TL_OK;
    *bound = 0;
    return TL_ERROR_INFEASIBLE;
}

// Find a plan of least cost within the budget; graph inputs count, weights do not.
//
//   best   an empty list, gets the steps; stays empty if no plan was found
//   cost   of the plan, 0 = none was found
//   bound  lower bound of the cost of every plan: the cost itself if it is proven
//   proven 1 = the plan is optimal, or with TL_ERROR_INFEASIBLE that none fits; 0 = *work reached
//          work_limit, there are more than TLI_EXACT_STATES states, progress asked to stop, a cost does not fit
//          64 bits, or the graph has more than TLI_EXACT_ITEMS items
//   work   elementary steps are added to it
//
// Errors: TL_ERROR_INFEASIBLE, TL_ERROR_NO_MEMORY.
static tl_result tli_remat_exact(tl_env *env, const tl_graph *graph, uint64_t budget, int32_t inference,
                                 tli_remat_watch *watch, uint64_t work_limit, tli_steps *best,
                                 uint64_t *cost, uint64_t *bound, int32_t *proven, uint64_t *work) {
    tli_exact x;
    tl_result result = tli_exact_init(env, &x, graph, inference);
    *cost = *bound = 0;
    *proven = 0;
    x.watch = watch;
    x.work = *work;
    x.work_limit = work_limit;
    if (!result && x.item_count <= TLI_EXACT_ITEMS) {
        result = tli_exact_plan(&x, budget, best, cost, bound);
        *proven = result == TL_ERROR_INFEASIBLE || (!result && x.found);
    }
    *work = x.work;
    tli_exact_free(&x);
    return result;
}

// The fewest bytes of a forward beside its inputs.
static uint64_t tli_exact_least_call(const tli_exact_call *call) {
    uint64_t bytes = call->out_bytes - call->source_bytes + call->fwork_bytes;
    uint64_t saving = call->out_bytes + call->saved_bytes + call->swork_bytes;
    return !call->saved_bytes || bytes < saving ? bytes : saving;
}

// The largest working set of a single call among those that must run: a lower bound of every budget.
static uint64_t tli_exact_least(const tli_exact *x) {
    uint64_t least = x->pinned_bytes, bytes;
    tli_set wanted = tli_set_join(x->positions[x->last].before, x->target);
    int32_t k;
    tli_exact_close(x, &wanted);
    for (k = 0; k < x->call_count; k++) {
        const tli_exact_call *call = &x->calls[k];
        if (tli_set_is_empty(tli_set_meet(wanted, tli_set_join(call->made, call->saved)))) continue;
        bytes = x->pinned_bytes + tli_exact_weigh(x, call->inputs) + tli_exact_least_call(call);
        if (bytes > least) least = bytes;
    }
    for (k = 0; k < x->position_count - 1; k++) {
        bytes = x->positions[k].during_bytes + tli_exact_weigh(x, x->positions[k].reads);
        if (bytes > least) least = bytes;
    }
    return least;
}

// Find the least budget that some plan fits: *floor, and the steps of that plan. If *proven is 0 (reasons as
// above), *floor is only a lower bound of it, and there are no steps.
static tl_result tli_remat_exact_floor(tl_env *env, const tl_graph *graph, int32_t inference,
                                       tli_remat_watch *watch,
                                       uint64_t work_limit, tli_steps *steps, uint64_t *floor,
                                       int32_t *proven, uint64_t *work) {
    tli_exact x;
    int32_t start = -1;
    tl_result result = tli_exact_init(env, &x, graph, inference);
    *floor = 0;
    *proven = 0;
    x.peaks = 1;
    x.watch = watch;
    x.work = *work;
    x.work_limit = work_limit;
    if (!result && x.item_count <= TLI_EXACT_ITEMS) {
        tli_exact_read_before(&x);
        x.paid = tli_exact_least(&x);
        start = tli_exact_search(&x, floor);
        if (start >= 0) tli_exact_add_steps(&x, start, steps);
        *proven = start >= 0;
        if (x.failed || steps->failed) { *proven = 0; result = TL_ERROR_NO_MEMORY; }
    }
    *work = x.work;
    tli_exact_free(&x);
    return result;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

