#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- bound: one span --
//
// With given multipliers the relaxation is a problem per span, solved here in two ways, of which the larger
// value counts:
//
//     minimum cut    what is held at the instant has a price per byte       exact for these multipliers
//     table          what is held at the instant is limited to the room     dynamic programming over nodes

// -- bound: the network --

// Count the arc and its reverse with their vertices, or where these are counted, give both their places.
static void tli_bound_add_arc(tli_bound_net *net, int32_t from, int32_t to) {
    int32_t there, back;
    if (!net->is_counted) { net->first[from + 1]++; net->first[to + 1]++; return; }
    there = net->cursor[from]++;
    back = net->cursor[to]++;
    net->to[there] = to;
    net->to[back] = from;
    net->mate[there] = back;
    net->mate[back] = there;
    net->place[net->arc_count++] = there;
}

// Add the arcs in the order that tli_bound_net names, then node -> sink as arc 2 items + node, then maker ->
// input.
static void tli_bound_add_arcs(tli_bound *model) {
    const tl_graph *graph = model->graph;
    tli_bound_net *net = &model->net;
    int32_t items = model->item_count, nodes = graph->node_count, source = items + nodes, i, v;
    for (i = 0; i < items; i++) tli_bound_add_arc(net, source, i);
    for (i = 0; i < items; i++) tli_bound_add_arc(net, i, items + model->maker[i]);
    for (i = 0; i < nodes; i++) tli_bound_add_arc(net, items + i, source + 1);
    for (i = 0; i < nodes; i++) {
        const tl_node *node = &graph->nodes[i];
        for (v = node->first_input; v < node->first_input + node->input_count; v++) {
            int32_t item = model->item_of[graph->inputs[v].tensor];
            if (item >= 0) tli_bound_add_arc(net, items + i, item);
        }
    }
}

static void tli_bound_make_net(tli_bound *model) {
    tli_bound_net *net = &model->net;
    int32_t v;
    net->vertex_count = model->item_count + model->graph->node_count + 2;
    tli_zero(net->first, ((size_t)net->vertex_count + 1) * sizeof *net->first);
    tli_bound_add_arcs(model);
    for (v = 0; v < net->vertex_count; v++) net->first[v + 1] += net->first[v];
    for (v = 0; v < net->vertex_count; v++) net->cursor[v] = net->first[v];
    net->is_counted = 1;
    tli_bound_add_arcs(model);
}

// Find level[], 1 + the distance to the sink along arcs with capacity left; 0 = no path. Returns 1 if there
// is a path from the source.
static int tli_bound_find_levels(tli_bound_net *net, uint64_t *work) {
    int32_t source = net->vertex_count - 2, sink = source + 1, head = 0, tail = 0, next, k;
    tli_zero(net->level, (size_t)net->vertex_count * sizeof *net->level);
    net->level[sink] = 1;
    net->queue[tail++] = sink;
    while (head < tail) {
        int32_t v = net->queue[head++];
        *work += (uint64_t)(net->first[v + 1] - net->first[v]);
        next = net->level[v] + 1;
        for (k = net->first[v]; k < net->first[v + 1]; k++) {  // no jumps: they could not be predicted
            int32_t from = net->to[k], is_new = !net->level[from] & (net->back[k] != 0);
            net->level[from] += next & -is_new;
            net->queue[tail] = from;
            tail += is_new;
        }
    }
    return net->level[source] > 0;
}

// Change the capacity left of an arc by `more`.
static void tli_bound_change(tli_bound_net *net, int32_t arc, int64_t more) {
    net->left[arc] += more;
    net->back[net->mate[arc]] += more;
}

// Send flow along path[0 .. length - 1]; returns the index in the path of the first arc that is now full.
static int32_t tli_bound_send(tli_bound_net *net, int32_t length, int64_t *flow) {
    int64_t most = TLI_BOUND_INFINITE;
    int32_t i, full = 0;
    for (i = 0; i < length; i++) if (net->left[net->path[i]] < most) most = net->left[net->path[i]];
    for (i = length; i-- > 0;) {
        tli_bound_change(net, net->path[i], -most);
        tli_bound_change(net, net->mate[net->path[i]], most);
        if (!net->left[net->path[i]]) full = i;
    }
    *flow += most;
    return full;
}

