#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- the executor: calls of kernels --
//
// From a compute step to the result of its kernel (order: the backend's, before the kernel may use the ranges):
//
//     claim -> describe -> what it depends on -> [ cut to a range -> order -> map -> yield -> kernel ]...
//
// What stands in brackets comes again for each range of elements, for each member of a fused node and for each
// piece of a state. The random hook stands around all calls of a forward.

#ifndef TL_ONLY_TABLES
// -- the executor: dependencies of a step --

// Find the latest earlier step that wrote a range which the access touches, or read one which it writes.
// Records that a write covers completely are removed: later accesses depend on the write.
static void tli_follow(tl_run *run, const tl_access *access, int32_t *depends_on) {
    uint64_t from = access->range.offset, end = from + access->range.bytes;
    int32_t k;
    for (k = 0; k < run->touched_count; k++) {
        const tli_touched *t = &run->touched[k];
        if (!tli_overlaps(t->range, access->range)) continue;
        if (t->written > *depends_on) *depends_on = t->written;
        if (!access->writes) continue;
        if (t->read > *depends_on) *depends_on = t->read;
        if (t->range.offset >= from && t->range.offset + t->range.bytes <= end)
            run->touched[k--] = run->touched[--run->touched_count];
    }
}

static int tli_note_access(tl_run *run, const tl_access *access) {
    void *array = run->touched;
    tli_touched *t;
    int32_t k;
    for (k = 0; k < run->touched_count; k++) {
        t = &run->touched[k];
        if (!tli_is_same_range(&t->range, &access->range)) continue;
        t->read = run->at.event.index;  // a write would have removed the record
        return 1;
    }
    if (!tli_grow(run->env, &array, &run->touched_capacity, run->touched_count,
                  (int64_t)run->touched_count + 1, sizeof *run->touched)) return 0;
    run->touched = (tli_touched *)array;
    t = &run->touched[run->touched_count++];
    t->range = access->range;
    t->written = access->writes ? run->at.event.index : -1;
    t->read = access->writes ? -1 : run->at.event.index;
    return 1;
}

static tl_result tli_find_dependency(tl_run *run, int32_t *depends_on) {
    int32_t i;
    *depends_on = -1;
    for (i = 0; i < run->at.call.access_count; i++) {
        tli_follow(run, &run->at.call.accesses[i], depends_on);
        if (!tli_note_access(run, &run->at.call.accesses[i]))
            return tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(NEXT_STEP),
                            TLI_RULE(RECORD_OF_RANGES_NO_MEMORY));
    }
    return TL_OK;
}
#else
// All steps before are finished.
static tl_result tli_find_dependency(const tl_run *run, int32_t *depends_on) {
    *depends_on = run->at.event.index - 1;
    return TL_OK;
}
#endif

// -- the executor: compute steps --

// Describe the operands of a compute step, whole.
static void tli_describe_operands(tl_run *run) {
    if (run->at.last.kind == TL_STEP_BACKWARD) tli_describe_backward(run);
    else tli_describe_forward(run);
}

#ifndef TL_ONLY_TABLES
// Cut the operands of a call that is for a range. Each access belongs to one tensor, so operands that share one
// are cut alike.
static void tli_cut_operands(tl_run *run) {
    const tl_node *node = &run->graph->nodes[run->at.last.node];
    tli_call *call = &run->at.call;
    int32_t inputs = node->input_count, outputs = node->output_count, i;
    for (i = 0; i < 2 * (inputs + outputs); i++) {
        int32_t access = call->access_of[i], place = i;  // among inputs and outputs
        tl_range *range = &call->operands[i].range;
        if (i >= inputs + 2 * outputs) place -= inputs + 2 * outputs;
        else if (i >= inputs + outputs) place -= outputs;
        if (access < 0) continue;
        *range = tli_cut_range(run, tli_operand_tensor(run, node, place), *range);
        call->accesses[access].range = *range;
    }
}
#endif

// The kernel of the call at hand, with the user of its node where the desc has users.
static const tl_kernel *tli_find_call_kernel(tl_run *run, int32_t kernel) {
    int is_own = !tli_count_members(run, run->at.last.node);   // added by the library, as a conversion
    int32_t origin = is_own ? -1 : tli_caller_graph(run)->nodes[run->at.call.node].origin;
    tl_kernel *own = tli_own_kernel(run);
    if (!run->desc.users || origin < 0) return &run->kernels[kernel];
    *own = run->kernels[kernel];
    own->user = run->desc.users[origin];
    return own;
}

// Describe the call at hand and name its kernel.
static void tli_name_call(tl_run *run, int32_t kernel, tl_run_step *out) {
    tli_describe_call(run, tli_find_called(run), &out->call);
    out->is_compute = 1;
    out->piece = run->at.call.piece;
    out->kernel = tli_find_call_kernel(run, kernel);
}

