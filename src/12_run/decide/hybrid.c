#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_ONLINE

// -- dynamic nodes: reports --
//
// What a forward reports is taken over when its step is closed. From then on readers of a tensor, and of its
// gradient, are given the reported bytes alone.

static int tli_has_dynamic(const tl_graph *graph) {
    int32_t id;
    for (id = 0; id < graph->node_count; id++)
        if (graph->nodes[id].dynamic) return 1;
    return 0;
}

// Room for reports. 0 = no memory.
static int tli_alloc_reports(tl_run *run, uint64_t tensor_count, uint64_t output_count) {
    uint64_t i;
    run->real_bytes = (uint64_t *)tli_alloc_array(run->env, tensor_count, sizeof *run->real_bytes);
    run->at.call.reported = (uint64_t *)tli_alloc_array(run->env, output_count, sizeof *run->at.call.reported);
    for (i = 0; i < tensor_count && run->real_bytes; i++) run->real_bytes[i] = TLI_UNREPORTED;
    TLI_INVARIANT(!run->real_bytes || !tensor_count || run->real_bytes[0] == TLI_UNREPORTED);
    return run->real_bytes && run->at.call.reported;
}

// A call begins: nothing is reported.
static void tli_clear_reports(tl_run *run) {
    const tl_node *node = &run->graph->nodes[run->at.last.node];
    int32_t i;
    for (i = 0; i < node->output_count && node->dynamic; i++) run->at.call.reported[i] = TLI_UNREPORTED;
    TLI_INVARIANT(!node->dynamic || run->at.call.reported != NULL);
}

static tl_result tli_fail_report(tl_run *run, tli_rule rule, uint64_t bytes, uint64_t most) {
    tli_sentence s = tli_begin_error(run->env, TL_ERROR_INVALID_ARG, TLI_IN(REPORT_BYTES), rule, bytes, most);
    tli_put_text(&s, tl_name_node(run->graph, run->at.last.node));
    return tli_end_error(run->env, &s, TL_ERROR_INVALID_ARG);
}

// Whether what was reported of an output can be: no more than its bound, and what it reported before.
static tl_result tli_check_report(tl_run *run, int32_t output) {
    int32_t tensor = run->graph->nodes[run->at.last.node].first_output + output;
    uint64_t bytes = run->at.call.reported[output], bound = run->graph->outputs[tensor].bytes;
    uint64_t known = run->real_bytes[(size_t)run->slot * (size_t)run->graph->tensor_count + (size_t)tensor];
    if (bytes == TLI_UNREPORTED) return TL_OK;
    if (known != TLI_UNREPORTED && bytes != known)
        return tli_fail_report(run, TLI_RULE(BYTES_DIFFER_FROM_REPORT), bytes, known);
    return bytes > bound ? tli_fail_report(run, TLI_RULE(BYTES_ABOVE_BOUND), bytes, bound) : TL_OK;
}

static tl_result tli_note_report(tl_run *run, int32_t output, uint64_t bytes) {
    run->at.call.reported[output] = bytes < TLI_UNREPORTED ? bytes : TLI_UNREPORTED - 1;   // is above any bound
    TLI_INVARIANT(run->at.call.reported[output] != TLI_UNREPORTED);
    return tli_check_report(run, output);
}

// A step cannot end with a wrong report.
static tl_result tli_check_reports(tl_run *run) {
    const tl_node *node = &run->graph->nodes[run->at.last.node];
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < node->output_count && node->dynamic && !result; i++) result = tli_check_report(run, i);
    return result;
}

static void tli_free_reports(tl_run *run) {
    tli_release(run->env, run->real_bytes);
    tli_release(run->env, run->at.call.reported);
}

#ifndef TL_NO_PLANNERS
// -- hybrid runs: the rest of a plan --
//
// A pass begins with the plan by bounds. When a dynamic node has reported less, its range is shortened, the
// run's graph gets the bytes that are known, and the steps that are left are looked at again:
//
//     plan      F a  F v | D a  F w  B w  F a  B v  B a         v is dynamic, | is where it has reported
//     rest               |      F w  B w       B v  B a         with a kept: neither D a nor F a
//
// A forward that runs again is left out by leaving out the drops of what it makes. What was run again only for
// it is not needed then either. A simulator that is in step with the executor tells whether the rest is a
// valid plan, and what is live; a layout finds places for all that is to come, around what is there. If it
// does not fit the arena, fewer live bytes are tried; if nothing fits, the rest stays as it is, and its places
// hold, because no tensor has more bytes than when they were found.

