#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- bound: lower bounds of the cost of any schedule under a budget, and of the least budget --
//
// The relaxation. A training schedule runs its backwards in reverse listing order, so the tensors that are
// read before and after a backward are known, whatever the schedule does. Choose k backwards v_1 > .. > v_k,
// the instants. They cut every schedule into spans: span 0 before B v_1, span a from B v_a to B v_(a+1),
// span k to the end. A thing is a tensor, or saved(v); making either takes one forward of its node. For a
// schedule that fits the budget, let
//     x[a][t] = 1   thing t is resident while B v_a runs
//     d[a][n] = 1   a forward of n runs in span a                    (F, I or S: each costs fwd)
//     w[a][t] = 1   thing t is resident at some moment of span a
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
// The bound. (4) goes into the objective with multipliers mu[a][t] >= 0, (5) with lambda[a] >= 0, which
// leaves one problem per span: a minimum cut (source side = 1; x[a][t] is "w[a][t] and not d[a][maker]",
// the arc from t to its maker), exact in integers. The sum is a lower bound for any multipliers (weak
// duality), so the method that finds them cannot make it wrong: intersecting lines for one instant, else
// subgradient steps. The remaining duality gap is narrowed by branching on x[a][t]: the bound is the least
// over the open branches, and is valid whenever the work ends. Bytes are divided by a unit and rounded down
// on both sides of (5); costs are scaled by a power of two and rounded down where they shrink; the result is
// rounded up to a multiple of the greatest common divisor of the forward costs.

#define TLI_BOUND_INSTANTS 10                      // at most, in one relaxation
#define TLI_BOUND_CELLS 300000                     // pairs of an instant and a thing, about, in large graphs
#define TLI_BOUND_INFINITE (INT64_C(1) << 62)      // a capacity that no flow reaches
#define TLI_BOUND_COSTS (INT64_C(1) << 50)         // all scaled costs together, and the largest mu
#define TLI_BOUND_UNITS 26                         // bits of the sum of all bytes, in units
#define TLI_BOUND_PRICES (INT64_C(1) << 58)        // what all units together cost at the largest lambda

enum { TLI_BOUND_FREE, TLI_BOUND_KEPT, TLI_BOUND_ABSENT };  // x[a][t] not fixed, fixed to 1, fixed to 0

// The flow network, the same for all spans: source -> thing -> maker -> its inputs; node -> sink. Arc e ^ 1
// is the reverse of arc e. Arc 2t goes from the source to thing t, arc 2 (things + t) from t to its maker.
typedef struct tli_bound_net {
    int32_t  vertex_count, arc_count;
    int32_t *to;                 // [arc_count]
    int64_t *left;               // [arc_count] residual capacities
    int32_t *first, *arcs;       // arcs of vertex v: arcs[first[v]] .. arcs[first[v + 1] - 1]
    int32_t *level, *cursor, *queue, *path;  // [vertex_count]
} tli_bound_net;

struct tli_bound_label;

typedef struct tli_bound {
    tl_env         *env;
    const tl_graph *graph;
    tli_remat_watch *watch;
    uint64_t       *work, work_limit;
    uint64_t        table_limit;  // work of one table; 0 = no tables
    uint64_t        flow_limit;   // of *work: flows end there, maximal or not
    int32_t   thing_count, order_count;
    int32_t   most_instants;     // of a relaxation
    int32_t  *thing_of;          // [tensor_count + node_count] thing of a tensor, of saved(v); -1 = none
    int32_t  *maker;             // [thing_count] node
    uint64_t *exact;             // [thing_count] bytes
    int64_t  *bytes;             // [thing_count] in units, rounded down
    uint8_t  *at_end;            // [thing_count] 1 = resident at the end
    int32_t  *order;             // [order_count] nodes in the order of their backwards
    int32_t  *runs_by;           // [node_count] position of the first backward that needs it; INT32_MAX
    int64_t  *cost;              // [node_count] scaled fwd
    uint64_t *sets, *between;    // [order_count] see tli_bound_find_sets
    uint64_t *held;              // [order_count] bytes that stay beside the set of that backward, because
                                 // what made them cannot run again: see tli_bound_find_held
    int32_t  *last_read;         // [thing_count] position of the last backward that reads it; order_count = it
                                 // stays to the end; -1 = none does
    uint64_t *room;              // [order_count] budget less the working set of that backward
    uint64_t *calls;             // [node_count] bytes of a forward call but scratch: see tli_bound_call_bytes
    uint64_t *reused;            // [node_count] of these, the input that it may overwrite; 0 = none
    uint64_t *calls_above;       // [node_count] the largest call over the node and all that it depends on
    int32_t  *stack, *stamps;    // [node_count] scratch: tli_bound_exceeds_in_gap
    int64_t   steps_left;        // of walks, for each tli_bound_open: tli_bound_exceeds_in_gap
    uint8_t  *reads_mark;        // [thing_count] scratch
    int64_t  *enter;             // [thing_count] scratch: tli_bound_find_enters
    int32_t  *last_use;          // [thing_count] scratch: tli_bound_find_uses
    struct tli_bound_label *labels, *made;  // [2 TLI_BOUND_LABELS], [TLI_BOUND_LABELS]
    uint64_t  unit, base_cost, cost_step;
    int64_t   units, most_lambda;  // of all things together; the largest lambda
    int32_t   cost_up, cost_down;  // scaled = cost << up >> down
    int64_t   typical;           // mean bytes of a thing in units, for the length of steps
    tli_bound_net net;
    void     *memory[25];         // allocations of tli_bound_take
    int32_t   memory_count, failed;
} tli_bound;

// One relaxation: instants, multipliers, fixed variables. Arrays are [count][thing_count].
typedef struct tli_bound_state {
    int32_t  count;
    int32_t  at[TLI_BOUND_INSTANTS];       // positions in order
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

// -- bound: set-up: what must run before which backward, things, bytes and costs --

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
        if (wanted[i] && model->thing_of[i] >= 0) model->at_end[model->thing_of[i]] = 1;
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
        if (node->is_input || model->runs_by[id] == INT32_MAX) continue;
        model->base_cost += node->fwd_cost;
        if (model->runs_by[id] < model->order_count && node->has_grad) model->base_cost += node->bwd_cost;
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

// Set mark[] to `value` for every thing that the backward of a node reads.
static void tli_bound_mark_reads(const tli_bound *model, int32_t id, uint8_t *mark, uint8_t value) {
    const tl_graph *graph = model->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i, thing;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        thing = graph->inputs[i].needed ? model->thing_of[graph->inputs[i].tensor] : -1;
        if (thing >= 0) mark[thing] = value;
    }
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        thing = graph->outputs[i].needed ? model->thing_of[i] : -1;
        if (thing >= 0) mark[thing] = value;
    }
    thing = model->thing_of[graph->tensor_count + id];
    if (thing >= 0) mark[thing] = value;
}

// Whether a thing is resident at the backward of a position because its maker has run and cannot run again.
static int tli_bound_is_held(const tli_bound *model, int32_t thing, int32_t position) {
    int32_t maker = model->maker[thing];
    return model->graph->nodes[maker].once && model->runs_by[maker] <= position &&
           model->last_read[thing] >= position;
}

// Set mark[] to `value` for every thing that is resident at a backward whatever the schedule does.
static void tli_bound_mark_fixed(const tli_bound *model, int32_t position, uint8_t *mark, uint8_t value) {
    int32_t t;
    tli_bound_mark_reads(model, model->order[position], mark, value);
    for (t = 0; t < model->thing_count; t++) if (tli_bound_is_held(model, t, position)) mark[t] = value;
}

// Unmark a thing and return its bytes; 0 = it was not marked. held_at: -1, or only what is held at this
// position counts.
static uint64_t tli_bound_take_mark(const tli_bound *model, int32_t thing, int32_t held_at) {
    if (thing < 0 || !model->reads_mark[thing]) return 0;
    model->reads_mark[thing] = 0;
    return held_at < 0 || tli_bound_is_held(model, thing, held_at) ? model->exact[thing] : 0;
}

// The bytes of all things that the backward of a node reads, each once; reads_mark[] is zero before and after.
// held_at: as in tli_bound_take_mark.
static uint64_t tli_bound_sum_reads(const tli_bound *model, int32_t id, int32_t held_at) {
    const tl_graph *graph = model->graph;
    const tl_node *node = &graph->nodes[id];
    uint64_t sum = 0;
    int32_t i;
    tli_bound_mark_reads(model, id, model->reads_mark, 1);
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        sum += tli_bound_take_mark(model, model->thing_of[graph->inputs[i].tensor], held_at);
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        sum += tli_bound_take_mark(model, model->thing_of[i], held_at);
    return sum + tli_bound_take_mark(model, model->thing_of[graph->tensor_count + id], held_at);
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
        int32_t end = node->first_output + node->output_count;
        for (i = node->first_output; i < end; i++)
            if (!has_gradient[i]) { has_gradient[i] = 1; live += graph->outputs[i].bytes; }
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor;
            if (has_gradient[tensor] || !graph->nodes[graph->outputs[tensor].node].has_grad) continue;
            has_gradient[tensor] = 1;
            live += graph->outputs[tensor].bytes;
        }
        model->sets[p] = live + node->bwork_bytes + tli_bound_sum_reads(model, model->order[p], -1);
        for (i = node->first_output; i < end; i++) live -= graph->outputs[i].bytes;
        model->between[p] = live;
    }
}

static void tli_bound_note_read(const tli_bound *model, int32_t thing, int32_t position) {
    if (thing >= 0 && model->last_read[thing] < position) model->last_read[thing] = position;
}

