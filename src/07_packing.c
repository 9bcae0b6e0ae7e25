#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- packing --
//
// Add COMPRESS and EXPAND steps to a plan of a training, so that activations wait for their backward in fewer
// bytes. Among all sets of tensors one of least peak is found: see tli_choose_waits.

// A tensor that can be packed: compressed after its last reader before the first backward, expanded before its
// first reader after that.
typedef struct tli_wait {
    int32_t  tensor;
    int32_t  compress_after, expand_before;  // steps of the given plan
    uint64_t bytes, packed_bytes;
    int32_t  leaves;          // INT32_MAX = packed; else how many were taken out of the set before it
} tli_wait;

typedef enum tli_wait_order { TLI_BY_COMPRESS, TLI_BY_EXPAND, TLI_BY_BYTES, TLI_WAIT_ORDERS } tli_wait_order;

typedef struct tli_packing {
    tl_env         *env;
    const tl_packing_desc *desc;
    const tl_graph *graph;
    const tl_plan  *plan;
    tli_sim         sim;
    uint64_t       *high, *after; // [step_count] live bytes: most during a step, and at its end
    int32_t        *last, *first; // [tensor_count] last reader before the first backward, first one after it;
                                  // -1 = none
    uint8_t        *fixed;        // [tensor_count] 1 = is not packed
    tli_wait       *waits;        // [wait_count]
    int32_t         wait_count, left_count;
    int32_t        *orders[TLI_WAIT_ORDERS];  // [wait_count] indices of waits, in each order
    int32_t        *space;        // [wait_count] scratch of the sorts
    int32_t         started;      // step of the first backward; -1 = not reached
} tli_packing;

// -- packing: tensors that can be packed --

static void tli_note_reader(tli_packing *p, int32_t tensor, int32_t at) {
    if (p->started < 0) p->last[tensor] = at;
    else if (p->first[tensor] < 0) p->first[tensor] = at;
}

// Note all readers of a call. A forward counts as a reader of its outputs, because those that are resident must
// not be compressed at that step.
static void tli_note_call(tli_packing *p, const tl_step *step, int32_t at) {
    const tl_node *node = &p->graph->nodes[step->node];
    int is_backward = step->kind == TL_STEP_BACKWARD;
    int32_t i;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        if (!is_backward || p->graph->inputs[i].needed) tli_note_reader(p, p->graph->inputs[i].tensor, at);
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (!is_backward || p->graph->outputs[i].needed) tli_note_reader(p, i, at);
}

// Exclude tensors that are dropped after the first backward without being read, or that the plan copies or
// converts.
static void tli_note_tensor_step(tli_packing *p, const tl_step *step) {
    const tl_node *node = &p->graph->nodes[step->node];
    int drops = step->kind == TL_STEP_DROP;
    int32_t i;
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        if (step->output != TL_ALL_OUTPUTS && i != node->first_output + step->output) continue;
        if (!drops || (p->started >= 0 && p->first[i] < 0)) p->fixed[i] = 1;
    }
}

static void tli_note_step(tli_packing *p, const tl_step *step, int32_t at) {
    switch ((tl_step_kind)step->kind) {
    case TL_STEP_FORWARD:
    case TL_STEP_FORWARD_INPLACE:
    case TL_STEP_FORWARD_SAVE:
    case TL_STEP_BACKWARD: tli_note_call(p, step, at); break;
    case TL_STEP_DROP:
    case TL_STEP_SPILL:
    case TL_STEP_FETCH:
    case TL_STEP_WAIT:
    case TL_STEP_DROP_HOST:
    case TL_STEP_COMPRESS:
    case TL_STEP_EXPAND: tli_note_tensor_step(p, step); break;
    case TL_STEP_DROP_SAVED:
    case TL_STEP_COUNT: break;
    }
}

