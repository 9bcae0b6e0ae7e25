#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// Plans made in one pass, without a search: keep all, a given kept set, and Revolve's schedule for
// chains of equal layers; and the text form of schedules. Keep all and kept sets first list the
// calls (forwards and backwards), then put each drop right after the last use of its tensor.

#if !defined(TL_NO_PLANNERS) || !defined(TL_NO_ONLINE)
// -- binomial numbers of Revolve --
//
// b(c, r) = C(c+r, c) is the length of the longest chain that c checkpoints reverse with at most r
// forwards of any layer.

// b(c, r) from b(c, r-1) = last; UINT64_MAX on overflow.
static uint64_t tli_next_binomial(uint64_t last, uint64_t c, uint64_t r) {
    uint64_t whole, part, next;
    if (!tli_mul_u64(last / r, c + r, &whole) || !tli_mul_u64(last % r, c + r, &part)) return UINT64_MAX;
    return tli_add_u64(whole, part / r, &next) ? next : UINT64_MAX;
}

// The number m of layers to advance before the next checkpoint, for n > 1 layers and c > 1
// checkpoints. With the r for which b(c, r-1) < n <= b(c, r), every m with b(c, r-2) <= m <= b(c, r-1)
// and b(c-1, r-1) <= n-m <= b(c-1, r) is optimal; this returns the largest.
static int32_t tli_split_chain(int32_t layer_count, int32_t slot_count) {
    uint64_t n = (uint64_t)layer_count, c = (uint64_t)(slot_count < layer_count ? slot_count : layer_count);
    uint64_t r = 1, b = 1, next, rest;
    for (; (next = tli_next_binomial(b, c, r)) < n; r++) b = next;
    rest = b * c / (c + r - 1);  // b(c-1, r-1)
    return (int32_t)(b < n - rest ? b : n - rest);
}

// -- checkpoints at an interval --
//
// The number of a node is its layer or, where it has none, its place in the listing; a checkpoint is a node
// whose number the interval divides. Each checkpoint ends a span of the listing, and the listing ends the last:
//
//     input 1 2 3 | 4 5 6 | 7 8       interval 3: 3 and 6 are checkpoints
//
// A tensor that is read in another span than its own crosses. Where a backward needs one of an earlier span,
// because a skip leads past the checkpoint, forwards run there in passing: what crosses stays, the rest is
// dropped again until its own span is reversed. So one backward does not fill the memory with all spans.

static int32_t tli_checkpoint_number(const tl_graph *graph, int32_t id) {
    return graph->nodes[id].layer >= 0 ? graph->nodes[id].layer : id;
}

static int tli_is_checkpoint(const tl_graph *graph, int32_t id, uint64_t interval) {
    return !graph->nodes[id].is_input && (uint64_t)tli_checkpoint_number(graph, id) % interval == 0;
}

typedef struct tli_spans {
    int32_t *of_node;  // [node_count] number of its span
    uint8_t *crosses;  // [tensor_count] 1 = read in another span than that of its node
    int32_t  any;      // 1 = one that is neither a graph input's nor a checkpoint's crosses
} tli_spans;

static void tli_free_spans(tl_env *env, tli_spans *spans) {
    tli_release(env, spans->of_node);
    tli_release(env, spans->crosses);
    tli_zero(spans, sizeof *spans);
}

// Release with tli_free_spans. 0 = no memory.
static int tli_init_spans(tl_env *env, const tl_graph *graph, uint64_t interval, tli_spans *spans) {
    int32_t id, i, span = 0;
    spans->of_node = (int32_t *)tli_alloc_array(env, (uint64_t)graph->node_count, sizeof *spans->of_node);
    spans->crosses = (uint8_t *)tli_alloc_array(env, (uint64_t)graph->tensor_count, 1);
    spans->any = 0;
    if (!spans->of_node || !spans->crosses) {
        tli_free_spans(env, spans);
        return 0;
    }
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        spans->of_node[id] = span;
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor, maker = graph->outputs[tensor].node;
            if (spans->of_node[maker] == span) continue;
            spans->crosses[tensor] = 1;
            spans->any |= !graph->nodes[maker].is_input && !tli_is_checkpoint(graph, maker, interval);
        }
        span += tli_is_checkpoint(graph, id, interval);
    }
    return 1;
}
#endif