// Find last_read[].
static void tli_bound_find_reads(tli_bound *model) {
    const tl_graph *graph = model->graph;
    int32_t p, t, i;
    for (t = 0; t < model->thing_count; t++) model->last_read[t] = model->at_end[t] ? model->order_count : -1;
    for (p = 0; p < model->order_count; p++) {
        const tl_node *node = &graph->nodes[model->order[p]];
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            const tl_node_input *input = &graph->inputs[i];
            if (input->needed) tli_bound_note_read(model, model->thing_of[input->tensor], p);
        }
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (graph->outputs[i].needed) tli_bound_note_read(model, model->thing_of[i], p);
        tli_bound_note_read(model, model->thing_of[graph->tensor_count + model->order[p]], p);
    }
}

// Find held[]: of what is held at a backward (tli_bound_is_held), the bytes that it does not read itself, which
// are in its set. Bytes come with the first backward that needs the maker, and go behind the last that reads.
static void tli_bound_find_held(tli_bound *model) {
    uint64_t live = 0;
    int32_t p, t;
    tli_bound_find_reads(model);
    for (t = 0; t < model->thing_count; t++) {
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

// Number the things: tensors that are not graph inputs, and saved bytes that some backward reads.
static void tli_bound_find_things(tli_bound *model, int32_t inference) {
    const tl_graph *graph = model->graph;
    int32_t i, id;
    for (i = 0; i < graph->tensor_count; i++) {
        int is_input = graph->nodes[graph->outputs[i].node].is_input;
        model->thing_of[i] = is_input ? -1 : model->thing_count;
        if (is_input) continue;
        model->exact[model->thing_count] = graph->outputs[i].bytes;
        model->maker[model->thing_count++] = graph->outputs[i].node;
    }
    for (id = 0; id < graph->node_count; id++) {
        int is_read = !inference && graph->nodes[id].has_grad && graph->nodes[id].saved_bytes;
        model->thing_of[graph->tensor_count + id] = is_read ? model->thing_count : -1;
        if (!is_read) continue;
        model->exact[model->thing_count] = graph->nodes[id].saved_bytes;
        model->maker[model->thing_count++] = id;
    }
}

// Convert bytes to units so that their sum is below 2^26. The unit is a multiple of their greatest common
// divisor.
static void tli_bound_scale_bytes(tli_bound *model) {
    uint64_t sum = 0, divisor = 0;
    int32_t t, count = 0;
    for (t = 0; t < model->thing_count; t++) {
        sum += model->exact[t];
        divisor = tli_bound_gcd(divisor, model->exact[t]);
        count += model->exact[t] > 0;
    }
    model->unit = divisor ? divisor : 1;
    if (sum / model->unit >> TLI_BOUND_UNITS) model->unit *= (sum / model->unit >> TLI_BOUND_UNITS) + 1;
    for (t = 0; t < model->thing_count; t++) model->bytes[t] = (int64_t)(model->exact[t] / model->unit);
    model->units = (int64_t)(sum / model->unit) + 1;
    model->most_lambda = TLI_BOUND_PRICES / model->units;
    model->typical = count ? (int64_t)(sum / model->unit / (uint64_t)count) : 1;
    if (!model->typical) model->typical = 1;
}

// -- bound: the network --

static void tli_bound_add_arc(tli_bound_net *net, int32_t from, int32_t to) {
    net->to[net->arc_count++] = to;
    net->to[net->arc_count++] = from;
}

// Add the arcs in the order that tli_bound_net names, then node -> sink as arc 2 (2 things + node), then
// maker -> input.
static void tli_bound_make_net(tli_bound *model) {
    const tl_graph *graph = model->graph;
    tli_bound_net *net = &model->net;
    int32_t things = model->thing_count, nodes = graph->node_count, source = things + nodes, i, v;
    net->vertex_count = source + 2;
    for (i = 0; i < things; i++) tli_bound_add_arc(net, source, i);
    for (i = 0; i < things; i++) tli_bound_add_arc(net, i, things + model->maker[i]);
    for (i = 0; i < nodes; i++) tli_bound_add_arc(net, things + i, source + 1);
    for (i = 0; i < nodes; i++) {
        const tl_node *node = &graph->nodes[i];
        for (v = node->first_input; v < node->first_input + node->input_count; v++) {
            int32_t thing = model->thing_of[graph->inputs[v].tensor];
            if (thing >= 0) tli_bound_add_arc(net, things + i, thing);
        }
    }
    for (i = 0; i < net->arc_count; i++) net->first[net->to[i ^ 1] + 1]++;
    for (v = 0; v < net->vertex_count; v++) net->first[v + 1] += net->first[v];
    for (v = 0; v < net->vertex_count; v++) net->cursor[v] = net->first[v];
    for (i = 0; i < net->arc_count; i++) net->arcs[net->cursor[net->to[i ^ 1]]++] = i;
}

// Find level[], 1 + the distance to the sink along arcs with capacity left; 0 = no path. Returns 1 if there
// is a path from the source.
static int tli_bound_find_levels(tli_bound_net *net, uint64_t *work) {
    int32_t source = net->vertex_count - 2, sink = source + 1, head = 0, tail = 0, k;
    tli_zero(net->level, (size_t)net->vertex_count * sizeof *net->level);
    net->level[sink] = 1;
    net->queue[tail++] = sink;
    while (head < tail) {
        int32_t v = net->queue[head++];
        *work += (uint64_t)(net->first[v + 1] - net->first[v]);
        for (k = net->first[v]; k < net->first[v + 1]; k++) {
            int32_t arc = net->arcs[k], from = net->to[arc];
            if (net->level[from] || !net->left[arc ^ 1]) continue;
            net->level[from] = net->level[v] + 1;
            net->queue[tail++] = from;
        }
    }
    return net->level[source] > 0;
}

// Send flow along path[0 .. length - 1]; returns the index in the path of the first arc that is now full.
static int32_t tli_bound_send(tli_bound_net *net, int32_t length, int64_t *flow) {
    int64_t most = TLI_BOUND_INFINITE;
    int32_t i, full = 0;
    for (i = 0; i < length; i++) if (net->left[net->path[i]] < most) most = net->left[net->path[i]];
    for (i = length; i-- > 0;) {
        net->left[net->path[i]] -= most;
        net->left[net->path[i] ^ 1] += most;
        if (!net->left[net->path[i]]) full = i;
    }
    *flow += most;
    return full;
}

// Find the maximum flow (Dinic, 1970); left[] holds the residual capacities. Every path ends in an arc to
// the sink whose capacity is a cost, so the flow is at most 2^50 and infinite arcs never become full. It ends
// early when *work reaches `limit`: any flow is a lower bound of the minimum cut.
static int64_t tli_bound_flow(tli_bound_net *net, uint64_t *work, uint64_t limit) {
    int32_t source = net->vertex_count - 2, sink = source + 1, v;
    int64_t flow = 0;
    while (*work < limit && tli_bound_find_levels(net, work)) {
        int32_t at = source, length = 0;
        for (v = 0; v < net->vertex_count; v++) net->cursor[v] = net->first[v];
        for (;;) {
            int32_t arc = -1;
            if (*work >= limit) break;
            if (at == sink) {
                length = tli_bound_send(net, length, &flow);
                *work += (uint64_t)length;
                at = net->to[net->path[length] ^ 1];
            }
            for (; net->cursor[at] < net->first[at + 1]; net->cursor[at]++) {
                arc = net->arcs[net->cursor[at]];
                if (net->left[arc] && net->level[net->to[arc]] == net->level[at] - 1 &&
                    net->level[net->to[arc]]) break;
            }
            *work += 1;
            if (net->cursor[at] < net->first[at + 1]) {
                net->path[length++] = arc;
                at = net->to[arc];
            } else {
                if (!length) break;
                at = net->to[net->path[--length] ^ 1];
                net->cursor[at]++;
            }
        }
    }
    return flow;
}

// Mark the source side of the minimum cut after a maximum flow: level[v] = 1.
static void tli_bound_find_side(tli_bound_net *net, uint64_t *work) {
    int32_t source = net->vertex_count - 2, head = 0, tail = 0, k;
    tli_zero(net->level, (size_t)net->vertex_count * sizeof *net->level);
    net->level[source] = 1;
    net->queue[tail++] = source;
    while (head < tail) {
        int32_t v = net->queue[head++];
        *work += (uint64_t)(net->first[v + 1] - net->first[v]);
        for (k = net->first[v]; k < net->first[v + 1]; k++) {
            int32_t arc = net->arcs[k], to = net->to[arc];
            if (net->level[to] || !net->left[arc]) continue;
            net->level[to] = 1;
            net->queue[tail++] = to;
        }
    }
}

// -- bound: one span --

// Mark the things that must be resident at some moment of span a.
static void tli_bound_mark_span(const tli_bound *model, const tli_bound_state *s, int32_t a, uint8_t *mark) {
    int32_t end = a + 1 < s->count ? s->at[a + 1] : model->order_count - 1, p;
    if (a + 1 < s->count) tli_zero(mark, (size_t)model->thing_count);
    else tli_copy(mark, model->at_end, (size_t)model->thing_count);
    for (p = s->at[a] + 1; p <= end; p++) tli_bound_mark_reads(model, model->order[p], mark, 1);
}

static void tli_bound_set(tli_bound_net *net, int32_t arc, int64_t capacity) {
    net->left[arc] = capacity;
    net->left[arc ^ 1] = 0;
}

// The price of holding thing t at instant a under the multipliers.
static int64_t tli_bound_price(const tli_bound *model, const tli_bound_state *s, int32_t a, int32_t t) {
    int32_t at = a * model->thing_count + t;
    if (s->fixed[at] == TLI_BOUND_KEPT) return 0;
    if (s->fixed[at] == TLI_BOUND_ABSENT) return TLI_BOUND_INFINITE;
    return s->lambda[a] * model->bytes[t] + s->mu[at];
}

// Find enter[t], the cost of thing t being absent throughout span a (infinite: it must be resident). Presence
// earns mu of instant a + 1; that is counted as a constant gain, *offers, for all things, and as a cost of
// absence for each. Returns 0 if the constant is too large to be useful.
static int tli_bound_find_enters(tli_bound *model, const tli_bound_state *s, int32_t a, int64_t *offers) {
    int32_t things = model->thing_count, t;
    tli_bound_mark_span(model, s, a, model->reads_mark);
    *offers = 0;
    for (t = 0; t < things; t++) {
        int32_t next = (a + 1) * things + t;
        model->enter[t] = model->reads_mark[t] ? TLI_BOUND_INFINITE : 0;
        if (a + 1 == s->count) continue;
        if (s->fixed[next] == TLI_BOUND_KEPT) model->enter[t] = TLI_BOUND_INFINITE;
        if (s->fixed[next] != TLI_BOUND_FREE) continue;
        if (*offers <= INT64_C(1) << 58) *offers += s->mu[next];
        if (!model->enter[t]) model->enter[t] = s->mu[next];
    }
    tli_zero(model->reads_mark, (size_t)things);
    return *offers <= INT64_C(1) << 58;
}

// The least cost of span a under the multipliers, with its constant terms; -2^59 where those are too large
// to be useful. Afterwards level[] of the net marks the source side of the cut.
static int64_t tli_bound_solve_span(tli_bound *model, const tli_bound_state *s, int32_t a) {
    tli_bound_net *net = &model->net;
    int32_t things = model->thing_count, t, i;
    int64_t offers, flow;
    int is_useful = tli_bound_find_enters(model, s, a, &offers);
    for (t = 0; t < things; t++) {
        tli_bound_set(net, 2 * t, model->enter[t]);
        tli_bound_set(net, 2 * (things + t), tli_bound_price(model, s, a, t));
    }
    for (i = 0; i < model->graph->node_count; i++)
        tli_bound_set(net, 2 * (2 * things + i), model->runs_by[i] <= s->at[a] ? model->cost[i] : 0);
    for (i = 2 * (2 * things + model->graph->node_count); i < net->arc_count; i += 2)
        tli_bound_set(net, i, TLI_BOUND_INFINITE);
    flow = tli_bound_flow(net, model->work, model->flow_limit);
    tli_bound_find_side(net, model->work);
    return is_useful ? flow - offers - s->lambda[a] * s->room[a] : -(INT64_C(1) << 59);
}

// The slope along lambda[a]: bytes that the last solution holds at instant a, less the room.
static int64_t tli_bound_slope(const tli_bound *model, const tli_bound_state *s, int32_t a) {
    const int32_t *level = model->net.level;
    int64_t held = 0;
    int32_t t;
    for (t = 0; t < model->thing_count; t++)
        if (s->fixed[a * model->thing_count + t] == TLI_BOUND_FREE && level[t] &&
            !level[model->thing_count + model->maker[t]]) held += model->bytes[t];
    return held - s->room[a];
}

// Add `weight` to share[] of each thing that the last solution holds at instant a.
static void tli_bound_add_share(const tli_bound *model, tli_bound_state *s, int32_t a, uint8_t weight) {
    const int32_t *level = model->net.level;
    int32_t t, things = model->thing_count;
    for (t = 0; t < things; t++)
        if (level[t] && !level[things + model->maker[t]])
            s->share[a * things + t] = (uint8_t)(s->share[a * things + t] + weight);
}

// The tangent of the concave function value(lambda[a]) at one lambda.
typedef struct tli_bound_line { int64_t lambda, value, slope; } tli_bound_line;

static tli_bound_line tli_bound_touch(tli_bound *model, tli_bound_state *s, int32_t a, int64_t lambda) {
    tli_bound_line line;
    s->lambda[a] = line.lambda = lambda;
    line.value = tli_bound_solve_span(model, s, a);
    line.slope = tli_bound_slope(model, s, a);
    return line;
}

// Find the best lambda[a] for span a, with the other multipliers fixed, by intersecting the tangents on both
// sides; returns the value of the span there. ends[]: the lambdas of the two last tangents.
static int64_t tli_bound_search_line(tli_bound *model, tli_bound_state *s, int32_t a, int64_t ends[2]) {
    tli_bound_line low, high, at = tli_bound_touch(model, s, a, s->lambda[a]);
    int64_t start = at.lambda > 0 ? at.lambda : TLI_BOUND_COSTS / model->units / 4096 + 1;
    int32_t tries;
    low = high = at;
    if (at.slope > 0) {
        while (high.slope > 0 && high.lambda < model->most_lambda) {
            low = high;
            start = start > model->most_lambda / 16 ? model->most_lambda : start * 16;
            high = tli_bound_touch(model, s, a, start);
        }
    } else if (at.slope < 0 && at.lambda > 0) {
        low = tli_bound_touch(model, s, a, 0);
    }
    for (tries = 0; tries < 24 && low.slope > 0 && high.slope < 0; tries++) {
        int64_t crossing = (high.value - high.slope * high.lambda) - (low.value - low.slope * low.lambda);
        int64_t lambda = crossing / (low.slope - high.slope);
        if (lambda <= low.lambda || lambda >= high.lambda) break;
        at = tli_bound_touch(model, s, a, lambda);
        if (!at.slope) { low = high = at; break; }
        if (at.slope > 0) low = at; else high = at;
    }
    at = low.value > high.value ? low : high;
    s->lambda[a] = at.lambda;
    ends[0] = low.lambda;
    ends[1] = high.lambda;
    return at.value;
}

// -- bound: one span with the room as a hard limit: dynamic programming --
//
// The minimum cut prices the bytes held at an instant; this table limits them, so its value is never lower.
// Nodes are visited in listing order. A label is the set of resident things that later nodes may read (mask),
// the bytes held at the instant, and the cost so far. A node is run in the span (its inputs must be resident;
// all its things then are) or not (each of its things is held, or is absent). Of labels with the same mask,
// dominated ones (more bytes and more cost) are removed. If there are too many labels, bytes are rounded down
// to a coarser grid, which can only lower the least cost.

#define TLI_BOUND_LABELS 16384
#define TLI_BOUND_SLOTS 24

typedef struct tli_bound_label { uint64_t mask; int64_t bytes, cost; } tli_bound_label;

static int tli_bound_is_before(const tli_bound_label *a, const tli_bound_label *b) {
    if (a->mask != b->mask) return a->mask < b->mask;
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->cost < b->cost;
}

static void tli_bound_sift(tli_bound_label *labels, int32_t at, int32_t count) {
    tli_bound_label moved = labels[at];
    int32_t child;
    for (; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && tli_bound_is_before(&labels[child], &labels[child + 1])) child++;
        if (!tli_bound_is_before(&moved, &labels[child])) break;
        labels[at] = labels[child];
    }
    labels[at] = moved;
}

// Sort labels and remove dominated ones; returns how many are left.
static int32_t tli_bound_prune(tli_bound_label *labels, int32_t count) {
    int32_t i, kept = 0;
    for (i = count / 2; i-- > 0;) tli_bound_sift(labels, i, count);
    for (i = count; i-- > 1;) {
        tli_bound_label last = labels[i];
        labels[i] = labels[0];
        labels[0] = last;
        tli_bound_sift(labels, 0, i);
    }
    for (i = 0; i < count; i++)
        if (!kept || labels[kept - 1].mask != labels[i].mask || labels[i].cost < labels[kept - 1].cost)
            labels[kept++] = labels[i];
    return kept;
}

// Remove dominated labels, on a coarser and coarser grid until at most `most` are left.
static int32_t tli_bound_thin(tli_bound_label *labels, int32_t count, int32_t most, int64_t *grid) {
    int32_t i;
    count = tli_bound_prune(labels, count);
    while (count > most && *grid < INT64_C(1) << TLI_BOUND_UNITS) {
        *grid *= 2;
        for (i = 0; i < count; i++) labels[i].bytes = labels[i].bytes / *grid * *grid;
        count = tli_bound_prune(labels, count);
    }
    return count;
}

typedef struct tli_bound_table {
    tli_bound             *model;
    const tli_bound_state *state;
    int32_t  a;          // the span
    int32_t  count;      // of labels
    int64_t  grid;       // bytes are rounded down to multiples of this
    uint64_t start;      // work done before this table
    uint64_t used;       // slots in use, a bit each. A slot is a bit of the masks, given to one thing
    int32_t  slot_things[TLI_BOUND_SLOTS];
} tli_bound_table;

// The slot of a thing; -1 = none, because no later node reads it.
static int32_t tli_bound_find_slot(const tli_bound_table *table, int32_t thing) {
    int32_t slot;
    for (slot = 0; slot < TLI_BOUND_SLOTS; slot++)
        if (table->used >> slot & 1 && table->slot_things[slot] == thing) return slot;
    return -1;
}

// Split each label in two for thing t of a node that is not run: t is held, or t is absent. Returns 0 if
// there are too many labels.
static int tli_bound_spread(tli_bound_table *table, int32_t t, uint64_t bit) {
    tli_bound *model = table->model;
    const tli_bound_state *s = table->state;
    int32_t cell = table->a * model->thing_count + t, i, count = table->count;
    int is_kept = s->fixed[cell] == TLI_BOUND_KEPT;
    for (i = 0; i < count; i++) {
        tli_bound_label held = model->labels[i], *gone = &model->labels[i];
        held.mask |= bit;
        held.bytes += is_kept ? 0 : model->bytes[t];
        held.cost += is_kept ? 0 : s->mu[cell];
        gone->cost = model->enter[t] >= TLI_BOUND_INFINITE || is_kept ? TLI_BOUND_INFINITE
                                                                   : gone->cost + model->enter[t];
        if (s->fixed[cell] == TLI_BOUND_ABSENT || held.bytes > s->room[table->a]) continue;
        if (gone->cost >= TLI_BOUND_INFINITE) *gone = held;
        else model->labels[table->count++] = held;
    }
    for (i = count = 0; i < table->count; i++)
        if (model->labels[i].cost < TLI_BOUND_INFINITE) model->labels[count++] = model->labels[i];
    table->count = count > TLI_BOUND_LABELS
                       ? tli_bound_thin(model->labels, count, TLI_BOUND_LABELS, &table->grid)
                       : count;
    return table->count <= TLI_BOUND_LABELS;
}

// Find last_use[]: the last node that may read a thing in this span (its maker if none does); -1 = nothing
// in this span wants it.
static void tli_bound_find_uses(tli_bound *model) {
    const tl_graph *graph = model->graph;
    int32_t t, id, i;
    for (t = 0; t < model->thing_count; t++) model->last_use[t] = model->enter[t] > 0 ? model->maker[t] : -1;
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        int32_t saved = model->thing_of[graph->tensor_count + id];
        int is_wanted = saved >= 0 && model->last_use[saved] >= 0;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            is_wanted |= model->thing_of[i] >= 0 && model->last_use[model->thing_of[i]] >= 0;
        for (i = node->first_input; i < node->first_input + node->input_count && is_wanted; i++) {
            int32_t thing = model->thing_of[graph->inputs[i].tensor];
            if (thing >= 0 && model->last_use[thing] < id) model->last_use[thing] = id;
        }
    }
}