// Raise the level of a vertex from which no arc leads down, to one above the lowest that it leads to; returns 0
// if no vertex is left at its old level: then no path crosses that level any more.
static int tli_bound_lift(tli_bound_net *net, int32_t v) {
    int32_t *counts = net->queue, least = net->vertex_count, old = net->level[v], k;
    for (k = net->first[v]; k < net->first[v + 1]; k++) {
        int32_t level = net->level[net->to[k]];
        if (net->left[k] && level < least) least = level;
    }
    net->level[v] = least + 1;
    net->cursor[v] = net->first[v];
    counts[least + 1]++;
    return --counts[old] > 0;
}

// Find the maximum flow along shortest paths (Ahuja and Orlin, 1991): levels are distances to the sink, raised
// where a path ends, and are searched as a whole only once; left[] holds the residual capacities. Every path
// ends in an arc to the sink whose capacity is a cost, so the flow is at most 2^50 and infinite arcs never
// become full. It ends early when *work reaches `limit`: any flow is a lower bound of the minimum cut.
static int64_t tli_bound_flow(tli_bound_net *net, uint64_t *work, uint64_t limit) {
    int32_t source = net->vertex_count - 2, sink = source + 1, beyond = net->vertex_count + 1, v;
    int32_t at = source, length = 0;
    int64_t flow = 0;
    if (*work >= limit || !tli_bound_find_levels(net, work)) return 0;
    tli_zero(net->queue, ((size_t)beyond + 1) * sizeof *net->queue);
    for (v = 0; v < net->vertex_count; v++) {
        net->cursor[v] = net->first[v];
        if (!net->level[v]) net->level[v] = beyond;
        net->queue[net->level[v]]++;
    }
    while (net->level[source] < beyond && *work < limit) {
        int32_t k = net->cursor[at], end = net->first[at + 1];
        while (k < end && !(net->left[k] && net->level[net->to[k]] == net->level[at] - 1)) k++;
        *work += (uint64_t)(k - net->cursor[at]) + 1;
        net->cursor[at] = k;
        if (k < end) {
            net->path[length++] = k;
            at = net->to[k];
            if (at != sink) continue;
            *work += (uint64_t)length;
            length = tli_bound_send(net, length, &flow);
            at = net->to[net->mate[net->path[length]]];
            continue;
        }
        *work += (uint64_t)(end - net->first[at]);
        if (!tli_bound_lift(net, at)) break;
        if (length) at = net->to[net->mate[net->path[--length]]];
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
            int32_t to = net->to[k], is_new = !net->level[to] & (net->left[k] != 0);
            net->level[to] |= is_new;
            net->queue[tail] = to;
            tail += is_new;
        }
    }
}

// -- bound: one span: the minimum cut --
//
// The search for multipliers asks for the same cut again and again: lines begin where others ended, and what is
// tried beside an instant leaves the spans further off as they were. So cuts are remembered: of ten cuts in
// models of 50 to 150 nodes, eight or nine are known. A known cut counts as the work that it took, so what the
// search finds does not depend on how many are remembered.

#define TLI_BOUND_CUTS 8192              // remembered at most; fewer, where they take more than
#define TLI_BOUND_CUT_BYTES (1u << 20)   // so many bytes together, but not fewer than
#define TLI_BOUND_FEW_CUTS 16

// A cut in memory; the bits of the vertices on its source side follow.
typedef struct tli_bound_cut {
    uint64_t hash[2];
    int64_t  flow;
    uint64_t work;                       // 0 = no cut
} tli_bound_cut;

static uint64_t *tli_bound_side_of(tli_bound_cut *cut) { return (uint64_t *)(cut + 1); }

