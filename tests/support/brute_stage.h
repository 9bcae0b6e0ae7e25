// Every body of a small stage of a pipeline, and what each takes with several micro-batches in flight: an exhaustive search in two
// halves that meet at the turn. It shares nothing with the planners of ranks. Include after cmocka and the implementation.
//
//     forward part     from what is received, to each set H of tensors and saved bytes that may be held, every node having run
//     backward part    from each H, through the backwards in reverse order, to nothing
//     together         live bytes of the rank: those of its other micro-batches, each H, what is under way, and the part's own
//
// A label is a way to a state with its cost and its peak; of each state the ones are kept that no other beats in both.
#ifndef TESTS_BRUTE_STAGE_H
#define TESTS_BRUTE_STAGE_H

enum { STAGE_BITS = 13, STAGE_ORDER = 8, STAGE_KINDS = 64 };

typedef struct stage_edge { int32_t from, to; uint32_t cost, peak; tl_step step; } stage_edge;
typedef struct stage_label { uint64_t cost, peak; int32_t state, parent, edge; } stage_label;

// Labels of one half, in the order of cost and peak, which is the order in which they are settled.
typedef struct stage_half {
    stage_edge  *edges;  int32_t edge_count, edge_room;
    int32_t     *first;                  // [states + 1] edges of each state, by from
    int32_t      state_count;
    stage_label *labels; int32_t label_count, label_room;   // settled ones
    uint64_t    *least;                  // [states] peak of the last label settled
    int32_t     *next_of, *last_of;      // [labels], [states] lists of the labels of a state
    stage_label *heap;   int32_t heap_count, heap_room;
    int          reversed;               // edges lead from the end to the turn
} stage_half;

// A body, by the labels of its halves: the live bytes of the rank and the cost of a micro-batch.
typedef struct stage_point { uint64_t bytes, cost; int32_t forward, backward; } stage_point;

// Moments of the rank in which one part runs: other bytes, and how many other micro-batches are held.
typedef struct stage_moment { int is_backward; uint64_t held_count, bytes; } stage_moment;

typedef struct brute_stage {
    const tl_graph *graph;
    int32_t   bits, all_bits;            // of what may be resident; with a bit for each node that has run
    int32_t   tensor_bit[64], saved_bit[64], ran_bit[64];   // [tensors], [nodes]; -1 = none
    uint64_t  bit_bytes[32];
    tl_step   bit_drop[32];
    int32_t   order[STAGE_ORDER], order_count, turn[64];    // nodes with a gradient, in the order of their backwards
    uint64_t  between[STAGE_ORDER + 1], during[STAGE_ORDER];    // bytes of gradients
    uint64_t  received, sent_gradients, received_gradients;
    stage_moment moments[STAGE_KINDS];   int32_t moment_count;
    stage_half forward, backward;
    stage_point *points; int32_t point_count;               // rising bytes, falling cost
} brute_stage;

static inline int stage_is(const tl_graph *graph, int32_t id, const char *op) { return !strcmp(tl_name_op(graph, id), op); }
static inline int stage_is_own(const tl_graph *graph, int32_t id) {
    return !graph->nodes[id].is_input && !stage_is(graph, id, "receive") && !stage_is(graph, id, "send");
}

static inline uint64_t stage_bytes(const brute_stage *b, int32_t mask) {
    uint64_t sum = 0;
    int32_t i;
    for (i = 0; i < b->bits; i++) if (mask >> i & 1) sum += b->bit_bytes[i];
    return sum;
}

// -- states --

static inline void stage_bit(brute_stage *b, uint64_t bytes, tl_step_kind kind, int32_t node, int32_t output) {
    memset(&b->bit_drop[b->bits], 0, sizeof b->bit_drop[0]);
    b->bit_drop[b->bits].kind = (uint8_t)kind;
    b->bit_drop[b->bits].node = node;
    b->bit_drop[b->bits].output = output;
    b->bit_bytes[b->bits++] = bytes;
}