// Give thing t a slot if a later node may read it; 0 = there is none left.
static int tli_bound_add_slot(tli_bound_table *table, int32_t t, uint64_t *bit) {
    int32_t slot = 0;
    *bit = 0;
    if (t < 0 || table->model->last_use[t] <= table->model->maker[t]) return 1;
    while (slot < TLI_BOUND_SLOTS && table->used >> slot & 1) slot++;
    if (slot == TLI_BOUND_SLOTS) return 0;
    table->used |= *bit = UINT64_C(1) << slot;
    table->slot_things[slot] = t;
    return 1;
}

// Extend the labels by one node: first those in which it runs, then those in which it does not. Returns 0 if
// slots or labels are too many.
static int tli_bound_add_node(tli_bound_table *table, int32_t id) {
    tli_bound *model = table->model;
    const tl_node *node = &model->graph->nodes[id];
    uint64_t takes = 0, makes = 0, ends = 0, bit;
    int64_t cost = model->runs_by[id] <= table->state->at[table->a] ? model->cost[id] : 0;
    int32_t i, k, made = 0, wanted = 0;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        int32_t thing = model->thing_of[model->graph->inputs[i].tensor];
        int32_t slot = thing >= 0 ? tli_bound_find_slot(table, thing) : -1;
        if (slot < 0) continue;
        takes |= UINT64_C(1) << slot;
        if (model->last_use[thing] == id) ends |= UINT64_C(1) << slot;
    }
    for (k = 0; k <= node->output_count; k++) {
        int32_t t = k < node->output_count ? node->first_output + k : model->graph->tensor_count + id;
        t = model->thing_of[t];
        if (t < 0 || model->last_use[t] < 0) continue;
        if (!tli_bound_add_slot(table, t, &bit)) return 0;
        makes |= bit;
        for (i = 0; !wanted && i < table->count; i++) {
            if (takes & ~model->labels[i].mask) continue;
            model->made[made] = model->labels[i];
            model->made[made++].cost += cost;
        }
        wanted = 1;
        if (!tli_bound_spread(table, t, bit)) return 0;
    }
    for (i = 0; i < made; i++) {
        model->made[i].mask |= makes;
        model->labels[table->count++] = model->made[i];
    }
    for (i = 0; i < table->count; i++) model->labels[i].mask &= ~ends;
    table->used &= ~ends;
    *model->work += 40 * (uint64_t)table->count + 1;
    if (wanted || ends)
        table->count = tli_bound_thin(model->labels, table->count, TLI_BOUND_LABELS, &table->grid);
    if (*model->work - table->start > model->table_limit) return 0;
    return table->count > 0 && table->count <= TLI_BOUND_LABELS;
}

