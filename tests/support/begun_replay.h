// A replay of plans by the rules of [5] as the header states them, and by nothing of the implementation: with slots, an
// entry, compressed copies, any order of backwards, and calls that one step begins and another ends. One step is under
// way at a time. It says which step breaks a rule, what lives when, and how much that is.
#ifndef TESTS_BEGUN_REPLAY_H
#define TESTS_BEGUN_REPLAY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BEGUN_ABSENT, BEGUN_HERE, BEGUN_LEAVING, BEGUN_COMING, BEGUN_PACKED };
enum { BEGUN_TENSORS = 400, BEGUN_NODES = 200, BEGUN_LIVES = 20000, BEGUN_CALLS = 200 };

typedef struct begun_life {
    uint64_t bytes;
    tl_use   use;
    int32_t  node, output, slot, first, end;
} begun_life;

typedef struct begun_tensor {
    int     state, has_gradient;
    int32_t life, host, gradient, packed;   // in lives; -1 = none, or of no bytes
    int     on_host;
} begun_tensor;

typedef struct begun_node { int ran, done, has_saved, enters; int32_t saved; } begun_node;
typedef struct begun_call { int32_t node, slot; int backward; } begun_call;

typedef struct begun_replay {
    const tl_graph *graph;
    const tl_plan  *plan;
    begun_tensor    tensors[BEGUN_TENSORS];     // of all slots
    begun_node      nodes[BEGUN_NODES];
    begun_call      calls[BEGUN_CALLS];         // under way
    int32_t         call_count;
    int32_t         next[8];                    // of each slot: whose backward is next; -1 = none
    begun_life      lives[BEGUN_LIVES];
    int32_t         count, step, slot;
    uint64_t        live[2], peak[2];           // device, host
    int32_t         forwards, backwards, recomputed, most_calls;
    int             is_broken;                  // in step
} begun_replay;

static inline void begun_need(begun_replay *r, int holds) { if (!holds) r->is_broken = 1; }
static inline begun_tensor *begun_at(begun_replay *r, int32_t tensor) { return &r->tensors[r->slot * r->graph->tensor_count + tensor]; }
static inline begun_node *begun_node_at(begun_replay *r, int32_t node) { return &r->nodes[r->slot * r->graph->node_count + node]; }

static inline int32_t begun_born(begun_replay *r, tl_use use, int32_t index, uint64_t bytes) {
    int is_host = use == TL_USE_HOST, of_node = use == TL_USE_SAVED || use == TL_USE_SCRATCH;
    begun_life *l = &r->lives[r->count];
    if (!bytes) return -1;
    assert_true(r->count < BEGUN_LIVES);
    l->bytes = bytes;
    l->use = use;
    l->node = of_node ? index : r->graph->outputs[index].node;
    l->output = of_node ? 0 : r->graph->outputs[index].output;
    l->slot = r->slot;
    l->first = r->step < 0 ? 0 : r->step;
    l->end = r->plan->step_count;
    r->live[is_host] += bytes;
    if (r->live[is_host] > r->peak[is_host]) r->peak[is_host] = r->live[is_host];
    return r->count++;
}

// after: 1 = at the end of what the step does.
static inline void begun_dies(begun_replay *r, int32_t *life, int after) {
    if (*life >= 0) {
        begun_life *l = &r->lives[*life];
        l->end = r->step + after;
        r->live[l->use == TL_USE_HOST] -= l->bytes;
    }
    *life = -1;
}

static inline int begun_readable(begun_replay *r, int32_t tensor) {
    return begun_at(r, tensor)->state == BEGUN_HERE || begun_at(r, tensor)->state == BEGUN_LEAVING;
}

// -- calls under way --

static inline begun_call *begun_call_of(begun_replay *r, int32_t node) {
    int32_t i;
    for (i = 0; i < r->call_count; i++)
        if (r->calls[i].node == node && r->calls[i].slot == r->slot) return &r->calls[i];
    return NULL;
}