// The cut of these capacities, or the one whose room it gets, and hashes of enter[] and of price[]. The
// capacities out of nodes follow from ran_by.
static tli_bound_cut *tli_bound_find_cut(const tli_bound *model, int32_t ran_by, uint64_t hash[2]) {
    uint64_t a = (uint64_t)ran_by + 1, b = ~a, at;
    int32_t t, items = model->item_count;
    for (t = 0; t < items; t++) {
        a = (a ^ (uint64_t)model->enter[t]) * UINT64_C(0xbf58476d1ce4e5b9);
        b = (b ^ (uint64_t)model->price[t]) * UINT64_C(0x94d049bb133111eb);
        a ^= a >> 32;
        b ^= b >> 32;
    }
    hash[0] = a;
    hash[1] = b;
    at = tl_mix_u64(a, b) % (uint64_t)model->cut_count;
    return (tli_bound_cut *)(void *)((char *)model->cuts + at * model->cut_bytes);
}

// Allocate room for cuts, all of it empty.
static void tli_bound_open_cuts(tli_bound *model) {
    uint64_t vertices = (uint64_t)model->item_count + (uint64_t)model->graph->node_count;
    model->cut_bytes = sizeof(tli_bound_cut) + (vertices + 63) / 64 * sizeof(uint64_t);
    model->cut_count = TLI_BOUND_CUTS;
    while (model->cut_count > TLI_BOUND_FEW_CUTS &&
           (uint64_t)model->cut_count * model->cut_bytes > TLI_BOUND_CUT_BYTES) model->cut_count /= 2;
    model->cuts = (tli_bound_cut *)tli_bound_take(model, model->cut_count, (size_t)model->cut_bytes);
    if (model->cuts) tli_zero(model->cuts, (size_t)model->cut_count * (size_t)model->cut_bytes);
}

// Remember a maximum flow, the work that it and its side took, and the side.
static void tli_bound_keep_cut(const tli_bound *model, tli_bound_cut *cut, const uint64_t hash[2], int64_t flow,
                               uint64_t work) {
    uint64_t *side = tli_bound_side_of(cut);
    int32_t v, vertices = model->net.vertex_count - 2;
    tli_zero(cut, (size_t)model->cut_bytes);
    cut->hash[0] = hash[0];
    cut->hash[1] = hash[1];
    cut->flow = flow;
    cut->work = work;
    for (v = 0; v < vertices; v++) side[v / 64] |= (uint64_t)(model->net.level[v] & 1) << (v & 63);
}

// Mark the items that must be resident at some moment of span a.
static void tli_bound_mark_span(const tli_bound *model, const tli_bound_state *s, int32_t a, uint8_t *mark) {
    const tli_bound_event *next = a + 1 < s->count ? &model->events[s->at[a + 1]] : NULL;
    int32_t end = next ? tli_bound_ran_by(next) : model->order_count - 1, p;
    if (next) tli_zero(mark, (size_t)model->item_count);
    else tli_copy(mark, model->at_end, (size_t)model->item_count);
    for (p = tli_bound_ran_by(&model->events[s->at[a]]) + 1; p <= end; p++)
        tli_bound_mark_reads(model, model->order[p], mark, 1);
    if (next && next->call >= 0) tli_bound_mark_call(model, next->call, mark, 1);
}

static void tli_bound_set(tli_bound_net *net, int32_t arc, int64_t capacity) {
    int32_t there = net->place[arc], back = net->mate[there];
    net->left[there] = net->back[back] = capacity;
    net->left[back] = net->back[there] = 0;
}

// The price of holding item t at instant a under the multipliers.
static int64_t tli_bound_price(const tli_bound *model, const tli_bound_state *s, int32_t a, int32_t t) {
    int32_t at = a * model->item_count + t;
    if (s->fixed[at] == TLI_BOUND_KEPT) return 0;
    if (s->fixed[at] == TLI_BOUND_ABSENT) return TLI_BOUND_INFINITE;
    return s->lambda[a] * model->bytes[t] + s->mu[at];
}

