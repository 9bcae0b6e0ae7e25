#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- the executor --
//
// tl_next_step closes the compute step before, pulls one step, and carries it out (memory steps) or
// prepares it for its kernel (compute steps):
//
//     pull -> wait for a copy -> claim ranges -> describe operands -> order -> yield -> kernel -> release
//
// The ranges that a call touches are its accesses, each once; a copy, claim or release of a memory step
// is an access, too, so that depends_on can be found from the accesses alone.
//
// This part: what a step says when it fails and when it is timed, and the operands of a compute step: which
// ranges it claims, what its kernel is told of them, and where they lie on the host. The parts that follow have
// nodes that only convert, memory steps, calls of kernels, the figures of a pass, passes, steps, the whole
// plan, and the caller's tensors.

static void tli_put_last_step(const tl_run *run, tli_writer *w) {
    tli_put(w, "step ");
    tli_put_i64(w, run->at.event.index);
    tli_put(w, " (");
    tli_put(w, tl_name_step((tl_step_kind)run->at.last.kind));
    tli_put(w, " ");
    tli_put(w, tl_name_node(run->graph, run->at.last.node));
    tli_put(w, ")");
}

// Report an error of the backend. A step that was begun cannot be repeated, so TL_NOT_READY is an error here.
static tl_result tli_run_fail_backend(tl_run *run, tl_result why, tli_rule rule) {
    tl_result code = why == TL_NOT_READY ? TL_ERROR_BACKEND : why;
    tli_sentence s = tli_begin_error(run->env, code, TLI_IN(RUN_PLAN), rule, (uint64_t)run->at.event.index,
                                     (uint64_t)run->at.last.node);
    if (TLI_ERROR_TEXT) {
        tli_put_last_step(run, &s.text);
        tli_put(&s.text, ": ");
    }
    tli_put_text(&s, TLI_ERROR_TEXT ? tl_explain_result(why) : "");
    return tli_end_error(run->env, &s, code);
}

#ifndef TL_ONLY_TABLES
static uint64_t tli_run_now(const tl_run *run) {
    return run->profiling ? (run->backend.now_ns)(run->backend.self) : 0;
}

static void tli_start_event(tl_run *run) {
    run->at.event.start_ns = tli_run_now(run);
    if (run->profiling) run->at.high_bytes = tli_run_live_bytes(run, TL_TIER_DEVICE);
}

static void tli_end_event(tl_run *run) { run->at.event.end_ns = tli_run_now(run); }

static void tli_observe_step(tl_run *run) {
    if (!run->profiling) return;
    run->at.event.device_bytes = run->at.high_bytes;
    run->at.event.host_bytes = tli_run_live_bytes(run, TL_TIER_HOST);
    if (run->desc.observe) (run->desc.observe)(&run->at.event, run->desc.observe_user);
}
#else
static void tli_start_event(tl_run *run) { (void)run; }
static void tli_end_event(tl_run *run) { (void)run; }
static void tli_observe_step(tl_run *run) { (void)run; }
#endif

// -- the executor: operands of a call --

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
// Set the formats of the operands. A gradient has the format of its tensor.
static void tli_name_formats(tl_run *run, const tl_node *node) {
    tl_operand *inputs = run->at.call.operands, *outputs = inputs + node->input_count;
    tl_operand *output_grads = outputs + node->output_count;
    tl_operand *input_grads = output_grads + node->output_count;
    int32_t i;
    for (i = 0; i < node->input_count; i++)
        inputs[i].format = input_grads[i].format =
            tli_run_format(run, run->graph->inputs[node->first_input + i].tensor);
    for (i = 0; i < node->output_count; i++)
        outputs[i].format = output_grads[i].format = tli_run_format(run, node->first_output + i);
}
#endif

// Tell a call its elements: whole ones, none of which ends behind the bytes of output 0.
static void tli_name_elements(const tl_run *run, tl_kernel_call *out) {
    const tli_call *call = &run->at.call;
    out->first = call->first;
    out->count = call->count;
    out->total = call->total;
#ifndef TL_ONLY_TABLES
    out->by_rows = tli_calls_rows(run);
    if (tli_is_region(run, run->at.last.node)) return;
    if (call->piece) return;    // rows
    if (!tli_ends_incomplete(run, run->graph->nodes[run->at.last.node].first_output)) return;
    out->total--;
    if (out->count > out->total - out->first) out->count = out->total - out->first;
#endif
}