// Whether a call under way reads a tensor of the present slot, or writes its gradient.
static inline int begun_is_held(begun_replay *r, int32_t tensor, int gradient) {
    const tl_graph *graph = r->graph;
    int32_t i, k;
    for (i = 0; i < r->call_count; i++) {
        const begun_call *call = &r->calls[i];
        const tl_node *node = &graph->nodes[call->node];
        if (call->slot != r->slot) continue;
        for (k = node->first_input; k < node->first_input + node->input_count; k++)
            if (graph->inputs[k].tensor == tensor && (gradient ? call->backward : !call->backward || graph->inputs[k].needed)) return 1;
        if (!gradient && call->backward && graph->outputs[tensor].node == call->node && graph->outputs[tensor].needed) return 1;
    }
    return 0;
}

static inline void begun_starts(begun_replay *r, int32_t node, int backward) {
    begun_call *call = &r->calls[r->call_count++];
    assert_true(r->call_count < BEGUN_CALLS);
    call->node = node;
    call->slot = r->slot;
    call->backward = backward;
    if (r->call_count > r->most_calls) r->most_calls = r->call_count;
}

// -- steps --

static inline void begun_forward(begun_replay *r, const tl_step *step) {
    const tl_graph *graph = r->graph;
    const tl_node *node = &graph->nodes[step->node];
    begun_node *state = begun_node_at(r, step->node);
    int saves = step->kind == TL_STEP_FORWARD_SAVE, inplace = step->kind == TL_STEP_FORWARD_INPLACE;
    int32_t i, missing = 0, first = node->first_output, last = first + node->output_count, twice[64], scratch, reads = 0, from = -1;
    assert_true(node->output_count <= 64);
    begun_need(r, !node->once || !state->ran);
    for (i = node->first_input; i < node->first_input + node->input_count; i++) begun_need(r, begun_readable(r, graph->inputs[i].tensor));
    for (i = first; i < last; i++) {
        begun_need(r, begun_at(r, i)->state != BEGUN_COMING && begun_at(r, i)->state != BEGUN_PACKED);
        missing += begun_at(r, i)->state == BEGUN_ABSENT;
    }
    begun_need(r, saves ? node->saved_bytes && !state->has_saved : missing > 0);
    if (step->begins) begun_need(r, missing == node->output_count && !node->fwork_bytes && !node->saved_bytes);
    if (inplace) {
        begun_need(r, node->inplace >= 0);
        if (r->is_broken) return;
        from = graph->inputs[node->first_input + node->inplace].tensor;
        for (i = node->first_input; i < node->first_input + node->input_count; i++) reads += graph->inputs[i].tensor == from;
        begun_need(r, reads == 1 && begun_at(r, from)->state == BEGUN_HERE && begun_at(r, first)->state == BEGUN_ABSENT);
        begun_need(r, !begun_is_held(r, from, 0));
    }
    if (r->is_broken) return;
    if (inplace) {      // the bytes change hands: nothing is allocated and nothing freed
        uint64_t bytes = graph->outputs[from].bytes;
        begun_dies(r, &begun_at(r, from)->life, 0);
        begun_at(r, from)->state = BEGUN_ABSENT;
        begun_at(r, first)->life = begun_born(r, TL_USE_OUTPUT, first, bytes);
        begun_at(r, first)->state = BEGUN_HERE;
    }
    for (i = first; i < last; i++) {
        twice[i - first] = -2;
        if (begun_at(r, i)->state != BEGUN_ABSENT) continue;
        begun_at(r, i)->life = begun_born(r, TL_USE_OUTPUT, i, graph->outputs[i].bytes);
        begun_at(r, i)->state = step->begins ? BEGUN_COMING : BEGUN_HERE;
        twice[i - first] = -1;
    }
    for (i = first; i < last; i++) {
        int again = twice[i - first] == -2 && missing && !(inplace && i == first);
        twice[i - first] = again ? begun_born(r, TL_USE_SECOND, i, graph->outputs[i].bytes) : -1;
    }
    if (saves) state->saved = begun_born(r, TL_USE_SAVED, step->node, node->saved_bytes);
    if (saves) state->has_saved = 1;
    scratch = begun_born(r, TL_USE_SCRATCH, step->node, saves ? node->swork_bytes : node->fwork_bytes);
    begun_dies(r, &scratch, 1);
    for (i = 0; i < node->output_count; i++) begun_dies(r, &twice[i], 1);
    if (step->begins) begun_starts(r, step->node, 0);
    r->forwards++;
    r->recomputed += state->ran;
    state->ran = 1;
}

