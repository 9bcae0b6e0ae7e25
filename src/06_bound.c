#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- bound: what any valid schedule costs under a budget, and the least budget --
//
// The relaxation. A training schedule runs its backwards in reverse listing order, so what must have been
// read before and after a backward is known whatever the schedule does. Choose k backwards v_1 > .. > v_k,
// the instants; they cut every schedule into spans: span 0 before B v_1, span a from B v_a to B v_(a+1),
// span k to the end. A thing is a tensor, or saved(v); making either takes one forward of its node. Of a
// schedule that fits the budget, let
//     x[a][t] = 1   thing t is resident while B v_a runs
//     d[a][n] = 1   a forward of n runs in span a                    (F, I or S: each costs fwd)
//     w[a][t] = 1   thing t is resident at some moment of span a
// Then, for every a >= 1:
//     (1) w[a][t] = 1 where a backward of span a, or B v_(a+1), reads t; at the end where t is kept
//     (2) w[a][t] <= x[a][t] + d[a][maker of t]         what is there was there, or was made
//     (3) d[a][n] <= w[a][s] for each input s of n       a forward reads its inputs
//     (4) x[a+1][t] <= w[a][t]
//     (5) sum of bytes(t) x[a][t] <= budget - graph inputs - gradients alive during B v_a - bwork
//     (6) x[a][t] = 1 where B v_a reads t
// Every node on which a backward depends that comes no later than B v_a ran in some span below a. So the
// schedule pays its base cost (each backward, and each forward that must run, once) plus at least
//     sum over a >= 1 and such nodes n of fwd(n) d[a][n],
// and the least of that over all 0/1 values of x, d, w that keep (1) .. (6) is a lower bound. Nodes that
// nobody wants are not in the base cost, and their forwards are free in (2): the bound only gets lower.
//
// The bound. (4) goes into the objective with multipliers mu[a][t] >= 0, (5) with lambda[a] >= 0, which
// leaves one problem per span: a minimum cut (source side = 1; x[a][t] is "w[a][t] and not d[a][maker]",
// the arc from t to its maker), exact in integers. Whatever the multipliers, the sum is a lower bound
// (weak duality), so how they are found is of no matter to its truth: by intersecting lines where there
// is one instant, else by subgradient steps. What the duality gap leaves is narrowed by branching on
// x[a][t]: the bound is the least over the open branches, and anytime. Bytes are divided by a unit and
// rounded down on both sides of (5); costs are scaled by a power of two, rounded down where they shrink;
// the result is rounded up to a multiple of what all forwards are multiples of.

#define TLI_BOUND_INSTANTS 10                      // at most, of one relaxation
#define TLI_BOUND_INFINITE (INT64_C(1) << 62)      // a capacity no flow reaches
#define TLI_BOUND_COSTS (INT64_C(1) << 50)         // all scaled costs together, and the largest mu
#define TLI_BOUND_UNITS 26                         // bits of all bytes together, in units
#define TLI_BOUND_LAMBDA (INT64_C(1) << 32)        // the largest lambda: times all units still below 2^59

enum { TLI_BOUND_FREE, TLI_BOUND_KEPT, TLI_BOUND_ABSENT };  // what is known of x[a][t]

// The network, one for all spans: source -> thing -> maker -> its inputs; node -> sink. Arc e ^ 1 is arc
// e the other way. Thing t enters by arc 2t and goes to its maker by arc 2 (things + t).
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
    uint64_t       *work, work_limit, table_limit;  // of one table; 0 = none
    int32_t   thing_count, order_count;
    int32_t  *thing_of;          // [tensor_count + node_count] thing of a tensor, of saved(v); -1 = none
    int32_t  *maker;             // [thing_count] node
    uint64_t *exact;             // [thing_count] bytes
    int64_t  *bytes;             // [thing_count] in units, rounded down
    uint8_t  *at_end;            // [thing_count] 1 = resident at the end
    int32_t  *order;             // [order_count] nodes in the order of their backwards
    int32_t  *runs_by;           // [node_count] position of the first backward that needs it; INT32_MAX
    int64_t  *cost;              // [node_count] scaled fwd
    uint64_t *sets, *between;    // [order_count] tli_bound_find_sets
    uint64_t *room;              // [order_count] bytes left at that backward beside its working set
    uint8_t  *reads_mark;        // [thing_count] scratch
    int64_t  *enter;             // [thing_count] scratch: tli_bound_find_enters
    int32_t  *last_use;          // [thing_count] scratch: tli_bound_find_uses
    struct tli_bound_label *labels, *made;  // [2 TLI_BOUND_LABELS], [TLI_BOUND_LABELS]
    uint64_t  unit, base_cost, cost_step;
    int32_t   cost_up, cost_down;  // scaled = cost << up >> down
    int64_t   typical;           // bytes of a thing, for the length of steps
    tli_bound_net net;
    void     *memory[24];         // what tli_bound_take gave
    int32_t   memory_count, failed;
} tli_bound;

// One relaxation: instants, multipliers, what is fixed. Arrays are [count][thing_count].
typedef struct tli_bound_state {
    int32_t  count;
    int32_t  at[TLI_BOUND_INSTANTS];       // positions in order
    int64_t  lambda[TLI_BOUND_INSTANTS];   // scaled cost per unit
    int64_t  room[TLI_BOUND_INSTANTS];     // units
    int64_t  value;                     // scaled bound at these multipliers
    int32_t  is_exact;                  // 1 = no schedule of the relaxation is above it: branching is no use
    int64_t *mu;
    uint8_t *fixed;
    uint8_t *share;                     // how often x was 1 lately, of 255
} tli_bound_state;

static void *tli_bound_take(tli_bound *rb, int64_t count, size_t item_bytes) {
    void *memory = tli_alloc_array(rb->env, (uint64_t)count, item_bytes);
    if (memory) rb->memory[rb->memory_count++] = memory;
    else rb->failed = 1;
    return memory;
}

static void tli_bound_free(tli_bound *rb) {
    while (rb->memory_count > 0) tli_release(rb->env, rb->memory[--rb->memory_count]);
}

// -- bound: set up: what runs when, what is resident, what room is left --

// The position of the first backward that each node must have run before; of results beyond these,
// which must run some time, node_count. wanted: scratch [tensor_count].
static void tli_bound_find_runs(tli_bound *rb, int32_t inference, uint8_t *wanted) {
    const tl_graph *graph = rb->graph;
    int32_t id, i;
    tli_mark_results(graph, inference, wanted);
    rb->order_count = 0;
    for (id = graph->node_count; id-- > 0;) {
        rb->runs_by[id] = wanted[graph->nodes[id].first_output] ? graph->node_count : INT32_MAX;
        if (!graph->nodes[id].has_grad || inference) continue;
        rb->runs_by[id] = rb->order_count;
        rb->order[rb->order_count++] = id;
    }
    for (i = 0; i < graph->tensor_count; i++)
        if (wanted[i] && rb->thing_of[i] >= 0) rb->at_end[rb->thing_of[i]] = 1;
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t *by = &rb->runs_by[graph->outputs[graph->inputs[i].tensor].node];
            if (rb->runs_by[id] < *by) *by = rb->runs_by[id];
        }
    }
}

static uint64_t tli_bound_gcd(uint64_t a, uint64_t b) {
    while (b) { uint64_t rest = a % b; a = b; b = rest; }
    return a;
}

// Base cost, and costs scaled so that all together are below TLI_BOUND_COSTS.
static void tli_bound_scale_costs(tli_bound *rb) {
    const tl_graph *graph = rb->graph;
    uint64_t sum = 0;
    int32_t id;
    for (id = 0; id < graph->node_count; id++) {  // fits 64 bits: tl_check_graph
        const tl_node *node = &graph->nodes[id];
        if (node->is_input || rb->runs_by[id] == INT32_MAX) continue;
        rb->base_cost += node->fwd_cost;
        if (rb->runs_by[id] < rb->order_count && node->has_grad) rb->base_cost += node->bwd_cost;
        sum += node->fwd_cost;
        rb->cost_step = tli_bound_gcd(rb->cost_step, node->fwd_cost);
    }
    if (!sum) sum = 1;
    while (sum >> rb->cost_down > (uint64_t)TLI_BOUND_COSTS) rb->cost_down++;
    while (!rb->cost_down && sum << (rb->cost_up + 1) <= (uint64_t)TLI_BOUND_COSTS) rb->cost_up++;
    for (id = 0; id < graph->node_count; id++)
        if (rb->runs_by[id] != INT32_MAX && !graph->nodes[id].is_input)
            rb->cost[id] = (int64_t)(graph->nodes[id].fwd_cost >> rb->cost_down << rb->cost_up);
}