// Find enter[t], the cost of item t being absent throughout span a (infinite: it must be resident). Presence
// earns mu of instant a + 1; that is counted as a constant gain, *offers, for all items, and as a cost of
// absence for each. Returns 0 if the constant is too large to be useful.
static int tli_bound_find_enters(tli_bound *model, const tli_bound_state *s, int32_t a, int64_t *offers) {
    int32_t items = model->item_count, t;
    tli_bound_mark_span(model, s, a, model->reads_mark);
    *offers = 0;
    for (t = 0; t < items; t++) {
        int32_t next = (a + 1) * items + t;
        model->enter[t] = model->reads_mark[t] ? TLI_BOUND_INFINITE : 0;
        if (a + 1 == s->count) continue;
        if (s->fixed[next] == TLI_BOUND_KEPT) model->enter[t] = TLI_BOUND_INFINITE;
        if (s->fixed[next] != TLI_BOUND_FREE) continue;
        if (*offers <= INT64_C(1) << 58) *offers += s->mu[next];
        if (!model->enter[t]) model->enter[t] = s->mu[next];
    }
    tli_zero(model->reads_mark, (size_t)items);
    return *offers <= INT64_C(1) << 58;
}

// Find the maximum flow with capacities enter[] into items and price[] out of them, and the source side of its
// cut.
static int64_t tli_bound_solve_cut(tli_bound *model, int32_t ran_by) {
    tli_bound_net *net = &model->net;
    uint64_t hash[2], before = *model->work;
    tli_bound_cut *cut = tli_bound_find_cut(model, ran_by, hash);
    int32_t items = model->item_count, nodes = model->graph->node_count, i, is_whole;
    int64_t flow;
    if (cut->work && cut->hash[0] == hash[0] && cut->hash[1] == hash[1] && cut->work < model->flow_limit &&
        before < model->flow_limit - cut->work) {
        const uint64_t *side = tli_bound_side_of(cut);
        for (i = 0; i < net->vertex_count - 2; i++) net->level[i] = (int32_t)(side[i / 64] >> (i & 63) & 1);
        *model->work += cut->work;
        return cut->flow;
    }
    for (i = 0; i < items; i++) {
        tli_bound_set(net, i, model->enter[i]);
        tli_bound_set(net, items + i, model->price[i]);
    }
    for (i = 0; i < nodes; i++)
        tli_bound_set(net, 2 * items + i, model->runs_by[i] <= ran_by ? model->cost[i] : 0);
    for (i = 2 * items + nodes; i < net->arc_count; i++) tli_bound_set(net, i, TLI_BOUND_INFINITE);
    flow = tli_bound_flow(net, model->work, model->flow_limit);
    is_whole = *model->work < model->flow_limit;
    tli_bound_find_side(net, model->work);
    if (is_whole) tli_bound_keep_cut(model, cut, hash, flow, *model->work - before);
    return flow;
}

// The least cost of span a under the multipliers, with its constant terms; -2^59 where those are too large
// to be useful. Afterwards level[] of the net marks the source side of the cut.
static int64_t tli_bound_solve_span(tli_bound *model, const tli_bound_state *s, int32_t a) {
    int32_t items = model->item_count, t;
    int32_t ran_by = tli_bound_ran_by(&model->events[s->at[a]]);
    int64_t offers, flow;
    int is_useful = tli_bound_find_enters(model, s, a, &offers);
    for (t = 0; t < items; t++) model->price[t] = tli_bound_price(model, s, a, t);
    flow = tli_bound_solve_cut(model, ran_by);
    return is_useful ? flow - offers - s->lambda[a] * s->room[a] : -(INT64_C(1) << 59);
}

// The slope along lambda[a]: units of what the last solution holds at instant a, of free items, less the room.
static int64_t tli_bound_slope(const tli_bound *model, const tli_bound_state *s, int32_t a) {
    const int32_t *level = model->net.level;
    int64_t held = 0;
    int32_t t;
    for (t = 0; t < model->item_count; t++)
        if (s->fixed[a * model->item_count + t] == TLI_BOUND_FREE && level[t] &&
            !level[model->item_count + model->maker[t]]) held += model->bytes[t];
    return held - s->room[a];
}

