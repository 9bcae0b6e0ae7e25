// The least time in which a tiny graph can be carried out within a device and a host budget, with compressed copies where
// a codec is given: A* over all states of the model, every step of every kind an edge, the copies under way with the time
// that each still takes. What was compressed may be read by backwards and by forwards that ran before. It shares nothing with
// the planners and nothing with the simulator. Include after cmocka and the implementation.
#ifndef TESTS_BRUTE_OFFLOAD_H
#define TESTS_BRUTE_OFFLOAD_H

#define BO_TENSORS 8
enum { BO_ABSENT, BO_HERE, BO_LEAVING, BO_COMING, BO_PACKED };

typedef struct bo_state {
    uint8_t  where[BO_TENSORS], host[BO_TENSORS];
    uint8_t  lossy[BO_TENSORS];      // it, or what it was made of, was compressed
    uint16_t left[BO_TENSORS];       // time until the copy under way has ended
    uint32_t saved, ran;             // bits of nodes; ran only where the backward is to come
    uint32_t began;                  // bits of nodes that ran at any time; with a codec
    uint32_t spent;                  // bits of nodes that may run once only, and have
    int32_t  turn;                   // backwards done
    int32_t  waited;                 // nothing was computed since the last W
} bo_state;

typedef struct bo_entry { uint64_t total; uint32_t state; } bo_entry;

typedef struct brute_offload {
    const tl_graph *graph;
    int       inference, order_count, order[32], turn[32];
    uint64_t  between[33], during[32], rest[33], copy[2][BO_TENSORS], budget, host_budget, limit, wait;
    int       channels;
    uint8_t   result[BO_TENSORS];
    tl_codec  codec;
    uint64_t  packed[BO_TENSORS], convert[BO_TENSORS];   // 0 bytes = is never compressed
    bo_state *states; uint64_t *now; uint8_t *settled; uint32_t count, capacity;
    uint32_t *table, table_size;
    bo_entry *heap; uint32_t heap_count, heap_capacity;
    int       full;
} brute_offload;

// 0 = the graph is too large.
static inline int bo_init(brute_offload *b, const tl_graph *g, int inference) {
    uint8_t read[32] = { 0 }, alive[BO_TENSORS] = { 0 };
    uint64_t sum = 0;
    int i, k, t, any_keep = 0;
    memset(b, 0, sizeof *b);
    if (g->tensor_count > BO_TENSORS || g->node_count > 16) return 0;
    b->graph = g; b->inference = inference;
    for (i = 0; i < g->node_count; i++) any_keep |= g->nodes[i].keep;
    for (i = 0; i < g->input_count; i++) read[g->outputs[g->inputs[i].tensor].node] = 1;
    for (t = 0; t < g->tensor_count; t++) {
        const tl_node *n = &g->nodes[g->outputs[t].node];
        b->result[t] = (uint8_t)(n->keep || (inference && !any_keep && !n->is_input && !read[g->outputs[t].node]));
    }
    for (i = g->node_count - 1; i >= 0; i--) {
        b->turn[i] = -1;
        if (g->nodes[i].has_grad && !inference) { b->turn[i] = b->order_count; b->order[b->order_count++] = i; }
    }
    for (i = 0; i < b->order_count; i++) {
        const tl_node *n = &g->nodes[b->order[i]];
        b->between[i] = sum;
        for (t = 0; t < g->tensor_count; t++) {
            int touched = g->outputs[t].node == b->order[i];
            for (k = n->first_input; k < n->first_input + n->input_count; k++) touched |= g->inputs[k].tensor == t;
            if (touched && !alive[t] && g->nodes[g->outputs[t].node].has_grad) { alive[t] = 1; sum += g->outputs[t].bytes; }
        }
        b->during[i] = sum;
        for (t = n->first_output; t < n->first_output + n->output_count; t++) { sum -= g->outputs[t].bytes; alive[t] = 0; }
    }
    b->between[b->order_count] = sum;
    for (i = b->order_count; i-- > 0;) b->rest[i] = b->rest[i + 1] + g->nodes[b->order[i]].bwd_cost;
    return 1;
}