// Set mark[] of what the backward of a node reads to `value`.
static void tli_bound_mark_reads(const tli_bound *rb, int32_t id, uint8_t *mark, uint8_t value) {
    const tl_graph *graph = rb->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i, thing;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        thing = graph->inputs[i].needed ? rb->thing_of[graph->inputs[i].tensor] : -1;
        if (thing >= 0) mark[thing] = value;
    }
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        thing = graph->outputs[i].needed ? rb->thing_of[i] : -1;
        if (thing >= 0) mark[thing] = value;
    }
    thing = rb->thing_of[graph->tensor_count + id];
    if (thing >= 0) mark[thing] = value;
}

static uint64_t tli_bound_input_bytes(const tl_graph *graph) {
    uint64_t sum = 0;
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++)
        if (graph->nodes[graph->outputs[i].node].is_input) sum += graph->outputs[i].bytes;
    return sum;
}

// sets[]: the bytes of every backward's working set: graph inputs, gradients alive, scratch, what it reads.
// between[]: graph inputs and the gradients alive after it.
// has_gradient: scratch [tensor_count], zeroed. Sums fit: tl_check_graph counts each of them.
static void tli_bound_find_sets(tli_bound *rb, uint8_t *has_gradient) {
    const tl_graph *graph = rb->graph;
    uint64_t live = tli_bound_input_bytes(graph);
    int32_t p, i;
    for (p = 0; p < rb->order_count; p++) {
        const tl_node *node = &graph->nodes[rb->order[p]];
        int32_t end = node->first_output + node->output_count;
        for (i = node->first_output; i < end; i++)
            if (!has_gradient[i]) { has_gradient[i] = 1; live += graph->outputs[i].bytes; }
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor;
            if (has_gradient[tensor] || !graph->nodes[graph->outputs[tensor].node].has_grad) continue;
            has_gradient[tensor] = 1;
            live += graph->outputs[tensor].bytes;
        }
        rb->sets[p] = live + node->bwork_bytes;
        tli_bound_mark_reads(rb, rb->order[p], rb->reads_mark, 1);
        for (i = 0; i < rb->thing_count; i++) if (rb->reads_mark[i]) rb->sets[p] += rb->exact[i];
        tli_bound_mark_reads(rb, rb->order[p], rb->reads_mark, 0);
        for (i = node->first_output; i < end; i++) live -= graph->outputs[i].bytes;
        rb->between[p] = live;
    }
}

// The things: tensors that are no graph inputs, and saved bytes that some backward reads.
static void tli_bound_find_things(tli_bound *rb, int32_t inference) {
    const tl_graph *graph = rb->graph;
    int32_t i, id;
    for (i = 0; i < graph->tensor_count; i++) {
        int is_input = graph->nodes[graph->outputs[i].node].is_input;
        rb->thing_of[i] = is_input ? -1 : rb->thing_count;
        if (is_input) continue;
        rb->exact[rb->thing_count] = graph->outputs[i].bytes;
        rb->maker[rb->thing_count++] = graph->outputs[i].node;
    }
    for (id = 0; id < graph->node_count; id++) {
        int is_read = !inference && graph->nodes[id].has_grad && graph->nodes[id].saved_bytes;
        rb->thing_of[graph->tensor_count + id] = is_read ? rb->thing_count : -1;
        if (!is_read) continue;
        rb->exact[rb->thing_count] = graph->nodes[id].saved_bytes;
        rb->maker[rb->thing_count++] = id;
    }
}

// Bytes in units, so that all of them together are below 2^26: first by what all are multiples of.
static void tli_bound_scale_bytes(tli_bound *rb) {
    uint64_t sum = 0, divisor = 0;
    int32_t t, count = 0;
    for (t = 0; t < rb->thing_count; t++) {
        sum += rb->exact[t];
        divisor = tli_bound_gcd(divisor, rb->exact[t]);
        count += rb->exact[t] > 0;
    }
    rb->unit = divisor ? divisor : 1;
    if (sum / rb->unit >> TLI_BOUND_UNITS) rb->unit *= (sum / rb->unit >> TLI_BOUND_UNITS) + 1;
    for (t = 0; t < rb->thing_count; t++) rb->bytes[t] = (int64_t)(rb->exact[t] / rb->unit);
    rb->typical = count ? (int64_t)(sum / rb->unit / (uint64_t)count) : 1;
    if (!rb->typical) rb->typical = 1;
}

// -- bound: the network --

static void tli_bound_add_arc(tli_bound_net *net, int32_t from, int32_t to) {
    net->to[net->arc_count++] = to;
    net->to[net->arc_count++] = from;
}

// Arcs in the order of tli_bound_net, then node -> sink at 2 (2 things + node), then the inputs.
static void tli_bound_make_net(tli_bound *rb) {
    const tl_graph *graph = rb->graph;
    tli_bound_net *net = &rb->net;
    int32_t things = rb->thing_count, nodes = graph->node_count, source = things + nodes, i, v;
    net->vertex_count = source + 2;
    for (i = 0; i < things; i++) tli_bound_add_arc(net, source, i);
    for (i = 0; i < things; i++) tli_bound_add_arc(net, i, things + rb->maker[i]);
    for (i = 0; i < nodes; i++) tli_bound_add_arc(net, things + i, source + 1);
    for (i = 0; i < nodes; i++) {
        const tl_node *node = &graph->nodes[i];
        for (v = node->first_input; v < node->first_input + node->input_count; v++) {
            int32_t thing = rb->thing_of[graph->inputs[v].tensor];
            if (thing >= 0) tli_bound_add_arc(net, things + i, thing);
        }
    }
    for (i = 0; i < net->arc_count; i++) net->first[net->to[i ^ 1] + 1]++;
    for (v = 0; v < net->vertex_count; v++) net->first[v + 1] += net->first[v];
    for (v = 0; v < net->vertex_count; v++) net->cursor[v] = net->first[v];
    for (i = 0; i < net->arc_count; i++) net->arcs[net->cursor[net->to[i ^ 1]]++] = i;
}

// Distances to the sink along arcs that have capacity left; 0 = none. 1 where the source has one.
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

// Send flow along path[0 .. length - 1]; returns the first place of an arc that is full now.
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