static void tli_free_hybrid(tl_run *run) {
    tli_hybrid *h = &run->hybrid;
    if (h->sim.graph) tli_free_sim(&h->sim);
    tl_free_plan(run->env, &h->bounds);
    tli_release(run->env, h->bound_bytes);
    tli_release(run->env, h->steps);
    tli_release(run->env, h->offsets);
    tli_zero(h, sizeof *h);
}

// Whether the plan of a run can follow what is reported.
static int tli_can_follow(const tl_run *run) {
    return run->is_hybrid && run->real_bytes && !run->is_online && run->in_arena && run->backend.shorten &&
           !tli_keeps_results(run) && run->slot_count == 1 && run->plan.offset_count &&
           !run->plan.block_count && !run->plan.entry_count;
}

// The plan has been made, and the run's graph is its own.
static tl_result tli_open_hybrid(tl_run *run) {
    tli_hybrid *h = &run->hybrid;
    uint64_t tensors = (uint64_t)run->graph->tensor_count;
    tl_plan flags;
    tl_result result = tli_join_plan(run->env, TLI_IN(INIT_RUN), &run->plan, &h->bounds);
    int32_t i;
    if (result) return result;
    h->bound_bytes = (uint64_t *)tli_alloc_array(run->env, tensors, sizeof *h->bound_bytes);
    if (!h->bound_bytes)
        return tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(STATE_OF_RUN_NO_MEMORY));
    for (i = 0; i < run->graph->tensor_count; i++) h->bound_bytes[i] = run->graph->outputs[i].bytes;
    tli_zero(&flags, sizeof flags);
    flags.inference = h->bounds.inference;
    flags.any_order = h->bounds.any_order;
    result = tli_init_sim(run->env, &h->sim, TLI_IN(RUN_PLAN), run->graph, run->desc.device, &flags, NULL);
    h->is_on = !result;
    return result;
}

// A pass begins: every bound may be reached.
static tl_result tli_start_hybrid(tl_run *run) {
    tli_hybrid *h = &run->hybrid;
    int32_t i;
    for (i = 0; i < run->graph->tensor_count; i++)
        ((tl_node_output *)run->graph->outputs)[i].bytes = h->bound_bytes[i];
    tli_release(run->env, h->steps);
    tli_release(run->env, h->offsets);
    h->steps = NULL;
    h->offsets = NULL;
    run->plan.steps = h->bounds.steps;
    run->plan.step_count = h->bounds.step_count;
    run->plan.offsets = h->bounds.offsets;
    run->plan.offset_count = run->arenas[TL_TIER_DEVICE].offset_count = h->bounds.offset_count;
    h->high_bytes = run->input_arena_bytes;
    h->has_room = 0;
    TLI_INVARIANT(run->plan.step_count == h->bounds.step_count);
    return tli_reset_sim(&h->sim);
}

// Simulate the step that the executor is about to carry out, and note where its allocations are to lie.
static tl_result tli_follow_step(tl_run *run, const tl_step *step) {
    tli_hybrid *h = &run->hybrid;
    int32_t number = run->arenas[TL_TIER_DEVICE].next_offset, i;
    tl_result result = tli_sim_step(&h->sim, step);
    for (i = 0; i < h->sim.made_count && !result; i++) {
        uint64_t end = tl_find_offset(&run->plan, number++, 0) + h->sim.made[i].bytes;
        h->high_bytes = tli_larger_u64(h->high_bytes, tli_align_up(end, run->limits.alignment_bytes));
    }
    TLI_INVARIANT(result || (h->sim.step_count == run->position && h->high_bytes <= h->bounds.arena_bytes));
    return result;
}

// The figures of the last pass, as far as it came.
static void tli_copy_figures(const tl_run *run, tl_plan *plan) {
    const tl_report *report = &run->hybrid.sim.report;
    if (!report->forward_count) return;    // before the first pass
    plan->peak_bytes = report->peak_bytes;
    plan->host_peak_bytes = report->host_peak_bytes;
    plan->cost = report->cost;
    plan->arena_bytes = run->hybrid.high_bytes;
}

// -- hybrid runs: steps that are being changed --

enum { TLI_LEFT_OUT = TL_STEP_COUNT };  // kind of a step that is left out: the others keep their indices

#define TLI_REST_WORK  500000   // steps that are simulated at most after a report
#define TLI_REST_TURNS 4        // times that places are looked for at most, for fewer live bytes each time
#define TLI_REST_PLACE_WORK 100000  // steps of a layout