// As tli_bound_solve_span, with the room as a hard limit; -2^59 if the table grows too large. *is_exact
// becomes 0 if the value is not the exact minimum.
static int64_t tli_bound_tabulate_span(tli_bound *model, const tli_bound_state *s, int32_t a,
                                       int32_t *is_exact) {
    tli_bound_table table;
    int64_t offers, best = TLI_BOUND_INFINITE;
    int32_t id, i, is_useful = tli_bound_find_enters(model, s, a, &offers);
    tli_zero(&table, sizeof table);
    table.model = model; table.state = s; table.a = a;
    table.grid = 1;
    table.count = 1;
    table.start = *model->work;
    tli_zero(model->labels, sizeof *model->labels);
    tli_bound_find_uses(model);
    for (id = 0; id < model->graph->node_count && is_useful; id++) is_useful = tli_bound_add_node(&table, id);
    if (!is_useful || table.grid > 1) *is_exact = 0;
    if (!is_useful) return -(INT64_C(1) << 59);
    for (i = 0; i < table.count; i++) if (model->labels[i].cost < best) best = model->labels[i].cost;
    return best - offers;
}

// Raise the value of a state to the sum of its spans, each with the better of its two bounds.
static void tli_bound_tabulate(tli_bound *model, tli_bound_state *s) {
    int64_t value = 0;
    int32_t a, is_exact = s->count == 1;
    for (a = 0; a < s->count; a++) {
        int64_t cut = tli_bound_solve_span(model, s, a);
        int64_t full = model->table_limit ? tli_bound_tabulate_span(model, s, a, &is_exact) : cut;
        value += cut > full ? cut : full;
    }
    if (value > s->value) s->value = value;
    if (model->table_limit) s->is_exact |= is_exact;
}

// -- bound: states --

static void tli_bound_free_state(tli_bound *model, tli_bound_state *s) {
    if (s) { tli_release(model->env, s->mu); tli_release(model->env, s->fixed); tli_release(model->env, s); }
}

// Allocate an empty state for so many instants; NULL: no memory (model->failed).
static tli_bound_state *tli_bound_add_state(tli_bound *model, int32_t instants) {
    tli_bound_state *s = (tli_bound_state *)tli_alloc_array(model->env, 1, sizeof *s);
    uint64_t cells = (uint64_t)instants * (uint64_t)model->thing_count;
    if (s) {
        tli_zero(s, sizeof *s);
        s->mu = (int64_t *)tli_alloc_array(model->env, cells, sizeof *s->mu);
        s->fixed = (uint8_t *)tli_alloc_array(model->env, 2 * cells, 1);
        s->share = s->fixed ? s->fixed + cells : NULL;
    }
    if (s && s->mu && s->fixed) return s;
    tli_bound_free_state(model, s);
    model->failed = 1;
    return NULL;
}

static void tli_bound_copy_state(const tli_bound *model, tli_bound_state *to, const tli_bound_state *from) {
    size_t cells = (size_t)from->count * (size_t)model->thing_count;
    int64_t *mu = to->mu;
    uint8_t *fixed = to->fixed, *share = to->share;
    *to = *from;
    to->mu = mu; to->fixed = fixed; to->share = share;
    tli_copy(mu, from->mu, cells * sizeof *mu);
    tli_copy(fixed, from->fixed, cells);
    tli_copy(share, from->share, cells);
}

// Fix to absent every thing that is larger than the room. Returns 0 if the things fixed to be held exceed it.
static int tli_bound_fix_large(const tli_bound *model, tli_bound_state *s, int32_t a) {
    uint8_t *fixed = s->fixed + (size_t)a * (size_t)model->thing_count;
    int32_t t;
    if (s->room[a] < 0) return 0;
    for (t = 0; t < model->thing_count; t++)
        if (fixed[t] == TLI_BOUND_FREE && model->bytes[t] > s->room[a]) fixed[t] = TLI_BOUND_ABSENT;
    return 1;
}

// Insert an instant into a state so that the value hardly changes: mu of a thing starts as a quarter of its
// price at the instant before, or of its forward cost if that is less.
static void tli_bound_add_instant(tli_bound *model, tli_bound_state *s, int32_t position) {
    int32_t a = s->count++, things = model->thing_count, t;
    uint64_t room = model->room[position] / model->unit;
    for (; a > 0 && s->at[a - 1] > position; a--) {
        size_t to = (size_t)a * (size_t)things, from = to - (size_t)things, count = (size_t)things;
        s->at[a] = s->at[a - 1]; s->lambda[a] = s->lambda[a - 1]; s->room[a] = s->room[a - 1];
        tli_copy(s->mu + to, s->mu + from, count * sizeof *s->mu);
        tli_copy(s->fixed + to, s->fixed + from, count);
    }
    s->at[a] = position;
    s->lambda[a] = 0;
    s->room[a] = room < (uint64_t)model->units ? (int64_t)room : model->units;
    tli_zero(s->fixed + (size_t)a * (size_t)things, (size_t)things);
    tli_bound_mark_fixed(model, position, s->fixed + (size_t)a * (size_t)things, TLI_BOUND_KEPT);
    for (t = 0; t < things; t++) {
        int64_t price = a ? tli_bound_price(model, s, a - 1, t) : 0, forward = model->cost[model->maker[t]];
        s->mu[a * things + t] = (price < forward ? price : forward) / 4;
    }
    (void)tli_bound_fix_large(model, s, a);
}

// -- bound: several instants: subgradient steps --

typedef struct tli_bound_climb {
    tli_bound_state *now, *best;
    int32_t *slope;    // [instants][things] direction along mu, 1024 = 1
    int8_t  *held;     // [instants][things] x, and w of the span before
    int64_t  along[TLI_BOUND_INSTANTS];    // slope along lambda, bytes less room
    int64_t  turn[TLI_BOUND_INSTANTS];     // direction along lambda x typical
} tli_bound_climb;

// Find the value of a state, the sum of its spans; the slopes along its multipliers go to climb.
static int64_t tli_bound_measure(tli_bound *model, tli_bound_state *s, tli_bound_climb *climb) {
    int32_t a, t, things = model->thing_count;
    const int32_t *level = model->net.level;
    int64_t value = 0;
    tli_zero(climb->held, (size_t)s->count * (size_t)things);
    for (a = 0; a < s->count; a++) {
        value += tli_bound_solve_span(model, s, a);
        climb->along[a] = tli_bound_slope(model, s, a);
        for (t = 0; t < things; t++) {
            uint8_t *share = &s->share[a * things + t];
            int is_held = level[t] && !level[things + model->maker[t]];
            *share = (uint8_t)((*share * 7 + (is_held ? 255 : 0)) / 8);
            if (!level[t]) continue;
            if (is_held) climb->held[a * things + t]++;
            if (a + 1 < s->count) climb->held[(a + 1) * things + t]--;
        }
    }
    return value;
}