// Describe the call at hand of a step with several. The first one does not write what the step does.
static tl_result tli_describe_piece_call(tl_run *run) {
    tli_call *call = &run->at.call;
#ifndef TL_ONLY_TABLES
    call->operand_count = call->access_count = 0;
    if (!call->piece) tli_describe_backward(run);
#else
    if (call->piece) call->operand_count = 0;
#endif
    return call->piece ? tli_describe_piece(run) : TL_OK;
}

// Yield the call at hand: its operands are claimed and described.
static tl_result tli_yield_call(tl_run *run, tl_run_step *out) {
    tl_result result = TL_OK;
    int32_t kernel = run->kernel_of[tli_find_called(run)];
    run->at.computing = TLI_COMPUTING_YIELDED;
    run->at.call.polled = 0;
    run->at.call.is_asked = 0;
#ifndef TL_ONLY_TABLES
    run->at.call.request = -1;
    if (tli_has_turns(run)) {
        run->at.call.operand_count = run->at.call.access_count = 0;
        tli_describe_member(run);
        kernel = run->members.kernels[run->at.call.node];
        result = tli_clear_gradient_block(run);
    } else if (!run->at.call.piece && run->at.call.count < run->at.call.total) {
        tli_cut_operands(run);
    }
#endif
    if (run->at.call.pieces > 1) result = tli_describe_piece_call(run);
    tli_name_call(run, kernel, out);
    run->report.kernel_count++;
    if (tli_calls_update(run)) run->updates.has_begun = 1;
    if (result) return tli_run_fail_backend(run, result, TLI_RULE(CLEAR_FAILED));
#ifndef TL_ONLY_TABLES
    result = (run->backend.order)(run->backend.self, run->at.call.accesses, run->at.call.access_count);
    if (result) return tli_run_fail_backend(run, result, TLI_RULE(ORDER_FAILED));
    result = run->limits.host_visible ? tli_map_accesses(run) : TL_OK;
    if (result && result != TL_NOT_READY) return tli_run_fail_backend(run, result, TLI_RULE(MAP_FAILED));
    result = TL_OK;
    tli_update_call(run, &out->call);
#endif
    return result;  // what could not be mapped yet is mapped by tl_map_step or tl_run_step_kernel
}

// The call for the next elements of the step yielded last, of the next member of a fused node, or for the next
// piece. It waits for what the first call waits for; where there is scratch, for the call before, too.
#ifndef TL_ONLY_TABLES
static tl_result tli_yield_next_range(tl_run *run, tl_run_step *out) {
    tli_call *call = &run->at.call;
    tl_result result;
    run->store.enqueued = 1;    // the call before
    result = tli_enqueue_call(run);
    if (result) return result;
    if (call->pieces > 1) tli_take_piece(run);
    else tli_take_turn(run);
    call->operand_count = call->access_count = 0;
    if (!tli_has_turns(run) && call->pieces < 2) tli_describe_operands(run);
    out->step = run->at.last;
    out->index = run->at.event.index;
    out->depends_on = call->scratch.range.bytes && !run->by_itself ? run->at.event.index : call->depends_on;
    return tli_yield_call(run, out);
}
#else
static tl_result tli_yield_next_range(tl_run *run, tl_run_step *out) {
    tli_take_piece(run);
    out->step = run->at.last;
    out->index = out->depends_on = run->at.event.index;
    return tli_yield_call(run, out);
}
#endif

// Go on with a compute step whose operands are claimed and described: once every step under way that it depends
// on is finished, yield its first call, or carry it out where it has no kernel.
static tl_result tli_go_on_compute(tl_run *run, tl_run_step *out) {
#ifndef TL_ONLY_TABLES
    const tli_call *call = &run->at.call;
    int32_t before = run->flights ? tli_find_conflict(run, call->accesses, call->access_count) : -1;
    tl_result result;
#endif
    run->at.computing = TLI_COMPUTING_OPENED;
    out->step = run->at.last;
    out->index = run->at.event.index;
    out->depends_on = run->at.call.depends_on;
#ifndef TL_ONLY_TABLES
    if (before >= 0) return tli_wait_for(run, before);
    result = tli_enqueue_call(run);
    if (result) return result;
    if (run->flights) run->at.event.start_ns = tli_run_now(run);
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (run->kernel_of[run->at.last.node] == TLI_CONVERSION) {
        tli_describe_call(run, run->at.last.node, &out->call);
        run->at.computing = TLI_COMPUTING_DONE;
        return run->at.call.outputs_ready ? TL_OK : tli_convert(run, run->at.call.adds);
    }
#endif
    if (tli_has_no_turns(run) || (tli_has_turns(run) && run->at.call.outputs_ready)) {
        // a fused node has no saved bytes to make
        run->at.call.turns = 1;
        run->at.call.count = run->at.call.total;
        run->at.computing = TLI_COMPUTING_DONE;
        return TL_OK;
    }
#endif
    if (tli_is_update(run, &run->at.last)) {
        tl_result known = tli_look_for_overflow(run);
        if (known) return known;
    }
    if (tli_is_passed_over(run, &run->at.last)) {
        run->at.computing = TLI_COMPUTING_DONE;
        run->at.call.count = run->at.call.total;
        return TL_OK;
    }
    return tli_yield_call(run, out);
}