typedef struct tli_rest {
    tl_run   *run;
    const tl_graph *graph;
    int32_t   from, count;     // steps of the plan: count from `from` on
    tl_step  *steps, *trial;   // [count] as they are, and as they are tried
    uint8_t  *states;          // [tensor_count] tli_state before the step at hand
    uint8_t  *wanted;          // [tensor_count + node_count] read later; saved bytes behind the tensors
    uint8_t  *saved, *ran;     // [node_count]
    uint8_t  *is_first;        // [count] 1 = no forward of its node ran before in the pass
    int32_t  *again, *order;   // [again_count] steps that run a forward again; the best first
    uint64_t *worth;           // [again_count] the less the better
    int32_t   again_count;
    uint64_t  room, cost;      // most live bytes; compute cost of the pass
    uint64_t  work;
    tli_sim   sim;             // of a trial
} tli_rest;

static int tli_runs_forward(const tl_step *step) {
    return step->kind == TL_STEP_FORWARD || step->kind == TL_STEP_FORWARD_SAVE ||
           step->kind == TL_STEP_FORWARD_INPLACE;
}

// The input that a step overwrites; -1 = none.
static int32_t tli_overwritten(const tl_graph *graph, const tl_step *step) {
    const tl_node *node = &graph->nodes[step->node];
    return step->kind == TL_STEP_FORWARD_INPLACE ? graph->inputs[node->first_input + node->inplace].tensor : -1;
}

// Leave a forward out. What it would have overwritten is dropped.
static void tli_leave_out(const tl_graph *graph, tl_step *step) {
    int32_t over = tli_overwritten(graph, step);
    step->kind = TLI_LEFT_OUT;
    if (over < 0) return;
    *step = tli_step_of(TL_STEP_DROP, graph->outputs[over].node, graph->outputs[over].output);
}

// Whether a step on tensors names this one.
static int tli_names_tensor(const tl_graph *graph, const tl_step *step, int32_t tensor) {
    const tl_node_output *output = &graph->outputs[tensor];
    return step->node == output->node && (step->output == TL_ALL_OUTPUTS || step->output == output->output);
}

// Keep a tensor until a step: undo what took it away last. One dropped together with others is not kept.
static void tli_keep_tensor(tli_rest *r, int32_t tensor, int32_t until) {
    int32_t id = r->graph->outputs[tensor].node, is_alone;
    while (until-- > 0) {
        tl_step *step = &r->trial[until];
        if (step->kind == TLI_LEFT_OUT) continue;
        if (tli_overwritten(r->graph, step) == tensor) { step->kind = TL_STEP_FORWARD; return; }
        if (tli_runs_forward(step) && step->node == id) return;
        if (tli_acts_on_node((tl_step_kind)step->kind) || !tli_names_tensor(r->graph, step, tensor)) continue;
        is_alone = step->output != TL_ALL_OUTPUTS || r->graph->nodes[id].output_count == 1;
        if (step->kind == TL_STEP_DROP && is_alone) step->kind = TLI_LEFT_OUT;
        return;
    }
}

// The same for the saved bytes of a node: an earlier forward makes them.
static void tli_keep_saved(tli_rest *r, int32_t id, int32_t until) {
    while (until-- > 0) {
        tl_step *step = &r->trial[until];
        if (step->kind == TLI_LEFT_OUT || step->node != id) continue;
        if (step->kind == TL_STEP_FORWARD) step->kind = TL_STEP_FORWARD_SAVE;
        else if (step->kind == TL_STEP_DROP_SAVED) step->kind = TLI_LEFT_OUT;
        else if (!tli_runs_forward(step)) continue;
        return;
    }
}

// Leave out a forward that runs again, and the drops before it.
static void tli_spare_forward(tli_rest *r, int32_t at) {
    const tl_node *node = &r->graph->nodes[r->trial[at].node];
    int32_t i;
    if (!tli_runs_forward(&r->trial[at])) return;
    for (i = node->first_output; i < node->first_output + node->output_count; i++) tli_keep_tensor(r, i, at);
    if (r->trial[at].kind == TL_STEP_FORWARD_SAVE) tli_keep_saved(r, r->trial[at].node, at);
    tli_leave_out(r->graph, &r->trial[at]);
}

// -- hybrid runs: what remains valid of the steps --

static void tli_start_variables(tli_rest *r) {
    const tli_sim *now = &r->run->hybrid.sim;
    int32_t i;
    for (i = 0; i < r->graph->tensor_count; i++) r->states[i] = now->tensors[i].state;
    for (i = 0; i < r->graph->node_count; i++) {
        r->saved[i] = now->nodes[i].has_saved;
        r->ran[i] = now->nodes[i].ran;
    }
}