// Fill in the kernel call. called: the node of the run's graph whose kernel it is, unless it is fused. Operands
// lie in the order of tl_kernel_call: inputs, outputs, gradients of outputs and of inputs, saved, scratch.
static void tli_describe_call(tl_run *run, int32_t called, tl_kernel_call *out) {
    tli_call *call = &run->at.call;
    const tl_graph *graph = tli_count_members(run, run->at.last.node) ? tli_caller_graph(run) : run->graph;
    const tl_node *node = &graph->nodes[call->node];
    const tl_operand *at = call->operands;
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (!tli_has_turns(run)) tli_name_formats(run, &run->graph->nodes[called]);
#else
    (void)called;
#endif
    tli_zero(out, sizeof *out);
    out->graph = graph;
    out->node = call->node;
    out->kind = call->kind;
    out->recompute = run->at.event.recompute;
    if (call->kind != TL_STEP_BACKWARD && run->at.last.kind == TL_STEP_BACKWARD)
        out->recompute = !tli_is_late(&run->graph->nodes[run->at.last.node]);
    out->micro_batch = run->at.event.micro_batch;
    out->step = run->training_step;
    out->seed = tl_mix_u64(tl_mix_u64(run->desc.seed, run->training_step),
                           (uint64_t)run->at.event.micro_batch << 32 |
                               (uint32_t)(node->origin < 0 ? ~call->node : node->origin));
    out->precision = tli_precision_of(run);
    out->inputs = at;                         at += node->input_count;
    out->outputs = at;                        at += node->output_count;
    out->output_grads = at;                   at += node->output_count;
    out->input_grads = at;                    at += node->input_count;
    out->saved = at[0];
    out->scratch = at[1];
    out->outputs_ready = call->outputs_ready;
    tli_name_elements(run, out);
    out->run = run;
#ifndef TL_ONLY_TABLES
    out->loss_scale = run->loss_scale;
#endif
}

// Saved bytes and scratch are part of a call itself: give it their present addresses.
static void tli_update_call(const tl_run *run, tl_kernel_call *out) {
    const tl_operand *end = run->at.call.operands + run->at.call.operand_count;
    out->saved = end[-2];
    out->scratch = end[-1];
}

// In place, output 0 takes over the range of the input.
static void tli_hand_over(tl_run *run, const tl_node *node) {
    tli_buffer *from = &run->tensors[run->graph->inputs[node->first_input + node->inplace].tensor];
    tli_buffer *to = &run->tensors[node->first_output];
    tli_buffer_hand_over(to, from);
}

// Claim the ranges that a forward writes, in the order of the simulator. Outputs that are resident already
// get a second range for the length of the call, but a FORWARD_SAVE whose outputs are all resident makes
// its saved bytes only.
static tl_result tli_begin_forward(tl_run *run) {
    const tl_node *node = &run->graph->nodes[run->at.last.node];
    const tl_node_output *outputs = &run->graph->outputs[node->first_output];
    tli_buffer *buffers = &run->tensors[node->first_output], *saved = tli_saved_buffer(run, run->at.last.node);
    int32_t i, missing = 0, inplace = run->at.last.kind == TL_STEP_FORWARD_INPLACE;
    uint64_t bytes;
    tl_result result = TL_OK;
    if (inplace) tli_hand_over(run, node);
    for (i = 0; i < node->output_count && !result; i++) {
        run->at.call.made[i] = inplace && i == 0;
        if (tli_is_present(&buffers[i])) continue;
        result = tli_buffer_claim(run, outputs[i].bytes, &buffers[i]);
        run->at.call.made[i] = 1;
        missing++;
    }
    run->at.call.outputs_ready = !missing && !inplace;
    for (i = 0; i < node->output_count && !result && !run->at.call.outputs_ready; i++)
        if (!run->at.call.made[i])
            result = tli_claim_device(run, outputs[i].bytes, &run->at.call.twice[i]);
    if (!result && run->at.last.kind == TL_STEP_FORWARD_SAVE)
        result = tli_buffer_claim(run, node->saved_bytes, saved);
    bytes = run->at.last.kind == TL_STEP_FORWARD_SAVE ? node->swork_bytes : node->fwork_bytes;
    return result ? result : tli_claim_device(run, bytes, &run->at.call.scratch);
}