static tl_result tli_begin_compute(tl_run *run, tl_run_step *out) {
    int backward = run->at.last.kind == TL_STEP_BACKWARD;
    tli_cut cut = tli_find_cut(run, run->at.last.node);
    tl_result result;
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    run->at.call.adds = 0;
    if (run->kernel_of[run->at.last.node] == TLI_CONVERSION && backward) {
        int32_t input = run->graph->nodes[run->at.last.node].first_input;
        run->at.call.adds = run->gradients[run->graph->inputs[input].tensor].state != TLI_ABSENT;
    }
#endif
    tli_start_turns(run, &cut);
    run->at.call.piece = run->at.call.rows.is_update = 0;
    run->at.call.pieces = tli_count_step_calls(run);
    run->at.call.outputs_ready = 0;
#ifndef TL_NO_ONLINE
    tli_clear_reports(run);
#endif
    result = backward ? tli_begin_backward(run) : tli_begin_forward(run);
    run->at.computing = TLI_COMPUTING_OPENED;  // from here on there may be ranges to release
    if (result) return tli_run_fail_backend(run, result, TLI_RULE(CLAIM_FAILED));
    tli_describe_operands(run);
#ifndef TL_ONLY_TABLES
    tli_note_pieces(run);
#endif
    if (!run->by_itself) result = tli_find_dependency(run, &out->depends_on);
    run->at.call.depends_on = out->depends_on;
    return result ? result : tli_go_on_compute(run, out);
}

// -- the executor: the random hook, around all calls of a forward --

static void tli_call_random(tl_run *run, tl_random_moment moment) {
    if (run->desc.random)
        (run->desc.random)(moment, run->at.last.node, run->at.event.micro_batch, run->desc.random_user);
}

static void tli_start_random(tl_run *run) {
    tli_call_random(run, run->at.event.recompute ? TL_RANDOM_REPLAY : TL_RANDOM_RECORD);
    run->at.call.replays = run->at.event.recompute;
}

static void tli_end_random(tl_run *run) {
    if (run->at.call.replays) tli_call_random(run, TL_RANDOM_RESUME);
    run->at.call.replays = 0;
}

// -- the executor: kernels --

static tl_result tli_fail_kernel(tl_run *run, tl_result code) {
    tli_rule rule = run->at.call.kind == TL_STEP_BACKWARD
        ? TLI_RULE(BACKWARD_OF_NODE_KERNEL_RETURNED)
        : TLI_RULE(FORWARD_OF_NODE_KERNEL_RETURNED);
    tli_sentence s = tli_begin_error(run->env, TL_ERROR_KERNEL, TLI_IN(RUN_PLAN), rule,
                                     (uint64_t)run->at.call.node,
                                     (uint64_t)code);
    tli_put_text(&s, tl_name_node(tli_caller_graph(run), run->at.call.node));
    tli_put_text(&s, tl_name_result(code));
    return tli_end_error(run->env, &s, TL_ERROR_KERNEL);
}

static tl_result tli_call_kernel(tl_run *run, const tl_run_step *step) {
    int backward = run->at.call.kind == TL_STEP_BACKWARD;
    tl_kernel_fn function = backward ? step->kernel->backward : step->kernel->forward;
    tl_kernel_call call = step->call;
#ifndef TL_ONLY_TABLES
    uint64_t start;
#endif
    tl_result result;
    tli_update_call(run, &call);
    call.polled = run->at.call.polled;
    if (!backward && !call.first && !call.polled) tli_start_random(run);
#ifndef TL_ONLY_TABLES
    start = tli_run_now(run);
#endif
#ifndef TL_NO_ONLINE
    run->at.call.is_inside = 1;
#endif
    result = (function)(&call, step->kernel->user);
#ifndef TL_NO_ONLINE
    run->at.call.is_inside = 0;
#endif
    tli_end_event(run);
#ifndef TL_ONLY_TABLES
    run->report.compute_ns += run->at.event.end_ns - start;
#endif
    if (result == TL_NOT_READY) {
        if (run->at.call.polled < INT32_MAX) run->at.call.polled++;
        return result;
    }
    if (result || !tli_has_more_ranges(run)) tli_end_random(run);
#ifndef TL_NO_ONLINE
    if (tli_check_reports(run)) return TL_ERROR_INVALID_ARG;
#endif
    if (!result) return TL_OK;
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (function == tli_carry_message)
        return tli_fail_peer(run, TLI_IN(RUN_PLAN), result, run->messages->failed_peer, run->at.event.index);
#endif
    return tli_fail_kernel(run, result);
}
#endif  // TL_STRATEGY_IMPLEMENTATION