static inline uint64_t bo_live(const brute_offload *b, const bo_state *s) {
    uint64_t sum = b->between[s->turn];
    int i;
    for (i = 0; i < b->graph->tensor_count; i++)
        if (s->where[i] != BO_ABSENT) sum += s->where[i] == BO_PACKED ? b->packed[i] : b->graph->outputs[i].bytes;
    for (i = 0; i < b->graph->node_count; i++) if (s->saved >> i & 1) sum += b->graph->nodes[i].saved_bytes;
    return sum;
}

static inline uint64_t bo_hash(const bo_state *s) {
    const unsigned char *at = (const unsigned char *)s;
    uint64_t h = 1469598103934665603u;
    size_t i;
    for (i = 0; i < sizeof *s; i++) h = (h ^ at[i]) * 1099511628211u;
    return h ^ h >> 29;
}

// Forwards and backwards that must still come.
static inline uint64_t bo_rest(const brute_offload *b, const bo_state *s) {
    uint64_t sum = b->rest[s->turn];
    int i;
    for (i = s->turn; i < b->order_count; i++)
        if (!(s->ran >> b->order[i] & 1)) sum += b->graph->nodes[b->order[i]].fwd_cost;
    return sum;
}

static inline void bo_push(brute_offload *b, uint64_t total, uint32_t state) {
    uint32_t at = b->heap_count++;
    if (b->heap_count > b->heap_capacity) { b->full = 1; b->heap_count--; return; }
    while (at && total < b->heap[(at - 1) / 2].total) { b->heap[at] = b->heap[(at - 1) / 2]; at = (at - 1) / 2; }
    b->heap[at].total = total; b->heap[at].state = state;
}

static inline bo_entry bo_pop(brute_offload *b) {
    bo_entry top = b->heap[0], last = b->heap[--b->heap_count];
    uint32_t at = 0, child;
    while ((child = 2 * at + 1) < b->heap_count) {
        if (child + 1 < b->heap_count && b->heap[child + 1].total < b->heap[child].total) child++;
        if (b->heap[child].total >= last.total) break;
        b->heap[at] = b->heap[child];
        at = child;
    }
    b->heap[at] = last;
    return top;
}

static inline void bo_edge(brute_offload *b, const bo_state *s, uint64_t now, uint64_t peak) {
    uint64_t total = now + bo_rest(b, s);
    uint32_t at;
    if (peak > b->budget || total > b->limit || b->full) return;
    at = (uint32_t)(bo_hash(s) % b->table_size);
    while (b->table[at] && memcmp(&b->states[b->table[at] - 1], s, sizeof *s)) at = at + 1 == b->table_size ? 0 : at + 1;
    if (!b->table[at]) {
        if (b->count == b->capacity) { b->full = 1; return; }
        b->states[b->count] = *s; b->now[b->count] = UINT64_MAX; b->settled[b->count] = 0;
        b->table[at] = ++b->count;
    }
    at = b->table[at] - 1;
    if (b->settled[at] || b->now[at] <= now) return;
    b->now[at] = now;
    bo_push(b, total, at);
}

static inline void bo_pass(bo_state *s, uint64_t time) {
    int i;
    for (i = 0; i < BO_TENSORS; i++) s->left[i] = (uint16_t)(s->left[i] > time ? s->left[i] - time : 0);
}

static inline int bo_reads(const bo_state *s, int t) { return s->where[t] == BO_HERE || s->where[t] == BO_LEAVING; }