#ifndef TL_ONLY_TABLES
// Mark the outputs that must be resident at the end: those of nodes marked keep; in inference, if
// no node is marked, those of nodes that no node reads.
static void tli_mark_results(const tl_graph *graph, int inference, uint8_t *wanted) {
    int32_t id, i;
    int any_keep = 0;
    for (id = 0; id < graph->node_count; id++) any_keep |= graph->nodes[id].keep;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        int is_result = node->keep || (inference && !any_keep && !node->is_input);
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            wanted[i] = (uint8_t)is_result;
    }
    if (!inference || any_keep) return;
    for (i = 0; i < graph->input_count; i++) {
        const tl_node *maker = &graph->nodes[graph->outputs[graph->inputs[i].tensor].node];
        tli_zero(wanted + maker->first_output, (size_t)maker->output_count);
    }
}
#endif

#ifndef TL_NO_PLANNERS
static void tli_add_tensor_step(tli_steps *list, const tl_graph *graph, tl_step_kind kind, int32_t tensor) {
    const tl_node_output *output = &graph->outputs[tensor];
    tli_add_step(list, tli_step_of(kind, output->node, output->output));
}

// -- drops --

// Make a plan of the collected steps and measure it. On error everything is released and *plan is
// zero.
static tl_result tli_finish_plan(tli_steps *list, tli_function function, const tl_graph *graph, int inference,
                                 tl_plan *plan) {
    tl_result result = tli_take_steps(list, function, plan);
    if (result) return result;
    plan->repeat_count = 1;
    plan->inference = inference;
    result = tli_measure(list->env, function, graph, NULL, 1, plan);
    if (result) tl_free_plan(list->env, plan);
    return result;
}

// Mark a tensor as read at this point of the backward walk. The first mark is the last read in
// time, so the drop is added here.
static void tli_want(tli_steps *list, const tl_graph *graph, int32_t tensor, uint8_t *wanted) {
    const tl_node *maker = &graph->nodes[graph->outputs[tensor].node];
    if (wanted[tensor] || (maker->is_input && !tli_dies(maker))) return;
    wanted[tensor] = 1;
    tli_add_tensor_step(list, graph, TL_STEP_DROP, tensor);
}

// Walk the calls from last to first and put each drop right after the last use of its tensor;
// `list` is filled in reverse order. The first first_count calls make all outputs of their nodes;
// later forwards make those without stays[]. stays is NULL if there are no later ones.
static void tli_place_drops(const tl_graph *graph, const tli_steps *calls, int32_t first_count,
                            const uint8_t *stays,
                            uint8_t *wanted, tli_steps *list) {
    int32_t at, i;
    for (at = calls->count; at-- > 0; tli_add_step(list, calls->steps[at])) {
        const tl_node *node = &graph->nodes[calls->steps[at].node];
        int is_backward = calls->steps[at].kind == TL_STEP_BACKWARD;
        for (i = node->first_output + node->output_count; i-- > node->first_output;) {
            int made = !is_backward && (at < first_count || !stays[i]), was = wanted[i];
            if (!is_backward || graph->outputs[i].needed) tli_want(list, graph, i, wanted);
            // An output made here is not live before this call. A kept output that is read later stays live
            // across it. If nothing reads it later, its first copy was dropped after its last use above.
            if (!is_backward) wanted[i] = (uint8_t)(made ? 0 : was);
        }
        for (i = node->first_input + node->input_count; i-- > node->first_input;)
            if (!is_backward || graph->inputs[i].needed)
                tli_want(list, graph, graph->inputs[i].tensor, wanted);
    }
}

static void tli_reverse_steps(tli_steps *list) {
    int32_t i;
    for (i = 0; i < list->count / 2; i++) {
        tl_step step = list->steps[i];
        list->steps[i] = list->steps[list->count - 1 - i];
        list->steps[list->count - 1 - i] = step;
    }
}

// Make the plan of a list of calls, which is released.
static tl_result tli_plan_calls(tli_steps *calls, int32_t first_count, const uint8_t *stays,
                                tli_function function,
                                const tl_graph *graph, int inference, tl_plan *plan) {
    tl_env *env = calls->env;
    tli_steps list = tli_steps_of(env);
    uint8_t *wanted = (uint8_t *)tli_alloc_array(env, (uint64_t)graph->tensor_count, 1);
    list.failed = calls->failed || !wanted;
    for (list.counts = !list.failed; !list.failed; list.counts = 0) {     // once to count, once to store
        int has_counted = list.counts;
        tli_mark_results(graph, inference, wanted);
        tli_place_drops(graph, calls, first_count, stays, wanted, &list);
        if (!has_counted) break;
        list.steps = (tl_step *)tli_alloc_array(env, (uint64_t)list.count, sizeof *list.steps);
        list.failed = !list.steps;
        list.capacity = list.count;
        list.count = 0;
    }
    if (!list.failed) tli_reverse_steps(&list);
    tli_release(env, calls->steps);
    tli_release(env, wanted);
    return tli_finish_plan(&list, function, graph, inference, plan);
}