// A forward that has nothing to make is left out; one that has only a part to make is of another kind.
static void tli_settle_forward(tli_rest *r, tl_step *step) {
    const tl_node *node = &r->graph->nodes[step->node];
    int32_t i, missing = 0, over;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        missing += r->states[i] == TLI_ABSENT;
    if (step->kind == TL_STEP_FORWARD_INPLACE && (!missing || r->states[node->first_output] != TLI_ABSENT)) {
        if (missing) step->kind = TL_STEP_FORWARD;
        else tli_leave_out(r->graph, step);
    }
    if (step->kind == TL_STEP_FORWARD_SAVE && r->saved[step->node]) step->kind = TL_STEP_FORWARD;
    if (step->kind == TL_STEP_FORWARD && !missing) step->kind = TLI_LEFT_OUT;
    if (!tli_runs_forward(step)) return;
    over = tli_overwritten(r->graph, step);
    if (over >= 0) r->states[over] = TLI_ABSENT;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        r->states[i] = TLI_RESIDENT;
    r->saved[step->node] |= step->kind == TL_STEP_FORWARD_SAVE;
}

// The state of a tensor after a step on it.
static tli_state tli_state_after(tl_step_kind kind, tli_state before) {
    switch (kind) {
    case TL_STEP_DROP: return TLI_ABSENT;
    case TL_STEP_SPILL: return TLI_LEAVING;
    case TL_STEP_FETCH: return TLI_COMING;
    case TL_STEP_WAIT: return before == TLI_LEAVING ? TLI_ABSENT : TLI_RESIDENT;
    case TL_STEP_COMPRESS: return TLI_PACKED;
    case TL_STEP_EXPAND: return TLI_RESIDENT;
    case TL_STEP_DROP_HOST:
    case TL_STEP_FORWARD:
    case TL_STEP_FORWARD_INPLACE:
    case TL_STEP_FORWARD_SAVE:
    case TL_STEP_BACKWARD:
    case TL_STEP_DROP_SAVED:
    case TL_STEP_COUNT: break;
    }
    return before;
}

static void tli_settle_tensors(tli_rest *r, tl_step *step) {
    const tl_node *node = &r->graph->nodes[step->node];
    int32_t i, acted = step->kind == TL_STEP_DROP_HOST;
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        tli_state state = (tli_state)r->states[i];
        if (!tli_names_tensor(r->graph, step, i) || step->kind == TL_STEP_DROP_HOST) continue;
        if (!tli_acts_in_state((tl_step_kind)step->kind, state, 1)) continue;
        r->states[i] = (uint8_t)tli_state_after((tl_step_kind)step->kind, state);
        acted = 1;
    }
    if (!acted) step->kind = TLI_LEFT_OUT;
}

// Leave out what has nothing to act on any more, in the order of the steps.
static void tli_settle_steps(tli_rest *r) {
    int32_t k;
    tli_start_variables(r);
    for (k = 0; k < r->count; k++) {
        tl_step *step = &r->trial[k];
        if (step->kind == TL_STEP_DROP_SAVED && !r->saved[step->node]) step->kind = TLI_LEFT_OUT;
        if (step->kind == TL_STEP_DROP_SAVED || step->kind == TL_STEP_BACKWARD) r->saved[step->node] = 0;
        if (tli_runs_forward(step)) tli_settle_forward(r, step);
        if (step->kind != TLI_LEFT_OUT && !tli_acts_on_node((tl_step_kind)step->kind))
            tli_settle_tensors(r, step);
        r->is_first[k] = (uint8_t)(tli_runs_forward(step) && !r->ran[step->node]);
        if (tli_runs_forward(step)) r->ran[step->node] = 1;
    }
    TLI_INVARIANT(r->count >= 0);
}

// Whether something that a forward makes is read later, or stays.
static int tli_is_wanted(const tli_rest *r, const tl_step *step) {
    const tl_node *node = &r->graph->nodes[step->node];
    int32_t i;
    if (step->kind == TL_STEP_FORWARD_SAVE && r->wanted[r->graph->tensor_count + step->node]) return 1;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (r->wanted[i]) return 1;
    return 0;
}

// Note what a call reads and makes, from the last step to the first.
static void tli_want_reads(tli_rest *r, const tl_step *step) {
    const tl_graph *graph = r->graph;
    const tl_node *node = &graph->nodes[step->node];
    int backward = step->kind == TL_STEP_BACKWARD;
    int32_t i;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (!backward || graph->outputs[i].needed) r->wanted[i] = (uint8_t)backward;
    if (backward || step->kind == TL_STEP_FORWARD_SAVE)
        r->wanted[graph->tensor_count + step->node] = (uint8_t)backward;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        if (!backward || graph->inputs[i].needed) r->wanted[graph->inputs[i].tensor] = 1;
}

