#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- the executor: memory steps --
//
// Steps that drop, copy or pack what is held. Each is carried out when it is opened, without a kernel, and is
// finished then for the executor; a copy goes on until the WAIT that ends it:
//
//     SPILL, FETCH           the copy is enqueued; the tensor's WAIT asks the backend whether it is over
//     COMPRESS, EXPAND       a conversion is enqueued; the bytes before are given back
//     DROP, ...              given back at once, or when no step under way can use them any more
//
// Where several steps are under way, one that moves bytes waits for those that make or overwrite them.

// The tensors that a step names: from *from up to, but without, *end.
static void tli_step_outputs(const tl_run *run, const tl_step *step, int32_t *from, int32_t *end) {
    const tl_node *node = &run->graph->nodes[step->node];
    *from = node->first_output + (step->output == TL_ALL_OUTPUTS ? 0 : step->output);
    *end = step->output == TL_ALL_OUTPUTS ? node->first_output + node->output_count : *from + 1;
}

#ifndef TL_ONLY_TABLES
static int tli_acts_on_buffer(const tli_buffer *buffer, tl_step_kind kind) {
    return tli_acts_in_state(kind, (tli_state)buffer->state, buffer->on_host);
}

static tl_result tli_memory_act(tl_run *run, int32_t tensor) {
    tli_buffer *buffer = &run->tensors[tensor];
    tl_run_report *report = &run->report;
    switch ((tl_step_kind)run->at.last.kind) {
    case TL_STEP_DROP:
        report->drop_count++;
        return tli_buffer_drop(run, buffer);
    case TL_STEP_SPILL:
        report->spill_count++;
        tli_spilled_of(run, buffer)->copy_ns = run->at.event.start_ns;
        return tli_buffer_spill(run, buffer);
    case TL_STEP_FETCH:
        report->fetch_count++;
        tli_spilled_of(run, buffer)->copy_ns = run->at.event.start_ns;
        return tli_buffer_fetch(run, buffer);
    case TL_STEP_WAIT:
        run->at.event.start_ns = tli_spilled_of(run, buffer)->copy_ns;
        return tli_buffer_wait(run, buffer);
    case TL_STEP_DROP_HOST:
        return tli_buffer_drop_host(run, buffer);
    case TL_STEP_COMPRESS:
        report->compress_count++;
        return tli_buffer_convert(run, buffer, run->graph->outputs[tensor].bytes, (tl_codec)run->at.last.codec);
    case TL_STEP_EXPAND:
        report->expand_count++;
        return tli_buffer_convert(run, buffer, run->graph->outputs[tensor].bytes, TL_CODEC_NONE);
    case TL_STEP_FORWARD:
    case TL_STEP_FORWARD_INPLACE:
    case TL_STEP_FORWARD_SAVE:
    case TL_STEP_BACKWARD:
    case TL_STEP_DROP_SAVED:
    case TL_STEP_COUNT: break;
    }
    return TL_OK;
}

// Add the accesses of a memory step: the ranges of its tensor, before and after the step. A SPILL only
// reads the device range, a FETCH only the host range. A freed range counts as written, so that the step
// follows all earlier steps that used it.
static void tli_note_buffer(tl_run *run, int32_t tensor) {
    const tli_buffer *buffer = &run->tensors[tensor];
    int spill = run->at.last.kind == TL_STEP_SPILL, fetch = run->at.last.kind == TL_STEP_FETCH;
    int frees_host = run->at.last.kind == TL_STEP_DROP_HOST;
    if (!frees_host) (void)tli_call_access(&run->at.call, &buffer->device.range, !spill);
    if (spill || fetch || frees_host || run->at.last.kind == TL_STEP_WAIT)
        (void)tli_call_access(&run->at.call, &tli_spilled_of(run, buffer)->host.range, !fetch);
}

static tl_result tli_memory_step(tl_run *run) {
    tli_buffer *saved = tli_saved_buffer(run, run->at.last.node);
    tl_result result = TL_OK;
    int32_t i, end;
    if (run->at.last.kind == TL_STEP_DROP_SAVED) {
        run->report.drop_count++;
        if (saved) (void)tli_call_access(&run->at.call, &saved->device.range, 1);
        result = tli_buffer_drop(run, saved);
        return result ? tli_run_fail_backend(run, result, TLI_RULE(RELEASE_FAILED)) : TL_OK;
    }
    tli_step_outputs(run, &run->at.last, &i, &end);
    for (; i < end && !result; i++) {
        if (!tli_acts_on_buffer(&run->tensors[i], (tl_step_kind)run->at.last.kind)) continue;
        tli_note_buffer(run, i);
        result = tli_enqueue_memory_step(run, (tl_step_kind)run->at.last.kind, run->graph->outputs[i].bytes);
        if (result) return result;
        result = tli_memory_act(run, i);
        tli_note_buffer(run, i);
    }
    return result ? tli_run_fail_backend(run, result, TLI_RULE(MEMORY_FAILED)) : TL_OK;
}

// Wait for the copies that a WAIT ends. If the caller pulls the steps this does not block, but returns
// TL_NOT_READY.
static tl_result tli_poll_step(tl_run *run, const tl_step *step) {
    const tl_backend *backend = &run->backend;
    tl_result result = TL_OK;
    int32_t i, end;
    if (step->kind != TL_STEP_WAIT || run->limits.in_order) return TL_OK;
    tli_step_outputs(run, step, &i, &end);
    for (; i < end && !result; i++)
        if (tli_acts_on_buffer(&run->tensors[i], TL_STEP_WAIT))
            result = (run->by_itself ? backend->wait : backend->poll)(
                backend->self, tli_spilled_of(run, &run->tensors[i])->copied);
    return result;
}

// Where others are under way, a memory step that moves bytes waits for those that make or overwrite them.
static tl_result tli_order_memory_step(tl_run *run) {
    tl_step_kind kind = (tl_step_kind)run->at.last.kind;
    int moves = kind == TL_STEP_SPILL || kind == TL_STEP_FETCH || kind == TL_STEP_COMPRESS ||
                kind == TL_STEP_EXPAND;
    int32_t i, end, before, latest = -1;
    if (!run->flights || !moves) return TL_OK;
    tli_step_outputs(run, &run->at.last, &i, &end);
    for (; i < end; i++) {
        tl_access access;
        if (!tli_acts_on_buffer(&run->tensors[i], kind)) continue;
        access.range = kind == TL_STEP_FETCH ? tli_spilled_of(run, &run->tensors[i])->host.range
                                             : run->tensors[i].device.range;
        access.writes = 0;
        before = tli_find_conflict(run, &access, 1);
        if (before > latest) latest = before;
    }
    return latest >= 0 ? tli_wait_for(run, latest) : TL_OK;
}
#else
static tl_result tli_memory_step(tl_run *run) {
    int32_t i, end;
    run->report.drop_count++;
    if (run->at.last.kind == TL_STEP_DROP_SAVED)
        return tli_buffer_drop(run, tli_saved_buffer(run, run->at.last.node));
    tli_step_outputs(run, &run->at.last, &i, &end);
    if (run->graph->nodes[run->at.last.node].is_input) return TL_OK;     // its place is that of every pass
    for (; i < end; i++) (void)tli_buffer_drop(run, &run->tensors[i]);
    return TL_OK;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