static tl_step_kind tli_forward_kind(const tl_node *node, int saves) {
    return saves && node->saved_bytes ? TL_STEP_FORWARD_SAVE : TL_STEP_FORWARD;
}

TLI_IMPL tl_result tl_plan_keep_all(tl_env *env, const tl_graph *graph, int inference, tl_plan *plan) {
    tli_steps calls = tli_steps_of(env);
    int32_t id;
    tl_result result;
    TL_ASSERT(graph && plan);
    tli_zero(plan, sizeof *plan);
    result = tl_check_graph(env, graph);
    if (result) return result;
    for (id = 0; id < graph->node_count; id++) {
        tl_step_kind kind = tli_forward_kind(&graph->nodes[id], !inference);
        if (!graph->nodes[id].is_input) tli_add_step(&calls, tli_step_of(kind, id, TL_ALL_OUTPUTS));
    }
    for (id = graph->node_count; id-- > 0 && !inference;)
        if (graph->nodes[id].has_grad)
            tli_add_step(&calls, tli_step_of(TL_STEP_BACKWARD, id, TL_ALL_OUTPUTS));
    return tli_plan_calls(&calls, calls.count, NULL, TLI_IN(PLAN_KEEP_ALL), graph, inference != 0, plan);
}

// -- plan of a kept set --
//
// A tensor that is not kept is computed again when backward first needs it, and stays until its
// last reader has run. So the forward of each node runs at most twice.

typedef struct tli_remake {
    const tl_graph *graph;
    tli_steps       calls;
    uint8_t *stays, *here;     // [tensor_count] kept from the first pass on; resident now
    uint8_t *has_saved;        // [node_count] saved bytes are resident
    int32_t *stack, *cursors;  // [node_count] nodes to be run again, and the next input of each to look at
    const tli_spans *spans;    // of checkpoints at an interval; NULL = all that is made again stays
    int32_t *passed;           // [node_count] what was run in passing, with spans
    int32_t  passed_count, span;  // span: of the backward under way
} tli_remake;

static void tli_call_forward(tli_remake *r, int32_t id, int saves) {
    const tl_node *node = &r->graph->nodes[id];
    saves = saves && node->saved_bytes && !r->has_saved[id];
    if (saves) r->has_saved[id] = 1;
    tli_add_step(&r->calls, tli_step_of(tli_forward_kind(node, saves), id, TL_ALL_OUTPUTS));
}

// Add the forward of a node, after the forwards that make its missing inputs, from the nearest
// resident ancestors on.
static void tli_make_again(tli_remake *r, int32_t root) {
    const tl_graph *graph = r->graph;
    int32_t depth = 1, i;
    int in_passing;
    r->stack[0] = root;
    r->cursors[0] = 0;
    while (depth > 0) {
        int32_t id = r->stack[depth - 1], *cursor = &r->cursors[depth - 1];
        const tl_node *node = &graph->nodes[id];
        const tl_node_input *inputs = tli_inputs_of(graph, node);
        while (*cursor < node->input_count && r->here[inputs[*cursor].tensor]) ++*cursor;
        if (*cursor < node->input_count) {
            r->stack[depth] = graph->outputs[inputs[*cursor].tensor].node;
            r->cursors[depth++] = 0;
            continue;
        }
        in_passing = r->spans && r->spans->of_node[id] != r->span;
        if (in_passing) r->passed[r->passed_count++] = id;
        tli_call_forward(r, id, !in_passing);
        for (i = node->first_output; i < node->first_output + node->output_count; i++) r->here[i] = 1;
        depth--;
    }
}

// Forget what was made in passing, but for what stays or crosses.
static void tli_leave_passed(tli_remake *r) {
    const tl_graph *graph = r->graph;
    int32_t i;
    while (r->passed_count > 0) {
        const tl_node *node = &graph->nodes[r->passed[--r->passed_count]];
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            r->here[i] = r->stays[i] || r->spans->crosses[i];
    }
}