// 0: too large, or of a kind that is left out (results, what runs once, in place).
static inline int stage_number(brute_stage *b) {
    const tl_graph *g = b->graph;
    int32_t id, k, own = 0;
    if (g->tensor_count > 64 || g->node_count > 64) return 0;
    for (id = 0; id < g->node_count; id++) own += stage_is_own(g, id);
    for (id = 0; id < g->node_count; id++) {
        const tl_node *node = &g->nodes[id];
        int message = stage_is(g, id, "send") || node->is_input;
        b->saved_bit[id] = b->ran_bit[id] = -1;
        if (stage_is_own(g, id) && (node->keep || node->once || node->inplace >= 0)) return 0;
        for (k = 0; k < node->output_count; k++) {
            b->tensor_bit[node->first_output + k] = message ? -1 : b->bits;
            if (!message) stage_bit(b, g->outputs[node->first_output + k].bytes, TL_STEP_DROP, id, k);
            if (b->bits + own > STAGE_BITS) return 0;
        }
        if (!node->saved_bytes) continue;
        b->saved_bit[id] = b->bits;
        stage_bit(b, node->saved_bytes, TL_STEP_DROP_SAVED, id, TL_ALL_OUTPUTS);
    }
    b->all_bits = b->bits;
    for (id = 0; id < g->node_count; id++) if (stage_is_own(g, id)) b->ran_bit[id] = b->all_bits++;
    return b->all_bits <= STAGE_BITS;
}

static inline int32_t stage_outs(const brute_stage *b, int32_t id) {
    const tl_node *node = &b->graph->nodes[id];
    int32_t mask = 0, k;
    for (k = 0; k < node->output_count; k++) mask |= 1 << b->tensor_bit[node->first_output + k];
    return mask;
}

static inline int32_t stage_ins(const brute_stage *b, int32_t id, int needed) {
    const tl_node *node = &b->graph->nodes[id];
    int32_t mask = 0, k;
    for (k = 0; k < node->input_count; k++) {
        const tl_node_input *input = &b->graph->inputs[node->first_input + k];
        if (b->tensor_bit[input->tensor] >= 0 && (!needed || input->needed)) mask |= 1 << b->tensor_bit[input->tensor];
    }
    for (k = 0; k < node->output_count && needed; k++)
        if (b->graph->outputs[node->first_output + k].needed) mask |= 1 << b->tensor_bit[node->first_output + k];
    return mask;
}

static inline uint64_t stage_sum(const tl_graph *g, const uint8_t *alive) {
    uint64_t sum = 0;
    int32_t i;
    for (i = 0; i < g->tensor_count; i++) if (alive[i]) sum += g->outputs[i].bytes;
    return sum;
}

// Gradients: those of what is sent are there before, those of what was received after.
static inline int stage_gradients(brute_stage *b) {
    const tl_graph *g = b->graph;
    uint8_t alive[64] = { 0 };
    int32_t id, k;
    for (id = 0; id < g->node_count; id++) {
        const tl_node *node = &g->nodes[id];
        b->turn[id] = -1;
        if (stage_is(g, id, "receive")) b->received += g->outputs[node->first_output].bytes;
        if (stage_is(g, id, "receive") && node->has_grad) b->received_gradients += g->outputs[node->first_output].bytes;
        if (stage_is(g, id, "send") && node->has_grad) alive[g->inputs[node->first_input].tensor] = 1;
    }
    b->between[0] = b->sent_gradients = stage_sum(g, alive);
    for (id = g->node_count - 1; id >= 0; id--) {
        const tl_node *node = &g->nodes[id];
        if (!stage_is_own(g, id) || !node->has_grad) continue;
        if (b->order_count == STAGE_ORDER) return 0;
        for (k = 0; k < node->output_count; k++) alive[node->first_output + k] = 1;
        for (k = 0; k < node->input_count; k++) {
            int32_t tensor = g->inputs[node->first_input + k].tensor;
            if (g->nodes[g->outputs[tensor].node].has_grad) alive[tensor] = 1;
        }
        b->during[b->order_count] = stage_sum(g, alive);
        for (k = 0; k < node->output_count; k++) alive[node->first_output + k] = 0;
        b->turn[id] = b->order_count;
        b->order[b->order_count++] = id;
        b->between[b->order_count] = stage_sum(g, alive);
    }
    return 1;
}

// -- steps --

static inline void stage_edge_add(stage_half *h, int32_t from, int32_t to, uint64_t cost, uint64_t peak, tl_step step) {
    stage_edge *e;
    if (h->edge_count == h->edge_room) {
        h->edge_room = 2 * h->edge_room + 1024;
        h->edges = (stage_edge *)realloc(h->edges, (size_t)h->edge_room * sizeof *h->edges);
        assert_non_null(h->edges);
    }
    e = &h->edges[h->edge_count++];
    e->from = h->reversed ? to : from;
    e->to = h->reversed ? from : to;
    e->cost = (uint32_t)cost;
    e->peak = (uint32_t)peak;
    e->step = step;
}