// Leave out forwards that ran before and whose outputs nobody reads now.
static void tli_leave_out_unread(tli_rest *r) {
    const tl_graph *graph = r->graph;
    int32_t k, i, end;
    tli_zero(r->wanted, (size_t)graph->tensor_count + (size_t)graph->node_count);
    tli_copy(r->wanted, r->run->is_result, (size_t)graph->tensor_count);
    for (k = r->count; k-- > 0;) {
        tl_step *step = &r->trial[k];
        if (tli_runs_forward(step) && !r->is_first[k] && !tli_is_wanted(r, step)) tli_leave_out(graph, step);
        if (step->kind == TLI_LEFT_OUT || step->kind == TL_STEP_DROP_SAVED) continue;
        if (tli_acts_on_node((tl_step_kind)step->kind)) { tli_want_reads(r, step); continue; }
        if (step->kind == TL_STEP_WAIT || step->kind == TL_STEP_EXPAND || step->kind == TL_STEP_DROP_HOST)
            continue;
        i = graph->nodes[step->node].first_output;
        for (end = i + graph->nodes[step->node].output_count; i < end; i++)
            if (tli_names_tensor(graph, step, i))
                r->wanted[i] = step->kind == TL_STEP_SPILL || step->kind == TL_STEP_COMPRESS;
    }
}

// -- hybrid runs: the search --

// Go on from where another simulation of the same graph stands.
static void tli_copy_sim(tli_sim *to, const tli_sim *from) {
    tli_copy(to->all_tensors, from->all_tensors, (size_t)from->graph->tensor_count * sizeof *from->tensors);
    tli_copy(to->all_nodes, from->all_nodes, (size_t)from->graph->node_count * sizeof *from->nodes);
    to->next_backward[0] = from->next_backward[0];
    to->live_bytes = from->live_bytes;
    to->host_bytes = from->host_bytes;
    to->now = from->now;
    to->copies = from->copies;
    to->step_count = from->step_count;
    to->report = from->report;
    to->call_bytes = 0;
    TLI_INVARIANT(tli_sim_holds(to));
}

// Whether the steps of the trial are valid and stay within the room. *cost: of the pass.
static int tli_try_rest(tli_rest *r, uint64_t *cost) {
    tl_result result = TL_OK;
    int32_t k;
    tli_copy_sim(&r->sim, &r->run->hybrid.sim);
    for (k = 0; k < r->count && !result; k++) {
        r->work++;
        if (r->trial[k].kind == TLI_LEFT_OUT) continue;
        result = tli_sim_step(&r->sim, &r->trial[k]);
        if (r->sim.step_bytes > r->room) return 0;
    }
    if (result || tli_sim_end(&r->sim)) return 0;
    *cost = r->sim.report.compute_cost;
    return 1;
}

// Take the trial over if it is valid, fits and costs less.
static int tli_judge_trial(tli_rest *r) {
    uint64_t cost;
    tli_settle_steps(r);
    tli_leave_out_unread(r);
    tli_settle_steps(r);
    if (!tli_try_rest(r, &cost) || cost >= r->cost) return 0;
    TLI_INVARIANT(cost < r->cost);
    r->cost = cost;
    tli_copy(r->steps, r->trial, (size_t)r->count * sizeof *r->steps);
    return 1;
}

// How dear it is to leave a forward out: bytes x steps for which they are held instead, / its cost.
static uint64_t tli_rate_forward(const tli_rest *r, int32_t at) {
    const tl_step *step = &r->steps[at];
    const tl_node *node = &r->graph->nodes[step->node];
    uint64_t bytes = step->kind == TL_STEP_FORWARD_SAVE ? node->saved_bytes : 0, price;
    int32_t i, since = at;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        bytes += r->graph->outputs[i].bytes;
    while (since > 0 && (r->steps[since - 1].kind != TL_STEP_DROP || r->steps[since - 1].node != step->node))
        since--;
    if (!tli_mul_u64(bytes, (uint64_t)(at - since) + 1, &price) || !tli_mul_u64(price, 1024, &price))
        price = UINT64_MAX;
    return price / (node->fwd_cost + 1);
}