static void tli_describe_forward(tl_run *run) {
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[run->at.last.node];
    int inplace = run->at.last.kind == TL_STEP_FORWARD_INPLACE;
    int saves = run->at.last.kind == TL_STEP_FORWARD_SAVE;
    tli_call *call = &run->at.call;
    tl_range none, room, other;
    int32_t i;
    tli_zero(&none, sizeof none);
    for (i = 0; i < node->input_count; i++) {
        int32_t tensor = graph->inputs[node->first_input + i].tensor;
        int changes = tli_is_statistic(graph, tensor) && !run->at.event.recompute;
        if (inplace && i == node->inplace) tensor = node->first_output;
        tli_call_tensor(run, tensor, tli_tensor_range(run, tensor, &room), changes);
    }
    for (i = 0; i < node->output_count; i++) {
        const tl_range *own = tli_tensor_range(run, node->first_output + i, &room);
        const tl_range *twice = tli_held_range(run, &call->twice[i], &other);
        tli_call_tensor(run, node->first_output + i, twice->bytes ? twice : own, !call->outputs_ready);
    }
    for (i = 0; i < node->output_count + node->input_count; i++) tli_call_operand(run, &none, 0);
    tli_call_operand(run, saves ? tli_saved_range(run, run->at.last.node, &room) : &none, 1);
    tli_call_operand(run, tli_held_range(run, &call->scratch, &room), 1);
}

#ifndef TL_ONLY_TABLES
// The gradient of one element of a loss, before it is converted to its format.
static float tli_first_gradient(const tl_run *run) {
    float value = 1.0f;
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (run->desc.loss_gradient_word) tli_copy(&value, &run->desc.loss_gradient_word, sizeof value);
    value *= run->loss_scale;
#else
    (void)run;
#endif
    return value;
}

// Whether the caller's word fills the first gradient as it is, without conversion.
static int tli_takes_word(const tl_run *run) {
    return run->desc.loss_gradient_word && !run->desc.formats && !run->desc.loss_scaler;
}

// The first gradient in the format of a tensor, as a word with which its range is filled.
static uint32_t tli_first_word(const tl_run *run, int32_t tensor) {
    float value = tli_first_gradient(run);
    uint32_t bits, half;
    int is_f16 = run->precision == TL_PRECISION_HALF || tli_run_format(run, tensor) == TL_FORMAT_F16;
    int is_bf16 = run->precision == TL_PRECISION_BF16 || tli_run_format(run, tensor) == TL_FORMAT_BF16;
    if (tli_takes_word(run)) return run->desc.loss_gradient_word;
    tli_copy(&bits, &value, sizeof bits);
    if (!is_f16 && !is_bf16) return bits;
    half = is_f16 ? tli_f16_of(bits) : tli_bf16_of(bits);
    return half << 16 | half;
}

// Fill a range with f64 of the first gradient; a fill with words of 4 bytes cannot.
static tl_result tli_fill_doubles(tl_run *run, tl_range range) {
    const double value = (double)tli_first_gradient(run);
    void *host = NULL;
    uint64_t at;
    tl_result result;
    if (!range.bytes) return TL_OK;
    result = tli_order_range(&run->store, &range, 1);
    if (!result) result = (run->backend.map)(run->backend.self, range, TL_MAP_WRITE, &host);
    if (result) return result;
    for (at = 0; range.bytes - at >= sizeof value; at += sizeof value)
        tli_copy((char *)host + at, &value, sizeof value);
    tli_zero((char *)host + at, (size_t)(range.bytes - at));
    return (run->backend.unmap)(run->backend.self, range, TL_MAP_WRITE, host);
}

// Fill the gradient of a loss.
static tl_result tli_fill_first(tl_run *run, int32_t tensor, const tl_range *range) {
    if (run->precision == TL_PRECISION_DOUBLE && !tli_takes_word(run)) return tli_fill_doubles(run, *range);
    return tli_fill_range(&run->store, range, tli_first_word(run, tensor));
}