// At the first backward: exclude tensors that are not resident, graph inputs, results, tensors that the caller
// excludes, and those whose size does not allow it.
static void tli_start_backwards(tli_packing *p, int32_t at) {
    const tl_packing_desc *desc = p->desc;
    const tl_graph *graph = p->graph;
    int32_t i;
    p->started = at;
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node *node = &graph->nodes[graph->outputs[i].node];
        uint64_t bytes = graph->outputs[i].bytes;
        if (p->sim.tensors[i].state != TLI_RESIDENT || node->is_input || node->keep || bytes % 4 ||
            bytes < desc->least_bytes || tl_find_codec_bytes(desc->codec, bytes) >= bytes ||
            (desc->tensors && !desc->tensors[i])) p->fixed[i] = 1;
    }
}

// Replay the plan on the simulator: note live bytes and readers.
static tl_result tli_replay_for_packing(tli_packing *p) {
    tl_plan bare = *p->plan;
    tl_result result;
    int32_t i;
    bare.offsets = NULL;
    bare.offset_count = 0;
    result = tli_init_sim(p->env, &p->sim, "tl_plan_packing", p->graph, p->desc->device, &bare);
    for (i = 0; i < bare.step_count && !result; i++) {
        if (p->started < 0 && bare.steps[i].kind == TL_STEP_BACKWARD) tli_start_backwards(p, i);
        result = tli_sim_step(&p->sim, &bare.steps[i]);
        if (result) break;
        tli_note_step(p, &bare.steps[i], i);
        p->high[i] = p->sim.step_bytes;
        p->after[i] = p->sim.live_bytes;
    }
    if (!result) result = tli_sim_end(&p->sim);
    tli_free_sim(&p->sim);
    return result;
}

static void tli_list_waits(tli_packing *p) {
    int32_t i;
    for (i = 0; i < p->graph->tensor_count && p->started >= 0; i++) {
        tli_wait *wait = &p->waits[p->wait_count];
        if (p->fixed[i] || p->first[i] < 0) continue;
        wait->tensor = i;
        wait->compress_after = p->last[i];
        wait->expand_before = p->first[i];
        wait->bytes = p->graph->outputs[i].bytes;
        wait->packed_bytes = tl_find_codec_bytes(p->desc->codec, wait->bytes);
        wait->leaves = INT32_MAX;
        p->wait_count++;
    }
}

// -- packing: order of conversions --

// At the same step smaller tensors are compressed first and expanded last: while both copies of one tensor are
// live, the others then take the fewest bytes. Ties are broken by the order of the graph.
static int tli_is_wait_before(const tli_wait *a, const tli_wait *b, tli_wait_order order) {
    int32_t from = 0, to = 0;
    int largest_first = order != TLI_BY_COMPRESS;
    if (order == TLI_BY_COMPRESS) { from = a->compress_after; to = b->compress_after; }
    if (order == TLI_BY_EXPAND) { from = a->expand_before; to = b->expand_before; }
    if (from != to) return from < to;
    if (a->bytes != b->bytes) return largest_first ? a->bytes > b->bytes : a->bytes < b->bytes;
    return a->tensor < b->tensor;
}

// Merge sort; space has room for wait_count items.
static void tli_sort_waits(const tli_packing *p, tli_wait_order order, int32_t *space) {
    int32_t *items = p->orders[order];
    int64_t count = p->wait_count, width, start, middle, end, left, right, at;
    for (at = 0; at < count; at++) items[at] = (int32_t)at;
    for (width = 1; width < count; width *= 2) {
        for (start = 0; start < count; start = end) {
            middle = start + width < count ? start + width : count;
            end = middle + width < count ? middle + width : count;
            for (left = start, right = middle, at = start; at < end; at++) {
                int takes_right = left == middle || (right < end &&
                    tli_is_wait_before(&p->waits[items[right]], &p->waits[items[left]], order));
                space[at] = takes_right ? items[right++] : items[left++];
            }
        }
        tli_copy(items, space, (size_t)count * sizeof *items);
    }
}

// -- packing: the best set --