// What one node can do in a state. done: backwards that have run; -1 in the forward part.
static inline void stage_node_edges(brute_stage *b, stage_half *h, int32_t state, int32_t mask, int32_t done, uint64_t now, int32_t id) {
    const tl_node *node = &b->graph->nodes[id];
    int32_t outs = stage_outs(b, id), saved = b->saved_bit[id] >= 0 ? 1 << b->saved_bit[id] : 0;
    int32_t ran = done < 0 ? 1 << b->ran_bit[id] : 0;
    uint64_t missing = stage_bytes(b, outs & ~mask), again = outs & ~mask ? stage_bytes(b, outs & mask) : 0;
    tl_step step;
    memset(&step, 0, sizeof step);
    step.node = id;
    step.output = TL_ALL_OUTPUTS;
    if ((mask & stage_ins(b, id, 0)) == stage_ins(b, id, 0)) {
        step.kind = TL_STEP_FORWARD;
        if (outs & ~mask) stage_edge_add(h, state, state | outs | ran, node->fwd_cost, now + missing + again + node->fwork_bytes, step);
        step.kind = TL_STEP_FORWARD_SAVE;
        if (saved && !(mask & saved) && b->turn[id] >= done)
            stage_edge_add(h, state, state | outs | saved | ran, node->fwd_cost,
                           now + missing + again + node->saved_bytes + node->swork_bytes, step);
    }
    if (done < 0 || b->turn[id] != done) return;
    if ((mask & stage_ins(b, id, 1)) != stage_ins(b, id, 1) || (mask & saved) != saved) return;
    step.kind = TL_STEP_BACKWARD;
    stage_edge_add(h, state, (state & ~saved) + (1 << b->bits), node->bwd_cost,
                   now - b->between[done] + b->during[done] + node->bwork_bytes, step);
}

static inline void stage_edges(brute_stage *b, stage_half *h, int32_t state, int32_t done) {
    int32_t mask = state & ((1 << b->bits) - 1), i;
    uint64_t now = stage_bytes(b, mask) + (done < 0 ? 0 : b->between[done]);
    for (i = 0; i < b->graph->node_count; i++)
        if (stage_is_own(b->graph, i)) stage_node_edges(b, h, state, mask, done, now, i);
    for (i = 0; i < b->bits; i++)
        if (mask >> i & 1) stage_edge_add(h, state, state & ~(1 << i), 0, 0, b->bit_drop[i]);
}

// -- labels --

static inline int stage_before(const stage_label *a, const stage_label *b) {
    return a->cost != b->cost ? a->cost < b->cost : a->peak < b->peak;
}

static inline void stage_push(stage_half *h, stage_label label) {
    int32_t at = h->heap_count++;
    if (h->heap_count > h->heap_room) {
        h->heap_room = 2 * h->heap_room + 1024;
        h->heap = (stage_label *)realloc(h->heap, (size_t)h->heap_room * sizeof *h->heap);
        assert_non_null(h->heap);
    }
    while (at && stage_before(&label, &h->heap[(at - 1) / 2])) { h->heap[at] = h->heap[(at - 1) / 2]; at = (at - 1) / 2; }
    h->heap[at] = label;
}

static inline stage_label stage_pop(stage_half *h) {
    stage_label top = h->heap[0], last = h->heap[--h->heap_count];
    int32_t at = 0, child;
    while ((child = 2 * at + 1) < h->heap_count) {
        if (child + 1 < h->heap_count && stage_before(&h->heap[child + 1], &h->heap[child])) child++;
        if (!stage_before(&h->heap[child], &last)) break;
        h->heap[at] = h->heap[child];
        at = child;
    }
    h->heap[at] = last;
    return top;
}

static inline void stage_sort_edges(stage_half *h) {
    stage_edge *sorted = (stage_edge *)malloc(((size_t)h->edge_count + 1) * sizeof *sorted);
    int32_t i;
    h->first = (int32_t *)calloc((size_t)h->state_count + 2, sizeof *h->first);
    assert_true(sorted && h->first);
    for (i = 0; i < h->edge_count; i++) h->first[h->edges[i].from + 2]++;
    for (i = 1; i <= h->state_count; i++) h->first[i + 1] += h->first[i];
    for (i = 0; i < h->edge_count; i++) sorted[h->first[h->edges[i].from + 1]++] = h->edges[i];
    free(h->edges);
    h->edges = sorted;
}

// Settle a label, unless one of its state is as good; 0 then.
static inline int stage_settle(stage_half *h, const stage_label *label) {
    if (label->peak >= h->least[label->state]) return 0;
    h->least[label->state] = label->peak;
    if (h->label_count == h->label_room) {
        h->label_room = 2 * h->label_room + 1024;
        h->labels = (stage_label *)realloc(h->labels, (size_t)h->label_room * sizeof *h->labels);
        h->next_of = (int32_t *)realloc(h->next_of, (size_t)h->label_room * sizeof *h->next_of);
        assert_true(h->labels && h->next_of);
    }
    h->labels[h->label_count] = *label;
    h->next_of[h->label_count] = h->last_of[label->state];
    h->last_of[label->state] = h->label_count++;
    return 1;
}

