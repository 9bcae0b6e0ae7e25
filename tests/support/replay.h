// A replay of plans by the rules of [5] as the header states them, and by nothing of the implementation: what steps need,
// what they allocate and free, when copies end. It knows the steps that planners of [6] may make: no compression.
#ifndef TESTS_REPLAY_H
#define TESTS_REPLAY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { REPLAY_ABSENT, REPLAY_HERE, REPLAY_LEAVING, REPLAY_COMING };

typedef struct replay_tensor { uint8_t state, on_host, has_gradient; uint64_t ready; } replay_tensor;
typedef struct replay_node { uint8_t ran, done, has_saved, is_read; } replay_node;

typedef struct replay {
    const tl_graph  *graph;
    const tl_device *device;        // 0 = copies take no time
    replay_tensor   *tensors;
    replay_node     *nodes;
    int32_t          next;          // whose backward is next; -1 = none
    uint64_t         live, host, now, link[2];  // when the link is free: from the device, to it
    int              in_wait;       // 1 = since the last W nothing was computed
    uint64_t         peak, host_peak, cost;     // the answer
    const char      *broken;        // the rule that does not hold; NULL = valid
    int32_t          step;          // where
} replay;

static inline void replay_break(replay *r, const char *rule) { if (!r->broken) r->broken = rule; }
static inline void replay_need(replay *r, int holds, const char *rule) { if (!holds) replay_break(r, rule); }

static inline int replay_readable(const replay *r, int32_t tensor) {
    return r->tensors[tensor].state == REPLAY_HERE || r->tensors[tensor].state == REPLAY_LEAVING;
}

static inline void replay_reach(replay *r, uint64_t during) { if (r->live + during > r->peak) r->peak = r->live + during; }

static inline void replay_forward(replay *r, const tl_node *node, replay_node *state, tl_step_kind kind) {
    uint64_t again = 0;
    int32_t i, missing = 0, last = node->first_output + node->output_count;
    replay_need(r, !node->once || !state->ran, "may run once only");
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        int32_t maker = r->graph->outputs[r->graph->inputs[i].tensor].node;
        replay_need(r, replay_readable(r, r->graph->inputs[i].tensor), "an input is not resident");
        replay_need(r, !r->graph->nodes[maker].state || !r->nodes[maker].done, "a state that it reads was updated");
    }
    for (i = node->first_output; i < last; i++) {
        replay_need(r, r->tensors[i].state != REPLAY_COMING, "an output is being fetched");
        missing += r->tensors[i].state == REPLAY_ABSENT;
    }
    if (kind == TL_STEP_FORWARD_SAVE) replay_need(r, node->saved_bytes && !state->has_saved, "nothing to save");
    else replay_need(r, missing > 0, "all outputs are resident");
    if (kind == TL_STEP_FORWARD_INPLACE && !r->broken) {
        int32_t from, reads = 0;
        replay_need(r, node->inplace >= 0, "may not run in place");
        if (r->broken) return;
        from = r->graph->inputs[node->first_input + node->inplace].tensor;
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            reads += r->graph->inputs[i].tensor == from;
        replay_need(r, r->tensors[from].state == REPLAY_HERE && reads == 1, "its input is not there alone");
        replay_need(r, !r->graph->nodes[r->graph->outputs[from].node].is_input, "overwrites a graph input");
        replay_need(r, r->tensors[node->first_output].state == REPLAY_ABSENT, "its output is there already");
        replay_need(r, r->graph->outputs[from].bytes == r->graph->outputs[node->first_output].bytes, "other bytes in place");
        r->tensors[from].state = REPLAY_ABSENT;
        r->live -= r->graph->outputs[from].bytes;
    }
    for (i = node->first_output; i < last; i++) {
        uint64_t bytes = r->graph->outputs[i].bytes;
        if (r->tensors[i].state != REPLAY_ABSENT) { if (missing) again += bytes; continue; }
        r->tensors[i].state = REPLAY_HERE;
        r->live += bytes;
    }
    if (kind == TL_STEP_FORWARD_SAVE) { state->has_saved = 1; r->live += node->saved_bytes; }
    state->ran = 1;
    replay_reach(r, again + (kind == TL_STEP_FORWARD_SAVE ? node->swork_bytes : node->fwork_bytes));
    r->now += node->fwd_cost;
    r->in_wait = 0;
}

static inline void replay_gradient(replay *r, int32_t tensor) {
    const tl_node *maker = &r->graph->nodes[r->graph->outputs[tensor].node];
    if (r->tensors[tensor].has_gradient || !maker->has_grad) return;
    if (maker->state == TL_STATE_HELD || (maker->state && r->graph->outputs[tensor].output)) return;  // held, or of a moment
    r->tensors[tensor].has_gradient = 1;
    r->live += r->graph->outputs[tensor].bytes;
}