static void tli_call_backward(tli_remake *r, int32_t id) {
    const tl_graph *graph = r->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i;
    int missing = node->saved_bytes && !r->has_saved[id];
    if (r->spans) r->span = r->spans->of_node[id];
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        missing |= graph->outputs[i].needed && !r->here[i];
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        if (graph->inputs[i].needed && !r->here[graph->inputs[i].tensor])
            tli_make_again(r, graph->outputs[graph->inputs[i].tensor].node);
    if (missing) tli_make_again(r, id);
    tli_add_step(&r->calls, tli_step_of(TL_STEP_BACKWARD, id, TL_ALL_OUTPUTS));
    tli_leave_passed(r);
}

// Add all forwards, then all backwards, each preceded by the forwards that make what it needs.
// Returns the number of forwards of the first pass.
static int32_t tli_call_all(tli_remake *r, const uint8_t *keep) {
    const tl_graph *graph = r->graph;
    int32_t id, i, first_count;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        int all = 1;
        for (i = node->first_output; i < node->first_output + node->output_count; i++) {
            r->stays[i] = r->here[i] = keep[i] || node->keep || node->is_input || node->once;
            all &= r->stays[i];
        }
        if (!node->is_input) tli_call_forward(r, id, all);
    }
    first_count = r->calls.count;
    for (id = graph->node_count; id-- > 0;)
        if (graph->nodes[id].has_grad) tli_call_backward(r, id);
    return first_count;
}

// spans: NULL = each forward runs at most twice.
static tl_result tli_plan_kept_set(tl_env *env, const tl_graph *graph, const uint8_t *keep,
                                   const tli_spans *spans, tl_plan *plan) {
    tli_remake r;
    int32_t first_count = 0;
    tl_result result;
    tli_zero(plan, sizeof *plan);
    tli_zero(&r, sizeof r);
    r.graph = graph;
    r.spans = spans;
    r.calls = tli_steps_of(env);
    r.stays = (uint8_t *)tli_alloc_array(env, (uint64_t)graph->tensor_count, 1);
    r.here = (uint8_t *)tli_alloc_array(env, (uint64_t)graph->tensor_count, 1);
    r.has_saved = (uint8_t *)tli_alloc_array(env, (uint64_t)graph->node_count, 1);
    r.stack = (int32_t *)tli_alloc_array(env, (uint64_t)graph->node_count, sizeof *r.stack);
    r.cursors = (int32_t *)tli_alloc_array(env, (uint64_t)graph->node_count, sizeof *r.cursors);
    r.passed = spans ? (int32_t *)tli_alloc_array(env, (uint64_t)graph->node_count, sizeof *r.passed) : NULL;
    r.calls.failed = !r.stays || !r.here || !r.has_saved || !r.stack || !r.cursors || (spans && !r.passed);
    if (!r.calls.failed) first_count = tli_call_all(&r, keep);
    result = tli_plan_calls(&r.calls, first_count, r.stays, TLI_IN(PLAN_KEPT_SET), graph, 0, plan);
    tli_release(env, r.stays);
    tli_release(env, r.here);
    tli_release(env, r.has_saved);
    tli_release(env, r.stack);
    tli_release(env, r.cursors);
    tli_release(env, r.passed);
    return result;
}

TLI_IMPL tl_result tl_plan_kept_set(tl_env *env, const tl_graph *graph, const uint8_t *keep, tl_plan *plan) {
    tl_result result;
    TL_ASSERT(graph && plan && (keep || !graph->tensor_count));
    tli_zero(plan, sizeof *plan);
    result = tl_check_graph(env, graph);
    return result ? result : tli_plan_kept_set(env, graph, keep, NULL, plan);
}

