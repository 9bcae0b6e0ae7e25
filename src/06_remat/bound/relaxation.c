#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- bound: lower bounds of the cost of any schedule under a budget, and of the least budget --
//
// The relaxation. A training schedule runs its backwards in reverse listing order, so the tensors that are
// read before and after a backward are known, whatever the schedule does. Choose k backwards v_1 > .. > v_k,
// the instants. They cut every schedule into spans: span 0 before B v_1, span a from B v_a to B v_(a+1),
// span k to the end. An item is a tensor, or saved(v); making either takes one forward of its node. For a
// schedule that fits the budget, let
//     x[a][t] = 1   item t is resident while B v_a runs
//     d[a][n] = 1   a forward of n runs in span a                    (F, I or S: each costs fwd)
//     w[a][t] = 1   item t is resident at some moment of span a
// Then, for every a >= 1:
//     (1) w[a][t] = 1 where a backward of span a, or B v_(a+1), reads t; at the end where t is kept
//     (2) w[a][t] <= x[a][t] + d[a][maker of t]         t was resident at the start of the span, or was made
//     (3) d[a][n] <= w[a][s] for each input s of n       a forward reads its inputs
//     (4) x[a+1][t] <= w[a][t]
//     (5) sum of bytes(t) x[a][t] <= budget - graph inputs - gradients alive during B v_a - bwork
//     (6) x[a][t] = 1 where B v_a reads t; where the maker of t may run once only and has run before B v_a,
//         also where a later backward reads t, or t is kept
// Each node that some backward up to B v_a depends on ran in some span before a, so a forward of it in span
// a is a repetition. The schedule therefore costs at least its base cost (each backward, and each forward
// that must run, once) plus
//     sum over a >= 1 and such nodes n of fwd(n) d[a][n],
// and the minimum of that over all 0/1 values of x, d, w that satisfy (1) .. (6) is a lower bound. Nodes
// whose outputs nothing needs are not in the base cost, and their forwards cost nothing in (2): that can
// only lower the bound.
//
// A forward call can be an instant, too, where it is known that every schedule makes it between two backwards
// u > v: B v reads what does not fit beside the working set of B u, so its maker runs between them, and so do
// the makers of what that call reads and does not fit beside B u. The last such call before B v, and the last
// one before that which it depends on, come in a known order. In (1) such a call reads what it reads and makes,
// in (5) the room is budget - graph inputs - gradients alive between B u and B v - the bytes of the call, in
// (6) x of what it reads and makes is 1.
//
// The bound. (4) goes into the objective with multipliers mu[a][t] >= 0, (5) with lambda[a] >= 0, which
// leaves one problem per span: a minimum cut (source side = 1; x[a][t] is "w[a][t] and not d[a][maker]",
// the arc from t to its maker), exact in integers. The sum is a lower bound for any multipliers (weak
// duality), so the method that finds them cannot make it wrong: intersecting lines for one instant, else
// subgradient steps. The remaining duality gap is narrowed by branching on x[a][t]: the bound is the least
// over the open branches, and is valid whenever the work ends. Bytes are divided by a unit and rounded down
// on both sides of (5); costs are scaled by a power of two and rounded down where they shrink; the result is
// rounded up to a multiple of the greatest common divisor of the forward costs.
//
// This part: the relaxation, and what it reads of the graph before a budget is known. The parts that follow
// solve it for one span, find the instants, multipliers and branches that raise it, and make bounds of it.

#define TLI_BOUND_INSTANTS 10                      // at most, in one relaxation
#define TLI_BOUND_CALLS 256                        // that every schedule makes, at most, among the events
#define TLI_BOUND_CELLS 290000                     // pairs of an instant and an item, about, in large graphs
#define TLI_BOUND_INFINITE (INT64_C(1) << 62)      // a capacity that no flow reaches
#define TLI_BOUND_COSTS (INT64_C(1) << 50)         // all scaled costs together, and the largest mu
#define TLI_BOUND_UNITS 26                         // bits of the sum of all bytes, in units
#define TLI_BOUND_PRICES (INT64_C(1) << 58)        // what all units together cost at the largest lambda

enum { TLI_BOUND_FREE, TLI_BOUND_KEPT, TLI_BOUND_ABSENT };  // x[a][t] not fixed, fixed to 1, fixed to 0