// F, I (in_place) or S (saves) of a node.
static inline void bo_forward(brute_offload *b, const bo_state *s, uint64_t now, int v, int in_place, int saves) {
    const tl_graph *g = b->graph;
    const tl_node *n = &g->nodes[v];
    bo_state to = *s;
    uint64_t peak = bo_live(b, s), again = 0;
    int k, missing = 0, reads = 0, lossy = 0, result = 0, from = in_place ? g->inputs[n->first_input + n->inplace].tensor : -1;
    for (k = n->first_input; k < n->first_input + n->input_count; k++) {
        if (!bo_reads(s, g->inputs[k].tensor)) return;
        reads += g->inputs[k].tensor == from;
        lossy |= s->lossy[g->inputs[k].tensor];
    }
    for (k = n->first_output; k < n->first_output + n->output_count; k++) {
        if (s->where[k] == BO_COMING || s->where[k] == BO_PACKED) return;
        to.lossy[k] = (uint8_t)lossy;
        result |= b->result[k];
        if (s->where[k] == BO_ABSENT) { missing++; peak += g->outputs[k].bytes; to.where[k] = BO_HERE; }
        else again += g->outputs[k].bytes;
    }
    if (lossy && (result || !(s->began >> v & 1))) return;
    if (b->codec) to.began |= 1u << v;
    if (!saves && !missing) return;
    if (n->once && s->spent >> v & 1) return;
    if (n->once) to.spent |= 1u << v;
    if (saves && s->saved >> v & 1) return;
    if (missing) peak += again;
    if (in_place) {
        if (reads != 1 || s->where[from] != BO_HERE || s->where[n->first_output] != BO_ABSENT) return;
        to.where[from] = BO_ABSENT;
        to.lossy[from] = s->lossy[from] && s->host[from];
        peak -= g->outputs[from].bytes;
    }
    if (saves) { peak += n->saved_bytes; to.saved |= 1u << v; }
    if (b->turn[v] >= s->turn) to.ran |= 1u << v;
    to.waited = 0;
    bo_pass(&to, n->fwd_cost);
    bo_edge(b, &to, now + n->fwd_cost, peak + (saves ? n->swork_bytes : n->fwork_bytes));
}

static inline void bo_backward(brute_offload *b, const bo_state *s, uint64_t now) {
    const tl_graph *g = b->graph;
    int v = b->order[s->turn], k;
    const tl_node *n = &g->nodes[v];
    bo_state to = *s;
    if (!(s->ran >> v & 1) || (n->saved_bytes && !(s->saved >> v & 1))) return;
    for (k = n->first_input; k < n->first_input + n->input_count; k++)
        if (g->inputs[k].needed && !bo_reads(s, g->inputs[k].tensor)) return;
    for (k = n->first_output; k < n->first_output + n->output_count; k++)
        if (g->outputs[k].needed && !bo_reads(s, k)) return;
    to.saved &= ~(1u << v);
    to.ran &= ~(1u << v);
    to.turn++;
    to.waited = 0;
    bo_pass(&to, n->bwd_cost);
    bo_edge(b, &to, now + n->bwd_cost, bo_live(b, s) - b->between[s->turn] + b->during[s->turn] + n->bwork_bytes);
}

static inline void bo_copies(brute_offload *b, const bo_state *s, uint64_t now, int t) {
    uint64_t host = 0, busy[2] = { 0, 0 }, bytes = b->graph->outputs[t].bytes, gap = s->waited ? 0 : b->wait, time;
    bo_state to = *s;
    int i;
    for (i = 0; i < b->graph->tensor_count; i++) {
        if (s->host[i]) host += b->graph->outputs[i].bytes;
        if (s->left[i] > busy[s->where[i] == BO_COMING]) busy[s->where[i] == BO_COMING] = s->left[i];
    }
    if (b->channels != 2) busy[0] = busy[1] = busy[0] > busy[1] ? busy[0] : busy[1];
    if (s->where[t] == BO_HERE && !s->host[t] && host + bytes <= b->host_budget) {
        to.where[t] = BO_LEAVING; to.host[t] = 1; to.left[t] = (uint16_t)(busy[0] + b->copy[0][t]);
        if (b->channels < 0) bo_pass(&to, b->copy[0][t]);
        bo_edge(b, &to, now + (b->channels < 0 ? b->copy[0][t] : 0), 0);
    }
    if (s->where[t] == BO_ABSENT && s->host[t]) {
        to = *s;
        to.where[t] = BO_COMING; to.left[t] = (uint16_t)(busy[1] + b->copy[1][t]);
        if (b->channels < 0) bo_pass(&to, b->copy[1][t]);
        bo_edge(b, &to, now + (b->channels < 0 ? b->copy[1][t] : 0), bo_live(b, &to));
    }
    if (s->where[t] == BO_LEAVING || s->where[t] == BO_COMING) {
        to = *s;
        to.where[t] = s->where[t] == BO_LEAVING ? BO_ABSENT : BO_HERE;
        to.waited = 1;
        time = s->left[t] > gap ? s->left[t] : gap;
        bo_pass(&to, time);
        bo_edge(b, &to, now + time, 0);
    } else if (s->host[t]) {
        to = *s; to.host[t] = 0;
        bo_edge(b, &to, now, 0);
    }
}