static void tli_find_forwards_again(tli_rest *r) {
    int32_t k;
    tli_copy(r->trial, r->steps, (size_t)r->count * sizeof *r->steps);
    tli_settle_steps(r);    // changes nothing: a plan is valid
    r->again_count = 0;
    for (k = 0; k < r->count; k++) {
        if (!tli_runs_forward(&r->steps[k]) || r->is_first[k]) continue;
        r->worth[r->again_count] = tli_rate_forward(r, k);
        r->again[r->again_count++] = k;
    }
    tli_sort_numbers(r->order, r->again_count, r->worth);
}

// Leave out as many of the forwards that run again as there is room for: all, or one after the other.
static int tli_spare_forwards(tli_rest *r) {
    int32_t k, found = 0;
    tli_copy(r->steps, r->run->plan.steps + r->from, (size_t)r->count * sizeof *r->steps);
    for (k = 0; k < r->again_count; k++) tli_spare_forward(r, r->again[k]);
    if (tli_judge_trial(r)) return 1;
    for (k = 0; k < r->again_count && r->work < TLI_REST_WORK; k++) {
        tli_copy(r->trial, r->steps, (size_t)r->count * sizeof *r->steps);
        tli_spare_forward(r, r->again[r->order[k]]);
        found |= tli_judge_trial(r);
    }
    return found;
}

// -- hybrid runs: places of the rest --

// What is to be placed: the numbers are those of a replay of the whole pass.
typedef struct tli_rest_places {
    tl_step  *steps;             // of the whole pass
    tl_lifetimes lifetimes;
    tl_layout_buffer *buffers;   // [count] by number; at last [member_count] those live from now on
    int32_t  *numbers;           // [member_count] of these buffers
    int32_t   count, member_count;
    int32_t   before;            // allocations before now
    tl_plan   plan;
} tli_rest_places;

// Where an allocation that is live between two steps lies now.
static uint64_t tli_present_offset(const tl_run *run, const tl_lifetime *life) {
    int32_t tensor = run->graph->nodes[life->node].first_output + life->output;
    if (life->use == TL_USE_SAVED) return tli_saved_buffer(run, life->node)->device.range.offset;
    if (life->use == TL_USE_GRADIENT) return run->gradients[tensor].device.range.offset;
    return run->tensors[tensor].device.range.offset;
}

// One buffer for each number, from the first to the last lifetime that has it; those of the past are left out.
static void tli_make_rest_buffers(const tli_rest *r, tli_rest_places *p) {
    int32_t i;
    for (i = 0; i < p->lifetimes.count; i++) {
        const tl_lifetime *life = &p->lifetimes.items[i];
        tl_layout_buffer *buffer = &p->buffers[life->number];
        if (life->use == TL_USE_HOST) continue;
        if (!buffer->bytes) buffer->first_step = life->first_step;
        buffer->bytes = life->bytes;
        buffer->last_step = life->end_step > life->first_step ? life->end_step - 1 : life->first_step;
        buffer->alignment = r->run->limits.alignment_bytes;
        if (life->first_step >= r->from) continue;
        buffer->is_pinned = 1;
        if (life->end_step >= r->from) buffer->pinned_offset = tli_present_offset(r->run, life);
    }
    for (i = 0; i < p->count; i++) {
        p->before += p->buffers[i].is_pinned;
        if (p->buffers[i].last_step < r->from) continue;
        p->buffers[p->member_count] = p->buffers[i];
        TLI_INVARIANT(p->member_count <= i);
        p->numbers[p->member_count++] = i;
    }
}

// Join the steps that were carried out and those that are left.
static tl_result tli_join_steps(const tli_rest *r, tli_rest_places *p) {
    const tl_run *run = r->run;
    int32_t k;
    p->steps = (tl_step *)tli_alloc_array(run->env, (uint64_t)run->plan.step_count, sizeof *p->steps);
    if (!p->steps) return TL_ERROR_NO_MEMORY;
    tli_copy(p->steps, run->plan.steps, (size_t)r->from * sizeof *p->steps);
    p->plan.steps = p->steps;
    p->plan.step_count = r->from;
    for (k = 0; k < r->count; k++)
        if (r->steps[k].kind != TLI_LEFT_OUT) p->steps[p->plan.step_count++] = r->steps[k];
    p->plan.inference = run->plan.inference;
    p->plan.any_order = run->plan.any_order;
    return TL_OK;
}