// The flow network, the same for all spans: source -> item -> maker -> its inputs; node -> sink. The arcs out
// of vertex v, and the reverse of each arc into it, lie side by side at first[v] .. first[v + 1] - 1. They were
// added in this order: the arc from the source to item t as number t, that from t to its maker as items + t.
typedef struct tli_bound_net {
    int32_t  vertex_count, arc_count;        // arc_count: without their reverses
    int32_t  is_counted;                     // 1 = first[] is known
    int32_t *to, *mate;                      // [2 arc_count] the vertex an arc leads to, its reverse
    int32_t *place;                          // [arc_count] of an arc by its number
    int64_t *left, *back;                    // [2 arc_count] residual capacities of an arc and of its reverse
    int32_t *first;                          // [vertex_count + 1]
    int32_t *level, *cursor, *queue, *path;  // [vertex_count + 2]
} tli_bound_net;

struct tli_bound_label;
struct tli_bound_cut;

// A moment at which it is known what must be resident: a backward, or a forward call that every schedule makes
// between two backwards. Instants are events.
typedef struct tli_bound_event {
    int32_t  position;           // in tli_bound.order; of a call: that of the backward after it
    int32_t  call;               // node; -1 = the backward at the position
    uint64_t room;               // budget less the working set
} tli_bound_event;

typedef struct tli_bound {
    tl_env         *env;
    const tl_graph *graph;
    tli_remat_watch *watch;
    uint64_t       *work, work_limit;
    uint64_t        table_limit;  // work of one table; 0 = no tables
    uint64_t        flow_limit;   // of *work: flows end there, maximal or not
    int32_t   is_reached;        // 1 = the value reaches the cost of a plan: watch->target
    int32_t   item_count, order_count;
    int32_t   most_instants;     // of a relaxation
    int32_t  *item_of;          // [tensor_count + node_count] item of a tensor, of saved(v); -1 = none
    int32_t  *maker;             // [item_count] node
    uint64_t *exact;             // [item_count] bytes
    int64_t  *bytes;             // [item_count] in units, rounded down
    uint8_t  *at_end;            // [item_count] 1 = resident at the end
    int32_t  *order;             // [order_count] nodes in the order of their backwards
    int32_t  *runs_by;           // [node_count] position of the first backward that needs it: see
                                 // tli_bound_find_runs
    int64_t  *cost;              // [node_count] scaled fwd
    uint64_t *sets, *between;    // [order_count] see tli_bound_find_sets
    uint64_t *held;              // [order_count] bytes that stay beside the set of that backward, because
                                 // what made them cannot run again: see tli_bound_find_held
    int32_t  *last_read;         // [item_count] position of the last backward that reads it; order_count = it
                                 // stays to the end; -1 = none does
    uint64_t *room;              // [order_count] budget less sets and held of that backward; with a host, plus
                                 // what may be on it
    tli_bound_event *events;     // [event_count] in the order in which they happen
    int32_t   event_count;
    uint64_t *calls;             // [node_count] bytes that a forward reads, but for graph inputs, and of its
                                 // outputs
    uint64_t *reused;            // [node_count] of these, the input that it may overwrite; 0 = none
    uint64_t *calls_above;       // [node_count] at least the bytes of each call of the node and of all that it
                                 // depends on
    int32_t  *stack, *stamps;    // [node_count] scratch: tli_bound_exceeds_in_gap
    int64_t   steps_left;        // that walks over calls may still take, of TLI_BOUND_WALK
    uint8_t  *reads_mark;        // [item_count] scratch
    int64_t  *enter;             // [item_count] scratch: tli_bound_find_enters
    int64_t  *price;             // [item_count] scratch: tli_bound_price of each
    int32_t  *last_use;          // [item_count] scratch: tli_bound_find_uses
    struct tli_bound_label *labels, *merged, *made;  // [2 TLI_BOUND_LABELS]; made [TLI_BOUND_LABELS]
    struct tli_bound_cut *cuts;  // [cut_count] of cut_bytes each: cuts of spans that are remembered
    int32_t   cut_count;
    uint64_t  cut_bytes;
    uint64_t  unit, base_cost, cost_step;
    int64_t   units, most_lambda;  // of all items together; the largest lambda
    int32_t   cost_up, cost_down;  // scaled = cost << up >> down
    int64_t   typical;           // mean bytes of an item in units, for the length of steps
    tli_bound_net net;
    void     *memory[26];         // allocations of tli_bound_take
    int32_t   memory_count, failed;
} tli_bound;