static inline void begun_gradient(begun_replay *r, int32_t tensor) {
    const tl_graph *graph = r->graph;
    begun_tensor *t = begun_at(r, tensor);
    if (!graph->nodes[graph->outputs[tensor].node].has_grad) return;
    begun_need(r, !begun_is_held(r, tensor, 1));
    if (r->is_broken || t->has_gradient) return;
    t->has_gradient = 1;
    t->gradient = begun_born(r, TL_USE_GRADIENT, tensor, graph->outputs[tensor].bytes);
}

static inline void begun_backward_ends(begun_replay *r, int32_t id) {
    const tl_node *node = &r->graph->nodes[id];
    begun_node *state = begun_node_at(r, id);
    int32_t i;
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        begun_dies(r, &begun_at(r, i)->gradient, 1);
        begun_at(r, i)->has_gradient = 0;
    }
    if (state->has_saved) begun_dies(r, &state->saved, 1);
    state->has_saved = 0;
}

static inline void begun_backward(begun_replay *r, const tl_step *step) {
    const tl_graph *graph = r->graph;
    const tl_node *node = &graph->nodes[step->node];
    begun_node *state = begun_node_at(r, step->node);
    int32_t i, k, scratch, *next = &r->next[r->slot];
    begun_call *call;
    begun_need(r, !r->plan->inference && node->has_grad && !state->done && (state->ran || state->enters));
    begun_need(r, r->plan->any_order || *next == step->node);
    for (i = 0; i < graph->node_count; i++) {       // those that read it have ended their backward
        const tl_node *reader = &graph->nodes[i];
        call = begun_call_of(r, i);
        for (k = reader->first_input; k < reader->first_input + reader->input_count; k++)
            if (graph->outputs[graph->inputs[k].tensor].node == step->node && reader->has_grad)
                begun_need(r, begun_node_at(r, i)->done && !(call && call->backward));
    }
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        begun_need(r, !graph->inputs[i].needed || begun_readable(r, graph->inputs[i].tensor));
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        begun_need(r, !graph->outputs[i].needed || begun_readable(r, i));
    begun_need(r, !node->saved_bytes || state->has_saved);
    begun_need(r, !step->begins || (!node->saved_bytes && !node->bwork_bytes));
    if (r->is_broken) return;
    for (i = node->first_output; i < node->first_output + node->output_count; i++) begun_gradient(r, i);
    for (i = node->first_input; i < node->first_input + node->input_count; i++) begun_gradient(r, graph->inputs[i].tensor);
    if (r->is_broken) return;
    scratch = begun_born(r, TL_USE_SCRATCH, step->node, node->bwork_bytes);
    begun_dies(r, &scratch, 1);
    if (step->begins) begun_starts(r, step->node, 1);
    else begun_backward_ends(r, step->node);
    state->done = 1;
    r->backwards++;
    while (*next >= 0 && (begun_node_at(r, *next)->done || !graph->nodes[*next].has_grad)) --*next;
}

static inline void begun_ends(begun_replay *r, const tl_step *step) {
    const tl_node *node = &r->graph->nodes[step->node];
    begun_call *call = begun_call_of(r, step->node);
    int32_t i;
    begun_need(r, step->kind == TL_STEP_WAIT && step->output == TL_ALL_OUTPUTS);
    if (r->is_broken) return;
    if (call->backward) begun_backward_ends(r, step->node);
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (!call->backward) begun_at(r, i)->state = BEGUN_HERE;
    *call = r->calls[--r->call_count];
}