// Make the plan of checkpoints at an interval: that of the kept set, or with spans where it peaks lower.
static tl_result tli_plan_interval(tl_env *env, const tl_graph *graph, uint64_t interval, tl_plan *plan) {
    uint8_t *keep = (uint8_t *)tli_alloc_array(env, (uint64_t)graph->tensor_count, 1);
    tli_spans spans;
    tl_plan by_spans;
    int32_t i;
    tl_result result = TL_ERROR_NO_MEMORY;
    tli_zero(plan, sizeof *plan);
    tli_zero(&spans, sizeof spans);
    for (i = 0; i < graph->tensor_count && keep; i++)
        keep[i] = (uint8_t)tli_is_checkpoint(graph, graph->outputs[i].node, interval);
    if (keep) result = tli_plan_kept_set(env, graph, keep, NULL, plan);
    if (!result && !tli_init_spans(env, graph, interval, &spans)) result = TL_ERROR_NO_MEMORY;
    if (!result && spans.any) {
        result = tli_plan_kept_set(env, graph, keep, &spans, &by_spans);
        if (!result && by_spans.peak_bytes < plan->peak_bytes) {
            tl_plan higher = *plan;
            *plan = by_spans;
            by_spans = higher;
        }
        if (!result) tl_free_plan(env, &by_spans);
    }
    if (result) tl_free_plan(env, plan);
    tli_free_spans(env, &spans);
    tli_release(env, keep);
    return result;
}

// -- schedule of Revolve --

typedef struct tli_unit_chain {
    const tl_graph *graph;
    tli_steps       list;
    int32_t         reached;  // the highest node that ran
    int32_t         first;    // the first layer; the nodes before it are graph inputs
} tli_unit_chain;

static void tli_revolve_drop(tli_unit_chain *chain, int32_t id) {
    if (id >= chain->first && !chain->graph->nodes[id].keep)
        tli_add_tensor_step(&chain->list, chain->graph, TL_STEP_DROP, chain->graph->nodes[id].first_output);
}

static void tli_revolve_forward(tli_unit_chain *chain, int32_t id) {
    if (chain->graph->nodes[id].keep && id <= chain->reached) return;  // a result stays resident
    if (id > chain->reached) chain->reached = id;
    tli_add_step(&chain->list, tli_step_of(TL_STEP_FORWARD, id, TL_ALL_OUTPUTS));
}

static void tli_revolve_advance(tli_unit_chain *chain, int32_t from, int32_t to) {
    int32_t id;
    for (id = from + 1; id <= to; id++) {
        tli_revolve_forward(chain, id);
        if (id - 1 > from) tli_revolve_drop(chain, id - 1);
    }
}

// Add the backward of a node whose input is resident, after one more forward if backward reads its
// output or saved bytes, or if the node never ran.
static void tli_revolve_backward(tli_unit_chain *chain, int32_t id) {
    const tl_node *node = &chain->graph->nodes[id];
    int reads_output = chain->graph->outputs[node->first_output].needed;
    int forward = node->saved_bytes || reads_output || id > chain->reached;
    if (node->saved_bytes) tli_add_step(&chain->list, tli_step_of(TL_STEP_FORWARD_SAVE, id, TL_ALL_OUTPUTS));
    else if (forward) tli_revolve_forward(chain, id);
    if (forward && !reads_output) tli_revolve_drop(chain, id);
    tli_add_step(&chain->list, tli_step_of(TL_STEP_BACKWARD, id, TL_ALL_OUTPUTS));
    if (reads_output) tli_revolve_drop(chain, id);
}

// The number of graph inputs before the first layer of a chain.
static int32_t tli_find_first_layer(const tl_graph *graph) {
    int32_t first = 0;
    while (first < graph->node_count && graph->nodes[first].is_input) first++;
    return first;
}

// Add the binomial schedule. all_slots is a stack of the nodes whose output is held as a checkpoint; the first
// stands for the graph inputs, if there are any.
static void tli_reverse_chain(tli_unit_chain *chain, int32_t slot_count, int32_t *all_slots) {
    int32_t right = chain->graph->node_count - 1, depth = 1;
    chain->first = tli_find_first_layer(chain->graph);
    chain->reached = all_slots[0] = chain->first - 1;
    while (right >= chain->first) {
        int32_t left = all_slots[depth - 1], count = right - left;
        if (count == 1) {
            tli_revolve_backward(chain, right--);
            if (depth > 1) { tli_revolve_drop(chain, left); depth--; }
        } else if (depth == slot_count) {
            tli_revolve_advance(chain, left, right - 1);
            tli_revolve_backward(chain, right);
            tli_revolve_drop(chain, --right);
        } else {
            all_slots[depth] = left + tli_split_chain(count, slot_count - depth + 1);
            tli_revolve_advance(chain, left, all_slots[depth]);
            depth++;
        }
    }
}