// Find the peak of the present set. *at_peak = the tensor whose conversion alone makes the peak, or -1 if a
// step of the plan is as high.
static uint64_t tli_find_packed_peak(const tli_packing *p, int32_t *at_peak) {
    uint64_t peak = 0, away = 0, live;
    int32_t step, c = 0, x = 0;
    *at_peak = -1;
    for (step = 0; step < p->plan->step_count; step++) {
        for (; x < p->wait_count && p->waits[p->orders[TLI_BY_EXPAND][x]].expand_before == step; x++) {
            const tli_wait *wait = &p->waits[p->orders[TLI_BY_EXPAND][x]];
            if (wait->leaves != INT32_MAX) continue;
            live = p->after[step - 1] - away + wait->bytes;
            if (live > peak) { peak = live; *at_peak = p->orders[TLI_BY_EXPAND][x]; }
            away -= wait->bytes - wait->packed_bytes;
        }
        live = p->high[step] - away;
        if (live >= peak) { peak = live; *at_peak = -1; }
        for (; c < p->wait_count && p->waits[p->orders[TLI_BY_COMPRESS][c]].compress_after == step; c++) {
            const tli_wait *wait = &p->waits[p->orders[TLI_BY_COMPRESS][c]];
            if (wait->leaves != INT32_MAX) continue;
            live = p->after[step] - away + wait->packed_bytes;
            if (live > peak) { peak = live; *at_peak = p->orders[TLI_BY_COMPRESS][c]; }
            away += wait->bytes - wait->packed_bytes;
        }
    }
    return peak;
}

// Find a minimal set of least peak. If the conversion of one tensor alone makes the peak, every better set
// lacks that tensor, because removing others does not lower live bytes there. So such tensors are removed one
// after the other, until a step of the plan makes the peak; the best set on the way is the best of all. Then
// tensors that this peak does not need are removed, largest first, in passes until none is found, because
// each removal can make another tensor unnecessary.
static void tli_choose_waits(tli_packing *p) {
    int32_t at_peak, best_left = 0, left_raw, i;
    uint64_t peak = tli_find_packed_peak(p, &at_peak), best = peak;
    while (at_peak >= 0) {
        p->waits[at_peak].leaves = p->left_count++;
        peak = tli_find_packed_peak(p, &at_peak);
        if (peak < best) { best = peak; best_left = p->left_count; }
    }
    for (i = 0; i < p->wait_count; i++)
        if (p->waits[i].leaves >= best_left) p->waits[i].leaves = INT32_MAX;
    do {
        for (left_raw = i = 0; i < p->wait_count; i++) {
            tli_wait *wait = &p->waits[p->orders[TLI_BY_BYTES][i]];
            if (wait->leaves != INT32_MAX) continue;
            wait->leaves = 0;
            if (tli_find_packed_peak(p, &at_peak) > best) wait->leaves = INT32_MAX;
            else left_raw = 1;
        }
    } while (left_raw);
}

// -- packing: writing the plan --

static tl_result tli_write_packed(tli_packing *p, tl_plan *plan) {
    tli_steps list = tli_steps_of(p->env);
    tl_result result;
    int32_t step, c = 0, x = 0;
    for (step = 0; step < p->plan->step_count; step++) {
        for (; x < p->wait_count && p->waits[p->orders[TLI_BY_EXPAND][x]].expand_before == step; x++) {
            const tli_wait *wait = &p->waits[p->orders[TLI_BY_EXPAND][x]];
            if (wait->leaves == INT32_MAX) tli_add_tensor_step(&list, p->graph, TL_STEP_EXPAND, wait->tensor);
        }
        tli_add_step(&list, p->plan->steps[step]);
        for (; c < p->wait_count && p->waits[p->orders[TLI_BY_COMPRESS][c]].compress_after == step; c++) {
            const tli_wait *wait = &p->waits[p->orders[TLI_BY_COMPRESS][c]];
            if (wait->leaves != INT32_MAX) continue;
            tli_add_tensor_step(&list, p->graph, TL_STEP_COMPRESS, wait->tensor);
            if (!list.failed) list.steps[list.count - 1].codec = (uint8_t)p->desc->codec;
        }
    }
    result = tli_take_steps(&list, "tl_plan_packing", plan);
    if (result) return result;
    plan->repeat_count = p->plan->repeat_count;
    plan->any_order = p->plan->any_order;
    plan->base_bytes = p->plan->base_bytes;
    return tli_measure(p->env, "tl_plan_packing", p->graph, p->desc->device, 1, plan);
}