// Update the direction of the climb: three quarters of the old direction plus the slopes.
static void tli_bound_turn(tli_bound *model, tli_bound_state *s, tli_bound_climb *climb, uint64_t *norm) {
    int32_t a, t, things = model->thing_count;
    *norm = 1;
    for (a = 0; a < s->count; a++) {
        int64_t along = climb->along[a] * 256 / model->typical;
        if (along > 1 << 15) along = 1 << 15;
        if (along < -(1 << 15)) along = -(1 << 15);
        climb->turn[a] = climb->turn[a] * 3 / 4 + along;
        if (s->lambda[a] > 0 || climb->turn[a] > 0) *norm += (uint64_t)(climb->turn[a] * climb->turn[a]);
        for (t = 0; a && t < things; t++) {
            int32_t at = a * things + t;
            if (s->fixed[at] != TLI_BOUND_FREE) continue;
            climb->slope[at] = climb->slope[at] * 3 / 4 + climb->held[at] * 256;
            if (s->mu[at] > 0 || climb->slope[at] > 0)
                *norm += (uint64_t)((int64_t)climb->slope[at] * climb->slope[at]);
        }
    }
}

static void tli_bound_step(tli_bound *model, tli_bound_state *s, const tli_bound_climb *climb,
                           int64_t gain, uint64_t norm) {
    int32_t a, t, things = model->thing_count;
    int64_t length = (int64_t)(((uint64_t)gain << 8) / (norm >> 10 ? norm >> 10 : 1)), most = INT64_C(1) << 44;
    if (length > most) length = most;
    for (a = 0; a < s->count; a++) {
        int64_t lambda = s->lambda[a] + length * climb->turn[a] / 1024 / model->typical;
        s->lambda[a] = lambda < 0 ? 0 : lambda > model->most_lambda ? model->most_lambda : lambda;
        for (t = 0; a && t < things; t++) {
            int32_t at = a * things + t;
            int64_t mu = s->mu[at];
            if (s->fixed[at] != TLI_BOUND_FREE || (!mu && climb->slope[at] <= 0)) continue;
            mu += length * climb->slope[at] / 1024;
            s->mu[at] = mu < 0 ? 0 : mu > TLI_BOUND_COSTS ? TLI_BOUND_COSTS : mu;
        }
    }
}

static int tli_bound_is_over(const tli_bound *model) {
    return *model->work >= model->work_limit || tli_remat_stops(model->watch, *model->work);
}

// Raise the value of climb->best in at most `rounds` subgradient steps. The length of a step depends on the
// distance to a target value, which is lowered when it is not reached. best->value is the value found.
static void tli_bound_climb_up(tli_bound *model, tli_bound_climb *climb, int32_t rounds) {
    tli_bound_state *best = climb->best, *now = climb->now;
    size_t cells = (size_t)best->count * (size_t)model->thing_count;
    int64_t ahead, gap, ends[2];
    int32_t round, failures = 0, a;
    best->value = 0;
    for (a = 0; a < best->count; a++) best->value += tli_bound_search_line(model, best, a, ends);
    tli_bound_copy_state(model, now, best);
    tli_zero(climb->slope, cells * sizeof *climb->slope);
    tli_zero(climb->turn, sizeof climb->turn);
    ahead = (best->value > 0 ? best->value : TLI_BOUND_COSTS / 64) / 16 + 1;
    for (round = 0; round < rounds && !tli_bound_is_over(model); round++) {
        uint64_t norm;
        now->value = tli_bound_measure(model, now, climb);
        if (now->value > best->value) {
            if (now->value - best->value > ahead / 8) { failures = 0; ahead += ahead / 2; }
            tli_bound_copy_state(model, best, now);
        } else if (++failures >= 5) {
            ahead = ahead / 2 + 1;
            failures = 0;
            tli_bound_copy_state(model, now, best);
            tli_zero(climb->slope, cells * sizeof *climb->slope);
            tli_zero(climb->turn, sizeof climb->turn);
            continue;
        }
        tli_bound_turn(model, now, climb, &norm);
        gap = best->value - now->value + ahead;
        tli_bound_step(model, now, climb, gap < TLI_BOUND_COSTS ? gap : TLI_BOUND_COSTS, norm);
    }
}

// -- bound: the choice of instants --

typedef struct tli_bound_search {
    tli_bound       *model;
    tli_bound_climb  climb;
    tli_bound_state *best, *trial;
    tli_bound_state *top;    // of the highest value when spans keep the room as a hard limit
    int64_t      *single;    // [order_count] value with that instant alone; -1 = not computed
    int32_t      *listed;    // [order_count] positions to try
    int32_t       listed_count;
} tli_bound_search;

// Whether everything that is read after this backward fits beside its working set: then (5) is no constraint.
static int tli_bound_is_slack(tli_bound *model, int32_t position) {
    uint64_t need = 0;
    int32_t t, p;
    tli_copy(model->reads_mark, model->at_end, (size_t)model->thing_count);
    for (p = position + 1; p < model->order_count; p++)
        tli_bound_mark_reads(model, model->order[p], model->reads_mark, 1);
    tli_bound_mark_fixed(model, position, model->reads_mark, 0);
    for (t = 0; t < model->thing_count; t++) if (model->reads_mark[t]) need += model->exact[t];
    tli_zero(model->reads_mark, (size_t)model->thing_count);
    *model->work += (uint64_t)model->thing_count;
    return need <= model->room[position];
}

static void tli_bound_try_single(tli_bound_search *search, int32_t position) {
    tli_bound *model = search->model;
    tli_bound_state *s = search->trial;
    int64_t ends[2];
    if (search->single[position] >= 0 || tli_bound_is_over(model)) return;
    search->single[position] = 0;
    if (tli_bound_is_slack(model, position)) return;
    s->count = 0;
    tli_bound_add_instant(model, s, position);
    s->value = tli_bound_search_line(model, s, 0, ends);
    search->single[position] = s->value > 1 ? s->value : 1;  // at least 1: not slack, so useful beside others
    if (!search->best->count || s->value > search->best->value) tli_bound_copy_state(model, search->best, s);
}

// Evaluate instants near the best one, in halving distances.
static void tli_bound_refine_single(tli_bound_search *search, int32_t distance) {
    for (; distance > 0 && search->best->count; distance /= 2) {
        int32_t at = search->best->at[0];
        if (at - distance >= 0) tli_bound_try_single(search, at - distance);
        if (at + distance < search->model->order_count) tli_bound_try_single(search, at + distance);
    }
}

// Evaluate each instant alone: all if there are few, else a few, with what is nearer and nearer to the best of
// them, then evenly spaced ones and all near the best.
static void tli_bound_try_singles(tli_bound_search *search) {
    tli_bound *model = search->model;
    int32_t step = model->order_count / 256 + 1, wide = 16 * step, p, k;
    for (p = 0; p < model->order_count; p++) search->single[p] = -1;
    tli_bound_try_single(search, model->order_count - 1);
    for (p = step / 2; p < model->order_count && step > 1; p += wide) tli_bound_try_single(search, p);
    if (step > 1) tli_bound_refine_single(search, wide / 2);
    for (p = step / 2; p < model->order_count; p += step) tli_bound_try_single(search, p);
    for (k = step / 2; step > 1 && k > 0; k--) {
        int32_t at = search->best->count ? search->best->at[0] : 0;
        if (at - k >= 0) tli_bound_try_single(search, at - k);
        if (at + k < model->order_count) tli_bound_try_single(search, at + k);
    }
}

// Whether an instant is a local maximum among those that were evaluated.
static int tli_bound_is_top(const tli_bound_search *search, int32_t position) {
    int64_t value = search->single[position];
    int32_t p;
    for (p = position - 1; p >= 0 && search->single[p] < 0; p--) { }
    if (p >= 0 && search->single[p] >= value) return 0;
    for (p = position + 1; p < search->model->order_count && search->single[p] < 0; p++) { }
    return p == search->model->order_count || search->single[p] <= value;
}

// List the instants to try together with others: all if there are few, else local maxima and evenly spaced
// ones.
static void tli_bound_list_instants(tli_bound_search *search) {
    enum { LISTED = 24 };
    int32_t p, count = 0, tops = 0, seen = 0, step;
    for (p = 0; p < search->model->order_count; p++) {
        count += search->single[p] > 0;
        tops += search->single[p] > 0 && tli_bound_is_top(search, p);
    }
    if (tops > LISTED / 2) tops = LISTED / 2;
    step = count <= LISTED ? 1 : (count - 1) / (LISTED - tops) + 1;
    for (p = 0; p < search->model->order_count; p++) {
        int is_top;
        if (search->single[p] <= 0) continue;
        is_top = tli_bound_is_top(search, p) ||
                 (p >= search->best->at[0] - 3 && p <= search->best->at[0] + 3);
        if (is_top || seen % step == step / 2) search->listed[search->listed_count++] = p;
        seen += !is_top;
    }
}

static int tli_bound_has_instant(const tli_bound_state *s, int32_t position) {
    int32_t a;
    for (a = 0; a < s->count; a++) if (s->at[a] == position) return 1;
    return 0;
}

// Find the value of the best state with one more instant after some steps of climbing; into climb.best.
static int64_t tli_bound_try_more(tli_bound_search *search, int32_t position, int32_t rounds) {
    tli_bound_copy_state(search->model, search->climb.best, search->best);
    tli_bound_add_instant(search->model, search->climb.best, position);
    tli_bound_climb_up(search->model, &search->climb, rounds);
    return search->climb.best->value;
}