static tl_result tli_check_chain(tl_env *env, tli_function function, const tl_graph *graph) {
    int32_t id;
    int is_chain = graph->node_count > 1 && graph->nodes[0].is_input && graph->nodes[0].output_count == 1;
    for (id = 1; id < graph->node_count && is_chain; id++) {
        const tl_node *node = &graph->nodes[id];
        is_chain = node->has_grad && node->output_count == 1 && node->input_count == 1 &&
                   graph->inputs[node->first_input].tensor == graph->nodes[id - 1].first_output;
    }
    return is_chain ? TL_OK : tli_fail(env, TL_ERROR_INVALID_ARG, function,
        TLI_RULE(GRAPH_MUST_BE_CHAIN_INPUT_THEN_NODES));
}

TLI_IMPL tl_result tl_plan_revolve(tl_env *env, const tl_graph *graph, int32_t slot_count, tl_plan *plan) {
    tli_unit_chain chain;
    int32_t *all_slots, most, id;
    tl_result result;
    TL_ASSERT(graph && plan);
    tli_zero(plan, sizeof *plan);
    result = tl_check_graph(env, graph);
    if (!result) result = tli_check_chain(env, TLI_IN(PLAN_REVOLVE), graph);
    for (id = 0; id < graph->node_count && !result; id++)
        if (graph->nodes[id].once)
            return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_REVOLVE),
                            TLI_RULE(REVOLVE_RUNS_NODES_AGAIN));
    if (result) return result;
    if (slot_count < 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_REVOLVE), TLI_RULE(SLOT_COUNT_MUST_BE_POSITIVE));
    chain.graph = graph;
    chain.list = tli_steps_of(env);
    most = slot_count < graph->node_count ? slot_count : graph->node_count;
    all_slots = (int32_t *)tli_alloc_array(env, (uint64_t)most, sizeof *all_slots);
    chain.list.failed = !all_slots;
    if (all_slots) tli_reverse_chain(&chain, slot_count, all_slots);
    tli_release(env, all_slots);
    return tli_finish_plan(&chain.list, TLI_IN(PLAN_REVOLVE), graph, 0, plan);
}
#endif  // TL_NO_PLANNERS

#ifndef TL_NO_TEXT
// -- schedule text --

TLI_IMPL int tl_parse_step(const char *text, tl_step_kind *kind) {
    int32_t value;
    int known = tli_parse_word(tli_step_names, TL_STEP_COUNT, text, &value);
    TL_ASSERT(kind);
    *kind = (tl_step_kind)value;
    return known;
}

TLI_IMPL int tl_parse_codec(const char *text, tl_codec *codec) {
    int32_t value;
    int known = tli_parse_word(tli_codec_names, TL_CODEC_COUNT, text, &value);
    TL_ASSERT(codec);
    *codec = (tl_codec)value;
    return known;
}

TLI_IMPL size_t tl_print_schedule(const tl_plan *plan, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    int32_t i;
    if (plan->in_flight > 1) {
        tli_put(&w, "K ");
        tli_put_i64(&w, plan->in_flight);
        tli_put(&w, "\n");
    }
    for (i = 0; i < plan->entry_count; i++) {
        const tl_entry *entry = &plan->entry[i];
        tli_put(&w, "E ");
        tli_put_i64(&w, entry->node);
        tli_put(&w, ".");
        tli_put_i64(&w, entry->output);
        if (entry->slot) { tli_put(&w, "@"); tli_put_i64(&w, entry->slot); }
        tli_put(&w, "\n");
    }
    for (i = 0; i < plan->step_count; i++) {
        const tl_step found = tl_find_step(plan, i), *step = &found;
        tli_put(&w, tli_name(tli_step_names, TL_STEP_COUNT, step->kind));
        tli_put(&w, " ");
        tli_put_i64(&w, step->node);
        if (step->output != TL_ALL_OUTPUTS) { tli_put(&w, "."); tli_put_i64(&w, step->output); }
        if (step->kind == TL_STEP_COMPRESS) {
            tli_put(&w, " ");
            tli_put(&w, tli_name(tli_codec_names, TL_CODEC_COUNT, step->codec));
        }
        if (step->slot) { tli_put(&w, "@"); tli_put_i64(&w, step->slot); }
        tli_put(&w, step->begins ? " begin\n" : "\n");
    }
    return tli_finish(&w);
}

