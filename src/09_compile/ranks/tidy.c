#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- ranks: bodies without what they do not need --
//
//     joined    F 1  F 2  F send  F 3 | B send  F 2  B 3  D 2  D 1  S 1  B 1
//     tidy      F 1  F 2  F send  D 2  D 1  F 3 | B send  B 3  S 1  B 1
//
// A body that was joined from two plans makes again what the second plan had dropped, read or not, and holds
// what was dropped late. Here forwards that run again for nothing are left out, and every drop stands behind
// the last step that makes or reads its tensor. A send has ended by then, so a rank may wait for it: bodies
// are tried as they are first.

typedef struct tli_tidy {
    const tl_graph *graph;
    const tl_step  *steps;      // [count]
    int32_t  count;
    uint8_t *wanted;            // [tensors + nodes] a later step reads it; of a node its saved bytes
    uint8_t *there;             // [tensors + nodes] is resident
    uint8_t *ran;               // [nodes]
    uint8_t *again;             // [steps] 1 = a forward that has run before
    uint8_t *is_out;            // [steps] 1 = left out
    int32_t *touched;           // [tensors + nodes] the last step that makes or reads it; -1 = none
    int32_t *first_drop, *next_drop;    // [steps] drops behind each step, the last one first; -1 = end
} tli_tidy;

// The outputs that a step acts on: from there to before *end.
static int32_t tli_tidy_outputs(const tli_tidy *t, const tl_step *step, int32_t *end) {
    const tl_node *node = &t->graph->nodes[step->node];
    int all = step->output == TL_ALL_OUTPUTS;
    *end = node->first_output + (all ? node->output_count : step->output + 1);
    return node->first_output + (all ? 0 : step->output);
}

// Whether something that a step makes is read later. One that runs in place drops its input as well.
static int tli_tidy_serves(const tli_tidy *t, const tl_step *step) {
    int32_t end, k = tli_tidy_outputs(t, step, &end), serves = step->kind == TL_STEP_FORWARD_INPLACE;
    for (; k < end; k++) serves |= t->wanted[k];
    return serves || (step->kind == TL_STEP_FORWARD_SAVE && t->wanted[t->graph->tensor_count + step->node]);
}

// What a call reads is wanted before it, what it makes is not. Of several outputs some may be there already.
static void tli_tidy_want(tli_tidy *t, const tl_step *step) {
    const tl_graph *graph = t->graph;
    const tl_node *node = &graph->nodes[step->node];
    int is_backward = step->kind == TL_STEP_BACKWARD;
    uint8_t *saved = &t->wanted[graph->tensor_count + step->node];
    int32_t k;
    for (k = node->first_output; k < node->first_output + node->output_count; k++) {
        if (is_backward) t->wanted[k] |= graph->outputs[k].needed;
        else if (node->output_count == 1 && step->kind != TL_STEP_FORWARD_SAVE) t->wanted[k] = 0;
    }
    if (is_backward) *saved = node->saved_bytes > 0;
    else if (step->kind == TL_STEP_FORWARD_SAVE) *saved = 0;
    for (k = node->first_input; k < node->first_input + node->input_count; k++)
        if (!is_backward || graph->inputs[k].needed) t->wanted[graph->inputs[k].tensor] = 1;
}

// Leave out forwards that run again and serve nothing.
static void tli_tidy_forwards(tli_tidy *t) {
    const tl_graph *graph = t->graph;
    int32_t i, k, end;
    for (i = 0; i < t->count; i++) {
        if (t->steps[i].kind >= TL_STEP_BACKWARD) continue;
        t->again[i] = t->ran[t->steps[i].node];
        t->ran[t->steps[i].node] = 1;
    }
    for (k = 0; k < graph->tensor_count; k++) t->wanted[k] = graph->nodes[graph->outputs[k].node].keep;
    for (i = t->count - 1; i >= 0; i--) {
        const tl_step *step = &t->steps[i];
        if (step->kind == TL_STEP_DROP)
            for (k = tli_tidy_outputs(t, step, &end); k < end; k++) t->wanted[k] = 0;
        else if (step->kind == TL_STEP_DROP_SAVED) t->wanted[graph->tensor_count + step->node] = 0;
        else if (t->again[i] && !tli_tidy_serves(t, step)) t->is_out[i] = 1;
        else tli_tidy_want(t, step);
    }
}

// Carry out a step; 0: it drops what is not there.
static int tli_tidy_act(tli_tidy *t, const tl_step *step) {
    const tl_node *node = &t->graph->nodes[step->node];
    uint8_t *saved = &t->there[t->graph->tensor_count + step->node];
    int32_t end, k = tli_tidy_outputs(t, step, &end);
    int acts = step->kind != TL_STEP_DROP && (step->kind != TL_STEP_DROP_SAVED || *saved);
    if (step->kind == TL_STEP_FORWARD_INPLACE)
        t->there[t->graph->inputs[node->first_input + node->inplace].tensor] = 0;
    for (; k < end && (step->kind < TL_STEP_BACKWARD || step->kind == TL_STEP_DROP); k++) {
        acts |= t->there[k];
        t->there[k] = step->kind != TL_STEP_DROP;
    }
    if (step->kind == TL_STEP_FORWARD_SAVE) *saved = 1;
    if (step->kind == TL_STEP_BACKWARD || step->kind == TL_STEP_DROP_SAVED) *saved = 0;
    return acts;
}

