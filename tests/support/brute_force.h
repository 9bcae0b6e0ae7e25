// The least cost of any schedule of a tiny graph within a budget: uniform cost over all states, every drop an edge, as in
// the reference data's brute_force.py. It shares nothing with the planners. Include after cmocka and the implementation.
#ifndef TESTS_BRUTE_FORCE_H
#define TESTS_BRUTE_FORCE_H


// run: the search that knows the state; in memory that begins as zeroes it is none.
typedef struct brute_state { uint64_t key, cost, peak; uint32_t run; int settled; } brute_state;
typedef struct brute_entry { uint64_t cost, peak, slot; } brute_entry;
typedef struct brute {
    const tl_graph *graph;
    int inference, bits, order_count, ran_of[64], saved_of[64], spent_of[64], order[64], turn[64];
    uint32_t run;
    uint64_t may_drop, pinned, between[65], during[65], bytes[64], outs[64], ins[64], reads[64], results, enters;  // enters: of inputs that die
    brute_state *states; size_t capacity, count;
    brute_entry *heap; size_t heap_count, heap_capacity;
} brute;

static inline brute_state *brute_find(brute *b, uint64_t key) {
    size_t at = (size_t)((key * 0x9E3779B97F4A7C15u) >> 20) % b->capacity;
    while (b->states[at].run == b->run && b->states[at].key != key) at = at + 1 < b->capacity ? at + 1 : 0;
    return &b->states[at];
}

static inline int brute_before(brute_entry s, brute_entry t) { return s.cost != t.cost ? s.cost < t.cost : s.peak < t.peak; }

static inline void brute_push(brute *b, brute_entry entry) {
    size_t at = b->heap_count++;
    if (b->heap_count > b->heap_capacity) fail_msg("%s", "brute: heap");
    while (at && brute_before(entry, b->heap[(at - 1) / 2])) { b->heap[at] = b->heap[(at - 1) / 2]; at = (at - 1) / 2; }
    b->heap[at] = entry;
}

static inline uint64_t brute_pop(brute *b) {
    brute_entry top = b->heap[0], last = b->heap[--b->heap_count];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < b->heap_count) {
        if (child + 1 < b->heap_count && brute_before(b->heap[child + 1], b->heap[child])) child++;
        if (!brute_before(b->heap[child], last)) break;
        b->heap[at] = b->heap[child];
        at = child;
    }
    b->heap[at] = last;
    return top.slot;
}

static inline void brute_edge(brute *b, const brute_state *from, uint64_t key, uint64_t cost, uint64_t peak, uint64_t budget) {
    brute_state *s = brute_find(b, key);
    brute_entry entry;
    if (peak > budget) return;
    cost += from->cost;
    if (peak < from->peak) peak = from->peak;
    if (s->run == b->run && (s->settled || s->cost < cost || (s->cost == cost && s->peak <= peak))) return;
    if (s->run != b->run && ++b->count * 2 > b->capacity) fail_msg("%s", "brute: states");
    s->run = b->run; s->settled = 0; s->key = key; s->cost = cost; s->peak = peak;
    entry.cost = cost; entry.peak = peak; entry.slot = (uint64_t)(s - b->states);
    brute_push(b, entry);
}

// Whether a state is updated though no node with a backward reads it.
static inline int brute_waits_for_none(const tl_graph *g, int state) {
    int i, k;
    if (g->nodes[state].state != TL_STATE_TRAINED && g->nodes[state].state != TL_STATE_HELD) return 0;
    for (i = 0; i < g->node_count; i++)
        for (k = 0; k < g->nodes[i].input_count && g->nodes[i].has_grad; k++)
            if (g->outputs[g->inputs[g->nodes[i].first_input + k].tensor].node == state) return 0;
    return 1;
}

static inline void brute_next(brute *b, int node) {
    b->turn[node] = b->order_count;
    b->order[b->order_count++] = node;
}