static inline void stage_search(stage_half *h, int32_t start, uint64_t peak) {
    stage_label label;
    int32_t i, k;
    stage_sort_edges(h);
    h->least = (uint64_t *)malloc((size_t)h->state_count * sizeof *h->least);
    h->last_of = (int32_t *)malloc((size_t)h->state_count * sizeof *h->last_of);
    assert_true(h->least && h->last_of);
    for (i = 0; i < h->state_count; i++) { h->least[i] = UINT64_MAX; h->last_of[i] = -1; }
    memset(&label, 0, sizeof label);
    label.state = start;
    label.peak = peak;
    label.parent = label.edge = -1;
    stage_push(h, label);
    while (h->heap_count) {
        stage_label at = stage_pop(h);
        if (!stage_settle(h, &at)) continue;
        for (k = h->first[at.state]; k < h->first[at.state + 1]; k++) {
            const stage_edge *e = &h->edges[k];
            label.state = e->to;
            label.cost = at.cost + e->cost;
            label.peak = at.peak > e->peak ? at.peak : e->peak;
            label.parent = h->label_count - 1;
            label.edge = k;
            if (label.peak < h->least[label.state]) stage_push(h, label);
        }
    }
}

// -- both halves --

// Add a moment, unless it is there.
static inline void stage_moment_add(brute_stage *b, int is_backward, uint64_t held_count, uint64_t bytes) {
    int32_t i;
    for (i = 0; i < b->moment_count; i++)
        if (b->moments[i].is_backward == is_backward && b->moments[i].held_count == held_count && b->moments[i].bytes == bytes) return;
    assert_true(b->moment_count < STAGE_KINDS);
    b->moments[b->moment_count].is_backward = is_backward;
    b->moments[b->moment_count].held_count = held_count;
    b->moments[b->moment_count++].bytes = bytes;
}

// What is there beside the part that runs, event by event: graph inputs of all micro-batches, what the next event receives, if it
// is another micro-batch's, and the gradients that the event before sends back.
static inline void stage_find_moments(brute_stage *b, const tl_pipeline_event *events, int32_t count, int32_t batches) {
    uint64_t inputs = 0, held = 0;
    int32_t i;
    for (i = 0; i < b->graph->tensor_count; i++)
        if (b->graph->nodes[b->graph->outputs[i].node].is_input) inputs += b->graph->outputs[i].bytes;
    for (i = 0; i < count; i++) {
        const tl_pipeline_event *e = &events[i];
        uint64_t bytes = inputs * (uint64_t)batches;
        if (i + 1 < count && e[1].micro_batch != e->micro_batch) bytes += e[1].is_backward ? b->sent_gradients : b->received;
        if (i && e[-1].is_backward) bytes += b->received_gradients;
        held -= (uint64_t)(e->is_backward != 0);
        stage_moment_add(b, e->is_backward, held, bytes);
        held += !e->is_backward;
    }
}

static inline uint64_t stage_total(const brute_stage *b, uint64_t held, uint64_t forward, uint64_t backward) {
    uint64_t most = 0;
    int32_t i;
    for (i = 0; i < b->moment_count; i++) {
        uint64_t sum = b->moments[i].bytes + b->moments[i].held_count * held + (b->moments[i].is_backward ? backward : forward);
        if (sum > most) most = sum;
    }
    return most;
}

static inline int stage_compare(const void *a, const void *b) {
    const stage_point *p = (const stage_point *)a, *q = (const stage_point *)b;
    if (p->bytes != q->bytes) return p->bytes < q->bytes ? -1 : 1;
    return p->cost < q->cost ? -1 : p->cost > q->cost;
}

