#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- ranks: copies to the host --
//
//     events     F@0    F@1    F@2    B@0    F@3    B@1
//     a of @1           F a O  .. W          L ..   W  DH  B a
//
// A tensor that a micro-batch leaves for long may wait on the host. The copy begins behind the last step that
// touches it; the device's bytes are free at the end of the event after that, come back from the start of the
// event before the one that reads them, and the host's are free when they are there. So copies run beside the
// calls of one event at least. Tight ones end with the event itself, and come back from the start of the one
// that reads: beside the calls behind, and before, those that touch the tensor. Where that leaves no event
// between them, nothing is copied.

typedef struct tli_copies {
    tl_env         *env;
    const tl_graph *graph;
    const uint8_t  *wanted;        // [tensors] 1 = may be copied
    int32_t         beside;        // events beside which a copy runs: 1, or 0 = tight
    const tl_plan  *plan;          // interleaved
    const int32_t  *starts;        // [events + 1] the first step of each event
    int32_t        *touched;       // [slots x tensors] the last step that touches it, while it is resident; -1
    int32_t        *touched_in;    // [slots x tensors] the event of that step
    uint8_t        *begun;         // [slots x nodes] TL_STEP_BACKWARD = a gradient is under way, else 0
    tli_steps       added;
    uint64_t       *places;        // [added] before which step each goes, and in which order
    int32_t         place_capacity;
} tli_copies;

// The order of the steps that are added before the same step of the plan.
enum { TLI_COPY_OUT, TLI_COPY_OUT_ENDS, TLI_COPY_BACK, TLI_COPY_IS_BACK };

static void tli_add_copy_step(tli_copies *c, tl_step_kind kind, int32_t tensor, uint16_t slot, int32_t before,
                              int order) {
    const tl_node_output *output = &c->graph->outputs[tensor];
    tl_step step = tli_step_of(kind, output->node, output->output);
    void *places = c->places;
    int32_t count = c->added.count;
    step.slot = slot;
    if (!tli_grow(c->env, &places, &c->place_capacity, count, (int64_t)count + 1, sizeof *c->places)) {
        c->added.failed = 1;
        return;
    }
    c->places = (uint64_t *)places;
    c->places[count] = (uint64_t)(uint32_t)before << 32 | (uint64_t)order << 30 | (uint32_t)count;
    tli_add_step(&c->added, step);
}

// A step of an event touches a tensor: copy it if it was idle for long enough.
static void tli_touch_tensor(tli_copies *c, int32_t tensor, uint16_t slot, int32_t step, int32_t event) {
    size_t at = (size_t)slot * (size_t)c->graph->tensor_count + (size_t)tensor;
    int32_t last = c->touched[at], last_event = c->touched_in[at];
    c->touched[at] = step;
    c->touched_in[at] = event;
    if (last < 0 || event - last_event < 2 + 2 * c->beside || !c->wanted[tensor]) return;
    tli_add_copy_step(c, TL_STEP_SPILL, tensor, slot, last + 1, TLI_COPY_OUT);
    tli_add_copy_step(c, TL_STEP_WAIT, tensor, slot, c->starts[last_event + 1 + c->beside], TLI_COPY_OUT_ENDS);
    tli_add_copy_step(c, TL_STEP_FETCH, tensor, slot, c->starts[event - c->beside], TLI_COPY_BACK);
    tli_add_copy_step(c, TL_STEP_WAIT, tensor, slot, step, TLI_COPY_IS_BACK);
    tli_add_copy_step(c, TL_STEP_DROP_HOST, tensor, slot, step, TLI_COPY_IS_BACK);
}

static void tli_forget_tensor(tli_copies *c, int32_t tensor, uint16_t slot) {
    c->touched[(size_t)slot * (size_t)c->graph->tensor_count + (size_t)tensor] = -1;
}

// What a message under way reads or writes stays where it is.
static void tli_forget_operands(tli_copies *c, const tl_step *step) {
    const tl_node *node = &c->graph->nodes[step->node];
    int32_t k;
    for (k = node->first_input; k < node->first_input + node->input_count; k++)
        tli_forget_tensor(c, c->graph->inputs[k].tensor, step->slot);
    for (k = node->first_output; k < node->first_output + node->output_count; k++)
        tli_forget_tensor(c, k, step->slot);
}