// Sets up; returns the number of bits of a state. Backwards come in the reverse of the listing; where inputs die, updates that
// wait for none of them come last.
static inline int brute_init(brute *b, const tl_graph *g, int inference) {
    int bit[256], i, k, any_keep = 0, dies = 0;
    char read[64] = { 0 }, alive[256] = { 0 };
    uint64_t sum;
    memset(b, 0, sizeof *b);
    b->graph = g; b->inference = inference;
    for (i = 0; i < g->node_count; i++) {
        const tl_node *n = &g->nodes[i];
        any_keep |= n->keep;
        b->turn[i] = b->ran_of[i] = b->saved_of[i] = b->spent_of[i] = -1;
        if (n->once && !n->is_input) b->spent_of[i] = b->bits++;    // it may run once only, and has
        for (k = n->first_output; k < n->first_output + n->output_count; k++) {
            bit[k] = -1;
            if (n->is_input == 1) { b->pinned += g->outputs[k].bytes; continue; }
            if (n->is_input) b->enters |= (uint64_t)1 << b->bits;
            b->bytes[b->bits] = g->outputs[k].bytes;
            b->outs[i] |= (uint64_t)1 << b->bits;
            if (g->outputs[k].needed) b->reads[i] |= (uint64_t)1 << b->bits;
            bit[k] = b->bits++;
            if (b->bits > 50) return 99;
        }
        for (k = n->first_input; k < n->first_input + n->input_count; k++) {
            int t = g->inputs[k].tensor;
            read[g->outputs[t].node] = 1;
            if (bit[t] < 0) continue;
            b->ins[i] |= (uint64_t)1 << bit[t];
            if (g->inputs[k].needed) b->reads[i] |= (uint64_t)1 << bit[t];
        }
        if (!n->has_grad || n->is_input || inference) continue;     // a state has an update and no forward
        if (n->saved_bytes) { b->bytes[b->bits] = n->saved_bytes; b->saved_of[i] = b->bits++; b->reads[i] |= (uint64_t)1 << b->saved_of[i]; }
        b->ran_of[i] = b->bits++;
        b->reads[i] |= (uint64_t)1 << b->ran_of[i];
    }
    b->may_drop = ((uint64_t)1 << b->bits) - 1;
    for (i = 0; i < g->node_count; i++) {
        dies |= g->nodes[i].is_input == 2;
        if (b->ran_of[i] >= 0) b->may_drop &= ~((uint64_t)1 << b->ran_of[i]);
        if (b->spent_of[i] >= 0) b->may_drop &= ~((uint64_t)1 << b->spent_of[i]);
    }
    for (i = g->node_count - 1; i >= 0; i--)
        if (g->nodes[i].has_grad && !inference && !(dies && brute_waits_for_none(g, i))) brute_next(b, i);
    for (i = g->node_count - 1; i >= 0; i--)
        if (g->nodes[i].has_grad && !inference && dies && brute_waits_for_none(g, i)) brute_next(b, i);
    for (i = g->node_count - 1; i >= 0; i--) {
        const tl_node *n = &g->nodes[i];
        if (n->keep || (inference && !any_keep && !n->is_input && !read[i])) b->results |= b->outs[i];
    }
    for (i = 0, sum = b->pinned; i < b->order_count; i++) {
        const tl_node *n = &g->nodes[b->order[i]];
        b->between[i] = sum;
        for (k = 0; k < g->tensor_count; k++) {
            int touched = g->outputs[k].node == b->order[i], state = g->nodes[g->outputs[k].node].state, j;
            for (j = n->first_input; j < n->first_input + n->input_count; j++) touched |= g->inputs[j].tensor == k;
            if (state == TL_STATE_HELD || (state && g->outputs[k].output)) continue;       // moments have no gradient
            if (touched && !alive[k] && g->nodes[g->outputs[k].node].has_grad) { alive[k] = 1; sum += g->outputs[k].bytes; }
        }
        b->during[i] = sum;
        for (k = n->first_output; k < n->first_output + n->output_count; k++) if (alive[k]) { sum -= g->outputs[k].bytes; alive[k] = 0; }
    }
    b->between[b->order_count] = sum;
    return b->bits;
}

static inline uint64_t brute_weigh(const brute *b, uint64_t set) {
    uint64_t sum = 0;
    int i;
    for (i = 0; set; i++, set >>= 1) if (set & 1) sum += b->bytes[i];
    return sum;
}

// Whether a node reads a state whose update is among the backwards that are done. One in pieces is updated by its reader's.
static inline int brute_reads_updated(const brute *b, const tl_node *n, int done) {
    int k, turn = b->turn[n - b->graph->nodes];
    for (k = n->first_input; k < n->first_input + n->input_count; k++) {
        int maker = b->graph->outputs[b->graph->inputs[k].tensor].node;
        if (b->graph->nodes[maker].state && b->turn[maker] >= 0 && b->turn[maker] < done) return 1;
        if (b->graph->nodes[maker].state == TL_STATE_PIECES && turn >= 0 && turn < done) return 1;
    }
    return 0;
}