// One relaxation: instants, multipliers, fixed variables. Arrays are [count][item_count].
typedef struct tli_bound_state {
    int32_t  count;
    int32_t  at[TLI_BOUND_INSTANTS];       // events
    int64_t  lambda[TLI_BOUND_INSTANTS];   // scaled cost per unit
    int64_t  room[TLI_BOUND_INSTANTS];     // units
    int64_t  value;                     // scaled bound at these multipliers
    int32_t  is_exact;                  // 1 = the value is the optimum of the relaxation: nothing to branch on
    int64_t *mu;
    uint8_t *fixed;
    uint8_t *share;                     // running mean of x, 255 = 1
} tli_bound_state;

// Allocate an array that tli_bound_free releases; NULL: no memory (model->failed).
static void *tli_bound_take(tli_bound *model, int64_t count, size_t item_bytes) {
    void *memory = tli_alloc_array(model->env, (uint64_t)count, item_bytes);
    if (memory) model->memory[model->memory_count++] = memory;
    else model->failed = 1;
    return memory;
}

static void tli_bound_free(tli_bound *model) {
    while (model->memory_count > 0) tli_release(model->env, model->memory[--model->memory_count]);
}

// -- bound: set-up: what must run before which backward, items, bytes and costs --

// Find runs_by[]: the position of the first backward that needs a node to have run; node_count where only a
// result needs it, INT32_MAX where nothing does. wanted: scratch [tensor_count].
static void tli_bound_find_runs(tli_bound *model, int32_t inference, uint8_t *wanted) {
    const tl_graph *graph = model->graph;
    int32_t id, i;
    tli_mark_results(graph, inference, wanted);
    model->order_count = 0;
    for (id = graph->node_count; id-- > 0;) {
        model->runs_by[id] = wanted[graph->nodes[id].first_output] ? graph->node_count : INT32_MAX;
        if (!graph->nodes[id].has_grad || inference) continue;
        model->runs_by[id] = model->order_count;
        model->order[model->order_count++] = id;
    }
    for (i = 0; i < graph->tensor_count; i++)
        if (wanted[i] && model->item_of[i] >= 0) model->at_end[model->item_of[i]] = 1;
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t *by = &model->runs_by[graph->outputs[graph->inputs[i].tensor].node];
            if (model->runs_by[id] < *by) *by = model->runs_by[id];
        }
    }
}

static uint64_t tli_bound_gcd(uint64_t a, uint64_t b) {
    while (b) { uint64_t rest = a % b; a = b; b = rest; }
    return a;
}

// Find the base cost, and scale costs so that their sum is at most TLI_BOUND_COSTS.
static void tli_bound_scale_costs(tli_bound *model) {
    const tl_graph *graph = model->graph;
    uint64_t sum = 0;
    int32_t id;
    for (id = 0; id < graph->node_count; id++) {  // fits 64 bits: tl_check_graph
        const tl_node *node = &graph->nodes[id];
        if (model->runs_by[id] == INT32_MAX) continue;
        if (model->runs_by[id] < model->order_count && node->has_grad) model->base_cost += node->bwd_cost;
        if (node->is_input) continue;
        model->base_cost += node->fwd_cost;
        sum += node->fwd_cost;
        model->cost_step = tli_bound_gcd(model->cost_step, node->fwd_cost);
    }
    if (!sum) sum = 1;
    while (sum >> model->cost_down > (uint64_t)TLI_BOUND_COSTS) model->cost_down++;
    while (!model->cost_down && sum << (model->cost_up + 1) <= (uint64_t)TLI_BOUND_COSTS) model->cost_up++;
    for (id = 0; id < graph->node_count; id++)
        if (model->runs_by[id] != INT32_MAX && !graph->nodes[id].is_input)
            model->cost[id] = (int64_t)(graph->nodes[id].fwd_cost >> model->cost_down << model->cost_up);
}