// One tensor. Returns whether the step acts on it.
static inline int begun_move(begun_replay *r, const tl_step *step, int32_t tensor) {
    begun_tensor *t = begun_at(r, tensor);
    uint64_t bytes = r->graph->outputs[tensor].bytes;
    int is_moving = t->state == BEGUN_LEAVING || t->state == BEGUN_COMING, acts = 0;
    switch (step->kind) {
    case TL_STEP_DROP: acts = t->state == BEGUN_HERE || t->state == BEGUN_PACKED; break;
    case TL_STEP_SPILL: case TL_STEP_COMPRESS: acts = t->state == BEGUN_HERE; break;
    case TL_STEP_FETCH: acts = t->state == BEGUN_ABSENT; break;
    case TL_STEP_WAIT: acts = is_moving; break;
    case TL_STEP_EXPAND: acts = t->state == BEGUN_PACKED; break;
    default: acts = t->on_host; break;
    }
    if (!acts) return 0;
    if (step->kind != TL_STEP_DROP_HOST) begun_need(r, !begun_is_held(r, tensor, 0));
    if (step->kind == TL_STEP_SPILL) begun_need(r, !t->on_host);
    if (step->kind == TL_STEP_FETCH) begun_need(r, t->on_host);
    if (step->kind == TL_STEP_DROP_HOST) begun_need(r, !is_moving);
    if (r->is_broken) return 1;
    switch (step->kind) {
    case TL_STEP_DROP:
        begun_dies(r, t->state == BEGUN_PACKED ? &t->packed : &t->life, 0);
        t->state = BEGUN_ABSENT;
        break;
    case TL_STEP_SPILL:
        t->host = begun_born(r, TL_USE_HOST, tensor, bytes);
        t->on_host = 1;
        t->state = BEGUN_LEAVING;
        break;
    case TL_STEP_FETCH:
        t->life = begun_born(r, TL_USE_OUTPUT, tensor, bytes);
        t->state = BEGUN_COMING;
        break;
    case TL_STEP_WAIT:
        if (t->state == BEGUN_LEAVING) begun_dies(r, &t->life, 0);
        t->state = t->state == BEGUN_LEAVING ? BEGUN_ABSENT : BEGUN_HERE;
        break;
    case TL_STEP_COMPRESS:
        t->packed = begun_born(r, TL_USE_COMPRESSED, tensor, tl_find_codec_bytes((tl_codec)step->codec, bytes));
        begun_dies(r, &t->life, 1);
        t->state = BEGUN_PACKED;
        break;
    case TL_STEP_EXPAND:
        t->life = begun_born(r, TL_USE_OUTPUT, tensor, bytes);
        begun_dies(r, &t->packed, 1);
        t->state = BEGUN_HERE;
        break;
    default:
        begun_dies(r, &t->host, 0);
        t->on_host = 0;
        break;
    }
    return 1;
}

static inline void begun_step(begun_replay *r, const tl_step *step) {
    const tl_graph *graph = r->graph;
    int32_t i, acted = 0, slots = r->plan->slot_count ? r->plan->slot_count : 1;
    int computes = step->kind <= TL_STEP_BACKWARD, of_node = computes || step->kind == TL_STEP_DROP_SAVED;
    begun_need(r, step->kind < TL_STEP_COUNT && step->slot < slots && step->node >= 0 && step->node < graph->node_count);
    begun_need(r, !step->begins || (step->begins == 1 && (step->kind == TL_STEP_FORWARD || step->kind == TL_STEP_BACKWARD)));
    begun_need(r, step->kind == TL_STEP_COMPRESS ? step->codec > TL_CODEC_NONE && step->codec < TL_CODEC_COUNT : step->codec == TL_CODEC_NONE);
    if (r->is_broken) return;
    begun_need(r, !graph->nodes[step->node].is_input && step->output >= -1);
    begun_need(r, of_node ? step->output == -1 : step->output < graph->nodes[step->node].output_count);
    if (r->is_broken) return;
    r->slot = step->slot;
    if (begun_call_of(r, step->node)) { begun_ends(r, step); return; }
    if (step->kind == TL_STEP_BACKWARD) { begun_backward(r, step); return; }
    if (computes) { begun_forward(r, step); return; }
    if (of_node) {
        begun_need(r, begun_node_at(r, step->node)->has_saved);
        begun_dies(r, &begun_node_at(r, step->node)->saved, 0);
        begun_node_at(r, step->node)->has_saved = 0;
        return;
    }
    for (i = 0; i < graph->nodes[step->node].output_count && !r->is_broken; i++)
        if (step->output < 0 || step->output == i) acted += begun_move(r, step, graph->nodes[step->node].first_output + i);
    begun_need(r, acted || (step->kind == TL_STEP_DROP_HOST && step->output < 0));
}