// C and X.
static inline void bo_conversions(brute_offload *b, const bo_state *s, uint64_t now, int t) {
    bo_state to = *s;
    if (!b->packed[t] || (s->where[t] != BO_HERE && s->where[t] != BO_PACKED)) return;
    to.where[t] = s->where[t] == BO_HERE ? BO_PACKED : BO_HERE;
    to.lossy[t] = 1;
    to.waited = 0;
    bo_pass(&to, b->convert[t]);
    bo_edge(b, &to, now + b->convert[t], bo_live(b, s) + (s->where[t] == BO_HERE ? b->packed[t] : b->graph->outputs[t].bytes));
}

static inline void bo_edges(brute_offload *b, const bo_state *s, uint64_t now) {
    bo_state to;
    int i;
    for (i = 0; i < b->graph->node_count; i++) {
        const tl_node *n = &b->graph->nodes[i];
        if (n->is_input) continue;
        bo_forward(b, s, now, i, 0, 0);
        if (n->inplace >= 0) bo_forward(b, s, now, i, 1, 0);
        if (n->saved_bytes) bo_forward(b, s, now, i, 0, 1);
        if (s->saved >> i & 1) { to = *s; to.saved &= ~(1u << i); bo_edge(b, &to, now, 0); }
    }
    for (i = 0; i < b->graph->tensor_count; i++) {
        if (b->graph->nodes[b->graph->outputs[i].node].is_input) continue;
        if (s->where[i] == BO_HERE || s->where[i] == BO_PACKED) {
            to = *s;
            to.where[i] = BO_ABSENT;
            to.lossy[i] = s->lossy[i] && s->host[i];
            bo_edge(b, &to, now, 0);
        }
        bo_copies(b, s, now, i);
        bo_conversions(b, s, now, i);
    }
    if (s->turn < b->order_count) bo_backward(b, s, now);
}

static inline void bo_use_codec(brute_offload *b, tl_codec codec, uint64_t rate) {
    int i;
    b->codec = codec;
    for (i = 0; i < b->graph->tensor_count; i++) {
        uint64_t bytes = b->graph->outputs[i].bytes, packed = tl_find_codec_bytes(codec, bytes);
        int may = !b->graph->nodes[b->graph->outputs[i].node].is_input && !b->result[i] && bytes % 4 == 0 && packed < bytes;
        b->packed[i] = codec && may ? packed : 0;
        b->convert[i] = rate ? (bytes * 1000000000u + rate - 1) / rate : 0;
    }
}

// 1 and the least time, 0 where nothing ends by `limit`; -1 where the tables are too small.
static inline int bo_solve(brute_offload *b, const tl_device *device, uint64_t budget, uint64_t host_budget, uint64_t limit,
                           uint64_t *time) {
    bo_state start;
    int i, k;
    b->budget = budget; b->host_budget = host_budget; b->limit = limit;
    b->wait = device->wait_latency_ns;
    b->channels = device->copy_channels;
    b->count = b->heap_count = 0; b->full = 0;
    memset(b->table, 0, b->table_size * sizeof *b->table);
    memset(&start, 0, sizeof start);
    for (i = 0; i < b->graph->tensor_count; i++) {
        uint64_t bytes = b->graph->outputs[i].bytes, rates[2] = { device->link_bytes_per_second, device->upload_bytes_per_second };
        if (!rates[1]) rates[1] = rates[0];
        for (k = 0; k < 2; k++) b->copy[k][i] = rates[k] ? device->link_latency_ns + (bytes * 1000000000u + rates[k] - 1) / rates[k] : 0;
        if (b->graph->nodes[b->graph->outputs[i].node].is_input) start.where[i] = BO_HERE;
    }
    bo_edge(b, &start, 0, bo_live(b, &start));
    while (b->heap_count) {
        bo_entry entry = bo_pop(b);
        bo_state s = b->states[entry.state];
        int ended = s.turn == b->order_count;
        if (b->settled[entry.state]) continue;
        b->settled[entry.state] = 1;
        for (i = 0; i < b->graph->tensor_count; i++) ended &= !b->result[i] || bo_reads(&s, i);
        if (ended) { *time = b->now[entry.state]; return 1; }
        bo_edges(b, &s, b->now[entry.state]);
        if (b->full) return -1;
    }
    return 0;
}

#endif