// Set mark[] to `value` for every item that the backward of a node reads.
static void tli_bound_mark_reads(const tli_bound *model, int32_t id, uint8_t *mark, uint8_t value) {
    const tl_graph *graph = model->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i, item;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        item = graph->inputs[i].needed ? model->item_of[graph->inputs[i].tensor] : -1;
        if (item >= 0) mark[item] = value;
    }
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        item = graph->outputs[i].needed ? model->item_of[i] : -1;
        if (item >= 0) mark[item] = value;
    }
    item = model->item_of[graph->tensor_count + id];
    if (item >= 0) mark[item] = value;
}

// Whether an item is resident at the backward of a position because its maker has run and cannot run again.
static int tli_bound_is_held(const tli_bound *model, int32_t item, int32_t position) {
    int32_t maker = model->maker[item];
    return model->graph->nodes[maker].once && model->runs_by[maker] <= position &&
           model->last_read[item] >= position;
}

// The last position of whose backward all needed forwards have run once when an event happens.
static int32_t tli_bound_ran_by(const tli_bound_event *event) { return event->position - (event->call >= 0); }

// Set mark[] to `value` for what a forward call reads and makes, its saved bytes too: they are among the bytes
// of the smallest call where that is one that saves.
static void tli_bound_mark_call(const tli_bound *model, int32_t id, uint8_t *mark, uint8_t value) {
    const tl_graph *graph = model->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i, item;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        item = model->item_of[graph->inputs[i].tensor];
        if (item >= 0) mark[item] = value;
    }
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (model->item_of[i] >= 0) mark[model->item_of[i]] = value;
    item = model->item_of[graph->tensor_count + id];
    if (item >= 0) mark[item] = value;
}

// Set mark[] to `value` for every item that is resident at an event whatever the schedule does.
static void tli_bound_mark_fixed(const tli_bound *model, const tli_bound_event *event, uint8_t *mark,
                                 uint8_t value) {
    int32_t t, ran_by = tli_bound_ran_by(event);
    if (event->call < 0) tli_bound_mark_reads(model, model->order[event->position], mark, value);
    else tli_bound_mark_call(model, event->call, mark, value);
    for (t = 0; t < model->item_count; t++)
        if (tli_bound_is_held(model, t, ran_by) && model->last_read[t] >= event->position) mark[t] = value;
}

// Unmark an item and return its bytes; 0 = it was not marked. held_at: -1, or only what is held at this
// position counts.
static uint64_t tli_bound_take_mark(const tli_bound *model, int32_t item, int32_t held_at) {
    if (item < 0 || !model->reads_mark[item]) return 0;
    model->reads_mark[item] = 0;
    return held_at < 0 || tli_bound_is_held(model, item, held_at) ? model->exact[item] : 0;
}

// The bytes of all items that the backward of a node reads, each once; reads_mark[] is zero before and after.
// held_at: as in tli_bound_take_mark.
static uint64_t tli_bound_sum_reads(const tli_bound *model, int32_t id, int32_t held_at) {
    const tl_graph *graph = model->graph;
    const tl_node *node = &graph->nodes[id];
    uint64_t sum = 0;
    int32_t i;
    tli_bound_mark_reads(model, id, model->reads_mark, 1);
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        sum += tli_bound_take_mark(model, model->item_of[graph->inputs[i].tensor], held_at);
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        sum += tli_bound_take_mark(model, model->item_of[i], held_at);
    return sum + tli_bound_take_mark(model, model->item_of[graph->tensor_count + id], held_at);
}

static uint64_t tli_bound_input_bytes(const tl_graph *graph) {
    uint64_t sum = 0;
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++)
        if (graph->nodes[graph->outputs[i].node].is_input) sum += graph->outputs[i].bytes;
    return sum;
}