// Dinic, 1970: the largest flow; left[] holds the residual capacities. Every path ends in an arc to the
// sink whose capacity is a cost, so all of it is at most 2^50 and infinite arcs stay above that.
static int64_t tli_bound_flow(tli_bound_net *net, uint64_t *work) {
    int32_t source = net->vertex_count - 2, sink = source + 1, v;
    int64_t flow = 0;
    while (tli_bound_find_levels(net, work)) {
        int32_t at = source, length = 0;
        for (v = 0; v < net->vertex_count; v++) net->cursor[v] = net->first[v];
        for (;;) {
            int32_t arc = -1;
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

// The source's side of the cut that a largest flow leaves: level[v] = 1.
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

// What the span from instant a on has to have: mark[] = 1.
static void tli_bound_mark_span(const tli_bound *rb, const tli_bound_state *s, int32_t a, uint8_t *mark) {
    int32_t end = a + 1 < s->count ? s->at[a + 1] : rb->order_count - 1, p;
    if (a + 1 < s->count) tli_zero(mark, (size_t)rb->thing_count);
    else tli_copy(mark, rb->at_end, (size_t)rb->thing_count);
    for (p = s->at[a] + 1; p <= end; p++) tli_bound_mark_reads(rb, rb->order[p], mark, 1);
}

static void tli_bound_set(tli_bound_net *net, int32_t arc, int64_t capacity) {
    net->left[arc] = capacity;
    net->left[arc ^ 1] = 0;
}

// What thing t costs to hold at instant a.
static int64_t tli_bound_price(const tli_bound *rb, const tli_bound_state *s, int32_t a, int32_t t) {
    int32_t at = a * rb->thing_count + t;
    if (s->fixed[at] == TLI_BOUND_KEPT) return 0;
    if (s->fixed[at] == TLI_BOUND_ABSENT) return TLI_BOUND_INFINITE;
    return s->lambda[a] * rb->bytes[t] + s->mu[at];
}

// enter[]: what it costs that thing t is not there in span a (infinite: it must be), less `offers`, a
// constant: what instant a + 1 pays for all that is there. 0 = that constant is too large to be of use.
static int tli_bound_find_enters(tli_bound *rb, const tli_bound_state *s, int32_t a, int64_t *offers) {
    int32_t things = rb->thing_count, t;
    tli_bound_mark_span(rb, s, a, rb->reads_mark);
    *offers = 0;
    for (t = 0; t < things; t++) {
        int32_t next = (a + 1) * things + t;
        rb->enter[t] = rb->reads_mark[t] ? TLI_BOUND_INFINITE : 0;
        if (a + 1 == s->count) continue;
        if (s->fixed[next] == TLI_BOUND_KEPT) rb->enter[t] = TLI_BOUND_INFINITE;
        if (s->fixed[next] != TLI_BOUND_FREE) continue;
        if (*offers <= INT64_C(1) << 58) *offers += s->mu[next];  // for being there, whatever the reason
        if (!rb->enter[t]) rb->enter[t] = s->mu[next];
    }
    tli_zero(rb->reads_mark, (size_t)things);
    return *offers <= INT64_C(1) << 58;
}

// The least cost of span a under the multipliers, less its constant part; -2^59 where that is too large
// to be of use. Afterwards level[] of the net is the source's side.
static int64_t tli_bound_solve_span(tli_bound *rb, const tli_bound_state *s, int32_t a) {
    tli_bound_net *net = &rb->net;
    int32_t things = rb->thing_count, t, i;
    int64_t offers, flow;
    int is_useful = tli_bound_find_enters(rb, s, a, &offers);
    for (t = 0; t < things; t++) {
        tli_bound_set(net, 2 * t, rb->enter[t]);
        tli_bound_set(net, 2 * (things + t), tli_bound_price(rb, s, a, t));
    }
    for (i = 0; i < rb->graph->node_count; i++)
        tli_bound_set(net, 2 * (2 * things + i), rb->runs_by[i] <= s->at[a] ? rb->cost[i] : 0);
    for (i = 2 * (2 * things + rb->graph->node_count); i < net->arc_count; i += 2)
        tli_bound_set(net, i, TLI_BOUND_INFINITE);
    flow = tli_bound_flow(net, rb->work);
    tli_bound_find_side(net, rb->work);
    return is_useful ? flow - offers - s->lambda[a] * s->room[a] : -(INT64_C(1) << 59);
}

// Bytes that the solution at hand holds at instant a, less the room: the slope along lambda[a].
static int64_t tli_bound_slope(const tli_bound *rb, const tli_bound_state *s, int32_t a) {
    const int32_t *level = rb->net.level;
    int64_t held = 0;
    int32_t t;
    for (t = 0; t < rb->thing_count; t++)
        if (s->fixed[a * rb->thing_count + t] == TLI_BOUND_FREE && level[t] &&
            !level[rb->thing_count + rb->maker[t]]) held += rb->bytes[t];
    return held - s->room[a];
}

// x of the solution at hand: add `weight` to share[] where thing t is held at instant a.
static void tli_bound_add_share(const tli_bound *rb, tli_bound_state *s, int32_t a, uint8_t weight) {
    const int32_t *level = rb->net.level;
    int32_t t, things = rb->thing_count;
    for (t = 0; t < things; t++)
        if (level[t] && !level[things + rb->maker[t]])
            s->share[a * things + t] = (uint8_t)(s->share[a * things + t] + weight);
}

// A point of the concave function value(lambda[a]): the line that touches it there.
typedef struct tli_bound_line { int64_t lambda, value, slope; } tli_bound_line;

static tli_bound_line tli_bound_touch(tli_bound *rb, tli_bound_state *s, int32_t a, int64_t lambda) {
    tli_bound_line line;
    s->lambda[a] = line.lambda = lambda;
    line.value = tli_bound_solve_span(rb, s, a);
    line.slope = tli_bound_slope(rb, s, a);
    return line;
}

// The lambda[a] that is best for span a, the other multipliers as they are, by intersecting the lines on
// both sides; returns the span's value there. ends[]: the lambdas of the two lines.
static int64_t tli_bound_search_line(tli_bound *rb, tli_bound_state *s, int32_t a, int64_t ends[2]) {
    tli_bound_line low, high, at = tli_bound_touch(rb, s, a, s->lambda[a]);
    int64_t start = at.lambda > 0 ? at.lambda : 1;
    int32_t tries;
    low = high = at;
    if (at.slope > 0) {
        while (high.slope > 0 && high.lambda < TLI_BOUND_LAMBDA) {
            low = high;
            start = start > TLI_BOUND_LAMBDA / 16 ? TLI_BOUND_LAMBDA : start * 16;
            high = tli_bound_touch(rb, s, a, start);
        }
    } else if (at.slope < 0 && at.lambda > 0) {
        low = tli_bound_touch(rb, s, a, 0);
    }
    for (tries = 0; tries < 24 && low.slope > 0 && high.slope < 0; tries++) {
        int64_t crossing = (high.value - high.slope * high.lambda) - (low.value - low.slope * low.lambda);
        int64_t lambda = crossing / (low.slope - high.slope);
        if (lambda <= low.lambda || lambda >= high.lambda) break;
        at = tli_bound_touch(rb, s, a, lambda);
        if (!at.slope) { low = high = at; break; }
        if (at.slope > 0) low = at; else high = at;
    }
    at = low.value > high.value ? low : high;
    s->lambda[a] = at.lambda;
    ends[0] = low.lambda;
    ends[1] = high.lambda;
    return at.value;
}

// -- bound: one span with the room as it is, not its price: a table --
//
// Nodes in listing order; a label is what is there of the things that later nodes still take (mask), the
// bytes held and the cost so far. A node is made (its inputs must be there; all its things are) or not
// (each of its things is held or is not there). Of labels with one mask, those that are worse in both are
// dropped. Where there are too many, bytes are rounded down more coarsely: the least cost only gets lower.

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

// Sort, and drop what is worse than another of the same mask in both; returns how many are left.
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
    tli_bound             *rb;
    const tli_bound_state *state;
    int32_t  a;          // the span
    int32_t  count;      // labels
    int64_t  grid;       // bytes are rounded down to multiples
    uint64_t start;      // work done before
    uint64_t used;       // slots in use
    int32_t  slot_things[TLI_BOUND_SLOTS];
} tli_bound_table;

// The slot of a thing; -1 = none, as no later node takes it.
static int32_t tli_bound_find_slot(const tli_bound_table *table, int32_t thing) {
    int32_t slot;
    for (slot = 0; slot < TLI_BOUND_SLOTS; slot++)
        if (table->used >> slot & 1 && table->slot_things[slot] == thing) return slot;
    return -1;
}

// The other half of the list takes thing t of a node that is not made: held, or not there. 0 = full.
static int tli_bound_spread(tli_bound_table *table, int32_t t, uint64_t bit) {
    tli_bound *rb = table->rb;
    const tli_bound_state *s = table->state;
    int32_t cell = table->a * rb->thing_count + t, i, count = table->count;
    int is_kept = s->fixed[cell] == TLI_BOUND_KEPT;
    for (i = 0; i < count; i++) {
        tli_bound_label held = rb->labels[i], *gone = &rb->labels[i];
        held.mask |= bit;
        held.bytes += is_kept ? 0 : rb->bytes[t];
        held.cost += is_kept ? 0 : s->mu[cell];
        gone->cost = rb->enter[t] >= TLI_BOUND_INFINITE || is_kept ? TLI_BOUND_INFINITE
                                                                   : gone->cost + rb->enter[t];
        if (s->fixed[cell] == TLI_BOUND_ABSENT || held.bytes > s->room[table->a]) continue;
        if (gone->cost >= TLI_BOUND_INFINITE) *gone = held;
        else rb->labels[table->count++] = held;
    }
    for (i = count = 0; i < table->count; i++)
        if (rb->labels[i].cost < TLI_BOUND_INFINITE) rb->labels[count++] = rb->labels[i];
    table->count = count > TLI_BOUND_LABELS
                       ? tli_bound_thin(rb->labels, count, TLI_BOUND_LABELS, &table->grid)
                       : count;
    return table->count <= TLI_BOUND_LABELS;
}
// last_use[]: of things that may be wanted, the last node that may take them (their maker: none does);
// -1 = nothing in this span wants them.
static void tli_bound_find_uses(tli_bound *rb) {
    const tl_graph *graph = rb->graph;
    int32_t t, id, i;
    for (t = 0; t < rb->thing_count; t++) rb->last_use[t] = rb->enter[t] > 0 ? rb->maker[t] : -1;
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        int32_t saved = rb->thing_of[graph->tensor_count + id];
        int is_wanted = saved >= 0 && rb->last_use[saved] >= 0;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            is_wanted |= rb->thing_of[i] >= 0 && rb->last_use[rb->thing_of[i]] >= 0;
        for (i = node->first_input; i < node->first_input + node->input_count && is_wanted; i++) {
            int32_t thing = rb->thing_of[graph->inputs[i].tensor];
            if (thing >= 0 && rb->last_use[thing] < id) rb->last_use[thing] = id;
        }
    }
}

// Give thing t its slot, where a later node takes it; 0 = there is none left.
static int tli_bound_add_slot(tli_bound_table *table, int32_t t, uint64_t *bit) {
    int32_t slot = 0;
    *bit = 0;
    if (t < 0 || table->rb->last_use[t] <= table->rb->maker[t]) return 1;
    while (slot < TLI_BOUND_SLOTS && table->used >> slot & 1) slot++;
    if (slot == TLI_BOUND_SLOTS) return 0;
    table->used |= *bit = UINT64_C(1) << slot;
    table->slot_things[slot] = t;
    return 1;
}

// One node: labels in which it is made, then those in which it is not. 0 = too many slots or labels.
static int tli_bound_add_node(tli_bound_table *table, int32_t id) {
    tli_bound *rb = table->rb;
    const tl_node *node = &rb->graph->nodes[id];
    uint64_t takes = 0, makes = 0, ends = 0, bit;
    int64_t cost = rb->runs_by[id] <= table->state->at[table->a] ? rb->cost[id] : 0;
    int32_t i, k, made = 0, wanted = 0;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        int32_t thing = rb->thing_of[rb->graph->inputs[i].tensor];
        int32_t slot = thing >= 0 ? tli_bound_find_slot(table, thing) : -1;
        if (slot < 0) continue;
        takes |= UINT64_C(1) << slot;
        if (rb->last_use[thing] == id) ends |= UINT64_C(1) << slot;
    }
    for (k = 0; k <= node->output_count; k++) {
        int32_t t = k < node->output_count ? node->first_output + k : rb->graph->tensor_count + id;
        t = rb->thing_of[t];
        if (t < 0 || rb->last_use[t] < 0) continue;
        if (!tli_bound_add_slot(table, t, &bit)) return 0;
        makes |= bit;
        for (i = 0; !wanted && i < table->count; i++) {
            if (takes & ~rb->labels[i].mask) continue;
            rb->made[made] = rb->labels[i];
            rb->made[made++].cost += cost;
        }
        wanted = 1;
        if (!tli_bound_spread(table, t, bit)) return 0;
    }
    for (i = 0; i < made; i++) {
        rb->made[i].mask |= makes;
        rb->labels[table->count++] = rb->made[i];
    }
    for (i = 0; i < table->count; i++) rb->labels[i].mask &= ~ends;
    table->used &= ~ends;
    *rb->work += 40 * (uint64_t)table->count + 1;
    if (wanted || ends) table->count = tli_bound_thin(rb->labels, table->count, TLI_BOUND_LABELS, &table->grid);
    if (*rb->work - table->start > rb->table_limit) return 0;
    return table->count > 0 && table->count <= TLI_BOUND_LABELS;
}