static tl_result tli_clear_range(tl_run *run, const tl_range *range) {
    return tli_fill_range(&run->store, range, 0);
}
#endif

// Fill a tensor that is there with zeroes.
static tl_result tli_clear_tensor(tl_run *run, int32_t tensor) {
    tl_range range;
    range = *tli_tensor_range(run, tensor, &range);
    return range.bytes ? tli_clear_range(run, &range) : TL_OK;
}

// Make the gradient of a tensor if there is none. If no node reads the tensor it is a loss, whose gradient
// is 1, or loss_gradient_word, x the loss scale; all others, and those of states, start at 0.
static tl_result tli_make_gradient(tl_run *run, int32_t tensor) {
    const tl_node_output *output = &run->graph->outputs[tensor];
    tli_buffer *gradient = &run->gradients[tensor];
    int is_sum = run->is_read[tensor] || run->graph->nodes[output->node].state;
    tl_range range;
    tl_result result;
    if (tli_is_present(gradient) || !tli_gets_gradient(run->graph, tensor)) return TL_OK;
    result = tli_buffer_claim(run, output->bytes, gradient);
    if (result) return result;
    range = tli_known_range(run, tensor, *tli_gradient_range(run, tensor, &range));
    tli_note_write(run, &range);
    return is_sum ? tli_clear_range(run, &range) : tli_fill_first(run, tensor, &range);
}

static tl_result tli_begin_backward(tl_run *run) {
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[run->at.last.node];
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < node->output_count && !result; i++)
        result = tli_make_gradient(run, node->first_output + i);
    for (i = 0; i < node->input_count && !result; i++)
        result = tli_make_gradient(run, graph->inputs[node->first_input + i].tensor);
    return result ? result : tli_claim_device(run, node->bwork_bytes, &run->at.call.scratch);
}

// What a backward reads: of inputs and outputs only those that its `needs` name, and no weight in pieces where
// it makes one, because the rows before were updated. An update writes its outputs.
static void tli_describe_needed(tl_run *run) {
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[run->at.last.node];
    tl_range none, room;
    int32_t i;
    tli_zero(&none, sizeof none);
    for (i = 0; i < node->input_count; i++) {
        const tl_node_input *input = &graph->inputs[node->first_input + i];
        int is_read = input->needed && !(run->at.call.piece && tli_find_pieces(graph, node, i));
        tli_call_tensor(run, input->tensor, is_read ? tli_tensor_range(run, input->tensor, &room) : &none, 0);
    }
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        tli_call_tensor(run, i, graph->outputs[i].needed ? tli_tensor_range(run, i, &room) : &none,
                        node->state != TL_STATE_NONE);
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        tli_call_tensor(run, i, tli_gradient_range(run, i, &room), 0);
}

// The operands of a backward.
static void tli_describe_backward(tl_run *run) {
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[run->at.last.node];
    tl_range room;
    int32_t i;
    tli_describe_needed(run);
    for (i = 0; i < node->input_count; i++) {
        int32_t tensor = graph->inputs[node->first_input + i].tensor;
        tli_call_tensor(run, tensor, tli_gradient_range(run, tensor, &room), 1);
    }
    tli_call_operand(run, tli_saved_range(run, run->at.last.node, &room), 0);
    tli_call_operand(run, tli_held_range(run, &run->at.call.scratch, &room), 1);
}

#ifndef TL_ONLY_TABLES
// -- the executor: operands on the host --

// TL_MAP_CHANGE, because a kernel need not write every byte of a range.
static tl_map_mode tli_mode_of(const tli_call *call, int32_t i) {
    return call->writable[i] ? TL_MAP_CHANGE : TL_MAP_READ;
}