// Find sets[], the bytes of every backward's working set (graph inputs, live gradients, scratch and what it
// reads), and between[], the bytes of graph inputs and live gradients after it.
// has_gradient: scratch [tensor_count], zeroed. The sums cannot overflow: tl_check_graph adds the same bytes.
static void tli_bound_find_sets(tli_bound *model, uint8_t *has_gradient) {
    const tl_graph *graph = model->graph;
    uint64_t live = tli_bound_input_bytes(graph);
    int32_t p, i;
    for (p = 0; p < model->order_count; p++) {
        const tl_node *node = &graph->nodes[model->order[p]];
        int32_t end = tli_gradient_end(node);
        for (i = node->first_output; i < end; i++)
            if (!has_gradient[i]) { has_gradient[i] = 1; live += graph->outputs[i].bytes; }
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor;
            if (has_gradient[tensor] || !tli_gets_gradient(graph, tensor)) continue;
            has_gradient[tensor] = 1;
            live += graph->outputs[tensor].bytes;
        }
        model->sets[p] = live + node->bwork_bytes + tli_bound_sum_reads(model, model->order[p], -1);
        for (i = node->first_output; i < end; i++) live -= graph->outputs[i].bytes;
        model->between[p] = live;
    }
}

static void tli_bound_note_read(const tli_bound *model, int32_t item, int32_t position) {
    if (item >= 0 && model->last_read[item] < position) model->last_read[item] = position;
}

// Find last_read[].
static void tli_bound_find_reads(tli_bound *model) {
    const tl_graph *graph = model->graph;
    int32_t p, t, i;
    for (t = 0; t < model->item_count; t++) model->last_read[t] = model->at_end[t] ? model->order_count : -1;
    for (p = 0; p < model->order_count; p++) {
        const tl_node *node = &graph->nodes[model->order[p]];
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            const tl_node_input *input = &graph->inputs[i];
            if (input->needed) tli_bound_note_read(model, model->item_of[input->tensor], p);
        }
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (graph->outputs[i].needed) tli_bound_note_read(model, model->item_of[i], p);
        tli_bound_note_read(model, model->item_of[graph->tensor_count + model->order[p]], p);
    }
}

// Find held[]: of what is held at a backward (tli_bound_is_held), the bytes that it does not read itself (what
// it reads is in its set). Bytes come with the first backward that needs the maker, and go behind the last that
// reads.
static void tli_bound_find_held(tli_bound *model) {
    uint64_t live = 0;
    int32_t p, t;
    tli_bound_find_reads(model);
    for (t = 0; t < model->item_count; t++) {
        int32_t from = model->runs_by[model->maker[t]], to = model->last_read[t] + 1;
        if (!model->graph->nodes[model->maker[t]].once || from >= to || from >= model->order_count) continue;
        model->held[from] += model->exact[t];                           // modulo 2^64: the sums are right
        if (to < model->order_count) model->held[to] -= model->exact[t];
    }
    for (p = 0; p < model->order_count; p++) {
        live += model->held[p];
        model->held[p] = live - tli_bound_sum_reads(model, model->order[p], p);
    }
}

// Number the items: tensors that are not graph inputs, and saved bytes that some backward reads.
static void tli_bound_find_items(tli_bound *model, int32_t inference) {
    const tl_graph *graph = model->graph;
    int32_t i, id;
    for (i = 0; i < graph->tensor_count; i++) {
        int is_input = graph->nodes[graph->outputs[i].node].is_input;
        model->item_of[i] = is_input ? -1 : model->item_count;
        if (is_input) continue;
        model->exact[model->item_count] = graph->outputs[i].bytes;
        model->maker[model->item_count++] = graph->outputs[i].node;
    }
    for (id = 0; id < graph->node_count; id++) {
        int is_read = !inference && graph->nodes[id].has_grad && graph->nodes[id].saved_bytes;
        model->item_of[graph->tensor_count + id] = is_read ? model->item_count : -1;
        if (!is_read) continue;
        model->exact[model->item_count] = graph->nodes[id].saved_bytes;
        model->maker[model->item_count++] = id;
    }
}

// Convert bytes to units so that their sum is below 2^26. The unit is a multiple of their greatest common
// divisor.
static void tli_bound_scale_bytes(tli_bound *model) {
    uint64_t sum = 0, divisor = 0;
    int32_t t, count = 0;
    for (t = 0; t < model->item_count; t++) {
        sum += model->exact[t];
        divisor = tli_bound_gcd(divisor, model->exact[t]);
        count += model->exact[t] > 0;
    }
    model->unit = divisor ? divisor : 1;
    if (sum / model->unit >> TLI_BOUND_UNITS) model->unit *= (sum / model->unit >> TLI_BOUND_UNITS) + 1;
    for (t = 0; t < model->item_count; t++) model->bytes[t] = (int64_t)(model->exact[t] / model->unit);
    model->units = (int64_t)(sum / model->unit) + 1;
    model->most_lambda = TLI_BOUND_PRICES / model->units;
    model->typical = count ? (int64_t)(sum / model->unit / (uint64_t)count) : 1;
    if (!model->typical) model->typical = 1;
}