// Note what a call touches.
static void tli_tidy_touch(tli_tidy *t, int32_t index) {
    const tl_graph *graph = t->graph;
    const tl_step *step = &t->steps[index];
    const tl_node *node = &graph->nodes[step->node];
    int is_backward = step->kind == TL_STEP_BACKWARD;
    int32_t k;
    for (k = node->first_input; k < node->first_input + node->input_count; k++)
        if (!is_backward || graph->inputs[k].needed) t->touched[graph->inputs[k].tensor] = index;
    for (k = node->first_output; k < node->first_output + node->output_count; k++)
        if (!is_backward || graph->outputs[k].needed) t->touched[k] = index;
    t->touched[graph->tensor_count + step->node] = index;
}

// Find the step behind which a drop may stand.
static int32_t tli_tidy_place(const tli_tidy *t, int32_t index) {
    const tl_step *step = &t->steps[index];
    int32_t end, k = tli_tidy_outputs(t, step, &end), place = -1;
    if (step->kind == TL_STEP_DROP_SAVED) return t->touched[t->graph->tensor_count + step->node];
    for (; k < end; k++) if (t->touched[k] > place) place = t->touched[k];
    return place;
}

static void tli_tidy_drops(tli_tidy *t) {
    int32_t i, place;
    for (i = 0; i < t->graph->tensor_count + t->graph->node_count; i++) t->touched[i] = -1;
    for (i = 0; i < t->count; i++) {
        t->first_drop[i] = -1;
        if (t->is_out[i] || (t->is_out[i] = (uint8_t)!tli_tidy_act(t, &t->steps[i])) != 0) continue;
        if (t->steps[i].kind <= TL_STEP_BACKWARD) {
            tli_tidy_touch(t, i);
            continue;
        }
        place = tli_tidy_place(t, i);
        if (place < 0) continue;        // of what no step has made: it stays where it is
        t->is_out[i] = 1;
        t->next_drop[i] = t->first_drop[place];
        t->first_drop[place] = i;
    }
}

// Write the steps in their new order. from: the body that had them.
static void tli_tidy_write(const tli_tidy *t, const tli_body *from, tli_body *body) {
    int32_t i, drop, count = 0, part = 0;
    for (i = 0; i < t->count; i++) {
        while (part < body->part_count && from->ends[part] <= i) body->ends[part++] = count;
        if (!t->is_out[i]) body->steps[count++] = t->steps[i];
        for (drop = t->first_drop[i]; drop >= 0; drop = t->next_drop[drop])
            body->steps[count++] = t->steps[drop];
    }
    while (part < body->part_count) body->ends[part++] = count;
    body->step_count = count;
}

// Make a body of the same calls without those that serve nothing, with drops as early as they may be. Release
// it, also after an error.
static tl_result tli_tidy_body(tl_env *env, const tl_graph *graph, const tli_body *from, tli_body *body) {
    uint64_t items = (uint64_t)graph->tensor_count + (uint64_t)graph->node_count;
    uint64_t steps = (uint64_t)from->step_count, nodes = (uint64_t)graph->node_count;
    int32_t *numbers = (int32_t *)tli_alloc_array(env, items + 2 * steps, sizeof *numbers);
    tli_tidy t;
    int is_there;
    tli_zero(&t, sizeof t);
    tli_zero(body, sizeof *body);
    t.graph = graph;
    t.steps = from->steps;
    t.count = from->step_count;
    t.wanted = (uint8_t *)tli_alloc_array(env, 2 * items + nodes + 2 * steps, 1);
    body->part_count = from->part_count;
    body->steps = (tl_step *)tli_alloc_array(env, steps + 1, sizeof *body->steps);
    body->ends = (int32_t *)tli_alloc_array(env, (uint64_t)from->part_count, sizeof *body->ends);
    is_there = body->steps && body->ends && numbers && t.wanted;
    if (is_there) {
        t.there = t.wanted + items;
        t.ran = t.there + items;
        t.again = t.ran + nodes;
        t.is_out = t.again + steps;
        t.touched = numbers;
        t.first_drop = numbers + items;
        t.next_drop = t.first_drop + steps;
        tli_tidy_forwards(&t);
        tli_tidy_drops(&t);
        tli_tidy_write(&t, from, body);
    }
    tli_release(env, t.wanted);
    tli_release(env, numbers);
    return is_there ? TL_OK : tli_fail_ranks(env);
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