// Updates have no place of their own in the order of backwards.
static inline int replay_is_ordered(const replay *r, int32_t id) { return r->graph->nodes[id].has_grad && !r->graph->nodes[id].state; }

// An update runs once, when every backward that adds to the gradient has.
static inline void replay_update(replay *r, int32_t id) {
    int32_t reader, i;
    replay_need(r, !r->nodes[id].done, "updated twice");
    for (reader = id + 1; reader < r->graph->node_count; reader++) {
        const tl_node *node = &r->graph->nodes[reader];
        for (i = node->first_input; i < node->first_input + node->input_count && node->has_grad; i++)
            replay_need(r, r->graph->outputs[r->graph->inputs[i].tensor].node != id || r->nodes[reader].done,
                        "a reader has not run backward before the update");
    }
}

static inline void replay_backward(replay *r, const tl_node *node, replay_node *state, int32_t id) {
    int32_t i, last = node->first_output + node->output_count;
    if (node->state) replay_update(r, id);
    else replay_need(r, id == r->next, "not the next backward in reverse order");
    replay_need(r, state->ran || node->state, "its forward never ran");
    replay_need(r, !node->saved_bytes || state->has_saved, "its saved bytes are missing");
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        replay_need(r, !r->graph->inputs[i].needed || replay_readable(r, r->graph->inputs[i].tensor),
                    "an input that it needs is missing");
    for (i = node->first_output; i < last; i++) {
        replay_need(r, !r->graph->outputs[i].needed || replay_readable(r, i), "an output that it needs is missing");
        replay_gradient(r, i);
    }
    for (i = node->first_input; i < node->first_input + node->input_count; i++) replay_gradient(r, r->graph->inputs[i].tensor);
    replay_reach(r, node->bwork_bytes);
    r->now += node->bwd_cost;
    r->in_wait = 0;
    for (i = node->first_output; i < last; i++) {
        if (r->tensors[i].has_gradient) r->live -= r->graph->outputs[i].bytes;
        r->tensors[i].has_gradient = 0;
    }
    if (state->has_saved) r->live -= node->saved_bytes;
    state->has_saved = 0;
    state->done = 1;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        int32_t maker = r->graph->outputs[r->graph->inputs[i].tensor].node;
        if (r->graph->nodes[maker].state == TL_STATE_PIECES) r->nodes[maker].done = 1;     // updated piece by piece
    }
    while (r->next >= 0 && (r->nodes[r->next].done || !replay_is_ordered(r, r->next))) r->next--;
}

// Copies follow each other, with two channels those of one direction. Without any, kernels wait meanwhile.
static inline void replay_copy(replay *r, int32_t tensor, int up) {
    uint64_t rate = r->device ? r->device->link_bytes_per_second : 0, at;
    if (up && r->device && r->device->upload_bytes_per_second) rate = r->device->upload_bytes_per_second;
    int32_t channels = r->device ? r->device->copy_channels : 0;
    at = channels == 2 ? r->link[up] : r->link[0] > r->link[1] ? r->link[0] : r->link[1];
    if (at < r->now) at = r->now;
    if (rate) at += r->device->link_latency_ns + (r->graph->outputs[tensor].bytes * UINT64_C(1000000000) + rate - 1) / rate;
    r->tensors[tensor].ready = r->link[up] = at;    // bytes below 2^34
    if (channels < 0) r->now = at;
}

// One tensor under D, O, L, W or DH. Returns 1 if the step acts on it.
static inline int replay_move(replay *r, int32_t tensor, tl_step_kind kind) {
    replay_tensor *t = &r->tensors[tensor];
    uint64_t bytes = r->graph->outputs[tensor].bytes;
    int moving = t->state == REPLAY_LEAVING || t->state == REPLAY_COMING;
    if (kind == TL_STEP_DROP) {
        if (t->state != REPLAY_HERE) return 0;
        t->state = REPLAY_ABSENT;
        r->live -= bytes;
    } else if (kind == TL_STEP_SPILL) {
        if (t->state != REPLAY_HERE) return 0;
        replay_need(r, !t->on_host, "the host has a copy");
        t->state = REPLAY_LEAVING;
        t->on_host = 1;
        r->host += bytes;
        if (r->host > r->host_peak) r->host_peak = r->host;
        replay_copy(r, tensor, 0);
    } else if (kind == TL_STEP_FETCH) {
        if (t->state != REPLAY_ABSENT) return 0;
        replay_need(r, t->on_host, "the host has no copy");
        t->state = REPLAY_COMING;
        r->live += bytes;
        replay_reach(r, 0);
        replay_copy(r, tensor, 1);
    } else if (kind == TL_STEP_WAIT) {
        if (!moving) return 0;
        if (!r->in_wait && r->device) r->now += r->device->wait_latency_ns;
        r->in_wait = 1;
        if (t->ready > r->now) r->now = t->ready;
        if (t->state == REPLAY_LEAVING) r->live -= bytes;
        t->state = t->state == REPLAY_LEAVING ? REPLAY_ABSENT : REPLAY_HERE;
    } else {
        if (!t->on_host) return 0;
        replay_need(r, !moving, "a copy is under way");
        t->on_host = 0;
        r->host -= bytes;
    }
    return 1;
}