// Add the instant that raises the value most. All listed ones are tried with a few steps, the best of them
// and their neighbours with more. Returns 0 if none raises it. More attempts may find a better
// instant, but leave work for fewer of them.
static int tli_bound_add_best(tli_bound_search *search) {
    enum { HOPEFUL = 3, AROUND = 2, FEW = 8, MORE = 40 };
    tli_bound *model = search->model;
    int64_t values[HOPEFUL], before = search->best->value;
    int32_t chosen[HOPEFUL], count = 0, nearby = -1, i, k;
    for (i = 0; i < search->listed_count && !tli_bound_is_over(model); i++) {
        int64_t value;
        if (tli_bound_has_instant(search->best, search->listed[i])) continue;
        value = tli_bound_try_more(search, search->listed[i], FEW);
        if (count == HOPEFUL && value <= values[count - 1]) continue;
        k = count < HOPEFUL ? count++ : count - 1;
        for (; k > 0 && values[k - 1] < value; k--) { values[k] = values[k - 1]; chosen[k] = chosen[k - 1]; }
        values[k] = value;
        chosen[k] = search->listed[i];
    }
    tli_bound_copy_state(model, search->trial, search->best);
    for (i = 0; i < count && !tli_bound_is_over(model); i++)
        if (tli_bound_try_more(search, chosen[i], MORE) > search->trial->value) {
            tli_bound_copy_state(model, search->trial, search->climb.best);
            nearby = chosen[i];
        }
    for (i = -AROUND; i <= AROUND && nearby >= 0 && !tli_bound_is_over(model); i++) {
        if (nearby + i < 0 || nearby + i >= model->order_count) continue;
        if (tli_bound_has_instant(search->best, nearby + i)) continue;
        if (tli_bound_try_more(search, nearby + i, MORE) > search->trial->value)
            tli_bound_copy_state(model, search->trial, search->climb.best);
    }
    if (search->trial->value <= before) return 0;
    tli_bound_copy_state(model, search->best, search->trial);
    return 1;
}

// Note the best state as search->top if its value, each span with the room as a hard limit, is the highest.
// Where a few large things compete for the room, that is far above the value that the multipliers give, and one
// instant more can lower it: half of a call in each of two spans does what a whole call does in their union.
static void tli_bound_keep_top(tli_bound_search *search) {
    tli_bound *model = search->model;
    tli_bound_copy_state(model, search->trial, search->best);
    if (!tli_bound_is_over(model)) tli_bound_tabulate(model, search->trial);
    if (!search->top->count || search->trial->value > search->top->value)
        tli_bound_copy_state(model, search->top, search->trial);
}

// -- bound: branching --

#define TLI_BOUND_OPEN 2048                  // at most so many branches are open at a time,
#define TLI_BOUND_OPEN_BYTES (48u << 20)     // and take about so many bytes

typedef struct tli_bound_tree {
    tli_bound_state *open[TLI_BOUND_OPEN];  // by falling value: the last one is split next
    int32_t       count, most;
    int64_t       bound;              // the least value of an open branch
} tli_bound_tree;

// Compute the value of a branch anew; it never falls. Returns 0 if no schedule is in the branch.
static int tli_bound_find_branch(tli_bound_search *search, tli_bound_state *s, int32_t rounds) {
    tli_bound *model = search->model;
    int64_t before = s->value, ends[2];
    int32_t a;
    for (a = 0; a < s->count; a++) if (!tli_bound_fix_large(model, s, a)) return 0;
    if (s->count > 1) {
        tli_bound_copy_state(model, search->climb.best, s);
        tli_bound_climb_up(model, &search->climb, rounds);
        search->climb.now->value = search->climb.best->value;
        tli_bound_copy_state(model, s, search->climb.best);
        tli_copy(s->share, search->climb.now->share, (size_t)s->count * (size_t)model->thing_count);
        if (model->table_limit) tli_bound_tabulate(model, s);
    } else {
        s->value = tli_bound_search_line(model, s, 0, ends);
        s->is_exact = ends[0] == ends[1];
        tli_zero(s->share, (size_t)model->thing_count);
        for (a = 0; a < 2 && ends[0] != ends[1]; a++) {
            int64_t lambda = s->lambda[0];
            (void)tli_bound_touch(model, s, 0, ends[a]);
            tli_bound_add_share(model, s, 0, 127);
            s->lambda[0] = lambda;
        }
    }
    if (s->value < before) s->value = before;
    return 1;
}

// Choose the x[a][t] to branch on: near one half in the last solutions, and of high price; -1 = none is free.
static int32_t tli_bound_choose_cell(const tli_bound *model, const tli_bound_state *s) {
    int32_t best = -1, a, t;
    int64_t most = 0;
    if (s->is_exact) return -1;
    for (a = 0; a < s->count; a++)
        for (t = 0; t < model->thing_count; t++) {
            int32_t at = a * model->thing_count + t;
            int64_t doubt = s->share[at] < 128 ? s->share[at] : 255 - s->share[at];
            if (s->fixed[at] != TLI_BOUND_FREE || !model->bytes[t]) continue;
            doubt = (1 + 32 * doubt) * (1 + tli_bound_price(model, s, a, t) / 4096);
            if (doubt > most) { most = doubt; best = at; }
        }
    return best;
}

static void tli_bound_push(tli_bound_tree *tree, tli_bound_state *s) {
    int32_t at = tree->count++;
    for (; at > 0 && tree->open[at - 1]->value < s->value; at--) tree->open[at] = tree->open[at - 1];
    tree->open[at] = s;
}

// If all variables of a branch are fixed, only another instant can raise its value: add the one with the
// highest value. Returns 0 if there is none, or no memory for it.
static int tli_bound_extend(tli_bound_search *search, tli_bound_tree *tree) {
    tli_bound *model = search->model;
    tli_bound_state *low = tree->open[tree->count - 1], *more;
    int64_t most = 0;
    int32_t i, found = -1;
    if (low->count == search->model->most_instants) return 0;
    for (i = 0; i < search->listed_count && !tli_bound_is_over(model); i++) {
        if (tli_bound_has_instant(low, search->listed[i])) continue;
        tli_bound_copy_state(model, search->climb.best, low);
        tli_bound_add_instant(model, search->climb.best, search->listed[i]);
        tli_bound_climb_up(model, &search->climb, 12);
        if (found >= 0 && (search->climb.best->value < most || (search->climb.best->value == most &&
            search->single[search->listed[i]] <= search->single[found]))) continue;
        most = search->climb.best->value;
        found = search->listed[i];
        tli_bound_copy_state(model, search->trial, search->climb.best);
    }
    if (found < 0) return 0;
    more = tli_bound_add_state(model, low->count + 1);
    if (!more) return 0;
    tli_bound_copy_state(model, more, search->trial);
    more->is_exact = 0;
    if (more->value < low->value) more->value = low->value;
    tli_bound_free_state(model, low);
    tree->count--;
    if (tli_bound_find_branch(search, more, 30)) tli_bound_push(tree, more);
    else tli_bound_free_state(model, more);
    tree->bound = tree->count ? tree->open[tree->count - 1]->value : TLI_BOUND_INFINITE;
    return tree->count > 0;
}

// Split the lowest branch in two: thing held, thing absent. Returns 0 when branching has to end.
static int tli_bound_split(tli_bound_search *search, tli_bound_tree *tree) {
    tli_bound *model = search->model;
    tli_bound_state *low = tree->open[tree->count - 1], *half;
    int32_t cell = tli_bound_choose_cell(model, low), rounds = low->count > 1 ? 6 : 0;
    tree->bound = low->value;
    if (tli_bound_is_over(model)) return 0;
    if (cell < 0) return tli_bound_extend(search, tree);
    if (tree->count == tree->most) return 0;
    half = tli_bound_add_state(model, low->count);
    if (!half) return 0;
    tli_bound_copy_state(model, half, low);
    tree->count--;
    low->fixed[cell] = TLI_BOUND_ABSENT;
    low->mu[cell] = 0;
    half->fixed[cell] = TLI_BOUND_KEPT;
    half->mu[cell] = 0;
    half->room[cell / model->thing_count] -= model->bytes[cell % model->thing_count];
    if (tli_bound_find_branch(search, low, rounds)) tli_bound_push(tree, low);
    else tli_bound_free_state(model, low);
    if (tli_bound_find_branch(search, half, rounds)) tli_bound_push(tree, half);
    else tli_bound_free_state(model, half);
    tree->bound = tree->count ? tree->open[tree->count - 1]->value : TLI_BOUND_INFINITE;
    return tree->count > 0;
}

// Raise the value of the best state by branching; TLI_BOUND_INFINITE: no schedule fits.
static int64_t tli_bound_branch(tli_bound_search *search) {
    tli_bound *model = search->model;
    tli_bound_tree *tree = (tli_bound_tree *)tli_bound_take(model, 1, sizeof *tree);
    tli_bound_state *root = tree ? tli_bound_add_state(model, search->top->count) : NULL;
    int64_t bound = search->top->value;
    uint64_t most, start;
    if (!root) return bound;
    tli_bound_copy_state(model, root, search->top);
    most = TLI_BOUND_OPEN_BYTES / (sizeof *root + 10 * (uint64_t)root->count * (uint64_t)model->thing_count);
    tree->most = most < TLI_BOUND_OPEN ? (int32_t)most : TLI_BOUND_OPEN;
    if (tli_bound_find_branch(search, root, 40)) {
        start = *model->work;
        tli_bound_tabulate(model, root);
        if (*model->work - start > model->table_limit / 16) model->table_limit = 0;  // too slow for each branch
        tli_bound_push(tree, root);
    } else {
        tli_bound_free_state(model, root);
    }
    tree->bound = tree->count ? root->value : TLI_BOUND_INFINITE;
    while (tree->count && tli_bound_split(search, tree)) { }
    bound = tree->bound > bound ? tree->bound : bound;
    while (tree->count > 0) tli_bound_free_state(model, tree->open[--tree->count]);
    return bound;
}