static inline void brute_forwards(brute *b, const brute_state *s, int done, uint64_t low, uint64_t now, uint64_t budget) {
    uint64_t high = s->key ^ low;
    int i, k;
    for (i = 0; i < b->graph->node_count; i++) {
        const tl_node *n = &b->graph->nodes[i];
        int waiting = b->turn[i] >= done;
        uint64_t outs = b->outs[i], after, peak, again;
        if (brute_reads_updated(b, n, done)) continue;
        if (n->is_input || (low & b->ins[i]) != b->ins[i] || (b->spent_of[i] >= 0 && low >> b->spent_of[i] & 1)) continue;
        after = low | outs | (waiting ? (uint64_t)1 << b->ran_of[i] : 0) | (b->spent_of[i] >= 0 ? (uint64_t)1 << b->spent_of[i] : 0);
        again = brute_weigh(b, outs & low);
        peak = now + brute_weigh(b, outs & ~low) + again + n->fwork_bytes;
        if (outs & ~low) {
            brute_edge(b, s, high | after, n->fwd_cost, peak, budget);
            if (n->inplace >= 0) {
                int from = b->graph->inputs[n->first_input + n->inplace].tensor, reads = 0, src = -1;
                int maker = b->graph->outputs[from].node, bit, first = 0;
                for (k = n->first_input; k < n->first_input + n->input_count; k++) reads += b->graph->inputs[k].tensor == from;
                for (bit = 0; bit < b->bits; bit++)
                    if (b->outs[maker] >> bit & 1 && first++ == b->graph->outputs[from].output) src = bit;
                for (bit = 0; !(outs >> bit & 1);) bit++;
                if (reads == 1 && src >= 0 && !(low >> bit & 1))
                    brute_edge(b, s, high | (after & ~((uint64_t)1 << src)), n->fwd_cost, peak - b->bytes[bit], budget);
            }
        }
        if (waiting && n->saved_bytes && !(low >> b->saved_of[i] & 1))
            brute_edge(b, s, high | after | (uint64_t)1 << b->saved_of[i], n->fwd_cost,
                       peak + n->swork_bytes - n->fwork_bytes + n->saved_bytes - (outs & ~low ? 0 : again), budget);
    }
}

// 1 and the least cost, and the least peak at that cost; 0 = infeasible.
static inline int brute_solve(brute *b, uint64_t budget, uint64_t *cost, uint64_t *peak) {
    static uint32_t runs;
    brute_state start;
    if (b->pinned + brute_weigh(b, b->enters) > budget) return 0;
    b->count = b->heap_count = 0;
    b->run = ++runs;
    memset(&start, 0, sizeof start);
    start.peak = b->pinned + brute_weigh(b, b->enters);
    brute_edge(b, &start, b->enters, 0, start.peak, budget);
    while (b->heap_count) {
        brute_state *s = &b->states[brute_pop(b)];
        int done = (int)(s->key >> b->bits), k;
        uint64_t low = s->key & (((uint64_t)1 << b->bits) - 1), now;
        if (s->settled) continue;
        s->settled = 1;
        if (done == b->order_count && (low & b->results) == b->results) { *cost = s->cost; *peak = s->peak; return 1; }
        now = b->between[done] + brute_weigh(b, low);
        brute_forwards(b, s, done, low, now, budget);
        if (done < b->order_count && (low & b->reads[b->order[done]]) == b->reads[b->order[done]]) {
            int v = b->order[done];
            uint64_t after = b->ran_of[v] < 0 ? low : low & ~((uint64_t)1 << b->ran_of[v]);
            if (b->saved_of[v] >= 0) after &= ~((uint64_t)1 << b->saved_of[v]);
            brute_edge(b, s, after | (uint64_t)(done + 1) << b->bits, b->graph->nodes[v].bwd_cost,
                       now - b->between[done] + b->during[done] + b->graph->nodes[v].bwork_bytes, budget);
        }
        for (k = 0; k < b->bits; k++)
            if ((low & b->may_drop) >> k & 1) brute_edge(b, s, s->key ^ (uint64_t)1 << k, 0, 0, budget);
    }
    return 0;
}

#endif