static tl_result tli_check_packing(tl_env *env, const tl_packing_desc *desc) {
    const char *function = "tl_plan_packing";
    tl_result result;
    if (!tli_is_below((int64_t)desc->codec, TL_CODEC_COUNT) || desc->codec == TL_CODEC_NONE)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, "codec: must be f16, bf16 or q8");
    result = tl_check_graph(env, desc->graph);
    if (!result && desc->device) result = tl_check_device(env, desc->device);
    if (!result && desc->plan) result = tli_check_plan(env, function, desc->plan);
    if (!result && desc->plan && desc->plan->inference)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, "plan: must be one of a training");
    return result;
}

// Allocate the arrays. Returns 0 = no memory.
static int tli_open_packing(tl_env *env, const tl_packing_desc *desc, const tl_plan *plan, tli_packing *p) {
    uint64_t steps = (uint64_t)plan->step_count, tensors = (uint64_t)desc->graph->tensor_count, i;
    p->env = env;
    p->desc = desc;
    p->graph = desc->graph;
    p->plan = plan;
    p->started = -1;
    p->high = (uint64_t *)tli_alloc_array(env, 2 * steps, sizeof *p->high);
    p->waits = (tli_wait *)tli_alloc_array(env, tensors, sizeof *p->waits);
    p->last = (int32_t *)tli_alloc_array(env, (uint64_t)(3 + TLI_WAIT_ORDERS) * tensors, sizeof *p->last);
    p->fixed = (uint8_t *)tli_alloc_array(env, tensors, 1);
    if (!p->high || !p->waits || !p->last || !p->fixed) return 0;
    p->after = p->high + steps;
    p->first = p->last + tensors;
    for (i = 0; i < TLI_WAIT_ORDERS; i++) p->orders[i] = p->first + (1 + i) * tensors;
    p->space = p->first + (1 + i) * tensors;
    for (i = 0; i < tensors; i++) p->first[i] = p->last[i] = -1;
    return 1;
}

TLI_IMPL tl_result tl_plan_packing(tl_env *env, const tl_packing_desc *desc, tl_plan *plan) {
    tli_packing p;
    tl_plan kept;
    tl_result result;
    int order;
    TL_ASSERT(desc && desc->graph && plan && plan != desc->plan);
    tli_zero(plan, sizeof *plan);
    tli_zero(&p, sizeof p);
    tli_zero(&kept, sizeof kept);
    result = tli_check_packing(env, desc);
    if (!result && !desc->plan) result = tl_plan_keep_all(env, desc->graph, 0, &kept);
    if (result) return result;
    if (tli_open_packing(env, desc, desc->plan ? desc->plan : &kept, &p)) {
        result = tli_replay_for_packing(&p);
        if (!result) {
            tli_list_waits(&p);
            for (order = 0; order < TLI_WAIT_ORDERS; order++)
                tli_sort_waits(&p, (tli_wait_order)order, p.space);
            tli_choose_waits(&p);
            result = tli_write_packed(&p, plan);
        }
    } else {
        result = tli_fail(env, TL_ERROR_NO_MEMORY, "tl_plan_packing", "no memory to plan in");
    }
    if (result) tl_free_plan(env, plan);
    tl_free_plan(env, &kept);
    tli_release(env, p.high);
    tli_release(env, p.waits);
    tli_release(env, p.last);
    tli_release(env, p.fixed);
    return result;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