// The operands of a call: all inputs and outputs forward, what is needed backward.
static void tli_touch_operands(tli_copies *c, const tl_step *step, int32_t index, int32_t event, int backward) {
    const tl_graph *graph = c->graph;
    const tl_node *node = &graph->nodes[step->node];
    int32_t k;
    for (k = node->first_input; k < node->first_input + node->input_count; k++)
        if (!backward || graph->inputs[k].needed)
            tli_touch_tensor(c, graph->inputs[k].tensor, step->slot, index, event);
    for (k = node->first_output; k < node->first_output + node->output_count; k++)
        if (!backward || graph->outputs[k].needed) tli_touch_tensor(c, k, step->slot, index, event);
    if (step->kind == TL_STEP_FORWARD_INPLACE)
        tli_forget_tensor(c, graph->inputs[node->first_input + node->inplace].tensor, step->slot);
}

static void tli_touch_step(tli_copies *c, const tl_step *step, int32_t index, int32_t event) {
    const tl_node *node = &c->graph->nodes[step->node];
    uint8_t *begun = &c->begun[(size_t)step->slot * (size_t)c->graph->node_count + (size_t)step->node];
    int32_t k;
    switch ((tl_step_kind)step->kind) {
    case TL_STEP_FORWARD:
    case TL_STEP_FORWARD_INPLACE:
    case TL_STEP_FORWARD_SAVE:
        tli_touch_operands(c, step, index, event, 0);
        if (step->begins) tli_forget_operands(c, step);
        return;
    case TL_STEP_BACKWARD:
        tli_touch_operands(c, step, index, event, 1);
        if (step->begins) *begun = TL_STEP_BACKWARD;
        return;
    case TL_STEP_WAIT:      // of a message
        tli_touch_operands(c, step, index, event, *begun == TL_STEP_BACKWARD);
        *begun = 0;
        return;
    case TL_STEP_DROP:
        for (k = 0; k < node->output_count; k++)
            if (step->output == TL_ALL_OUTPUTS || step->output == k)
                tli_forget_tensor(c, node->first_output + k, step->slot);
        return;
    case TL_STEP_DROP_SAVED:
    case TL_STEP_SPILL:
    case TL_STEP_FETCH:
    case TL_STEP_DROP_HOST:
    case TL_STEP_COMPRESS:
    case TL_STEP_EXPAND:
    case TL_STEP_COUNT: return;
    }
}

// Merge what was added with the steps of the plan.
static void tli_merge_copies(tli_copies *c, tli_steps *merged) {
    int32_t i, at = 0;
    tli_sort_u64(c->places, (size_t)c->added.count);
    for (i = 0; i <= c->plan->step_count; i++) {
        for (; at < c->added.count && c->places[at] >> 32 == (uint64_t)i; at++)
            tli_add_step(merged, c->added.steps[c->places[at] & 0x3FFFFFFF]);
        if (i < c->plan->step_count) tli_add_step(merged, c->plan->steps[i]);
    }
}

// Add copies of the tensors that are wanted to a interleaved plan. starts: [event_count + 1] of its events.
static tl_result tli_add_copies(tl_env *env, const tl_graph *graph, const uint8_t *wanted, int32_t beside,
                                const int32_t *starts, int32_t event_count, tl_plan *plan) {
    uint64_t slot_total = (uint64_t)plan->slot_count, tensors = slot_total * (uint64_t)graph->tensor_count, i;
    uint64_t nodes = slot_total * (uint64_t)graph->node_count;
    int32_t event, k;
    tli_steps merged = tli_steps_of(env);
    tli_copies c;
    tl_result result = TL_OK;
    tl_plan copied;
    tli_zero(&c, sizeof c);
    c.env = env;
    c.graph = graph;
    c.wanted = wanted;
    c.beside = beside;
    c.plan = plan;
    c.starts = starts;
    c.added = tli_steps_of(env);
    c.touched = (int32_t *)tli_alloc_array(env, 2 * tensors, sizeof *c.touched);
    c.begun = (uint8_t *)tli_alloc_array(env, nodes, 1);
    if (c.touched && c.begun) {
        c.touched_in = c.touched + tensors;
        for (i = 0; i < tensors; i++) c.touched[i] = -1;
        for (event = 0; event < event_count; event++)
            for (k = starts[event]; k < starts[event + 1]; k++) tli_touch_step(&c, &plan->steps[k], k, event);
        tli_merge_copies(&c, &merged);
    }
    merged.failed |= c.added.failed || !c.touched || !c.begun;
    copied = *plan;
    result = tli_take_steps(&merged, TLI_IN(COMPILE_RANKS), &copied);
    if (!result) {
        tl_free_plan(env, plan);
        *plan = copied;
    }
    tli_release(env, c.added.steps);
    tli_release(env, c.places);
    tli_release(env, c.touched);
    tli_release(env, c.begun);
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