// As tli_bound_solve_span, with the room in full; -2^59 where the table grows too wide. *is_exact becomes 0
// where this is not the least cost of the span itself.
static int64_t tli_bound_tabulate_span(tli_bound *rb, const tli_bound_state *s, int32_t a, int32_t *is_exact) {
    tli_bound_table table;
    int64_t offers, best = TLI_BOUND_INFINITE;
    int32_t id, i, is_useful = tli_bound_find_enters(rb, s, a, &offers);
    tli_zero(&table, sizeof table);
    table.rb = rb; table.state = s; table.a = a;
    table.grid = 1;
    table.count = 1;
    table.start = *rb->work;
    tli_zero(rb->labels, sizeof *rb->labels);
    tli_bound_find_uses(rb);
    for (id = 0; id < rb->graph->node_count && is_useful; id++) is_useful = tli_bound_add_node(&table, id);
    if (!is_useful || table.grid > 1) *is_exact = 0;
    if (!is_useful) return -(INT64_C(1) << 59);
    for (i = 0; i < table.count; i++) if (rb->labels[i].cost < best) best = rb->labels[i].cost;
    return best - offers;
}

// Raise the value of a state to what its spans come to, each by the better of its two bounds.
static void tli_bound_tabulate(tli_bound *rb, tli_bound_state *s) {
    int64_t value = 0;
    int32_t a, is_exact = s->count == 1;
    for (a = 0; a < s->count; a++) {
        int64_t cut = tli_bound_solve_span(rb, s, a);
        int64_t full = rb->table_limit ? tli_bound_tabulate_span(rb, s, a, &is_exact) : cut;
        value += cut > full ? cut : full;
    }
    if (value > s->value) s->value = value;
    if (rb->table_limit) s->is_exact |= is_exact;
}

// -- bound: states --

static void tli_bound_free_state(tli_bound *rb, tli_bound_state *s) {
    if (s) { tli_release(rb->env, s->mu); tli_release(rb->env, s->fixed); tli_release(rb->env, s); }
}

// An empty state with room for so many instants; NULL: no memory (rb->failed).
static tli_bound_state *tli_bound_add_state(tli_bound *rb, int32_t instants) {
    tli_bound_state *s = (tli_bound_state *)tli_alloc_array(rb->env, 1, sizeof *s);
    uint64_t cells = (uint64_t)instants * (uint64_t)rb->thing_count;
    if (s) {
        tli_zero(s, sizeof *s);
        s->mu = (int64_t *)tli_alloc_array(rb->env, cells, sizeof *s->mu);
        s->fixed = (uint8_t *)tli_alloc_array(rb->env, 2 * cells, 1);
        s->share = s->fixed ? s->fixed + cells : NULL;
    }
    if (s && s->mu && s->fixed) return s;
    tli_bound_free_state(rb, s);
    rb->failed = 1;
    return NULL;
}

static void tli_bound_copy_state(const tli_bound *rb, tli_bound_state *to, const tli_bound_state *from) {
    size_t cells = (size_t)from->count * (size_t)rb->thing_count;
    int64_t *mu = to->mu;
    uint8_t *fixed = to->fixed, *share = to->share;
    *to = *from;
    to->mu = mu; to->fixed = fixed; to->share = share;
    tli_copy(mu, from->mu, cells * sizeof *mu);
    tli_copy(fixed, from->fixed, cells);
    tli_copy(share, from->share, cells);
}

// What is larger than the room alone cannot be held; 0 where what is held already is too much.
static int tli_bound_fix_large(const tli_bound *rb, tli_bound_state *s, int32_t a) {
    uint8_t *fixed = s->fixed + (size_t)a * (size_t)rb->thing_count;
    int32_t t;
    if (s->room[a] < 0) return 0;
    for (t = 0; t < rb->thing_count; t++)
        if (fixed[t] == TLI_BOUND_FREE && rb->bytes[t] > s->room[a]) fixed[t] = TLI_BOUND_ABSENT;
    return 1;
}

// Put an instant among those of a state, at the value the state has or nearly that: a thing is
// worth here a part of what it is worth at the instant before, or of its forward.
static void tli_bound_add_instant(tli_bound *rb, tli_bound_state *s, int32_t position) {
    int32_t a = s->count++, things = rb->thing_count, t;
    uint64_t room = rb->room[position] / rb->unit;
    int64_t most = INT64_C(1) << TLI_BOUND_UNITS;
    for (; a > 0 && s->at[a - 1] > position; a--) {
        size_t to = (size_t)a * (size_t)things, from = to - (size_t)things, count = (size_t)things;
        s->at[a] = s->at[a - 1]; s->lambda[a] = s->lambda[a - 1]; s->room[a] = s->room[a - 1];
        tli_copy(s->mu + to, s->mu + from, count * sizeof *s->mu);
        tli_copy(s->fixed + to, s->fixed + from, count);
    }
    s->at[a] = position;
    s->lambda[a] = 0;
    s->room[a] = room < (uint64_t)most ? (int64_t)room : most;
    tli_zero(s->fixed + (size_t)a * (size_t)things, (size_t)things);
    tli_bound_mark_reads(rb, rb->order[position], s->fixed + (size_t)a * (size_t)things, TLI_BOUND_KEPT);
    for (t = 0; t < things; t++) {
        int64_t price = a ? tli_bound_price(rb, s, a - 1, t) : 0, forward = rb->cost[rb->maker[t]];
        s->mu[a * things + t] = (price < forward ? price : forward) / 4;
    }
    (void)tli_bound_fix_large(rb, s, a);
}

// -- bound: several instants: subgradient steps --

typedef struct tli_bound_climb {
    tli_bound_state *now, *best;
    int32_t *slope;    // [instants][things] direction along mu, 1024 = 1
    int8_t  *held;     // [instants][things] x, and w of the span before
    int64_t  along[TLI_BOUND_INSTANTS];    // slope along lambda, bytes less room
    int64_t  turn[TLI_BOUND_INSTANTS];     // direction along lambda x typical
} tli_bound_climb;