#define TLI_BOUND_WALK INT64_C(16000000)  // steps of all walks over calls and their inputs in one model

// Find calls[], reused[] and calls_above[].
static void tli_bound_find_calls(tli_bound *model) {
    const tl_graph *graph = model->graph;
    int32_t id, i;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        int32_t end = node->first_input + node->input_count, reads = 0, over = -1;
        uint64_t above = 0;
        if (node->is_input) continue;
        if (node->inplace >= 0) over = graph->inputs[node->first_input + node->inplace].tensor;
        for (i = node->first_input; i < end; i++) {
            int32_t tensor = graph->inputs[i].tensor, maker = graph->outputs[tensor].node;
            reads += tensor == over;
            if (model->item_of[tensor] >= 0) model->reads_mark[model->item_of[tensor]] = 1;
            if (model->calls_above[maker] > above) above = model->calls_above[maker];
        }
        model->calls[id] = 0;
        for (i = node->first_input; i < end; i++)
            model->calls[id] += tli_bound_take_mark(model, model->item_of[graph->inputs[i].tensor], -1);
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            model->calls[id] += graph->outputs[i].bytes;
        model->reused[id] = reads == 1 ? graph->outputs[over].bytes : 0;
        model->calls_above[id] = model->calls[id] +
                                 tli_larger_u64(node->fwork_bytes, node->saved_bytes + node->swork_bytes);
        if (model->calls_above[id] < above) model->calls_above[id] = above;
    }
}

// Read everything that does not depend on the budget.
static tl_result tli_bound_open(tli_bound *model, int32_t inference) {
    const tl_graph *graph = model->graph;
    int64_t tensors = graph->tensor_count, nodes = graph->node_count, items = tensors + nodes;
    uint8_t *scratch = (uint8_t *)tli_bound_take(model, tensors, 1);
    model->item_of = (int32_t *)tli_bound_take(model, items, sizeof(int32_t));
    model->maker = (int32_t *)tli_bound_take(model, items, sizeof(int32_t));
    model->exact = (uint64_t *)tli_bound_take(model, items, sizeof(uint64_t));
    model->bytes = (int64_t *)tli_bound_take(model, items, sizeof(int64_t));
    model->at_end = (uint8_t *)tli_bound_take(model, 2 * items, 1);
    model->enter = (int64_t *)tli_bound_take(model, 2 * items, sizeof(int64_t));
    model->last_use = (int32_t *)tli_bound_take(model, 2 * items, sizeof(int32_t));
    model->order = (int32_t *)tli_bound_take(model, 4 * nodes, sizeof(int32_t));
    model->cost = (int64_t *)tli_bound_take(model, nodes, sizeof(int64_t));
    model->room = (uint64_t *)tli_bound_take(model, 7 * nodes, sizeof(uint64_t));
    model->events = (tli_bound_event *)tli_bound_take(model, nodes + TLI_BOUND_CALLS, sizeof *model->events);
    if (model->failed) return TL_ERROR_NO_MEMORY;
    model->reads_mark = model->at_end + items;
    model->price = model->enter + items;
    model->last_read = model->last_use + items;
    model->runs_by = model->order + nodes;
    model->sets = model->room + nodes;
    model->between = model->sets + nodes;
    model->calls = model->between + nodes;
    model->reused = model->calls + nodes;
    model->calls_above = model->reused + nodes;
    model->held = model->calls_above + nodes;
    model->stack = model->runs_by + nodes;
    model->stamps = model->stack + nodes;
    model->steps_left = TLI_BOUND_WALK;
    model->flow_limit = UINT64_MAX;
    tli_bound_find_items(model, inference);
    tli_bound_find_runs(model, inference, scratch);
    tli_zero(scratch, (size_t)tensors);
    tli_bound_find_sets(model, scratch);
    tli_bound_find_held(model);
    tli_bound_find_calls(model);
    tli_bound_scale_bytes(model);
    tli_bound_scale_costs(model);
    return TL_OK;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