// Unmap the first accesses; all of them where the step is mapped.
static tl_result tli_unmap_accesses(tl_run *run, int32_t count) {
    tli_call *call = &run->at.call;
    tl_result first = TL_OK;
    int32_t i;
    for (i = 0; i < count; i++) {
        tl_result result = (run->backend.unmap)(run->backend.self, call->accesses[i].range,
                                              tli_mode_of(call, i), call->hosts[i]);
        if (first || !result) continue;
        first = result;
#ifndef TL_NO_CHECKS
        call->failed = i;
        call->failed_site = run->limits.env ? run->limits.env->error.site : 0;
#endif
    }
    for (i = 0; i < call->operand_count; i++) call->operands[i].host = NULL;
    call->is_mapped = 0;
    return first;
}

#if !defined(TL_NO_CHECKS)
// Write "output gradient 2": the first operand of the call that lies in an access.
static void tli_put_operand_of(const tl_run *run, int32_t access, tli_writer *w) {
    static const char *const kinds[] = {
        "input ", "output ", "output gradient ", "input gradient ", "the saved bytes", "the scratch"
    };
    const tl_graph *graph = tli_count_members(run, run->at.last.node) ? tli_caller_graph(run) : run->graph;
    const tl_node *node = &graph->nodes[run->at.call.node];
    int32_t counts[6], kind = 0, at = 0;
    counts[0] = counts[3] = node->input_count;
    counts[1] = counts[2] = node->output_count;
    counts[4] = counts[5] = 1;
    while (at < run->at.call.operand_count - 1 && run->at.call.access_of[at] != access) at++;
    while (kind < 5 && at >= counts[kind]) at -= counts[kind++];
    tli_put(w, kinds[kind]);
    if (kind < 4) tli_put_i64(w, at);
}

// What a checked backend found when the operands of a call were unmapped.
static tli_rule tli_find_damage(const tl_run *run) {
    uint32_t rule = run->at.call.failed_site & 0xFFFFu;
    if (rule == tli_number_rule(TLI_RULE(BYTES_BEFORE_A_MAPPED_RANGE_WERE_WRITTEN)))
        return TLI_RULE(KERNEL_WROTE_BEFORE);
    if (rule == tli_number_rule(TLI_RULE(BYTES_BEHIND_A_MAPPED_RANGE_WERE_WRITTEN)))
        return TLI_RULE(KERNEL_WROTE_BEHIND);
    return rule == tli_number_rule(TLI_RULE(BYTES_OF_READ_ONLY_RANGE_WERE_WRITTEN))
        ? TLI_RULE(KERNEL_WROTE_WHAT_IT_READS) : TLI_NO_RULE;
}
#endif

// Report that the operands of a call could not be unmapped: where the kernel wrote beside one, that one.
static tl_result tli_fail_unmap(tl_run *run, tl_result why) {
#if !defined(TL_NO_CHECKS)
    tli_rule rule = why == TL_ERROR_CORRUPT ? tli_find_damage(run) : TLI_NO_RULE;
    if (rule) {
        tli_sentence s = tli_begin_error(run->env, why, TLI_IN(RUN_PLAN), rule, (uint64_t)run->at.event.index,
                                         (uint64_t)run->at.last.node);
        if (TLI_ERROR_TEXT) {
            tli_put_last_step(run, &s.text);
            tli_put(&s.text, ": ");
            if (tli_calls_members(run, run->at.last.node)) {
                tli_put(&s.text, tl_name_node(tli_caller_graph(run), run->at.call.node));
                tli_put(&s.text, ": ");
            }
        }
        tli_put_text(&s, "");
        if (TLI_ERROR_TEXT) tli_put_operand_of(run, run->at.call.failed, &s.text);
        return tli_end_error(run->env, &s, why);
    }
#endif
    return tli_run_fail_backend(run, why, TLI_RULE(UNMAP_FAILED));
}

static tl_result tli_map_accesses(tl_run *run) {
    tli_call *call = &run->at.call;
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < call->access_count && !result; i++) {
        const tl_access *access = &call->accesses[i];
        result = (run->backend.map)(run->backend.self, access->range, tli_mode_of(call, i),
                                  &call->hosts[i]);
        if (result) (void)tli_unmap_accesses(run, i);
    }
    if (result) return result;
    for (i = 0; i < call->operand_count; i++)
        call->operands[i].host = call->access_of[i] >= 0 ? call->hosts[call->access_of[i]] : NULL;
    call->is_mapped = 1;
    return TL_OK;
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