// -- the start and the end --

static inline void begun_enter(begun_replay *r, const tl_entry *entry) {
    const tl_graph *graph = r->graph;
    int32_t slots = r->plan->slot_count ? r->plan->slot_count : 1, tensor, i, here = 0;
    begun_need(r, entry->node >= 0 && entry->node < graph->node_count && entry->slot >= 0 && entry->slot < slots);
    if (r->is_broken) return;
    begun_need(r, !graph->nodes[entry->node].is_input && entry->output >= 0 && entry->output < graph->nodes[entry->node].output_count);
    if (r->is_broken) return;
    r->slot = entry->slot;
    tensor = graph->nodes[entry->node].first_output + entry->output;
    begun_need(r, begun_at(r, tensor)->state == BEGUN_ABSENT);
    begun_at(r, tensor)->state = BEGUN_HERE;
    begun_at(r, tensor)->life = begun_born(r, TL_USE_OUTPUT, tensor, graph->outputs[tensor].bytes);
    for (i = 0; i < graph->nodes[entry->node].output_count; i++)
        here += begun_at(r, graph->nodes[entry->node].first_output + i)->state != BEGUN_ABSENT;
    begun_node_at(r, entry->node)->enters = here == graph->nodes[entry->node].output_count;
}

static inline void begun_end_slot(begun_replay *r) {
    const tl_graph *graph = r->graph;
    int32_t i, k, n;
    int any_keep = 0;
    for (i = 0; i < graph->node_count; i++) any_keep |= graph->nodes[i].keep;
    for (i = 0; i < graph->node_count; i++) {
        const tl_node *node = &graph->nodes[i];
        int is_result = node->keep || (r->plan->inference && !any_keep && !node->is_input);
        begun_need(r, r->plan->inference || !node->has_grad || begun_node_at(r, i)->done);
        for (k = 0; k < graph->input_count && !node->keep; k++)
            if (graph->outputs[graph->inputs[k].tensor].node == i) is_result = 0;
        for (n = node->first_output; n < node->first_output + node->output_count; n++)
            begun_need(r, !is_result || begun_readable(r, n));
    }
}

// Replay a plan. Returns the step that breaks a rule, step_count for the end; -1 = the plan is valid.
static inline int32_t begun_replay_plan(begun_replay *r, const tl_graph *graph, const tl_plan *plan) {
    int32_t slots = plan->slot_count ? plan->slot_count : 1, i;
    assert_true(slots <= 8 && slots * graph->tensor_count <= BEGUN_TENSORS && slots * graph->node_count <= BEGUN_NODES);
    memset(r, 0, offsetof(begun_replay, lives));
    memset(&r->count, 0, sizeof *r - offsetof(begun_replay, count));
    r->graph = graph;
    r->plan = plan;
    for (i = 0; i < slots * graph->tensor_count; i++)
        r->tensors[i].life = r->tensors[i].host = r->tensors[i].gradient = r->tensors[i].packed = -1;
    for (i = 0; i < slots * graph->node_count; i++) r->nodes[i].saved = -1;
    r->step = -1;
    for (r->slot = 0; r->slot < slots; r->slot++) {
        r->next[r->slot] = -1;
        for (i = 0; i < graph->node_count; i++) if (graph->nodes[i].has_grad) r->next[r->slot] = i;
        for (i = 0; i < graph->tensor_count; i++) {
            if (!graph->nodes[graph->outputs[i].node].is_input) continue;
            begun_at(r, i)->state = BEGUN_HERE;
            begun_at(r, i)->life = begun_born(r, TL_USE_INPUT, i, graph->outputs[i].bytes);
        }
    }
    for (i = 0; i < plan->entry_count && !r->is_broken; i++) begun_enter(r, &plan->entry[i]);
    if (r->is_broken) return 0;
    for (r->step = 0; r->step < plan->step_count; r->step++) {
        begun_step(r, &plan->steps[r->step]);
        if (r->is_broken) return r->step;
    }
    begun_need(r, !r->call_count);
    for (r->slot = 0; r->slot < slots; r->slot++) begun_end_slot(r);
    return r->is_broken ? plan->step_count : -1;
}

#endif