// Read the node and output of a step: "3" or "3.1".
static int tli_read_target(tli_word word, tl_step *step) {
    tli_word node = word, output = word;
    size_t dot = 0;
    while (dot < word.length && word.text[dot] != '.') dot++;
    node.length = dot;
    step->output = TL_ALL_OUTPUTS;
    if (!tli_read_i32(node, &step->node)) return 0;
    if (dot == word.length) return 1;
    output.text += dot + 1;
    output.length -= dot + 1;
    return !tli_acts_on_node((tl_step_kind)step->kind) && tli_read_i32(output, &step->output);
}

// Cut "@3" off a word, if it ends so, and read the slot: 0 where there is no @. Returns 0 if no slot stands
// behind the @.
static int tli_cut_slot(tli_word *word, uint16_t *slot) {
    tli_word number = *word;
    size_t at = 0;
    int32_t value;
    while (at < word->length && word->text[at] != '@') at++;
    *slot = 0;
    if (at == word->length) return 1;
    number.text += at + 1;
    number.length -= at + 1;
    word->length = at;
    if (!tli_read_i32(number, &value) || value >= TLI_MOST_SLOTS) return 0;
    *slot = (uint16_t)value;
    return 1;
}

// Read a step whose first word is `word`. Returns the rule that the line breaks, or TLI_NO_RULE.
static tli_rule tli_read_step(tli_reader *reader, tli_word word, tl_step *step) {
    int32_t value;
    tli_word none;
    tli_zero(&none, sizeof none);
    if (!tli_parse_name(tli_step_names, TL_STEP_COUNT, word.text, word.length, &value))
        return TLI_RULE(STEP_MUST_BE_F_I_S_B_D_DS_O_L_W_DH_C);
    *step = tli_step_of((tl_step_kind)value, 0, TL_ALL_OUTPUTS);
    if (!tli_next_word(reader, &word)) word = none;
    if (step->kind != TL_STEP_COMPRESS && !tli_cut_slot(&word, &step->slot))
        return TLI_RULE(SLOT_MUST_BE_NUMBER_AS_IN_F_3_1);
    if (!tli_read_target(word, step))
        return tli_acts_on_node((tl_step_kind)step->kind)
                   ? TLI_RULE(TARGET_MUST_BE_NODE_NUMBER_AS_IN_F_3)
                   : TLI_RULE(TARGET_MUST_BE_NODE_NUMBER_OR_OUTPUT);
    if (step->kind == TL_STEP_COMPRESS) {
        if (!tli_next_word(reader, &word)) word = none;
        if (!tli_cut_slot(&word, &step->slot)) return TLI_RULE(SLOT_MUST_BE_NUMBER_AS_IN_F_3_1);
        if (tli_word_is(word, tl_name_codec(TL_CODEC_NONE)) ||
            !tli_parse_name(tli_codec_names, TL_CODEC_COUNT, word.text, word.length, &value))
            return TLI_RULE(CODEC_MUST_BE_F16_BF16_OR_Q8);
        step->codec = (uint8_t)value;
    }
    if (!tli_next_word(reader, &word)) return TLI_NO_RULE;
    if (step->kind == TL_STEP_FORWARD || step->kind == TL_STEP_BACKWARD) {
        if (!tli_word_is(word, "begin")) return TLI_RULE(BEGINS_LAST_WORD);
        step->begins = 1;
        if (!tli_next_word(reader, &word)) return TLI_NO_RULE;
    }
    return TLI_RULE(MORE_WORDS_THAN_STEP_TAKES);
}

// What has been read of a schedule.
typedef struct tli_schedule {
    tli_steps list;
    tl_entry *entry;         // [entry_count]
    int32_t   entry_count, entry_capacity;
    int32_t   highest_slot;
    int32_t   in_flight;     // 0 = not given
} tli_schedule;

// Read how many steps may be under way together, after K. Returns the rule that the line breaks, or
// TLI_NO_RULE.
static tli_rule tli_read_in_flight(tli_reader *reader, tli_schedule *schedule) {
    tli_word word;
    if (schedule->list.count || schedule->entry_count || schedule->in_flight)
        return TLI_RULE(IN_FLIGHT_MUST_STAND_FIRST);
    if (!tli_next_word(reader, &word) || !tli_read_i32(word, &schedule->in_flight) || schedule->in_flight < 1)
        return TLI_RULE(IN_FLIGHT_MUST_BE_NUMBER_AS_IN_K_4);
    return tli_next_word(reader, &word) ? TLI_RULE(MORE_WORDS_THAN_STEP_TAKES) : TLI_NO_RULE;
}