static tl_result tli_find_rest_buffers(const tli_rest *r, tli_rest_places *p) {
    tl_env *env = r->run->env;
    tl_simulate_desc simulate;
    tl_report report;
    tl_result result = tli_join_steps(r, p);
    if (result) return result;
    tli_zero(&simulate, sizeof simulate);
    simulate.graph = r->graph;
    simulate.plan = &p->plan;
    result = tli_find_lifetimes(env, TLI_IN(RUN_PLAN), &simulate, &p->lifetimes, &report);
    if (result) return result;
    p->count = report.allocation_count;
    p->buffers = (tl_layout_buffer *)tli_alloc_array(env, (uint64_t)p->count, sizeof *p->buffers);
    p->numbers = (int32_t *)tli_alloc_array(env, (uint64_t)p->count, sizeof *p->numbers);
    if (!p->buffers || !p->numbers) return TL_ERROR_NO_MEMORY;
    tli_make_rest_buffers(r, p);
    return TL_OK;
}

// Give the run the steps and the places.
static tl_result tli_take_rest(const tli_rest *r, tli_rest_places *p, const uint64_t *places) {
    tl_run *run = r->run;
    tli_hybrid *h = &run->hybrid;
    int32_t next = run->arenas[TL_TIER_DEVICE].next_offset, count = next + p->count - p->before, i;
    uint64_t *offsets = (uint64_t *)tli_alloc_array(run->env, (uint64_t)count, sizeof *offsets);
    if (!offsets) return TL_ERROR_NO_MEMORY;
    tli_copy(offsets, run->plan.offsets, (size_t)next * sizeof *offsets);
    for (i = 0; i < p->member_count; i++)
        if (p->numbers[i] >= p->before) offsets[next + p->numbers[i] - p->before] = places[i];
    tli_release(run->env, h->steps);
    tli_release(run->env, h->offsets);
    run->plan.steps = h->steps = p->steps;
    run->plan.step_count = p->plan.step_count;
    run->plan.offsets = h->offsets = offsets;
    run->plan.offset_count = run->arenas[TL_TIER_DEVICE].offset_count = count;
    p->steps = NULL;
    TLI_INVARIANT(run->position <= run->plan.step_count && next <= count);
    return TL_OK;
}

// Place the rest, and give it to the run. TL_ERROR_INFEASIBLE: the lowest places found end at *height, above
// the arena.
static tl_result tli_place_rest(const tli_rest *r, uint64_t *height) {
    tl_env *env = r->run->env;
    tl_layout_desc desc;
    tl_layout_plan layout;
    tli_rest_places p;
    tl_result result;
    tli_zero(&p, sizeof p);
    result = tli_find_rest_buffers(r, &p);
    if (!result) {
        tli_zero(&desc, sizeof desc);
        desc.buffers = p.buffers;
        desc.buffer_count = p.member_count;
        desc.capacity_bytes = r->run->hybrid.bounds.arena_bytes;
        desc.work_limit = TLI_REST_PLACE_WORK;
        result = tl_plan_layout(env, &desc, &layout);
        *height = layout.height_bytes;
        if (!result) result = tli_take_rest(r, &p, layout.offsets);
        tl_free_layout_plan(env, &layout);
    }
    tl_free_lifetimes(env, &p.lifetimes);
    tli_release(env, p.steps);
    tli_release(env, p.buffers);
    tli_release(env, p.numbers);
    return result;
}

// -- hybrid runs: after a report --

static int tli_open_rest(tl_run *run, tli_rest *r) {
    tl_env *env = run->env;
    uint64_t tensors = (uint64_t)run->graph->tensor_count, nodes = (uint64_t)run->graph->node_count, count;
    tl_plan flags;
    r->graph = run->graph;
    r->from = run->position;
    r->count = run->plan.step_count - run->position;
    count = (uint64_t)r->count;
    r->steps = (tl_step *)tli_alloc_array(env, 2 * count, sizeof *r->steps);
    r->states = (uint8_t *)tli_alloc_array(env, 2 * tensors + 3 * nodes + count, 1);
    r->again = (int32_t *)tli_alloc_array(env, 2 * count, sizeof *r->again);
    r->worth = (uint64_t *)tli_alloc_array(env, count, sizeof *r->worth);
    tli_zero(&flags, sizeof flags);
    flags.inference = run->plan.inference;
    flags.any_order = run->plan.any_order;
    if (!r->steps || !r->states || !r->again || !r->worth ||
        tli_init_sim(env, &r->sim, TLI_IN(RUN_PLAN), run->graph, NULL, &flags, NULL)) return 0;
    r->trial = r->steps + count;
    r->wanted = r->states + tensors;
    r->saved = r->wanted + tensors + nodes;
    r->ran = r->saved + nodes;
    r->is_first = r->ran + nodes;
    r->order = r->again + count;
    tli_copy(r->steps, run->plan.steps + r->from, (size_t)count * sizeof *r->steps);
    return 1;
}