static inline void replay_step(replay *r, const tl_step *step) {
    const tl_node *node;
    replay_node *state;
    int32_t i, acted = 0;
    tl_step_kind kind = (tl_step_kind)step->kind;
    replay_need(r, step->node >= 0 && step->node < r->graph->node_count, "no such node");
    if (r->broken) return;
    node = &r->graph->nodes[step->node];
    state = &r->nodes[step->node];
    replay_need(r, !node->is_input || (node->state && node->has_grad && kind == TL_STEP_BACKWARD) ||
                   (node->is_input == 2 && kind >= TL_STEP_DROP && kind <= TL_STEP_DROP_HOST && kind != TL_STEP_DROP_SAVED),
                "a graph input takes no steps, one that dies no calls, a state its update alone");
    replay_need(r, step->output >= -1 && step->output < node->output_count, "no such output");
    if (r->broken) return;
    if (kind == TL_STEP_FORWARD || kind == TL_STEP_FORWARD_INPLACE || kind == TL_STEP_FORWARD_SAVE) {
        replay_forward(r, node, state, kind);
    } else if (kind == TL_STEP_BACKWARD) {
        replay_backward(r, node, state, step->node);
    } else if (kind == TL_STEP_DROP_SAVED) {
        replay_need(r, state->has_saved, "no saved bytes");
        state->has_saved = 0;
        r->live -= node->saved_bytes;
    } else if (kind == TL_STEP_DROP || kind == TL_STEP_SPILL || kind == TL_STEP_FETCH || kind == TL_STEP_WAIT ||
               kind == TL_STEP_DROP_HOST) {
        for (i = 0; i < node->output_count; i++)
            if (step->output < 0 || step->output == i) acted += replay_move(r, node->first_output + i, kind);
        replay_need(r, acted > 0, "no output that the step can act on");
    } else {
        replay_break(r, "a lossy step, or none");
    }
}

// All backwards have run, and results are resident: those that are kept, or in inference without such what nobody reads.
static inline void replay_end(replay *r, int inference) {
    int32_t i, k, any = 0;
    replay_need(r, r->next < 0, "a backward never ran");
    for (i = 0; i < r->graph->node_count && !inference; i++)
        replay_need(r, !r->graph->nodes[i].state || r->nodes[i].done ||
                           (!r->graph->nodes[i].has_grad && r->graph->nodes[i].state != TL_STATE_PIECES), "an update never ran");
    for (i = 0; i < r->graph->node_count; i++) any |= r->graph->nodes[i].keep;
    for (i = 0; i < r->graph->node_count; i++) {
        const tl_node *node = &r->graph->nodes[i];
        if (!node->keep && (any || !inference || node->is_input || r->nodes[i].is_read)) continue;
        for (k = node->first_output; k < node->first_output + node->output_count; k++)
            replay_need(r, replay_readable(r, k), "a result is not resident at the end");
    }
}

// Replay a plan. Returns 1 if it is valid; 0 with r->broken and r->step if it is not, or where memory ran out.
static inline int replay_plan(const tl_graph *graph, const tl_plan *plan, const tl_device *device, replay *r) {
    int32_t i;
    memset(r, 0, sizeof *r);
    r->graph = graph;
    r->device = device;
    r->tensors = (replay_tensor *)calloc((size_t)graph->tensor_count + 1, sizeof *r->tensors);
    r->nodes = (replay_node *)calloc((size_t)graph->node_count + 1, sizeof *r->nodes);
    if (!r->tensors || !r->nodes) { free(r->tensors); free(r->nodes); r->broken = "no memory"; return 0; }
    for (i = 0; i < graph->input_count; i++) r->nodes[graph->outputs[graph->inputs[i].tensor].node].is_read = 1;
    for (i = 0; i < graph->tensor_count; i++) {
        if (!graph->nodes[graph->outputs[i].node].is_input) continue;
        r->tensors[i].state = REPLAY_HERE;
        r->live += graph->outputs[i].bytes;
    }
    r->peak = r->live;
    r->next = plan->inference ? -1 : graph->node_count - 1;
    while (r->next >= 0 && !replay_is_ordered(r, r->next)) r->next--;
    for (r->step = 0; r->step < plan->step_count && !r->broken; r->step++) replay_step(r, &plan->steps[r->step]);
    if (r->broken) r->step--;
    else replay_end(r, plan->inference);
    r->cost = r->now;
    free(r->tensors);
    free(r->nodes);
    return !r->broken;
}

#endif