// -- bound: set-up and the whole --

#define TLI_BOUND_WALK INT64_C(16000000)  // inputs that all walks of tli_bound_exceeds_in_gap see in one model

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
            if (model->thing_of[tensor] >= 0) model->reads_mark[model->thing_of[tensor]] = 1;
            if (model->calls_above[maker] > above) above = model->calls_above[maker];
        }
        model->calls[id] = 0;
        for (i = node->first_input; i < end; i++)
            model->calls[id] += tli_bound_take_mark(model, model->thing_of[graph->inputs[i].tensor], -1);
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
    int64_t tensors = graph->tensor_count, nodes = graph->node_count, things = tensors + nodes;
    uint8_t *scratch = (uint8_t *)tli_bound_take(model, tensors, 1);
    model->thing_of = (int32_t *)tli_bound_take(model, things, sizeof(int32_t));
    model->maker = (int32_t *)tli_bound_take(model, things, sizeof(int32_t));
    model->exact = (uint64_t *)tli_bound_take(model, things, sizeof(uint64_t));
    model->bytes = (int64_t *)tli_bound_take(model, things, sizeof(int64_t));
    model->at_end = (uint8_t *)tli_bound_take(model, 2 * things, 1);
    model->enter = (int64_t *)tli_bound_take(model, things, sizeof(int64_t));
    model->last_use = (int32_t *)tli_bound_take(model, 2 * things, sizeof(int32_t));
    model->order = (int32_t *)tli_bound_take(model, 4 * nodes, sizeof(int32_t));
    model->cost = (int64_t *)tli_bound_take(model, nodes, sizeof(int64_t));
    model->room = (uint64_t *)tli_bound_take(model, 7 * nodes, sizeof(uint64_t));
    if (model->failed) return TL_ERROR_NO_MEMORY;
    model->reads_mark = model->at_end + things;
    model->last_read = model->last_use + things;
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
    tli_bound_find_things(model, inference);
    tli_bound_find_runs(model, inference, scratch);
    tli_zero(scratch, (size_t)tensors);
    tli_bound_find_sets(model, scratch);
    tli_bound_find_held(model);
    tli_bound_find_calls(model);
    tli_bound_scale_bytes(model);
    tli_bound_scale_costs(model);
    return TL_OK;
}

// Allocate the network and the labels.
static tl_result tli_bound_open_net(tli_bound *model) {
    int64_t vertices = (int64_t)model->thing_count + model->graph->node_count + 2;
    int64_t arcs = 2 * (2 * (int64_t)model->thing_count + model->graph->node_count + model->graph->input_count);
    tli_bound_net *net = &model->net;
    net->to = (int32_t *)tli_bound_take(model, arcs, sizeof(int32_t));
    net->left = (int64_t *)tli_bound_take(model, arcs, sizeof(int64_t));
    net->arcs = (int32_t *)tli_bound_take(model, arcs, sizeof(int32_t));
    net->first = (int32_t *)tli_bound_take(model, 5 * (vertices + 1), sizeof(int32_t));
    model->labels = (tli_bound_label *)tli_bound_take(model, 2 * TLI_BOUND_LABELS, sizeof(tli_bound_label));
    model->made = (tli_bound_label *)tli_bound_take(model, TLI_BOUND_LABELS, sizeof(tli_bound_label));
    if (model->failed) return TL_ERROR_NO_MEMORY;
    net->level = net->first + vertices + 1;
    net->cursor = net->level + vertices + 1;
    net->queue = net->cursor + vertices + 1;
    net->path = net->queue + vertices + 1;
    tli_bound_make_net(model);
    return TL_OK;
}

// Three eighths of the work go to choosing instants one by one, as much again to choosing them together, and
// the rest to branching.
static void tli_bound_search_all(tli_bound_search *search, int64_t *value) {
    tli_bound *model = search->model;
    uint64_t limit = model->work_limit, start = *model->work, share = limit > start ? (limit - start) / 8 : 0;
    if (!tli_add_u64(limit, limit / 8, &model->flow_limit)) model->flow_limit = UINT64_MAX;
    model->work_limit = start + 3 * share;
    tli_bound_try_singles(search);
    *value = 0;
    model->table_limit = 2 * share;
    if (search->best->count > 0) {
        tli_bound_list_instants(search);
        model->work_limit = start + 6 * share;
        do { tli_bound_keep_top(search); }
        while (search->best->count < model->most_instants && tli_bound_add_best(search));
        model->work_limit = limit;
        *value = tli_bound_branch(search);
    }
    model->work_limit = limit;
}

// Find the scaled bound of the cost beyond the base cost; TLI_BOUND_INFINITE: no schedule fits.
static tl_result tli_bound_search_bound(tli_bound *model, int64_t *value) {
    tli_bound_search search;
    int64_t cells;
    tl_result result = tli_bound_open_net(model);
    if (result) return result;
    model->most_instants = model->thing_count > TLI_BOUND_CELLS / TLI_BOUND_INSTANTS
        ? 1 + TLI_BOUND_CELLS / model->thing_count : TLI_BOUND_INSTANTS;
    cells = (int64_t)model->most_instants * model->thing_count;
    tli_zero(&search, sizeof search);
    search.model = model;
    search.single = (int64_t *)tli_bound_take(model, model->order_count, sizeof(int64_t));
    search.listed = (int32_t *)tli_bound_take(model, model->order_count, sizeof(int32_t));
    search.climb.slope = (int32_t *)tli_bound_take(model, cells, sizeof(int32_t));
    search.climb.held = (int8_t *)tli_bound_take(model, cells, 1);
    search.climb.now = tli_bound_add_state(model, model->most_instants);
    search.climb.best = tli_bound_add_state(model, model->most_instants);
    search.best = tli_bound_add_state(model, model->most_instants);
    search.trial = tli_bound_add_state(model, model->most_instants);
    search.top = tli_bound_add_state(model, model->most_instants);
    if (!model->failed) tli_bound_search_all(&search, value);
    tli_bound_free_state(model, search.climb.now);
    tli_bound_free_state(model, search.climb.best);
    tli_bound_free_state(model, search.best);
    tli_bound_free_state(model, search.trial);
    tli_bound_free_state(model, search.top);
    return model->failed ? TL_ERROR_NO_MEMORY : TL_OK;
}

// Base cost + ceil(value / scale), the second term rounded up to a multiple of cost_step, the greatest common
// divisor of the forward costs.
static uint64_t tli_bound_round_up(const tli_bound *model, int64_t value) {
    uint64_t again, rest;
    if (value <= 0) return model->base_cost;
    again = (uint64_t)value >> model->cost_up;
    if (again << model->cost_up != (uint64_t)value) again++;
    again <<= model->cost_down;
    rest = model->cost_step ? again % model->cost_step : 0;
    if (rest) again += model->cost_step - rest;
    return model->base_cost + again < again ? UINT64_MAX : model->base_cost + again;
}

// -- bound: the least budget --

// Steps of tli_bound_open and of the walks after it.
static uint64_t tli_bound_set_up_work(const tli_bound *model) {
    const tl_graph *graph = model->graph;
    uint64_t size = (uint64_t)graph->node_count + (uint64_t)graph->input_count + (uint64_t)graph->tensor_count;
    return 10 * size + 2 * (uint64_t)(TLI_BOUND_WALK - model->steps_left);
}

// The bytes of the smallest forward call of a node: each input once, outputs and scratch, in place where that
// is allowed. A call that makes saved bytes holds them beside all outputs; where it has them, one that need not
// make them may. Graph inputs do not count.
static uint64_t tli_bound_call_bytes(const tli_bound *model, int32_t id, int saves) {
    const tl_node *node = &model->graph->nodes[id];
    uint64_t saving = model->calls[id] + node->saved_bytes + node->swork_bytes;
    uint64_t bytes = model->calls[id] - model->reused[id] + node->fwork_bytes;
    return saves || (node->saved_bytes && saving < bytes) ? saving : bytes;
}

// Push the maker of a thing, once, if the thing is marked `mark` and does not fit the room, and if a call
// that is made then may need more than `most` bytes.
static void tli_bound_push_maker(tli_bound *model, int32_t thing, uint8_t mark, uint64_t room, uint64_t most,
                                 int32_t p, int32_t *count) {
    int32_t maker = thing < 0 ? 0 : model->maker[thing];
    if (thing < 0 || model->reads_mark[thing] != mark || model->exact[thing] <= room) return;
    if (model->stamps[maker] == p || model->calls_above[maker] <= most) return;
    model->stamps[maker] = p;
    model->stack[(*count)++] = maker;
}

// Whether every schedule within the budget makes a call between the backwards at positions p - 1 and p that
// exceeds the budget; the largest one is at *node. A thing that backward p reads is made there if it does not
// fit beside the working set of backward p - 1; the same holds for the inputs of the call that makes it. In
// very large graphs the walk over these ends early: it finds less then, and what it finds is true.
static int tli_bound_exceeds_in_gap(tli_bound *model, uint64_t budget, int32_t p, int32_t *node) {
    enum { READ = 1, HELD = 2 };
    const tl_graph *graph = model->graph;
    const tl_node *last = &graph->nodes[model->order[p]];
    uint64_t room = budget - model->sets[p - 1], most, bytes;
    int32_t saved = model->thing_of[graph->tensor_count + model->order[p]], count = 0, found = 0, i;
    most = budget - model->between[p - 1];
    tli_bound_mark_reads(model, model->order[p], model->reads_mark, READ);
    tli_bound_mark_reads(model, model->order[p - 1], model->reads_mark, HELD);
    for (i = last->first_input; i < last->first_input + last->input_count; i++)
        tli_bound_push_maker(model, model->thing_of[graph->inputs[i].tensor], READ, room, most, p, &count);
    for (i = last->first_output; i < last->first_output + last->output_count; i++)
        tli_bound_push_maker(model, model->thing_of[i], READ, room, most, p, &count);
    tli_bound_push_maker(model, saved, READ, room, most, p, &count);
    tli_bound_mark_reads(model, model->order[p], model->reads_mark, 0);
    tli_bound_mark_reads(model, model->order[p - 1], model->reads_mark, HELD);
    while (count > 0) {
        int32_t id = model->stack[--count];
        const tl_node *maker = &graph->nodes[id];
        int saves = id == model->order[p] && saved >= 0 && model->exact[saved] > room;
        bytes = tli_bound_call_bytes(model, id, saves);
        if (bytes > most) { most = bytes; *node = id; found = 1; }
        model->steps_left -= maker->input_count;
        for (i = maker->first_input; i < maker->first_input + maker->input_count && model->steps_left > 0; i++)
            tli_bound_push_maker(model, model->thing_of[graph->inputs[i].tensor], 0, room, most, p, &count);
    }
    tli_bound_mark_reads(model, model->order[p - 1], model->reads_mark, 0);
    return found;
}