// Read a tensor of the entry, after its E. Returns the rule that the line breaks, or TLI_NO_RULE.
static tli_rule tli_read_entry(tli_reader *reader, tli_schedule *schedule) {
    tl_step target = tli_step_of(TL_STEP_DROP, 0, TL_ALL_OUTPUTS);
    void *array = schedule->entry;
    tl_entry *entry;
    tli_word word;
    if (schedule->list.count) return TLI_RULE(ENTRY_MUST_STAND_BEFORE_STEPS);
    if (!tli_next_word(reader, &word)) return TLI_RULE(ENTRY_MUST_BE_OUTPUT_AS_IN_E_3_0);
    if (!tli_cut_slot(&word, &target.slot)) return TLI_RULE(SLOT_MUST_BE_NUMBER_AS_IN_F_3_1);
    if (!tli_read_target(word, &target) || target.output == TL_ALL_OUTPUTS)
        return TLI_RULE(ENTRY_MUST_BE_OUTPUT_AS_IN_E_3_0);
    if (tli_next_word(reader, &word)) return TLI_RULE(MORE_WORDS_THAN_STEP_TAKES);
    schedule->list.failed |= !tli_grow(schedule->list.env, &array, &schedule->entry_capacity,
                                       schedule->entry_count, (int64_t)schedule->entry_count + 1,
                                       sizeof *entry);
    if (schedule->list.failed) return TLI_NO_RULE;
    schedule->entry = (tl_entry *)array;
    entry = &schedule->entry[schedule->entry_count++];
    entry->node = target.node;
    entry->output = target.output;
    entry->slot = target.slot;
    if (target.slot > schedule->highest_slot) schedule->highest_slot = target.slot;
    return TLI_NO_RULE;
}

// Move what was read into a plan.
static tl_result tli_take_schedule(tli_schedule *schedule, tl_plan *plan) {
    tl_env *env = schedule->list.env;
    tl_plan apart;
    tl_result result;
    tli_zero(&apart, sizeof apart);
    result = tli_take_steps(&schedule->list, TLI_IN(PARSE_SCHEDULE), &apart);
    if (schedule->highest_slot) apart.slot_count = schedule->highest_slot + 1;
    apart.in_flight = schedule->in_flight;
    if (!result && !schedule->entry_count) {
        *plan = apart;
    } else if (!result) {
        apart.entry = schedule->entry;
        apart.entry_count = schedule->entry_count;
        result = tli_join_plan(env, TLI_IN(PARSE_SCHEDULE), &apart, plan);
        tl_free_plan(env, &apart);
    }
    tli_release(env, schedule->entry);
    return result;
}

TLI_IMPL tl_result tl_parse_schedule(tl_env *env, const char *text, size_t length, tl_plan *plan) {
    tli_reader reader = tli_reader_of(text ? text : "", length);
    tli_schedule schedule;
    TL_ASSERT(plan && (text || !length));
    tli_zero(plan, sizeof *plan);
    tli_zero(&schedule, sizeof schedule);
    schedule.list = tli_steps_of(env);
    if (length > TLI_TEXT_LIMIT)
        return tli_fail(env, TL_ERROR_PARSE, TLI_IN(PARSE_SCHEDULE), TLI_RULE(TEXT_LONGER_THAN_1_GIB));
    while (tli_next_line(&reader)) {
        tl_step step;
        tli_word word;
        tli_rule why;
        int enters, is_head;
        if (!tli_next_word(&reader, &word)) continue;
        enters = tli_word_is(word, "E");
        is_head = tli_word_is(word, "K");
        why = is_head ? tli_read_in_flight(&reader, &schedule)
            : enters ? tli_read_entry(&reader, &schedule) : tli_read_step(&reader, word, &step);
        if (why) {
            tli_release(env, schedule.list.steps);
            tli_release(env, schedule.entry);
            return tli_fail_line(env, TL_ERROR_PARSE, TLI_IN(PARSE_SCHEDULE), reader.line, why);
        }
        if (enters || is_head) continue;
        tli_add_step(&schedule.list, step);
        if (step.slot > schedule.highest_slot) schedule.highest_slot = step.slot;
    }
    return tli_take_schedule(&schedule, plan);
}
#endif  // TL_NO_TEXT
#endif  // TL_STRATEGY_IMPLEMENTATION

