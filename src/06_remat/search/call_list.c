#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- replay: what a list of calls takes, and its steps --
//
//     calls    F1 F2 F3 B3 F2 B2 B1      From the end to the start: an item is held before a call if that call
//     item 2      m--u     m--u          or one after it uses it before it is made again. So neither the peak
//                       <---------       nor the steps need the sequence of the part above, and a list may be
//                                        much longer than what fits in memory as a sequence.
//
// A list has no fetches from a host.

typedef struct tli_replay {
    const tli_search_problem *p;
    uint8_t   *is_held;    // [items] 1 = used again before it is made again
    int64_t    live;       // bytes of graph inputs and of what is held
    int64_t    gradients;  // live after the last backward before the call
    int64_t    peak;
    uint64_t   cost;       // of forwards
    int32_t    step_count;
    tli_steps *steps;      // gets the steps from the last to the first; NULL = they are only counted
} tli_replay;

// The bytes of the gradients that are live after the backward of the first node from `id` on that has one; 0 =
// there is none.
static int64_t tli_replay_gradients(const tli_search_problem *p, int32_t id) {
    while (id < p->node_count && !p->graph->nodes[id].has_grad) id++;
    return p->inference || id == p->node_count ? 0 : p->gradient_bytes[id];
}

// The input that a forward which saves nothing overwrites: one that nothing uses later; -1 = none.
static int32_t tli_replay_overwritten(const tli_replay *r, int32_t id) {
    const tl_graph *graph = r->p->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t input, i, reads = 0;
    if (node->inplace < 0) return -1;
    input = graph->inputs[node->first_input + node->inplace].tensor;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        reads += graph->inputs[i].tensor == input;
    return reads == 1 && !r->is_held[input] && !graph->nodes[graph->outputs[input].node].is_input ? input : -1;
}

static void tli_replay_add_step(tli_replay *r, tl_step_kind kind, int32_t node, int32_t output) {
    r->step_count++;
    if (r->steps) tli_add_step(r->steps, tli_step_of(kind, node, output));
}

// Hold what a call uses, and no longer what it makes.
static void tli_replay_touch(tli_replay *r, int32_t call) {
    const tli_search_problem *p = r->p;
    int32_t k;
    for (k = p->first_touch[call]; k < p->first_touch[call + 1]; k++) {
        int32_t item = p->touches[k].item;
        if (r->is_held[item] == p->touches[k].is_use) continue;
        r->is_held[item] = p->touches[k].is_use;
        r->live += p->touches[k].is_use ? p->item_bytes[item] : -p->item_bytes[item];
    }
}

static void tli_replay_call(tli_replay *r, int32_t call) {
    const tli_search_problem *p = r->p;
    const tl_graph *graph = p->graph;
    tl_step_kind kind = call % 2 ? TL_STEP_BACKWARD : TL_STEP_FORWARD;
    int32_t id = call / 2, k, over = -1;
    int64_t own = p->call_bytes[call];
    if (kind == TL_STEP_FORWARD && call < tli_search_end_call(p)) {
        own += r->gradients;
        r->cost += graph->nodes[id].fwd_cost;
        if (r->is_held[tli_search_saved_item(p, id)]) {
            kind = TL_STEP_FORWARD_SAVE;
            own += tli_search_save_bytes(p, id);
        } else if ((over = tli_replay_overwritten(r, id)) >= 0) {
            kind = TL_STEP_FORWARD_INPLACE;
            own -= p->item_bytes[graph->nodes[id].first_output];
        }
    }
    for (k = p->first_touch[call]; k < p->first_touch[call + 1] && call < tli_search_end_call(p); k++) {
        int32_t item = p->touches[k].item;
        if (item >= graph->tensor_count || item == over || r->is_held[item]) continue;
        if (p->settled_by[item] == call) continue;
        tli_replay_add_step(r, TL_STEP_DROP, graph->outputs[item].node, graph->outputs[item].output);
    }
    if (call < tli_search_end_call(p)) tli_replay_add_step(r, kind, id, TL_ALL_OUTPUTS);
    tli_replay_touch(r, call);
    if (kind == TL_STEP_BACKWARD) r->gradients = tli_replay_gradients(p, id + 1);
    if (r->live + own > r->peak) r->peak = r->live + own;
}

// Replay a list of calls. The steps are in r->steps from the last to the first, if it is given. 0 = no memory.
static int tli_replay_run(const tli_search_problem *p, const tli_search_calls *calls, tli_steps *steps,
                          tli_replay *r) {
    int32_t i;
    tli_zero(r, sizeof *r);
    r->p = p;
    r->steps = steps;
    r->live = p->input_bytes;
    r->gradients = tli_replay_gradients(p, 0);
    r->is_held = (uint8_t *)tli_alloc_array(p->env, (uint64_t)p->item_count, 1);
    if (!r->is_held) return 0;
    for (i = calls->count; i-- > 0;) tli_replay_call(r, calls->calls[i]);
    tli_release(p->env, r->is_held);
    return !steps || !steps->failed;
}

// What a list of calls takes.
typedef struct tli_replay_peak { int64_t bytes; uint64_t cost; } tli_replay_peak;

// Find the peak of a list of calls and the cost of its forwards. 0 = no memory.
static int tli_replay_find_peak(const tli_search_problem *p, const tli_search_calls *calls,
                                tli_replay_peak *peak, uint64_t *work) {
    tli_replay replay;
    if (!tli_replay_run(p, calls, NULL, &replay)) return 0;
    peak->bytes = replay.peak;
    peak->cost = replay.cost;
    *work += 6 * (uint64_t)calls->count + (uint64_t)p->item_count / 8;
    return 1;
}

// The steps of a list of calls, in an array of their number. 0 = no memory: the list is empty.
static int tli_replay_steps(const tli_search_problem *p, const tli_search_calls *calls, tli_steps *steps) {
    tli_replay replay;
    *steps = tli_steps_of(p->env);
    if (!tli_replay_run(p, calls, NULL, &replay)) return 0;
    steps->capacity = replay.step_count;
    steps->steps = (tl_step *)tli_alloc_array(p->env, (uint64_t)steps->capacity, sizeof *steps->steps);
    if (steps->steps && tli_replay_run(p, calls, steps, &replay)) {
        tli_reverse_steps(steps);
        return 1;
    }
    tli_release(p->env, steps->steps);
    tli_zero(steps, sizeof *steps);
    return 0;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