// Whether no such call exceeds the budget, which must be at least the largest working set; if one does, *node
// is its node.
static int tli_bound_fits_gaps(tli_bound *model, uint64_t budget, int32_t *node) {
    int32_t p;
    tli_zero(model->stamps, (size_t)model->graph->node_count * sizeof *model->stamps);
    model->steps_left -= model->order_count;
    for (p = 1; p < model->order_count; p++) if (tli_bound_exceeds_in_gap(model, budget, p, node)) return 0;
    return 1;
}

// The largest working set of the calls that every schedule makes, and its node; -1 = graph inputs and results
// together are larger than any of them. has_host: what is held may be on the host.
static uint64_t tli_bound_find_floor(tli_bound *model, int32_t inference, int32_t has_host, int32_t *node) {
    const tl_graph *graph = model->graph;
    uint64_t inputs = tli_bound_input_bytes(graph), most = inputs;
    int32_t i;
    *node = -1;
    for (i = 0; i < model->thing_count; i++) if (model->at_end[i]) most += model->exact[i];
    for (i = 0; i < graph->node_count; i++) {
        int saves = graph->nodes[i].has_grad && !inference && graph->nodes[i].saved_bytes;
        uint64_t call;
        if (graph->nodes[i].is_input || model->runs_by[i] == INT32_MAX) continue;
        call = inputs + tli_bound_call_bytes(model, i, saves);
        if (call > most) { most = call; *node = i; }
    }
    for (i = 0; i < model->order_count; i++) {
        uint64_t set = model->sets[i] + (has_host ? 0 : model->held[i]);
        if (set > most) { most = set; *node = model->order[i]; }
    }
    return most;
}

// Find a number of bytes below which no schedule fits, and the node that sets it: the largest working set
// of a call that every schedule makes, or, without a host tier, of a call that the budget itself makes
// necessary (tli_bound_exceeds_in_gap). Linear in nodes and inputs, but for the walks, which are limited.
static tl_result tli_remat_floor(tl_env *env, const tl_graph *graph, int32_t inference, int32_t has_host,
                                 uint64_t *bound_budget, int32_t *node, uint64_t *work) {
    tli_bound model;
    uint64_t low, high;
    tl_result result;
    tli_zero(&model, sizeof model);
    model.env = env; model.graph = graph;
    *bound_budget = 0;
    *node = -1;
    result = tli_bound_open(&model, inference);
    if (!result) {
        low = high = tli_bound_find_floor(&model, inference, has_host, node);
        while (!has_host && !tli_bound_fits_gaps(&model, high, node)) {  // double, then bisect low to high
            low = high + 1;
            high = high > UINT64_MAX / 2 ? UINT64_MAX : 2 * high + 1;
        }
        while (low < high) {
            uint64_t middle = low + (high - low) / 2;
            if (tli_bound_fits_gaps(&model, middle, node)) high = middle; else low = middle + 1;
        }
        *bound_budget = high;
    }
    *work += tli_bound_set_up_work(&model);
    tli_bound_free(&model);
    return result;
}

// -- bound: with a host tier --
//
// Take a schedule S with spills and fetches on a device budget M and a host budget H, over a link of bw bytes
// per unit of time, that ends at time T. From it make a schedule S' without a host: each tensor stays on the
// device during every gap that ends with a fetch that is waited for, from its D, W or I (which becomes an F)
// to its L; then remove all O, L, W and DH. S' is valid: whatever a call reads was resident in S and is
// resident in S'; no forward makes the tensor within such a gap, because the gap would end there; and a spill
// that is never fetched becomes a drop. S' makes the same calls, so it costs at most T. Consider a call that
// begins at t and takes c, and let X be the bytes of the tensors that are in such a gap at that time, that is,
// the bytes that S' holds in addition. All of these tensors
//   - are on the host: X <= H;
//   - were spilled, each by a copy of its own that ended by t: X <= bw t;
//   - are fetched after the call, by copies that end by T: X <= bw (T - t - c).
// A copy takes its latency and ceil(bytes / bw), copies run one after the other, and X is an integer, so
// X <= floor(bw t) and X <= floor(bw (T - t - c)), and one of t and T - t - c is at most floor(T / 2). If the
// call is B v: the backwards from v on come after t, so t <= T - after; each forward that some backward up to
// v depends on, and all backwards before v, come before it, so T - t - c <= T - before. At each backward S'
// therefore keeps the budget M + min(H, floor(bw min(T / 2, T - after, T - before))), and the relaxation with
// these rooms bounds T: T >= g(T). Rooms grow with T, so g falls: for any T0, T > T0 or T >= g(T0).

typedef struct tli_bound_host {
    uint64_t bytes, rate, time;  // H; bytes per second of the link, 0 = no limit; T
    int32_t  is_even;            // 1 = use T / 2 alone: larger rooms, but closer to each other, which makes it
                                 // easier to find good instants
} tli_bound_host;

#ifndef TL_NO_OFFLOAD
// floor(rate time / 10^9); UINT64_MAX where it does not fit.
static uint64_t tli_bound_find_copied(uint64_t rate, uint64_t time) {
    uint64_t second = UINT64_C(1000000000), rest = rate % second, whole, part, sum;
    if (!tli_mul_u64(rate / second, time, &whole) || !tli_mul_u64(rest, time / second, &part) ||
        !tli_add_u64(whole, part, &sum) || !tli_add_u64(sum, rest * (time % second) / second, &sum))
        return UINT64_MAX;
    return sum;
}

// Add to the room at each backward the bytes that can be on the host at that time.
static void tli_bound_add_host(tli_bound *model, const tli_bound_host *host) {
    const tl_graph *graph = model->graph;
    uint64_t before = 0, after = 0, most, bytes;
    int32_t p, id;
    for (p = 0; p < model->order_count; p++) after += graph->nodes[model->order[p]].bwd_cost;
    for (p = 0; p < model->order_count; p++) {
        uint64_t cost = graph->nodes[model->order[p]].bwd_cost;
        for (id = 0; id < graph->node_count; id++)
            if (model->runs_by[id] == p && !graph->nodes[id].is_input) before += graph->nodes[id].fwd_cost;
        before += cost;  // c: the cost of this backward itself
        most = after > before ? after : before;
        most = host->time > most ? host->time - most : 0;
        if (most > host->time / 2 || host->is_even) most = host->time / 2;
        after -= cost;
        bytes = host->rate ? tli_bound_find_copied(host->rate, most) : UINT64_MAX;
        if (bytes > host->bytes) bytes = host->bytes;
        if (!tli_add_u64(model->room[p], bytes, &model->room[p])) model->room[p] = UINT64_MAX;
    }
}
#endif

// Find a lower bound of the cost of every valid schedule within the budget with backwards in reverse listing
// order and no compression. With host NULL: without host copies. Else: of the end of schedules that end by
// host->time. Anytime: a larger work_limit (arcs visited, about 3 ns each) mostly raises it, but other instants
// may be chosen then, and the bound may be lower.
// TL_ERROR_INFEASIBLE, without a sentence: no schedule fits; *bound_cost is UINT64_MAX.
static tl_result tli_remat_bound_host(tl_env *env, const tl_graph *graph, uint64_t budget,
                                      const tli_bound_host *host, int32_t inference, tli_remat_watch *watch,
                                      uint64_t work_limit, uint64_t *bound_cost, uint64_t *work) {
    tli_bound model;
    int64_t value = 0;
    int32_t p, node;
    tl_result result;
    tli_zero(&model, sizeof model);
    model.env = env; model.graph = graph; model.watch = watch; model.work = work; model.work_limit = work_limit;
    *bound_cost = 0;
    result = tli_bound_open(&model, inference);
    if (!result && (budget < tli_bound_find_floor(&model, inference, host != NULL, &node) ||
                    (!host && !tli_bound_fits_gaps(&model, budget, &node))))
        value = TLI_BOUND_INFINITE;
    *work += tli_bound_set_up_work(&model);
    for (p = 0; p < model.order_count && !result && !value; p++) model.room[p] = budget - model.sets[p];
#ifndef TL_NO_OFFLOAD
    if (!result && !value && host) tli_bound_add_host(&model, host);
#endif
    for (p = 0; p < model.order_count && !result && !value; p++) {
        if (model.room[p] < model.held[p]) value = TLI_BOUND_INFINITE;
        else model.room[p] -= model.held[p];
    }
    if (!result && !value && model.order_count) result = tli_bound_search_bound(&model, &value);
    if (!result && value >= TLI_BOUND_INFINITE) { result = TL_ERROR_INFEASIBLE; *bound_cost = UINT64_MAX; }
    else if (!result) *bound_cost = tli_bound_round_up(&model, value);
    tli_bound_free(&model);
    return result;
}

static tl_result tli_remat_bound(tl_env *env, const tl_graph *graph, uint64_t budget, int32_t inference,
                                 tli_remat_watch *watch, uint64_t work_limit,
                                 uint64_t *bound_cost, uint64_t *work) {
    return tli_remat_bound_host(env, graph, budget, NULL, inference, watch, work_limit, bound_cost, work);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