// The value of a state, all spans; the slopes along its multipliers go to climb.
static int64_t tli_bound_measure(tli_bound *rb, tli_bound_state *s, tli_bound_climb *climb) {
    int32_t a, t, things = rb->thing_count;
    const int32_t *level = rb->net.level;
    int64_t value = 0;
    tli_zero(climb->held, (size_t)s->count * (size_t)things);
    for (a = 0; a < s->count; a++) {
        value += tli_bound_solve_span(rb, s, a);
        climb->along[a] = tli_bound_slope(rb, s, a);
        for (t = 0; t < things; t++) {
            uint8_t *share = &s->share[a * things + t];
            int is_held = level[t] && !level[things + rb->maker[t]];
            *share = (uint8_t)((*share * 7 + (is_held ? 255 : 0)) / 8);  // a running mean
            if (!level[t]) continue;
            if (is_held) climb->held[a * things + t]++;
            if (a + 1 < s->count) climb->held[(a + 1) * things + t]--;
        }
    }
    return value;
}

// Turn the direction of the climb towards the slopes: three quarters of the old one and the new one.
static void tli_bound_turn(tli_bound *rb, tli_bound_state *s, tli_bound_climb *climb, uint64_t *norm) {
    int32_t a, t, things = rb->thing_count;
    *norm = 1;
    for (a = 0; a < s->count; a++) {
        int64_t along = climb->along[a] * 256 / rb->typical;
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

static void tli_bound_step(tli_bound *rb, tli_bound_state *s, const tli_bound_climb *climb,
                           int64_t gain, uint64_t norm) {
    int32_t a, t, things = rb->thing_count;
    int64_t length = (int64_t)(((uint64_t)gain << 8) / (norm >> 10 ? norm >> 10 : 1)), most = INT64_C(1) << 44;
    if (length > most) length = most;
    for (a = 0; a < s->count; a++) {
        int64_t lambda = s->lambda[a] + length * climb->turn[a] / 1024 / rb->typical;
        s->lambda[a] = lambda < 0 ? 0 : lambda > TLI_BOUND_LAMBDA ? TLI_BOUND_LAMBDA : lambda;
        for (t = 0; a && t < things; t++) {
            int32_t at = a * things + t;
            int64_t mu = s->mu[at];
            if (s->fixed[at] != TLI_BOUND_FREE || (!mu && climb->slope[at] <= 0)) continue;
            mu += length * climb->slope[at] / 1024;
            s->mu[at] = mu < 0 ? 0 : mu > TLI_BOUND_COSTS ? TLI_BOUND_COSTS : mu;
        }
    }
}

static int tli_bound_is_over(const tli_bound *rb) {
    return *rb->work >= rb->work_limit || tli_remat_stops(rb->watch, *rb->work);
}

// Raise the value of climb->best by at most `rounds` steps towards a target that comes nearer where it
// is not reached. best->value is what it reaches.
static void tli_bound_climb_up(tli_bound *rb, tli_bound_climb *climb, int32_t rounds) {
    tli_bound_state *best = climb->best, *now = climb->now;
    size_t cells = (size_t)best->count * (size_t)rb->thing_count;
    int64_t ahead, gap, ends[2];
    int32_t round, failures = 0, a;
    best->value = 0;
    for (a = 0; a < best->count; a++) best->value += tli_bound_search_line(rb, best, a, ends);
    tli_bound_copy_state(rb, now, best);
    tli_zero(climb->slope, cells * sizeof *climb->slope);
    tli_zero(climb->turn, sizeof climb->turn);
    ahead = (best->value > 0 ? best->value : TLI_BOUND_COSTS / 64) / 16 + 1;
    for (round = 0; round < rounds && !tli_bound_is_over(rb); round++) {
        uint64_t norm;
        now->value = tli_bound_measure(rb, now, climb);
        if (now->value > best->value) {
            if (now->value - best->value > ahead / 8) { failures = 0; ahead += ahead / 2; }
            tli_bound_copy_state(rb, best, now);
        } else if (++failures >= 5) {
            ahead = ahead / 2 + 1;
            failures = 0;
            tli_bound_copy_state(rb, now, best);
            tli_zero(climb->slope, cells * sizeof *climb->slope);
            tli_zero(climb->turn, sizeof climb->turn);
            continue;
        }
        tli_bound_turn(rb, now, climb, &norm);
        gap = best->value - now->value + ahead;
        tli_bound_step(rb, now, climb, gap < TLI_BOUND_COSTS ? gap : TLI_BOUND_COSTS, norm);
    }
}

// -- bound: which instants --

typedef struct tli_bound_search {
    tli_bound       *rb;
    tli_bound_climb  climb;
    tli_bound_state *best, *trial;
    int64_t      *single;    // [order_count] value of each instant alone; -1 = not known
    int32_t      *listed;    // [order_count] positions to try
    int32_t       listed_count;
} tli_bound_search;

// Whether all that is read after B at this position fits beside what it reads itself: no constraint then.
static int tli_bound_is_slack(tli_bound *rb, int32_t position) {
    uint64_t need = 0;
    int32_t t, p;
    tli_copy(rb->reads_mark, rb->at_end, (size_t)rb->thing_count);
    for (p = position + 1; p < rb->order_count; p++) tli_bound_mark_reads(rb, rb->order[p], rb->reads_mark, 1);
    tli_bound_mark_reads(rb, rb->order[position], rb->reads_mark, 0);
    for (t = 0; t < rb->thing_count; t++) if (rb->reads_mark[t]) need += rb->exact[t];
    tli_zero(rb->reads_mark, (size_t)rb->thing_count);
    *rb->work += (uint64_t)rb->thing_count;
    return need <= rb->room[position];
}

static void tli_bound_try_single(tli_bound_search *search, int32_t position) {
    tli_bound *rb = search->rb;
    tli_bound_state *s = search->trial;
    int64_t ends[2];
    if (search->single[position] >= 0 || tli_bound_is_over(rb)) return;
    search->single[position] = 0;
    if (tli_bound_is_slack(rb, position)) return;
    s->count = 0;
    tli_bound_add_instant(rb, s, position);
    s->value = tli_bound_search_line(rb, s, 0, ends);
    search->single[position] = s->value > 1 ? s->value : 1;  // not slack: of use beside others
    if (!search->best->count || s->value > search->best->value) tli_bound_copy_state(rb, search->best, s);
}

// Every instant alone where there are few of them; else every so many, and all near the best.
static void tli_bound_try_singles(tli_bound_search *search) {
    tli_bound *rb = search->rb;
    int32_t step = rb->order_count / 256 + 1, p, k;
    for (p = 0; p < rb->order_count; p++) search->single[p] = -1;
    tli_bound_try_single(search, rb->order_count - 1);
    for (p = step / 2; p < rb->order_count; p += step) tli_bound_try_single(search, p);
    for (k = step / 2; step > 1 && k > 0; k--) {
        int32_t at = search->best->count ? search->best->at[0] : 0;
        if (at - k >= 0) tli_bound_try_single(search, at - k);
        if (at + k < rb->order_count) tli_bound_try_single(search, at + k);
    }
}

// Whether no neighbour that is known has a higher value.
static int tli_bound_is_top(const tli_bound_search *search, int32_t position) {
    int64_t value = search->single[position];
    int32_t p;
    for (p = position - 1; p >= 0 && search->single[p] < 0; p--) { }
    if (p >= 0 && search->single[p] >= value) return 0;
    for (p = position + 1; p < search->rb->order_count && search->single[p] < 0; p++) { }
    return p == search->rb->order_count || search->single[p] <= value;
}

// List the instants that are worth a try beside others: all where there are few, else the tops and
// then some that stand evenly.
static void tli_bound_list_instants(tli_bound_search *search) {
    enum { LISTED = 64 };
    int32_t p, count = 0, tops = 0, seen = 0, step;
    for (p = 0; p < search->rb->order_count; p++) {
        count += search->single[p] > 0;
        tops += search->single[p] > 0 && tli_bound_is_top(search, p);
    }
    if (tops > LISTED / 2) tops = LISTED / 2;
    step = count <= LISTED ? 1 : (count - 1) / (LISTED - tops) + 1;
    for (p = 0; p < search->rb->order_count; p++) {
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

// The best state with one instant more, climbed a little; into climb.best.
static int64_t tli_bound_try_more(tli_bound_search *search, int32_t position, int32_t rounds) {
    tli_bound_copy_state(search->rb, search->climb.best, search->best);
    tli_bound_add_instant(search->rb, search->climb.best, position);
    tli_bound_climb_up(search->rb, &search->climb, rounds);
    return search->climb.best->value;
}

// Add the instant that raises the value most, if one does: all listed ones are tried in a few steps, the
// most hopeful of them in more. 0 = none.
static int tli_bound_add_best(tli_bound_search *search) {
    enum { HOPEFUL = 5 };
    tli_bound *rb = search->rb;
    int64_t values[HOPEFUL], before = search->best->value;
    int32_t chosen[HOPEFUL], count = 0, nearby = -1, i, k;
    for (i = 0; i < search->listed_count && !tli_bound_is_over(rb); i++) {
        int64_t value;
        if (tli_bound_has_instant(search->best, search->listed[i])) continue;
        value = tli_bound_try_more(search, search->listed[i], 10);
        if (count == HOPEFUL && value <= values[count - 1]) continue;
        k = count < HOPEFUL ? count++ : count - 1;
        for (; k > 0 && values[k - 1] < value; k--) { values[k] = values[k - 1]; chosen[k] = chosen[k - 1]; }
        values[k] = value;
        chosen[k] = search->listed[i];
    }
    tli_bound_copy_state(rb, search->trial, search->best);
    for (i = 0; i < count && !tli_bound_is_over(rb); i++)
        if (tli_bound_try_more(search, chosen[i], 60) > search->trial->value) {
            tli_bound_copy_state(rb, search->trial, search->climb.best);
            nearby = chosen[i];
        }
    for (i = -3; i <= 3 && nearby >= 0 && !tli_bound_is_over(rb); i++) {
        if (nearby + i < 0 || nearby + i >= rb->order_count) continue;
        if (tli_bound_has_instant(search->best, nearby + i)) continue;
        if (tli_bound_try_more(search, nearby + i, 60) > search->trial->value)
            tli_bound_copy_state(rb, search->trial, search->climb.best);
    }
    if (search->trial->value <= before) return 0;
    tli_bound_copy_state(rb, search->best, search->trial);
    return 1;
}

// -- bound: branching --

#define TLI_BOUND_OPEN 2048                  // branches open at a time, at most,
#define TLI_BOUND_OPEN_BYTES (48u << 20)     // and about their bytes

typedef struct tli_bound_tree {
    tli_bound_state *open[TLI_BOUND_OPEN];  // by falling value: the last is the next
    int32_t       count, most;
    int64_t       bound;              // no branch is below it
} tli_bound_tree;

// Bound a branch anew: its value only rises. 0 = nothing fits it.
static int tli_bound_find_branch(tli_bound_search *search, tli_bound_state *s, int32_t rounds) {
    tli_bound *rb = search->rb;
    int64_t before = s->value, ends[2];
    int32_t a;
    for (a = 0; a < s->count; a++) if (!tli_bound_fix_large(rb, s, a)) return 0;
    if (s->count > 1) {
        tli_bound_copy_state(rb, search->climb.best, s);
        tli_bound_climb_up(rb, &search->climb, rounds);
        search->climb.now->value = search->climb.best->value;
        tli_bound_copy_state(rb, s, search->climb.best);
        tli_copy(s->share, search->climb.now->share, (size_t)s->count * (size_t)rb->thing_count);
        if (rb->table_limit) tli_bound_tabulate(rb, s);
    } else {
        s->value = tli_bound_search_line(rb, s, 0, ends);
        s->is_exact = ends[0] == ends[1];
        tli_zero(s->share, (size_t)rb->thing_count);
        for (a = 0; a < 2 && ends[0] != ends[1]; a++) {
            int64_t lambda = s->lambda[0];
            (void)tli_bound_touch(rb, s, 0, ends[a]);
            tli_bound_add_share(rb, s, 0, 127);
            s->lambda[0] = lambda;
        }
    }
    if (s->value < before) s->value = before;
    return 1;
}

// The cell whose x is least decided, weighed by what it costs to hold; -1 = none.
static int32_t tli_bound_choose_cell(const tli_bound *rb, const tli_bound_state *s) {
    int32_t best = -1, a, t;
    int64_t most = 0;
    if (s->is_exact) return -1;
    for (a = 0; a < s->count; a++)
        for (t = 0; t < rb->thing_count; t++) {
            int32_t at = a * rb->thing_count + t;
            int64_t doubt = s->share[at] < 128 ? s->share[at] : 255 - s->share[at];
            if (s->fixed[at] != TLI_BOUND_FREE || !rb->bytes[t]) continue;
            doubt = (1 + 32 * doubt) * (1 + tli_bound_price(rb, s, a, t) / 4096);
            if (doubt > most) { most = doubt; best = at; }
        }
    return best;
}

static void tli_bound_push(tli_bound_tree *tree, tli_bound_state *s) {
    int32_t at = tree->count++;
    for (; at > 0 && tree->open[at - 1]->value < s->value; at--) tree->open[at] = tree->open[at - 1];
    tree->open[at] = s;
}

// Where all of a branch is decided, more is known only at another instant: add the one of the highest
// value. 0 = there is none, or no memory for it.
static int tli_bound_extend(tli_bound_search *search, tli_bound_tree *tree) {
    tli_bound *rb = search->rb;
    tli_bound_state *low = tree->open[tree->count - 1], *more;
    int64_t most = 0;
    int32_t i, found = -1;
    if (low->count == TLI_BOUND_INSTANTS) return 0;
    for (i = 0; i < search->listed_count && !tli_bound_is_over(rb); i++) {
        if (tli_bound_has_instant(low, search->listed[i])) continue;
        tli_bound_copy_state(rb, search->climb.best, low);
        tli_bound_add_instant(rb, search->climb.best, search->listed[i]);
        tli_bound_climb_up(rb, &search->climb, 12);
        if (found >= 0 && (search->climb.best->value < most || (search->climb.best->value == most &&
            search->single[search->listed[i]] <= search->single[found]))) continue;
        most = search->climb.best->value;
        found = search->listed[i];
        tli_bound_copy_state(rb, search->trial, search->climb.best);
    }
    if (found < 0) return 0;
    more = tli_bound_add_state(rb, low->count + 1);
    if (!more) return 0;
    tli_bound_copy_state(rb, more, search->trial);
    more->is_exact = 0;
    if (more->value < low->value) more->value = low->value;
    tli_bound_free_state(rb, low);
    tree->count--;
    if (tli_bound_find_branch(search, more, 30)) tli_bound_push(tree, more);
    else tli_bound_free_state(rb, more);
    tree->bound = tree->count ? tree->open[tree->count - 1]->value : TLI_BOUND_INFINITE;
    return tree->count > 0;
}

// Replace the lowest branch by its two halves: thing held, thing not held. 0 = that is no longer of use.
static int tli_bound_split(tli_bound_search *search, tli_bound_tree *tree) {
    tli_bound *rb = search->rb;
    tli_bound_state *low = tree->open[tree->count - 1], *half;
    int32_t cell = tli_bound_choose_cell(rb, low), rounds = low->count > 1 ? 24 : 0;
    tree->bound = low->value;
    if (tli_bound_is_over(rb)) return 0;
    if (cell < 0) return tli_bound_extend(search, tree);
    if (tree->count == tree->most) return 0;
    half = tli_bound_add_state(rb, low->count);
    if (!half) return 0;
    tli_bound_copy_state(rb, half, low);
    tree->count--;
    low->fixed[cell] = TLI_BOUND_ABSENT;
    low->mu[cell] = 0;
    half->fixed[cell] = TLI_BOUND_KEPT;
    half->mu[cell] = 0;
    half->room[cell / rb->thing_count] -= rb->bytes[cell % rb->thing_count];
    if (tli_bound_find_branch(search, low, rounds)) tli_bound_push(tree, low);
    else tli_bound_free_state(rb, low);
    if (tli_bound_find_branch(search, half, rounds)) tli_bound_push(tree, half);
    else tli_bound_free_state(rb, half);
    tree->bound = tree->count ? tree->open[tree->count - 1]->value : TLI_BOUND_INFINITE;
    return tree->count > 0;
}

// Raise the value of the best state by branching; TLI_BOUND_INFINITE: no schedule fits.
static int64_t tli_bound_branch(tli_bound_search *search) {
    tli_bound *rb = search->rb;
    tli_bound_tree *tree = (tli_bound_tree *)tli_bound_take(rb, 1, sizeof *tree);
    tli_bound_state *root = tree ? tli_bound_add_state(rb, search->best->count) : NULL;
    int64_t bound = search->best->value;
    uint64_t most, start;
    if (!root) return bound;
    tli_bound_copy_state(rb, root, search->best);
    most = TLI_BOUND_OPEN_BYTES / (sizeof *root + 10 * (uint64_t)root->count * (uint64_t)rb->thing_count);
    tree->most = most < TLI_BOUND_OPEN ? (int32_t)most : TLI_BOUND_OPEN;
    if (tli_bound_find_branch(search, root, 40)) {
        start = *rb->work;
        tli_bound_tabulate(rb, root);
        if (*rb->work - start > rb->table_limit / 16) rb->table_limit = 0;  // too dear for every branch
        tli_bound_push(tree, root);
    } else {
        tli_bound_free_state(rb, root);
    }
    tree->bound = tree->count ? root->value : TLI_BOUND_INFINITE;
    while (tree->count && tli_bound_split(search, tree)) { }
    bound = tree->bound > bound ? tree->bound : bound;
    while (tree->count > 0) tli_bound_free_state(rb, tree->open[--tree->count]);
    return bound;
}

// -- bound: the two calls --

// Everything that does not depend on the budget.
static tl_result tli_bound_open(tli_bound *rb, int32_t inference) {
    const tl_graph *graph = rb->graph;
    int64_t tensors = graph->tensor_count, nodes = graph->node_count, things = tensors + nodes;
    uint8_t *scratch = (uint8_t *)tli_bound_take(rb, tensors, 1);
    rb->thing_of = (int32_t *)tli_bound_take(rb, things, sizeof(int32_t));
    rb->maker = (int32_t *)tli_bound_take(rb, things, sizeof(int32_t));
    rb->exact = (uint64_t *)tli_bound_take(rb, things, sizeof(uint64_t));
    rb->bytes = (int64_t *)tli_bound_take(rb, things, sizeof(int64_t));
    rb->at_end = (uint8_t *)tli_bound_take(rb, 2 * things, 1);
    rb->enter = (int64_t *)tli_bound_take(rb, things, sizeof(int64_t));
    rb->last_use = (int32_t *)tli_bound_take(rb, things, sizeof(int32_t));
    rb->order = (int32_t *)tli_bound_take(rb, 2 * nodes, sizeof(int32_t));
    rb->cost = (int64_t *)tli_bound_take(rb, nodes, sizeof(int64_t));
    rb->room = (uint64_t *)tli_bound_take(rb, 3 * nodes, sizeof(uint64_t));
    if (rb->failed) return TL_ERROR_NO_MEMORY;
    rb->reads_mark = rb->at_end + things;
    rb->runs_by = rb->order + nodes;
    rb->sets = rb->room + nodes;
    rb->between = rb->sets + nodes;
    tli_bound_find_things(rb, inference);
    tli_bound_find_runs(rb, inference, scratch);
    tli_zero(scratch, (size_t)tensors);
    tli_bound_find_sets(rb, scratch);
    tli_bound_scale_bytes(rb);
    tli_bound_scale_costs(rb);
    return TL_OK;
}

static tl_result tli_bound_open_net(tli_bound *rb) {
    int64_t vertices = (int64_t)rb->thing_count + rb->graph->node_count + 2;
    int64_t arcs = 2 * (2 * (int64_t)rb->thing_count + rb->graph->node_count + rb->graph->input_count);
    tli_bound_net *net = &rb->net;
    net->to = (int32_t *)tli_bound_take(rb, arcs, sizeof(int32_t));
    net->left = (int64_t *)tli_bound_take(rb, arcs, sizeof(int64_t));
    net->arcs = (int32_t *)tli_bound_take(rb, arcs, sizeof(int32_t));
    net->first = (int32_t *)tli_bound_take(rb, 5 * (vertices + 1), sizeof(int32_t));
    rb->labels = (tli_bound_label *)tli_bound_take(rb, 2 * TLI_BOUND_LABELS, sizeof(tli_bound_label));
    rb->made = (tli_bound_label *)tli_bound_take(rb, TLI_BOUND_LABELS, sizeof(tli_bound_label));
    if (rb->failed) return TL_ERROR_NO_MEMORY;
    net->level = net->first + vertices + 1;
    net->cursor = net->level + vertices + 1;
    net->queue = net->cursor + vertices + 1;
    net->path = net->queue + vertices + 1;
    tli_bound_make_net(rb);
    return TL_OK;
}

static void tli_bound_search_all(tli_bound_search *search, int64_t *value) {
    tli_bound *rb = search->rb;
    uint64_t limit = rb->work_limit, start = *rb->work, share = limit > start ? (limit - start) / 8 : 0;
    rb->work_limit = start + 3 * share;
    tli_bound_try_singles(search);
    *value = 0;
    rb->table_limit = 2 * share;
    if (search->best->count > 0) {
        tli_bound_list_instants(search);
        rb->work_limit = start + 6 * share;
        while (search->best->count < TLI_BOUND_INSTANTS && tli_bound_add_best(search)) { }
        rb->work_limit = limit;
        *value = tli_bound_branch(search);
    }
    rb->work_limit = limit;
}

// The scaled bound on what is paid again; TLI_BOUND_INFINITE: no schedule fits.
static tl_result tli_bound_search_bound(tli_bound *rb, int64_t *value) {
    tli_bound_search search;
    int64_t cells = (int64_t)TLI_BOUND_INSTANTS * rb->thing_count;
    tl_result result = tli_bound_open_net(rb);
    if (result) return result;
    tli_zero(&search, sizeof search);
    search.rb = rb;
    search.single = (int64_t *)tli_bound_take(rb, rb->order_count, sizeof(int64_t));
    search.listed = (int32_t *)tli_bound_take(rb, rb->order_count, sizeof(int32_t));
    search.climb.slope = (int32_t *)tli_bound_take(rb, cells, sizeof(int32_t));
    search.climb.held = (int8_t *)tli_bound_take(rb, cells, 1);
    search.climb.now = tli_bound_add_state(rb, TLI_BOUND_INSTANTS);
    search.climb.best = tli_bound_add_state(rb, TLI_BOUND_INSTANTS);
    search.best = tli_bound_add_state(rb, TLI_BOUND_INSTANTS);
    search.trial = tli_bound_add_state(rb, TLI_BOUND_INSTANTS);
    if (!rb->failed) tli_bound_search_all(&search, value);
    tli_bound_free_state(rb, search.climb.now);
    tli_bound_free_state(rb, search.climb.best);
    tli_bound_free_state(rb, search.best);
    tli_bound_free_state(rb, search.trial);
    return rb->failed ? TL_ERROR_NO_MEMORY : TL_OK;
}

// base + ceil(value / scale), rounded up to a multiple of what every forward is a multiple of.
static uint64_t tli_bound_round_up(const tli_bound *rb, int64_t value) {
    uint64_t again, rest;
    if (value <= 0) return rb->base_cost;
    again = (uint64_t)value >> rb->cost_up;
    if (again << rb->cost_up != (uint64_t)value) again++;
    again <<= rb->cost_down;
    rest = rb->cost_step ? again % rb->cost_step : 0;
    if (rest) again += rb->cost_step - rest;
    return rb->base_cost + again < again ? UINT64_MAX : rb->base_cost + again;
}

// -- bound: the least budget --

// The working set of a node's cheapest call: its inputs once each, outputs, scratch; in place where that
// may be. One that makes saved bytes has them beside all outputs. Graph inputs are not in it.
static uint64_t tli_bound_call_bytes(const tl_graph *graph, int32_t id, int saves) {
    const tl_node *node = &graph->nodes[id];
    uint64_t sum = node->fwork_bytes + (saves ? node->saved_bytes : 0);
    int32_t i, k, reads = 0, end = node->first_input + node->input_count;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        sum += graph->outputs[i].bytes;
    for (i = node->first_input; i < end; i++) {
        int32_t tensor = graph->inputs[i].tensor;
        for (k = node->first_input; k < i && graph->inputs[k].tensor != tensor; k++) { }
        if (k == i && !graph->nodes[graph->outputs[tensor].node].is_input) sum += graph->outputs[tensor].bytes;
    }
    if (node->inplace < 0 || saves) return sum;
    k = graph->inputs[node->first_input + node->inplace].tensor;
    for (i = node->first_input; i < end; i++) reads += graph->inputs[i].tensor == k;
    return reads == 1 ? sum - graph->outputs[k].bytes : sum;
}

// The bytes of the largest call that every schedule within the budget makes between the backwards at
// positions p - 1 and p, and its node: what backward p reads is made there if there was no room for it
// beside the working set of the one before, and what that takes likewise.
static uint64_t tli_bound_find_gap(tli_bound *rb, uint64_t budget, int32_t p, int32_t *node) {
    const tl_graph *graph = rb->graph;
    uint64_t most = 0, room = budget - rb->sets[p - 1];
    uint8_t *must = rb->reads_mark;
    int32_t id, i, t;
    tli_bound_mark_reads(rb, rb->order[p], must, 1);
    tli_bound_mark_reads(rb, rb->order[p - 1], must, 0);
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *maker = &graph->nodes[id];
        int is_made = 0, saves;
        uint64_t call;
        t = rb->thing_of[graph->tensor_count + id];
        saves = is_made = t >= 0 && must[t] && rb->exact[t] > room;
        for (i = maker->first_output; i < maker->first_output + maker->output_count; i++) {
            t = rb->thing_of[i];
            is_made |= t >= 0 && must[t] && rb->exact[t] > room;
        }
        if (!is_made) continue;
        call = rb->between[p - 1] + tli_bound_call_bytes(graph, id, saves);
        if (call > most) { most = call; *node = id; }
        for (i = maker->first_input; i < maker->first_input + maker->input_count; i++)
            if (rb->thing_of[graph->inputs[i].tensor] >= 0) must[rb->thing_of[graph->inputs[i].tensor]] = 1;
        tli_bound_mark_reads(rb, rb->order[p - 1], must, 0);
    }
    tli_zero(must, (size_t)rb->thing_count);
    return most;
}

// Whether no call between two backwards is known to exceed the budget, which is at least every working
// set; *node: the one that does.
static int tli_bound_fits_gaps(tli_bound *rb, uint64_t budget, int32_t *node) {
    int32_t p;
    for (p = 1; p < rb->order_count; p++) {
        int32_t largest = -1;
        if (tli_bound_find_gap(rb, budget, p, &largest) <= budget) continue;
        *node = largest;
        return 0;
    }
    return 1;
}

// The largest working set of a call that every schedule makes, and its node; -1 = the graph inputs and
// the results, whatever the calls.
static uint64_t tli_bound_find_floor(tli_bound *rb, int32_t inference, int32_t *node) {
    const tl_graph *graph = rb->graph;
    uint64_t inputs = tli_bound_input_bytes(graph), most = inputs;
    int32_t i;
    *node = -1;
    for (i = 0; i < rb->thing_count; i++) if (rb->at_end[i]) most += rb->exact[i];
    for (i = 0; i < graph->node_count; i++) {
        int saves = graph->nodes[i].has_grad && !inference && graph->nodes[i].saved_bytes;
        uint64_t call;
        if (graph->nodes[i].is_input || rb->runs_by[i] == INT32_MAX) continue;
        call = inputs + tli_bound_call_bytes(graph, i, saves);
        if (call > most) { most = call; *node = i; }
    }
    for (i = 0; i < rb->order_count; i++)
        if (rb->sets[i] > most) { most = rb->sets[i]; *node = rb->order[i]; }
    return most;
}

// A number of bytes below which no schedule fits, and the node that sets it: the largest working set of
// a call that every schedule makes, or that every schedule makes that has so few bytes and no host tier.
static tl_result tli_remat_floor(tl_env *env, const tl_graph *graph, int32_t inference, int32_t has_host,
                                 uint64_t *bound_budget, int32_t *node) {
    tli_bound rb;
    uint64_t low, high;
    tl_result result;
    tli_zero(&rb, sizeof rb);
    rb.env = env; rb.graph = graph;
    *bound_budget = 0;
    *node = -1;
    result = tli_bound_open(&rb, inference);
    if (!result) {
        low = high = tli_bound_find_floor(&rb, inference, node);
        while (!has_host && !tli_bound_fits_gaps(&rb, high, node)) {  // from here on, high - low bisects to it
            low = high + 1;
            high = high > UINT64_MAX / 2 ? UINT64_MAX : 2 * high + 1;
        }
        while (low < high) {
            uint64_t middle = low + (high - low) / 2;
            if (tli_bound_fits_gaps(&rb, middle, node)) high = middle; else low = middle + 1;
        }
        *bound_budget = high;
    }
    tli_bound_free(&rb);
    return result;
}

// -- bound: with a host tier --
//
// Take a schedule that spills and fetches, on a device budget M and a host budget H, over a link of bw bytes
// a unit of time, and that ends at T. Keep each tensor on the device over every gap that ends with a fetch
// that is waited for: from its D, W or I (which becomes an F) to its L. Without O, L, W and DH this is a valid
// schedule without a host: whatever is read was there before and is there now; in such a gap no forward makes
// the tensor, else the gap would end there; and a spill that is never fetched again becomes a drop. It makes
// the same calls, so it costs at most T. Consider a call that begins at t and takes c, and let X be the bytes
// of the tensors in such a gap meanwhile, which is what this schedule holds more than the first. All of them
//   - are on the host: X <= H;
//   - were spilled, each by a copy of its own that ended by t: X <= bw t;
//   - are fetched after the call, by copies that end by T: X <= bw (T - t - c).
// A copy takes its latency and ceil(bytes / bw), copies come one after the other, and X is an integer, so
// X <= floor(bw t), floor(bw (T - t - c)), and t or T - t - c is at most floor(T / 2). For B v: the backwards
// from v on come after t, and each forward that some backward up to v depends on and all backwards before v
// come before it: t <= T - after, T - t - c <= T - before. So the schedule keeps, at each backward, the
// budget M + min(H, floor(bw min(T / 2, T - after, T - before))), and the relaxation with these rooms bounds
// T: T >= g(T). Rooms grow with T and g falls: whatever T0 is, T > T0 or T >= g(T0).

typedef struct tli_bound_host {
    uint64_t bytes, rate, time;  // budget; of the link, 0 = no limit; T
    int32_t  is_even;            // 1 = T / 2 alone: lower, but instants that differ less are found more easily
} tli_bound_host;

#ifndef TL_NO_OFFLOAD
// floor(rate time / 10^9), the largest number where it does not fit.
static uint64_t tli_bound_find_copied(uint64_t rate, uint64_t time) {
    uint64_t second = UINT64_C(1000000000), rest = rate % second, whole, part, sum;
    if (!tli_mul_u64(rate / second, time, &whole) || !tli_mul_u64(rest, time / second, &part) ||
        !tli_add_u64(whole, part, &sum) || !tli_add_u64(sum, rest * (time % second) / second, &sum))
        return UINT64_MAX;
    return sum;
}

// Add to the room at each backward what may be on the host meanwhile.
static void tli_bound_add_host(tli_bound *rb, const tli_bound_host *host) {
    const tl_graph *graph = rb->graph;
    uint64_t before = 0, after = 0, most, bytes;
    int32_t p, id;
    for (p = 0; p < rb->order_count; p++) after += graph->nodes[rb->order[p]].bwd_cost;
    for (p = 0; p < rb->order_count; p++) {
        uint64_t cost = graph->nodes[rb->order[p]].bwd_cost;
        for (id = 0; id < graph->node_count; id++)
            if (rb->runs_by[id] == p && !graph->nodes[id].is_input) before += graph->nodes[id].fwd_cost;
        before += cost;  // of this backward too: c
        most = after > before ? after : before;
        most = host->time > most ? host->time - most : 0;
        if (most > host->time / 2 || host->is_even) most = host->time / 2;
        after -= cost;
        bytes = host->rate ? tli_bound_find_copied(host->rate, most) : UINT64_MAX;
        if (bytes > host->bytes) bytes = host->bytes;
        if (!tli_add_u64(rb->room[p], bytes, &rb->room[p])) rb->room[p] = UINT64_MAX;
    }
}
#endif

// A cost that no valid schedule within the budget undercuts; backwards in reverse listing order, no
// compression; no host copies where host is NULL, else the end of those that end by host->time. Anytime:
// work_limit (arcs looked at, about 3 ns each) only makes it higher.
// TL_ERROR_INFEASIBLE, without a sentence: no schedule fits; *bound_cost is UINT64_MAX.
static tl_result tli_remat_bound_host(tl_env *env, const tl_graph *graph, uint64_t budget,
                                      const tli_bound_host *host, int32_t inference, tli_remat_watch *watch,
                                      uint64_t work_limit, uint64_t *bound_cost, uint64_t *work) {
    tli_bound rb;
    int64_t value = 0;
    int32_t p, node;
    tl_result result;
    tli_zero(&rb, sizeof rb);
    rb.env = env; rb.graph = graph; rb.watch = watch; rb.work = work; rb.work_limit = work_limit;
    *bound_cost = 0;
    result = tli_bound_open(&rb, inference);
    if (!result && (budget < tli_bound_find_floor(&rb, inference, &node) ||
                    (!host && !tli_bound_fits_gaps(&rb, budget, &node))))
        value = TLI_BOUND_INFINITE;
    for (p = 0; p < rb.order_count && !result && !value; p++) rb.room[p] = budget - rb.sets[p];
#ifndef TL_NO_OFFLOAD
    if (!result && !value && host) tli_bound_add_host(&rb, host);
#endif
    if (!result && !value && rb.order_count) result = tli_bound_search_bound(&rb, &value);
    if (!result && value >= TLI_BOUND_INFINITE) { result = TL_ERROR_INFEASIBLE; *bound_cost = UINT64_MAX; }
    else if (!result) *bound_cost = tli_bound_round_up(&rb, value);
    tli_bound_free(&rb);
    return result;
}

static tl_result tli_remat_bound(tl_env *env, const tl_graph *graph, uint64_t budget, int32_t inference,
                                 tli_remat_watch *watch, uint64_t work_limit,
                                 uint64_t *bound_cost, uint64_t *work) {
    return tli_remat_bound_host(env, graph, budget, NULL, inference, watch, work_limit, bound_cost, work);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