static void tli_close_rest(tli_rest *r) {
    tl_env *env = r->run->env;
    if (r->sim.graph) tli_free_sim(&r->sim);
    tli_release(env, r->steps);
    tli_release(env, r->states);
    tli_release(env, r->again);
    tli_release(env, r->worth);
}

// Decide the rest of the pass again, if there is room now. Whatever fails here, the rest stays as it is.
static void tli_improve_rest(tl_run *run) {
    tli_quiet quiet = tli_begin_quiet(run->env);
    uint64_t arena = run->hybrid.bounds.arena_bytes, cost, height = 0;
    tl_result result = TL_ERROR_INFEASIBLE;
    tli_rest r;
    int turn, has_room = run->hybrid.has_room;
    run->hybrid.has_room = 0;
    tli_zero(&r, sizeof r);
    r.run = run;
    if (has_room && tli_open_rest(run, &r)) {
        tli_find_forwards_again(&r);
        r.room = arena;
        for (turn = 0; turn < TLI_REST_TURNS && r.again_count && result == TL_ERROR_INFEASIBLE; turn++) {
            tli_copy(r.trial, run->plan.steps + r.from, (size_t)r.count * sizeof *r.trial);
            r.cost = tli_try_rest(&r, &cost) ? cost : UINT64_MAX;
            tli_copy(r.trial, run->plan.steps + r.from, (size_t)r.count * sizeof *r.trial);
            if (!tli_spare_forwards(&r)) break;
            result = tli_place_rest(&r, &height);
            cost = tli_larger_u64(arena / 16, height > arena ? height - arena : 0);
            r.room -= cost < r.room ? cost : r.room;
        }
    }
    tli_close_rest(&r);
    tli_end_quiet(&quiet, TL_OK);
}

// An output of a hybrid run takes the bytes that were reported; one byte at least, so that the allocations of
// the plan keep their numbers.
static tl_result tli_take_real_bytes(tl_run *run, int32_t tensor, uint64_t bytes) {
    tl_node_output *output = (tl_node_output *)&run->graph->outputs[tensor];
    uint64_t less;
    if (!bytes && output->bytes) bytes = 1;
    less = output->bytes - bytes;
    TLI_INVARIANT(bytes <= output->bytes && run->hybrid.sim.live_bytes >= less);
    output->bytes = bytes;
    run->hybrid.sim.live_bytes -= less;
    run->hybrid.has_room |= less > 0;
    run->report.spared_bytes += less;
    TLI_INVARIANT(tli_sim_holds_often(&run->hybrid.sim));
    return less ? tli_shorten_held(&run->store, &run->tensors[tensor].device, bytes) : TL_OK;
}
#endif  // TL_NO_PLANNERS

// -- dynamic nodes: what is known in a pass --

// A forward has ended: its reports count.
static tl_result tli_take_reports(tl_run *run) {
    const tl_node *node = &run->graph->nodes[run->at.last.node];
    uint64_t *real = run->real_bytes;
    tl_result result = TL_OK;
    int32_t i;
    if (!node->dynamic || run->at.last.kind == TL_STEP_BACKWARD) return TL_OK;
    real += (size_t)run->slot * (size_t)run->graph->tensor_count + (size_t)node->first_output;
    for (i = 0; i < node->output_count && !result; i++) {
        if (run->at.call.reported[i] == TLI_UNREPORTED || real[i] != TLI_UNREPORTED) continue;
        TLI_INVARIANT(run->at.call.reported[i] <= run->graph->outputs[node->first_output + i].bytes);
        real[i] = run->at.call.reported[i];
#ifndef TL_NO_PLANNERS
        if (run->hybrid.is_on) result = tli_take_real_bytes(run, node->first_output + i, real[i]);
#endif
    }
#ifndef TL_NO_PLANNERS
    if (!result && run->hybrid.is_on) tli_improve_rest(run);
#endif
    return result;
}

// A pass begins: nothing is known but of what stays from the pass before.
static void tli_forget_reports(tl_run *run) {
    size_t count = (size_t)run->slot_count * (size_t)run->graph->tensor_count, i;
    for (i = 0; i < count && run->real_bytes; i++)
        if (!run->all_tensors[i].is_entry) run->real_bytes[i] = TLI_UNREPORTED;
    TLI_INVARIANT(!run->real_bytes || run->real_bytes[0] == TLI_UNREPORTED || run->all_tensors[0].is_entry);
}
#endif  // TL_NO_ONLINE
#endif  // TL_STRATEGY_IMPLEMENTATION