// Add `weight` to share[] of each item that the last solution holds at instant a.
static void tli_bound_add_share(const tli_bound *model, tli_bound_state *s, int32_t a, uint8_t weight) {
    const int32_t *level = model->net.level;
    int32_t t, items = model->item_count;
    for (t = 0; t < items; t++)
        if (level[t] && !level[items + model->maker[t]])
            s->share[a * items + t] = (uint8_t)(s->share[a * items + t] + weight);
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

// -- bound: one span: the room as a hard limit --

//
// The minimum cut prices the bytes held at an instant; this table limits them, so its value is never lower,
// unless bytes are rounded.
// Nodes are visited in listing order. A label is the set of resident items that later nodes may read (mask),
// the bytes held at the instant, and the cost so far. A node is run in the span (its inputs must be resident;
// all its items then are) or not (each of its items is held, or is absent). Of labels with the same mask,
// dominated ones (more bytes and more cost) are removed. If there are too many labels, bytes are rounded down
// to a coarser grid, which can only lower the least cost.

//
// Labels are kept sorted: splitting a node's items and running it make sorted runs of them, which are merged,
// and a mask that loses a bit is two runs. Merging removes what is dominated, so nothing is sorted anew: of
// models of 100 to 200 nodes that was half of the time.

#define TLI_BOUND_LABELS 16384
#define TLI_BOUND_SLOTS 24
#define TLI_BOUND_KEY_BYTES (TLI_BOUND_UNITS + 1)  // bits of a key that hold bytes, in units: at most the room
#define TLI_BOUND_KEY_MASK (UINT64_MAX << TLI_BOUND_KEY_BYTES)

typedef struct tli_bound_label {
    uint64_t key;      // mask above bytes
    int64_t  cost;
} tli_bound_label;

static int tli_bound_is_before(const tli_bound_label *a, const tli_bound_label *b) {
    return a->key < b->key || (a->key == b->key && a->cost < b->cost);
}

// Merge two sorted runs, x and the y that begins where x ends, to to[kept] and on, without dominated labels;
// returns the new kept. Compilers make both choices without jumps, which could not be predicted.
static int32_t tli_bound_merge(tli_bound_label *to, int32_t kept, const tli_bound_label *x,
                               const tli_bound_label *y, const tli_bound_label *end) {
    const tli_bound_label *x_end = y;
    int32_t first = kept;
    for (; x < x_end || y < end; kept++) {
        int is_y = x == x_end || (y < end && tli_bound_is_before(y, x));
        to[kept] = is_y ? *y : *x;
        y += is_y;
        x += !is_y;
        if (kept > first && (to[kept - 1].key ^ to[kept].key) < UINT64_C(1) << TLI_BOUND_KEY_BYTES)
            kept -= to[kept - 1].cost <= to[kept].cost;
    }
    return kept;
}

static void tli_bound_swap_labels(tli_bound *model) {
    tli_bound_label *labels = model->labels;
    model->labels = model->merged;
    model->merged = labels;
}

// The end of the sorted run that begins at a label.
static int32_t tli_bound_find_run(const tli_bound_label *labels, int32_t at, int32_t count) {
    if (at < count) at++;
    while (at < count && !tli_bound_is_before(&labels[at], &labels[at - 1])) at++;
    return at;
}

// Sort labels, pairs of runs at a time, and remove dominated ones; returns how many are left.
static int32_t tli_bound_prune(tli_bound *model, int32_t count) {
    int32_t runs, kept, at;
    do {
        for (at = kept = runs = 0; at < count; runs++) {
            const tli_bound_label *x = model->labels + at, *y;
            at = tli_bound_find_run(model->labels, at, count);
            y = model->labels + at;
            at = tli_bound_find_run(model->labels, at, count);
            kept = tli_bound_merge(model->merged, kept, x, y, model->labels + at);
        }
        tli_bound_swap_labels(model);
        count = kept;
    } while (runs > 1);
    return count;
}

// Clear a bit of the masks of sorted labels, keep them sorted, and remove dominated ones; returns how many are
// left.
static int32_t tli_bound_clear(tli_bound *model, int32_t count, int32_t slot) {
    tli_bound_label *labels = model->labels;
    int32_t kept = 0, at = 0, shift = slot + TLI_BOUND_KEY_BYTES;
    while (at < count) {
        int32_t x = at, y;
        uint64_t above = labels[x].key >> shift >> 1;
        while (at < count && labels[at].key >> shift == above << 1) at++;
        for (y = at; at < count && labels[at].key >> shift == (above << 1 | 1); at++)
            labels[at].key &= ~(UINT64_C(1) << shift);
        kept = tli_bound_merge(model->merged, kept, labels + x, labels + y, labels + at);
    }
    tli_bound_swap_labels(model);
    return kept;
}

// Round the bytes of sorted labels, none of them dominated, down to a coarser and coarser grid until at most
// TLI_BOUND_LABELS are left: of the same mask and bytes, the last one costs least.
static int32_t tli_bound_thin(tli_bound *model, int32_t count, int64_t *grid) {
    tli_bound_label *labels = model->labels;
    while (count > TLI_BOUND_LABELS && *grid < INT64_C(1) << TLI_BOUND_UNITS) {
        int32_t i, kept = 0;
        *grid *= 2;
        for (i = 0; i < count; i++) {
            tli_bound_label label = labels[i];
            label.key &= TLI_BOUND_KEY_MASK | ~((uint64_t)*grid - 1);
            if (kept && labels[kept - 1].key == label.key) kept--;
            labels[kept++] = label;
        }
        count = kept;
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
    uint64_t used;       // slots in use, a bit each. A slot is a bit of the masks, given to one item
    int32_t  slot_items[TLI_BOUND_SLOTS];
} tli_bound_table;

// The slot of an item; -1 = none, because no later node reads it.
static int32_t tli_bound_find_slot(const tli_bound_table *table, int32_t item) {
    int32_t slot;
    for (slot = 0; slot < TLI_BOUND_SLOTS; slot++)
        if (table->used >> slot & 1 && table->slot_items[slot] == item) return slot;
    return -1;
}

// Split each label in two for item t of a node that is not run: t is held, or t is absent. Returns 0 if
// there are too many labels.
static int tli_bound_spread(tli_bound_table *table, int32_t t, uint64_t bit) {
    tli_bound *model = table->model;
    const tli_bound_state *s = table->state;
    int32_t cell = table->a * model->item_count + t, i, count = table->count, gone = 0;
    int is_kept = s->fixed[cell] == TLI_BOUND_KEPT, is_absent = s->fixed[cell] == TLI_BOUND_ABSENT;
    int may_go = !is_kept && model->enter[t] < TLI_BOUND_INFINITE;
    uint64_t bytes = is_kept ? 0 : (uint64_t)model->bytes[t], room = (uint64_t)s->room[table->a];
    tli_bound_label *labels = model->labels, *held = labels + (may_go ? count : 0);
    for (i = 0; i < count; i++) {
        tli_bound_label label = labels[i];
        if (may_go) labels[gone++].cost += model->enter[t];
        if (is_absent || (label.key & ~TLI_BOUND_KEY_MASK) + bytes > room) continue;
        label.key = (label.key | bit << TLI_BOUND_KEY_BYTES) + bytes;
        label.cost += is_kept ? 0 : s->mu[cell];
        *held++ = label;
    }
    table->count = (int32_t)(held - labels);
    if (table->count > TLI_BOUND_LABELS)
        table->count = tli_bound_thin(model, tli_bound_prune(model, table->count), &table->grid);
    return table->count <= TLI_BOUND_LABELS;
}

// Find last_use[]: the last node that may read an item in this span (its maker if none does); -1 = nothing
// in this span wants it.
static void tli_bound_find_uses(tli_bound *model) {
    const tl_graph *graph = model->graph;
    int32_t t, id, i;
    for (t = 0; t < model->item_count; t++) model->last_use[t] = model->enter[t] > 0 ? model->maker[t] : -1;
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        int32_t saved = model->item_of[graph->tensor_count + id];
        int is_wanted = saved >= 0 && model->last_use[saved] >= 0;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            is_wanted |= model->item_of[i] >= 0 && model->last_use[model->item_of[i]] >= 0;
        for (i = node->first_input; i < node->first_input + node->input_count && is_wanted; i++) {
            int32_t item = model->item_of[graph->inputs[i].tensor];
            if (item >= 0 && model->last_use[item] < id) model->last_use[item] = id;
        }
    }
}

// Give item t a slot if a later node may read it; 0 = there is none left.
static int tli_bound_add_slot(tli_bound_table *table, int32_t t, uint64_t *bit) {
    int32_t slot = 0;
    *bit = 0;
    if (t < 0 || table->model->last_use[t] <= table->model->maker[t]) return 1;
    while (slot < TLI_BOUND_SLOTS && table->used >> slot & 1) slot++;
    if (slot == TLI_BOUND_SLOTS) return 0;
    table->used |= *bit = UINT64_C(1) << slot;
    table->slot_items[slot] = t;
    return 1;
}

// Extend the labels by one node: first those in which it runs, then those in which it does not. Returns 0 if
// slots, labels or steps of work are too many, or no label is left.
static int tli_bound_add_node(tli_bound_table *table, int32_t id) {
    tli_bound *model = table->model;
    const tl_node *node = &model->graph->nodes[id];
    uint64_t takes = 0, makes = 0, ends = 0, bit;
    const tli_bound_event *event = &model->events[table->state->at[table->a]];
    int64_t cost = model->runs_by[id] <= tli_bound_ran_by(event) ? model->cost[id] : 0;
    int32_t i, k, made = 0, wanted = 0;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        int32_t item = model->item_of[model->graph->inputs[i].tensor];
        int32_t slot = item >= 0 ? tli_bound_find_slot(table, item) : -1;
        if (slot < 0) continue;
        takes |= UINT64_C(1) << slot;
        if (model->last_use[item] == id) ends |= UINT64_C(1) << slot;
    }
    for (k = 0; k <= node->output_count; k++) {
        int32_t t = k < node->output_count ? node->first_output + k : model->graph->tensor_count + id;
        t = model->item_of[t];
        if (t < 0 || model->last_use[t] < 0) continue;
        if (!tli_bound_add_slot(table, t, &bit)) return 0;
        makes |= bit;
        for (i = 0; !wanted && i < table->count; i++) {
            if (takes & ~(model->labels[i].key >> TLI_BOUND_KEY_BYTES)) continue;
            model->made[made] = model->labels[i];
            model->made[made++].cost += cost;
        }
        wanted = 1;
        if (!tli_bound_spread(table, t, bit)) return 0;
    }
    for (i = 0; i < made; i++) {
        model->made[i].key |= makes << TLI_BOUND_KEY_BYTES;
        model->labels[table->count++] = model->made[i];
    }
    table->used &= ~ends;
    *model->work += 40 * (uint64_t)table->count + 1;
    if (wanted) table->count = tli_bound_prune(model, table->count);
    for (i = 0; i < TLI_BOUND_SLOTS; i++)
        if (ends >> i & 1) table->count = tli_bound_clear(model, table->count, i);
    table->count = tli_bound_thin(model, table->count, &table->grid);
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

// Allocate the network and the labels.
static tl_result tli_bound_open_net(tli_bound *model) {
    int64_t vertices = (int64_t)model->item_count + model->graph->node_count + 2;
    int64_t arcs = 2 * (2 * (int64_t)model->item_count + model->graph->node_count + model->graph->input_count);
    tli_bound_net *net = &model->net;
    net->to = (int32_t *)tli_bound_take(model, 3 * arcs, sizeof(int32_t));
    net->left = (int64_t *)tli_bound_take(model, 2 * arcs, sizeof(int64_t));
    net->first = (int32_t *)tli_bound_take(model, 5 * (vertices + 2), sizeof(int32_t));
    model->labels = (tli_bound_label *)tli_bound_take(model, 2 * TLI_BOUND_LABELS, sizeof(tli_bound_label));
    model->merged = (tli_bound_label *)tli_bound_take(model, 2 * TLI_BOUND_LABELS, sizeof(tli_bound_label));
    model->made = (tli_bound_label *)tli_bound_take(model, TLI_BOUND_LABELS, sizeof(tli_bound_label));
    tli_bound_open_cuts(model);
    if (model->failed) return TL_ERROR_NO_MEMORY;
    net->mate = net->to + arcs;
    net->place = net->mate + arcs;
    net->back = net->left + arcs;
    net->level = net->first + vertices + 2;
    net->cursor = net->level + vertices + 2;
    net->queue = net->cursor + vertices + 2;
    net->path = net->queue + vertices + 2;
    tli_bound_make_net(model);
    return TL_OK;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