// All pairs of labels that meet, and of these the ones that no other beats.
static inline void stage_meet(brute_stage *b) {
    int32_t ran = ((1 << b->all_bits) - 1) & ~((1 << b->bits) - 1), mask, f, k, room = 0, kept = 0;
    for (mask = 0; mask < 1 << b->bits; mask++) {
        uint64_t held = stage_bytes(b, mask);
        for (f = b->forward.last_of[ran | mask]; f >= 0; f = b->forward.next_of[f])
            for (k = b->backward.last_of[mask]; k >= 0; k = b->backward.next_of[k]) {
                const stage_label *there = &b->forward.labels[f], *back = &b->backward.labels[k];
                uint64_t start = held + b->sent_gradients;
                if (b->point_count == room) {
                    room = 2 * room + 1024;
                    b->points = (stage_point *)realloc(b->points, (size_t)room * sizeof *b->points);
                    assert_non_null(b->points);
                }
                b->points[b->point_count].bytes = stage_total(b, held, there->peak, back->peak > start ? back->peak : start);
                b->points[b->point_count].cost = there->cost + back->cost;
                b->points[b->point_count].forward = f;
                b->points[b->point_count++].backward = k;
            }
    }
    if (b->point_count) qsort(b->points, (size_t)b->point_count, sizeof *b->points, stage_compare);
    for (k = 0; k < b->point_count; k++)
        if (!kept || b->points[k].cost < b->points[kept - 1].cost) b->points[kept++] = b->points[k];
    b->point_count = kept;
}

static inline void stage_free_half(stage_half *h) {
    free(h->edges); free(h->first); free(h->labels); free(h->least); free(h->next_of); free(h->last_of); free(h->heap);
}

static inline void brute_stage_free(brute_stage *b) {
    stage_free_half(&b->forward);
    stage_free_half(&b->backward);
    free(b->points);
}

// Find every body of a stage that is best for some number of live bytes; 0 where the stage is too large for that.
static inline int brute_stage_solve(brute_stage *b, const tl_graph *graph, const tl_pipeline_event *events, int32_t count,
                                    int32_t batches) {
    int32_t state, done, start = 0, id;
    memset(b, 0, sizeof *b);
    b->graph = graph;
    if (!stage_number(b) || !stage_gradients(b)) return 0;
    for (id = 0; id < graph->node_count; id++) if (stage_is(graph, id, "receive")) start |= stage_outs(b, id);
    b->forward.state_count = 1 << b->all_bits;
    for (state = 0; state < 1 << b->all_bits; state++) stage_edges(b, &b->forward, state, -1);
    stage_search(&b->forward, start, b->received);
    b->backward.state_count = (b->order_count + 1) << b->bits;
    b->backward.reversed = 1;
    for (done = 0; done <= b->order_count; done++)
        for (state = 0; state < 1 << b->bits; state++) stage_edges(b, &b->backward, done << b->bits | state, done);
    stage_search(&b->backward, b->order_count << b->bits, b->received_gradients);
    stage_find_moments(b, events, count, batches);
    stage_meet(b);
    return 1;
}

// The steps of a body: messages are begun and ended around them by who weaves it. steps holds 256.
static inline int32_t brute_stage_body(const brute_stage *b, const stage_point *point, tl_step *steps, int32_t *turn) {
    const tl_graph *g = b->graph;
    int32_t label, count = 0, i, id, ran = 0;
    tl_step chain[256], message;
    memset(&message, 0, sizeof message);
    message.output = TL_ALL_OUTPUTS;
    for (i = 0, label = point->forward; b->forward.labels[label].parent >= 0; label = b->forward.labels[label].parent)
        chain[i++] = b->forward.edges[b->forward.labels[label].edge].step;
    message.kind = TL_STEP_FORWARD;
    for (id = 0; id < g->node_count; id++) {
        message.node = id;
        if (stage_is(g, id, "receive")) steps[count++] = message;
    }
    for (id = 0; id < g->node_count; id++) {            // what only passes through
        message.node = id;
        if (stage_is(g, id, "send") && stage_is(g, g->outputs[g->inputs[g->nodes[id].first_input].tensor].node, "receive"))
            steps[count++] = message;
    }
    while (i--) {
        steps[count++] = chain[i];
        if (chain[i].kind >= TL_STEP_BACKWARD || ran >> b->ran_bit[chain[i].node] & 1) continue;
        ran |= 1 << b->ran_bit[chain[i].node];
        for (id = 0; id < g->node_count; id++) {
            message.node = id;
            if (stage_is(g, id, "send") && g->outputs[g->inputs[g->nodes[id].first_input].tensor].node == chain[i].node)
                steps[count++] = message;
        }
    }
    *turn = count;
    message.kind = TL_STEP_BACKWARD;
    for (id = g->node_count - 1; id >= 0; id--) {
        message.node = id;
        if (stage_is(g, id, "send") && g->nodes[id].has_grad) steps[count++] = message;
    }
    for (label = point->backward; b->backward.labels[label].parent >= 0; label = b->backward.labels[label].parent)
        steps[count++] = b->backward.edges[b->backward.labels[label].edge].step;
    for (id = g->node_count - 1; id >= 0; id--) {
        message.node = id;
        if (stage_is(g, id, "receive") && g->nodes[id].has_grad) steps[count++] = message;
    }
    return count;
}
#endif
