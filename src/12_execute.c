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

static void tli_put_last_step(const tl_run *run, tli_writer *w) {
    tli_put(w, "step ");
    tli_put_i64(w, run->event.index);
    tli_put(w, " (");
    tli_put(w, tl_name_step((tl_step_kind)run->last.kind));
    tli_put(w, " ");
    tli_put(w, tl_name_node(run->graph, run->last.node));
    tli_put(w, ")");
}

// Report an error of the backend. A step that was begun cannot be repeated, so TL_NOT_READY is an error here.
static tl_result tli_run_fail_backend(tl_run *run, tl_result why, tli_rule rule) {
    tl_result code = why == TL_NOT_READY ? TL_ERROR_BACKEND : why;
    tli_sentence s = tli_begin_error(run->env, code, TLI_IN(RUN_PLAN), rule, (uint64_t)run->event.index,
                                     (uint64_t)run->last.node);
    if (TLI_ERROR_TEXT) {
        tli_put_last_step(run, &s.text);
        tli_put(&s.text, ": ");
    }
    tli_put_text(&s, TLI_ERROR_TEXT ? tl_explain_result(why) : "");
    return tli_end_error(run->env, &s, code);
}

#ifndef TL_ONLY_TABLES
static uint64_t tli_run_now(const tl_run *run) {
    return run->profiling ? run->backend.now_ns(run->backend.self) : 0;
}

static void tli_start_event(tl_run *run) {
    run->event.start_ns = tli_run_now(run);
    if (run->profiling) run->high_bytes = tli_run_live_bytes(run, TL_TIER_DEVICE);
}

static void tli_end_event(tl_run *run) { run->event.end_ns = tli_run_now(run); }

static void tli_observe_step(tl_run *run) {
    if (!run->profiling) return;
    run->event.device_bytes = run->high_bytes;
    run->event.host_bytes = tli_run_live_bytes(run, TL_TIER_HOST);
    if (run->desc.observe) run->desc.observe(&run->event, run->desc.observe_user);
}
#else
static void tli_start_event(tl_run *run) { (void)run; }
static void tli_end_event(tl_run *run) { (void)run; }
static void tli_observe_step(tl_run *run) { (void)run; }
#endif

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
// Set the formats of the operands. A gradient has the format of its tensor.
static void tli_name_formats(tl_run *run, const tl_node *node) {
    tl_operand *inputs = run->call.operands, *outputs = inputs + node->input_count;
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

// The operands in the order of tl_kernel_call: inputs, outputs, gradients of both, saved, scratch.
static void tli_describe_call(tl_run *run, tl_kernel_call *out) {
    tli_call *call = &run->call;
    const tl_graph *graph = tli_count_members(run, run->last.node) ? tli_caller_graph(run) : run->graph;
    const tl_node *node = &graph->nodes[call->node];
    const tl_operand *at = call->operands;
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (!tli_has_turns(run)) tli_name_formats(run, &run->graph->nodes[run->last.node]);
#endif
    tli_zero(out, sizeof *out);
    out->graph = graph;
    out->node = call->node;
    out->kind = call->kind;
    out->recompute = run->event.recompute;
    if (call->kind != TL_STEP_BACKWARD && run->last.kind == TL_STEP_BACKWARD) out->recompute = 1;
    out->micro_batch = run->event.micro_batch;
    out->step = run->training_step;
    out->seed = tl_mix_u64(tl_mix_u64(run->desc.seed, run->training_step),
                           (uint64_t)run->event.micro_batch * (uint64_t)graph->node_count +
                               (uint64_t)call->node);
    out->precision = tli_precision_of(run);
    out->inputs = at;                         at += node->input_count;
    out->outputs = at;                        at += node->output_count;
    out->output_grads = at;                   at += node->output_count;
    out->input_grads = at;                    at += node->input_count;
    out->saved = at[0];
    out->scratch = at[1];
    out->outputs_ready = call->outputs_ready;
    out->first = call->first;
    out->count = call->count;
    out->total = call->total;
    out->run = run;
}

// Saved bytes and scratch are part of a call itself: give it their present addresses.
static void tli_update_call(const tl_run *run, tl_kernel_call *out) {
    const tl_operand *end = run->call.operands + run->call.operand_count;
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
    const tl_node *node = &run->graph->nodes[run->last.node];
    const tl_node_output *outputs = &run->graph->outputs[node->first_output];
    tli_buffer *buffers = &run->tensors[node->first_output], *saved = tli_saved_buffer(run, run->last.node);
    int32_t i, missing = 0, inplace = run->last.kind == TL_STEP_FORWARD_INPLACE;
    uint64_t bytes;
    tl_result result = TL_OK;
    if (inplace) tli_hand_over(run, node);
    for (i = 0; i < node->output_count && !result; i++) {
        run->call.made[i] = inplace && i == 0;
        if (tli_is_present(&buffers[i])) continue;
        result = tli_buffer_claim(run, outputs[i].bytes, &buffers[i]);
        run->call.made[i] = 1;
        missing++;
    }
    run->call.outputs_ready = !missing && !inplace;
    for (i = 0; i < node->output_count && !result && !run->call.outputs_ready; i++)
        if (!run->call.made[i])
            result = tli_claim_device(run, outputs[i].bytes, &run->call.twice[i]);
    if (!result && run->last.kind == TL_STEP_FORWARD_SAVE)
        result = tli_buffer_claim(run, node->saved_bytes, saved);
    bytes = run->last.kind == TL_STEP_FORWARD_SAVE ? node->swork_bytes : node->fwork_bytes;
    return result ? result : tli_claim_device(run, bytes, &run->call.scratch);
}

static void tli_describe_forward(tl_run *run) {
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[run->last.node];
    int inplace = run->last.kind == TL_STEP_FORWARD_INPLACE;
    tli_call *call = &run->call;
    tl_range none, room, other;
    int32_t i;
    tli_zero(&none, sizeof none);
    for (i = 0; i < node->input_count; i++) {
        int32_t tensor = graph->inputs[node->first_input + i].tensor;
        if (inplace && i == node->inplace) tensor = node->first_output;
        tli_call_tensor(run, tensor, tli_tensor_range(run, tensor, &room), 0);
    }
    for (i = 0; i < node->output_count; i++) {
        const tl_range *own = tli_tensor_range(run, node->first_output + i, &room);
        const tl_range *twice = tli_held_range(run, &call->twice[i], &other);
        tli_call_tensor(run, node->first_output + i, twice->bytes ? twice : own, !call->outputs_ready);
    }
    for (i = 0; i < node->output_count + node->input_count; i++) tli_call_operand(run, &none, 0);
    tli_call_operand(
        run, run->last.kind == TL_STEP_FORWARD_SAVE ? tli_saved_range(run, run->last.node, &room) : &none, 1);
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
    if (!result) result = run->backend.map(run->backend.self, range, TL_MAP_WRITE, &host);
    if (result) return result;
    for (at = 0; range.bytes - at >= sizeof value; at += sizeof value)
        tli_copy((char *)host + at, &value, sizeof value);
    tli_zero((char *)host + at, (size_t)(range.bytes - at));
    return run->backend.unmap(run->backend.self, range, TL_MAP_WRITE, host);
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

// Make the gradient of a tensor if there is none. If no node reads the tensor it is a loss, whose gradient
// is 1 x the loss scale; all others start at 0.
static tl_result tli_make_gradient(tl_run *run, int32_t tensor) {
    const tl_node_output *output = &run->graph->outputs[tensor];
    tli_buffer *gradient = &run->gradients[tensor];
    tl_range range;
    tl_result result;
    if (tli_is_present(gradient) || !run->graph->nodes[output->node].has_grad) return TL_OK;
    result = tli_buffer_claim(run, output->bytes, gradient);
    if (result) return result;
    range = tli_known_range(run, tensor, *tli_gradient_range(run, tensor, &range));
    tli_note_write(run, &range);
    return run->is_read[tensor] ? tli_clear_range(run, &range) : tli_fill_first(run, tensor, &range);
}

static tl_result tli_begin_backward(tl_run *run) {
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[run->last.node];
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < node->output_count && !result; i++)
        result = tli_make_gradient(run, node->first_output + i);
    for (i = 0; i < node->input_count && !result; i++)
        result = tli_make_gradient(run, graph->inputs[node->first_input + i].tensor);
    return result ? result : tli_claim_device(run, node->bwork_bytes, &run->call.scratch);
}

// The operands of a backward: of inputs and outputs only those that its `needs` name.
static void tli_describe_backward(tl_run *run) {
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[run->last.node];
    tl_range none, room;
    int32_t i;
    tli_zero(&none, sizeof none);
    for (i = 0; i < node->input_count; i++) {
        const tl_node_input *input = &graph->inputs[node->first_input + i];
        tli_call_tensor(run, input->tensor, input->needed ? tli_tensor_range(run, input->tensor, &room) : &none,
                        0);
    }
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        tli_call_tensor(run, i, graph->outputs[i].needed ? tli_tensor_range(run, i, &room) : &none, 0);
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        tli_call_tensor(run, i, tli_gradient_range(run, i, &room), 0);
    for (i = 0; i < node->input_count; i++) {
        int32_t tensor = graph->inputs[node->first_input + i].tensor;
        tli_call_tensor(run, tensor, tli_gradient_range(run, tensor, &room), 1);
    }
    tli_call_operand(run, tli_saved_range(run, run->last.node, &room), 0);
    tli_call_operand(run, tli_held_range(run, &run->call.scratch, &room), 1);
}

#ifndef TL_ONLY_TABLES
// -- the executor: operands on the host --

// TL_MAP_CHANGE, because a kernel need not write every byte of a range.
static tl_map_mode tli_mode_of(const tli_call *call, int32_t i) {
    return call->writable[i] ? TL_MAP_CHANGE : TL_MAP_READ;
}

// Unmap the first accesses; all of them where the step is mapped.
static tl_result tli_unmap_accesses(tl_run *run, int32_t count) {
    tli_call *call = &run->call;
    tl_result first = TL_OK;
    int32_t i;
    for (i = 0; i < count; i++) {
        tl_result result = run->backend.unmap(run->backend.self, call->accesses[i].range,
                                              tli_mode_of(call, i), call->hosts[i]);
        if (!first) first = result;
    }
    for (i = 0; i < call->operand_count; i++) call->operands[i].host = NULL;
    call->is_mapped = 0;
    return first;
}

static tl_result tli_map_accesses(tl_run *run) {
    tli_call *call = &run->call;
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < call->access_count && !result; i++) {
        const tl_access *access = &call->accesses[i];
        result = run->backend.map(run->backend.self, access->range, tli_mode_of(call, i),
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

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
// -- the executor: conversions without a kernel --

enum { TLI_CONVERT_COUNT = 64 };  // elements at a time, on the host

// One side of a conversion.
typedef struct tli_side {
    const tl_operand *operand;
    tl_format         format;
    const tl_quantization *quantization;  // of integers
    uint64_t          count;              // elements
} tli_side;

static int tli_is_integer(tl_format format) {
    return format == TL_FORMAT_I16 || format == TL_FORMAT_I8;
}

static tl_codec tli_format_codec(tl_format format) {
    return format == TL_FORMAT_F16 ? TL_CODEC_F16 : format == TL_FORMAT_BF16 ? TL_CODEC_BF16 : TL_CODEC_NONE;
}

static uint64_t tli_count_in_format(tl_format format, uint64_t bytes) {
    uint64_t size = tl_find_format_bytes(format, 4);
    return bytes / size + (bytes % size != 0);
}

static tli_side tli_side_of(const tl_run *run, const tl_operand *operand, int32_t tensor) {
    tli_side side;
    side.operand = operand;
    side.format = operand->format;
    side.quantization = run->desc.quantizations ? &run->desc.quantizations[tensor] : NULL;
    side.count = tli_count_in_format(operand->format, operand->range.bytes);
    return side;
}

// Scratch for a conversion from f16 to bf16 or back, which passes through f32.
static uint64_t tli_find_wide_bytes(const tli_side *to, const tli_side *from) {
    tl_codec codec = tli_format_codec(from->format), other = tli_format_codec(to->format);
    return codec == other || codec == TL_CODEC_NONE || other == TL_CODEC_NONE ? 0 : 4 * to->count;
}

// Read elements of a side as f32. The last element may be incomplete.
static tl_result tli_load_side(tl_run *run, const tli_side *side, uint64_t first, uint64_t count, float *to) {
    const char *from = (const char *)side->operand->host + first * tl_find_format_bytes(side->format, 4);
    uint64_t left = side->operand->range.bytes - 4 * first;
    if (tli_is_integer(side->format))
        return tl_dequantize(run->env, side->quantization, 1, 1, side->format, from, to, count);
    if (side->format != TL_FORMAT_F32) {
        tli_expand_bytes(tli_format_codec(side->format), to, from, 4 * count);
        return TL_OK;
    }
    to[count - 1] = 0.0f;
    tli_copy(to, from, (size_t)(4 * count < left ? 4 * count : left));
    return TL_OK;
}

static tl_result tli_store_side(tl_run *run, const tli_side *side, uint64_t first, uint64_t count,
                                const float *from) {
    char *to = (char *)side->operand->host + first * tl_find_format_bytes(side->format, 4);
    uint64_t left = side->operand->range.bytes - 4 * first;
    if (tli_is_integer(side->format))
        return tl_quantize(run->env, side->quantization, 1, 1, side->format, from, to, count);
#ifndef TL_NO_CODECS
    if (side->format != TL_FORMAT_F32) tl_compress_bytes(tli_format_codec(side->format), to, from, 4 * count);
    else
#endif
        tli_copy(to, from, (size_t)(4 * count < left ? 4 * count : left));
    return TL_OK;
}

// Convert any format to any other. adds: add to the present values, in f32, and round once.
static tl_result tli_convert_elements(tl_run *run, const tli_side *to, const tli_side *from, int adds) {
    float values[TLI_CONVERT_COUNT], sums[TLI_CONVERT_COUNT];
    uint64_t first, count, i;
    tl_result result = TL_OK;
    for (first = 0; first < to->count && !result; first += count) {
        count = to->count - first;
        if (count > TLI_CONVERT_COUNT) count = TLI_CONVERT_COUNT;
        result = tli_load_side(run, from, first, count, values);
        if (!result && adds) result = tli_load_side(run, to, first, count, sums);
        for (i = 0; i < count && adds; i++) values[i] = sums[i] + values[i];
        if (!result) result = tli_store_side(run, to, first, count, values);
    }
    return result;
}

static tl_result tli_convert_on_host(tl_run *run, const tli_side *to, const tli_side *from, int adds) {
    tl_result result = run->backend.order(run->backend.self, run->call.accesses, run->call.access_count);
    tl_result unmapped;
    if (!result) result = tli_map_accesses(run);
    if (result) return result;
    result = tli_convert_elements(run, to, from, adds);
    unmapped = tli_unmap_accesses(run, run->call.access_count);
    return result ? result : unmapped;
}

// Convert with the backend's codecs, without waiting. Between f16 and bf16 the values pass through f32.
static tl_result tli_convert_on_backend(tl_run *run, const tli_side *to, const tli_side *from) {
    tl_codec from_codec = tli_format_codec(from->format), to_codec = tli_format_codec(to->format);
    tl_range target = to->operand->range, source = from->operand->range, wide = run->call.scratch.range;
    tl_result result;
    if (!tli_find_wide_bytes(to, from))
        return tli_transfer(&run->store, &target, to_codec, &source, from_codec);
    wide.bytes = 4 * to->count;
    result = tli_transfer(&run->store, &wide, TL_CODEC_NONE, &source, from_codec);
    return result ? result : tli_transfer(&run->store, &target, to_codec, &wide, TL_CODEC_NONE);
}

// Convert; the operands of the step are claimed. adds: the gradient of the input was there before.
static tl_result tli_convert(tl_run *run, int adds) {
    const tl_node *node = &run->graph->nodes[run->last.node];
    const tl_operand *operands = run->call.operands;
    int backward = run->last.kind == TL_STEP_BACKWARD;
    int32_t input = run->graph->inputs[node->first_input].tensor, output = node->first_output;
    tli_side from = backward ? tli_side_of(run, &operands[2], output) : tli_side_of(run, &operands[0], input);
    tli_side to = backward ? tli_side_of(run, &operands[3], input) : tli_side_of(run, &operands[1], output);
    tl_result result = TL_OK;
    if (to.operand->range.bytes) {  // else no gradient is wanted
        if (adds || tli_is_integer(from.format) || tli_is_integer(to.format) ||
            run->call.scratch.range.bytes < tli_find_wide_bytes(&to, &from))
            result = tli_convert_on_host(run, &to, &from, adds);
        else result = tli_convert_on_backend(run, &to, &from);
    }
    run->event.end_ns = tli_run_now(run);
    run->report.convert_count++;
    return result ? tli_run_fail_backend(run, result, TLI_RULE(CONVERT_FAILED)) : TL_OK;
}
#endif

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
        t->read = run->event.index;  // a write would have removed the record
        return 1;
    }
    if (!tli_grow(run->env, &array, &run->touched_capacity, run->touched_count,
                  (int64_t)run->touched_count + 1, sizeof *run->touched)) return 0;
    run->touched = (tli_touched *)array;
    t = &run->touched[run->touched_count++];
    t->range = access->range;
    t->written = access->writes ? run->event.index : -1;
    t->read = access->writes ? -1 : run->event.index;
    return 1;
}

static tl_result tli_find_dependency(tl_run *run, int32_t *depends_on) {
    int32_t i;
    *depends_on = -1;
    for (i = 0; i < run->call.access_count; i++) {
        tli_follow(run, &run->call.accesses[i], depends_on);
        if (!tli_note_access(run, &run->call.accesses[i]))
            return tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(NEXT_STEP),
                            TLI_RULE(RECORD_OF_RANGES_NO_MEMORY));
    }
    return TL_OK;
}
#else
// All steps before are finished.
static tl_result tli_find_dependency(const tl_run *run, int32_t *depends_on) {
    *depends_on = run->event.index - 1;
    return TL_OK;
}
#endif

// -- the executor: compute steps --

// Describe the operands of a compute step, whole.
static void tli_describe_operands(tl_run *run) {
    if (run->last.kind == TL_STEP_BACKWARD) tli_describe_backward(run);
    else tli_describe_forward(run);
}

#ifndef TL_ONLY_TABLES
// Cut the operands of a call that is for a range. Each access belongs to one tensor, so operands that share one
// are cut alike.
static void tli_cut_operands(tl_run *run) {
    const tl_node *node = &run->graph->nodes[run->last.node];
    tli_call *call = &run->call;
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
    int is_own = !tli_count_members(run, run->last.node);   // the caller's graph has no such node
    int32_t origin = is_own ? -1 : tli_caller_graph(run)->nodes[run->call.node].origin;
    tl_kernel *own = tli_own_kernel(run);
    if (!run->desc.users || origin < 0) return &run->kernels[kernel];
    *own = run->kernels[kernel];
    own->user = run->desc.users[origin];
    return own;
}

// Describe the call at hand and name its kernel.
static void tli_name_call(tl_run *run, int32_t kernel, tl_run_step *out) {
    tli_describe_call(run, &out->call);
    out->is_compute = 1;
    out->kernel = tli_find_call_kernel(run, kernel);
}

// Yield the call at hand: its operands are claimed and described.
static tl_result tli_yield_call(tl_run *run, tl_run_step *out) {
    tl_result result = TL_OK;
    int32_t kernel = run->kernel_of[run->last.node];
    run->computing = TLI_COMPUTING_YIELDED;
    run->call.polled = 0;
    run->call.is_asked = 0;
#ifndef TL_ONLY_TABLES
    run->call.request = -1;
    if (tli_has_turns(run)) {
        run->call.operand_count = run->call.access_count = 0;
        tli_describe_member(run);
        kernel = run->members.kernels[run->call.node];
        result = tli_clear_gradient_block(run);
    } else if (run->call.count < run->call.total) {
        tli_cut_operands(run);
    }
#endif
    tli_name_call(run, kernel, out);
    run->report.kernel_count++;
#ifndef TL_ONLY_TABLES
    if (result) return tli_run_fail_backend(run, result, TLI_RULE(CLEAR_FAILED));
    result = run->backend.order(run->backend.self, run->call.accesses, run->call.access_count);
    if (result) return tli_run_fail_backend(run, result, TLI_RULE(ORDER_FAILED));
    result = run->limits.host_visible ? tli_map_accesses(run) : TL_OK;
    if (result && result != TL_NOT_READY) return tli_run_fail_backend(run, result, TLI_RULE(MAP_FAILED));
    result = TL_OK;
    tli_update_call(run, &out->call);
#endif
    return result;  // what could not be mapped yet is mapped by tl_map_step or tl_run_step_kernel
}

#ifndef TL_ONLY_TABLES
// The call for the next elements of the step yielded last, or of the next member of a fused node. It waits for
// what the first call waits for; where there is scratch, for the call before, too.
static tl_result tli_yield_next_range(tl_run *run, tl_run_step *out) {
    tli_call *call = &run->call;
    tli_take_turn(run);
    call->operand_count = call->access_count = 0;
    if (!tli_has_turns(run)) tli_describe_operands(run);
    out->step = run->last;
    out->index = run->event.index;
    out->depends_on = call->scratch.range.bytes && !run->by_itself ? run->event.index : call->depends_on;
    return tli_yield_call(run, out);
}
#endif

// The operands of a compute step are claimed and described: yield its first call, or carry it out where it has
// no kernel, once every step under way that it depends on is finished.
static tl_result tli_go_on_compute(tl_run *run, tl_run_step *out) {
#ifndef TL_ONLY_TABLES
    int32_t before = run->flights ? tli_find_conflict(run, run->call.accesses, run->call.access_count) : -1;
#endif
    run->computing = TLI_COMPUTING_OPENED;
    out->step = run->last;
    out->index = run->event.index;
    out->depends_on = run->call.depends_on;
#ifndef TL_ONLY_TABLES
    if (before >= 0) return tli_wait_for(run, before);
    if (run->flights) run->event.start_ns = tli_run_now(run);
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (run->kernel_of[run->last.node] == TLI_CONVERSION) {
        tli_describe_call(run, &out->call);
        run->computing = TLI_COMPUTING_DONE;
        return run->call.outputs_ready ? TL_OK : tli_convert(run, run->call.adds);
    }
#endif
    if (tli_has_turns(run) && run->call.outputs_ready) {  // a fused node has no saved bytes to make
        run->call.turns = 1;
        run->call.count = run->call.total;
        run->computing = TLI_COMPUTING_DONE;
        return TL_OK;
    }
#endif
    return tli_yield_call(run, out);
}

static tl_result tli_begin_compute(tl_run *run, tl_run_step *out) {
    int backward = run->last.kind == TL_STEP_BACKWARD;
    tli_cut cut = tli_find_cut(run, run->last.node);
    tl_result result;
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    run->call.adds = 0;
    if (run->kernel_of[run->last.node] == TLI_CONVERSION && backward) {
        int32_t input = run->graph->nodes[run->last.node].first_input;
        run->call.adds = run->gradients[run->graph->inputs[input].tensor].state != TLI_ABSENT;
    }
#endif
    tli_start_turns(run, &cut);
    run->call.outputs_ready = 0;
#ifndef TL_NO_ONLINE
    tli_clear_reports(run);
#endif
    result = backward ? tli_begin_backward(run) : tli_begin_forward(run);
    run->computing = TLI_COMPUTING_OPENED;  // from here on there may be ranges to release
    if (result) return tli_run_fail_backend(run, result, TLI_RULE(CLAIM_FAILED));
    tli_describe_operands(run);
    if (!run->by_itself) result = tli_find_dependency(run, &out->depends_on);
    run->call.depends_on = out->depends_on;
    return result ? result : tli_go_on_compute(run, out);
}

#ifndef TL_ONLY_TABLES
static int tli_acts_on_buffer(const tli_buffer *buffer, tl_step_kind kind) {
    return tli_acts_in_state(kind, (tli_state)buffer->state, buffer->on_host);
}

static tl_result tli_memory_act(tl_run *run, int32_t tensor) {
    tli_buffer *buffer = &run->tensors[tensor];
    tl_run_report *report = &run->report;
    switch ((tl_step_kind)run->last.kind) {
    case TL_STEP_DROP:
        report->drop_count++;
        return tli_buffer_drop(run, buffer);
    case TL_STEP_SPILL:
        report->spill_count++;
        buffer->copy_ns = run->event.start_ns;
        return tli_buffer_spill(run, buffer);
    case TL_STEP_FETCH:
        report->fetch_count++;
        buffer->copy_ns = run->event.start_ns;
        return tli_buffer_fetch(run, buffer);
    case TL_STEP_WAIT:
        run->event.start_ns = buffer->copy_ns;
        return tli_buffer_wait(run, buffer);
    case TL_STEP_DROP_HOST:
        return tli_buffer_drop_host(run, buffer);
    case TL_STEP_COMPRESS:
        report->compress_count++;
        return tli_buffer_convert(run, buffer, run->graph->outputs[tensor].bytes, (tl_codec)run->last.codec);
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
    int spill = run->last.kind == TL_STEP_SPILL, fetch = run->last.kind == TL_STEP_FETCH;
    int frees_host = run->last.kind == TL_STEP_DROP_HOST;
    if (!frees_host) (void)tli_call_access(&run->call, &buffer->device.range, !spill);
    if (spill || fetch || frees_host || run->last.kind == TL_STEP_WAIT)
        (void)tli_call_access(&run->call, &buffer->host.range, !fetch);
}

#endif

// The tensors that a step names: from *from up to, but without, *end.
static void tli_step_outputs(const tl_run *run, const tl_step *step, int32_t *from, int32_t *end) {
    const tl_node *node = &run->graph->nodes[step->node];
    *from = node->first_output + (step->output == TL_ALL_OUTPUTS ? 0 : step->output);
    *end = step->output == TL_ALL_OUTPUTS ? node->first_output + node->output_count : *from + 1;
}

#ifndef TL_ONLY_TABLES
static tl_result tli_memory_step(tl_run *run) {
    tli_buffer *saved = &run->saved[run->last.node];
    tl_result result = TL_OK;
    int32_t i, end;
    if (run->last.kind == TL_STEP_DROP_SAVED) {
        run->report.drop_count++;
        (void)tli_call_access(&run->call, &saved->device.range, 1);
        result = tli_buffer_drop(run, saved);
        return result ? tli_run_fail_backend(run, result, TLI_RULE(RELEASE_FAILED)) : TL_OK;
    }
    tli_step_outputs(run, &run->last, &i, &end);
    for (; i < end && !result; i++) {
        if (!tli_acts_on_buffer(&run->tensors[i], (tl_step_kind)run->last.kind)) continue;
        tli_note_buffer(run, i);
        result = tli_memory_act(run, i);
        tli_note_buffer(run, i);
    }
    return result ? tli_run_fail_backend(run, result, TLI_RULE(MEMORY_FAILED)) : TL_OK;
}
#else
static tl_result tli_memory_step(tl_run *run) {
    int32_t i, end;
    run->report.drop_count++;
    if (run->last.kind == TL_STEP_DROP_SAVED)
        return tli_buffer_drop(run, tli_saved_buffer(run, run->last.node));
    tli_step_outputs(run, &run->last, &i, &end);
    for (; i < end; i++) (void)tli_buffer_drop(run, &run->tensors[i]);
    return TL_OK;
}
#endif

// -- the executor: the random hook, around all calls of a forward --

static void tli_call_random(tl_run *run, tl_random_moment moment) {
    if (run->desc.random)
        run->desc.random(moment, run->last.node, run->event.micro_batch, run->desc.random_user);
}

static void tli_start_random(tl_run *run) {
    tli_call_random(run, run->event.recompute ? TL_RANDOM_REPLAY : TL_RANDOM_RECORD);
    run->call.replays = run->event.recompute;
}

static void tli_end_random(tl_run *run) {
    if (run->call.replays) tli_call_random(run, TL_RANDOM_RESUME);
    run->call.replays = 0;
}

// -- the executor: kernels --

static tl_result tli_fail_kernel(tl_run *run, tl_result code) {
    tli_rule rule = run->call.kind == TL_STEP_BACKWARD
        ? TLI_RULE(BACKWARD_OF_NODE_KERNEL_RETURNED)
        : TLI_RULE(FORWARD_OF_NODE_KERNEL_RETURNED);
    tli_sentence s = tli_begin_error(run->env, TL_ERROR_KERNEL, TLI_IN(RUN_PLAN), rule,
                                     (uint64_t)run->call.node,
                                     (uint64_t)code);
    tli_put_text(&s, tl_name_node(tli_caller_graph(run), run->call.node));
    tli_put_text(&s, tl_name_result(code));
    return tli_end_error(run->env, &s, TL_ERROR_KERNEL);
}

static tl_result tli_call_kernel(tl_run *run, const tl_run_step *step) {
    int backward = run->call.kind == TL_STEP_BACKWARD;
    tl_kernel_fn function = backward ? step->kernel->backward : step->kernel->forward;
    tl_kernel_call call = step->call;
#ifndef TL_ONLY_TABLES
    uint64_t start;
#endif
    tl_result result;
    tli_update_call(run, &call);
    call.polled = run->call.polled;
    if (!backward && !call.first && !call.polled) tli_start_random(run);
#ifndef TL_ONLY_TABLES
    start = tli_run_now(run);
#endif
#ifndef TL_NO_ONLINE
    run->call.is_inside = 1;
#endif
    result = function(&call, step->kernel->user);
#ifndef TL_NO_ONLINE
    run->call.is_inside = 0;
#endif
    tli_end_event(run);
#ifndef TL_ONLY_TABLES
    run->report.compute_ns += run->event.end_ns - start;
#endif
    if (result == TL_NOT_READY) {
        if (run->call.polled < INT32_MAX) run->call.polled++;
        return result;
    }
    if (result || !tli_has_more_ranges(run)) tli_end_random(run);
#ifndef TL_NO_ONLINE
    if (tli_check_reports(run)) return TL_ERROR_INVALID_ARG;
#endif
    if (!result) return TL_OK;
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (function == tli_carry_message)
        return tli_fail_peer(run, result, run->messages->failed_peer, run->event.index);
#endif
    return tli_fail_kernel(run, result);
}

// -- the executor: a pass --

#ifndef TL_ONLY_TABLES
// The buffer of a tensor in a slot.
static tli_buffer *tli_caller_buffer(const tl_run *run, int32_t slot, int32_t tensor) {
    return &run->all_tensors[(size_t)slot * (size_t)run->graph->tensor_count + (size_t)tensor];
}

// Release the buffers of the present slot. What the plan's entry took stays, as inputs do, where no step has
// freed it.
static void tli_release_slot(tl_run *run, int with_inputs) {
    const tl_graph *graph = run->graph;
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++) {
        (void)tli_buffer_drop(run, &run->gradients[i]);
        if (graph->nodes[graph->outputs[i].node].is_input && !with_inputs) continue;
        (void)tli_buffer_drop_host(run, &run->tensors[i]);
        if (run->tensors[i].is_entry && !with_inputs) run->tensors[i].state = TLI_RESIDENT;
        else (void)tli_buffer_drop(run, &run->tensors[i]);
    }
    for (i = 0; i < graph->node_count; i++) (void)tli_buffer_drop(run, &run->saved[i]);
}

// Release all buffers. What the backend does not take back is offered to it again by the next pass.
static void tli_release_buffers(tl_run *run, int with_inputs) {
    tli_quiet quiet = tli_begin_quiet(run->limits.env);
    int32_t i, f;
    (void)tli_give_all_freed(run);
    for (f = 0; f < tli_count_flights(run); f++) {
        tli_choose_flight(run, f);
        (void)tli_abandon(&run->store, &run->call.scratch);
        for (i = 0; i < run->call.twice_count; i++) (void)tli_abandon(&run->store, &run->call.twice[i]);
    }
    for (i = 0; i < run->slot_count; i++) {
        tli_run_choose_slot(run, i);
        tli_release_slot(run, with_inputs);
    }
    tli_run_choose_slot(run, 0);
    (void)tli_retry_lost(&run->store);
    tli_end_quiet(&quiet, TL_OK);
}

// Claim what the plan's entry names and is not there (any more), and fill it with zeroes. Everything else but
// the inputs was released.
static tl_result tli_claim_entry(tl_run *run) {
    const tl_graph *graph = run->graph;
    int32_t *next = &run->arenas[TL_TIER_DEVICE].next_offset;
    int32_t number = run->input_count, i;
    tl_result result = TL_OK;
    for (i = 0; i < run->plan.entry_count && !result; i++) {
        const tl_entry *entry = &run->plan.entry[i];
        int32_t index = graph->nodes[entry->node].first_output + entry->output;
        uint64_t bytes = graph->outputs[index].bytes;
        tli_buffer *buffer = tli_caller_buffer(run, entry->slot, index);
        *next = number;
        number += bytes > 0;
        if (buffer->is_entry) continue;
        result = tli_claim_device(run, bytes, &buffer->device);
        if (result) break;
        buffer->state = TLI_RESIDENT;
        buffer->is_entry = 1;
        result = tli_fill_range(&run->store, &buffer->device.range, 0);
    }
    run->first_count = *next = number;
    return result;
}

// The pass is given up: the message of the call at hand, too.
static void tli_cancel_call(tl_run *run) {
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (run->messages) tli_cancel_message(run);
#else
    (void)run;
#endif
}

// Give up a call that was set aside.
static void tli_drop_begun(tl_run *run, tli_begun *begun) {
    if (!begun->is_used) return;
    tli_swap_begun(run, begun);
    if (run->call.is_mapped) (void)tli_unmap_accesses(run, run->call.access_count);
    run->store.enqueued = 1;
    tli_cancel_call(run);
    tli_swap_begun(run, begun);
    begun->is_used = 0;
}

// Submit what was enqueued and release everything, at any point of a pass.
static void tli_clear_run(tl_run *run, int with_inputs) {
    tli_quiet quiet = tli_begin_quiet(run->limits.env);
    int32_t f;
    for (f = 0; f < tli_count_flights(run); f++) {
        tli_choose_flight(run, f);
        if (run->call.is_mapped) (void)tli_unmap_accesses(run, run->call.access_count);
        if (run->computing) run->store.enqueued = 1;  // the kernel may have been recorded
        if (run->computing) tli_cancel_call(run);
        tli_end_random(run);
        run->computing = TLI_COMPUTING_NOT;
    }
    for (f = 0; f < run->begun_count; f++) tli_drop_begun(run, &run->begun[f]);
    (void)tli_submit_store(&run->store);
    tli_release_buffers(run, with_inputs);
    tli_end_quiet(&quiet, TL_OK);
}
#else
// The buffer of a tensor in a slot.
static tli_buffer *tli_caller_buffer(const tl_run *run, int32_t slot, int32_t tensor) {
    return run->tensors + (slot - run->slot) * run->graph->tensor_count + tensor;
}

// Forget all buffers but inputs, which stay as long as the run.
static void tli_release_buffers(tl_run *run, int with_inputs) {
    const tl_graph *graph = run->graph;
    int32_t slot, i;
    (void)with_inputs;
    for (slot = 0; slot < run->slot_count; slot++) {
        tli_run_choose_slot(run, slot);
        for (i = 0; i < graph->tensor_count; i++) {
            (void)tli_buffer_drop(run, &run->gradients[i]);
            if (!graph->nodes[graph->outputs[i].node].is_input) (void)tli_buffer_drop(run, &run->tensors[i]);
        }
        for (i = 0; i < graph->node_count && run->saved; i++) (void)tli_buffer_drop(run, &run->saved[i]);
    }
    tli_run_choose_slot(run, 0);
}

static void tli_clear_run(tl_run *run, int with_inputs) {
    tli_end_random(run);
    run->computing = TLI_COMPUTING_NOT;
    tli_release_buffers(run, with_inputs);
}
#endif

static tl_result tli_abort_pass(tl_run *run, tl_result why) {
    tl_error error;  // keep the reason: the clean-up may overwrite it
    tli_zero(&error, sizeof error);
    if (run->env) error = run->env->error;
#ifndef TL_NO_PLANNERS
    tli_forget_cache(run);
#endif
    tli_clear_run(run, 0);
    if (run->active) run->next_step = run->training_step;  // the same step is run again
    if (run->in_plan) run->next_step = run->plan_step;
    run->active = run->in_plan = 0;
#ifndef TL_NO_ONLINE
    run->goal_waits = 0;
#endif
    if (run->env) run->env->error = error;
    return why;
}

#ifndef TL_ONLY_TABLES
static tl_result tli_run_mismatch(tl_run *run, tli_rule rule, uint64_t measured,
                                  uint64_t planned) {
    return tli_fail_values(run->env, TL_ERROR_MISMATCH, TLI_IN(RUN_PLAN), rule, measured, planned);
}

// What the run's arena in a tier takes; 0 without one.
static uint64_t tli_planned_taken_bytes(const tl_run *run, tl_tier tier) {
    return run->arenas[tier].block_count ? tli_taken_bytes(run, tier) : 0;
}

// The end of the highest place in a block of the device; 0 without an arena.
static uint64_t tli_planned_arena_bytes(const tl_run *run) {
    const tli_run_arena *arena = &run->arenas[TL_TIER_DEVICE];
    uint64_t highest = 0;
    int32_t k;
#ifndef TL_NO_PLANNERS
    if (run->cache.is_on) return run->cache.high_bytes[run->cache.is_warm];
#endif
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    if (run->hybrid.is_on) return run->hybrid.high_bytes;
#endif
    for (k = 0; k < arena->block_count; k++) highest = tli_larger_u64(highest, arena->blocks[k].bytes);
    return highest;
}

// Write down what the backend counted beside what was planned.
static void tli_report_pass(tl_run *run, const tl_account_counters *counters) {
    tl_run_report *report = &run->report;
    const tl_report *planned = tli_planned_pass(run);
    int32_t bank;
    report->planned_peak_bytes = planned->peak_bytes;
    report->planned_arena_bytes = tli_planned_arena_bytes(run);
    report->planned_host_peak_bytes = planned->host_peak_bytes;
    report->planned_cost = planned->cost;
    report->base_cost = planned->base_cost;
    report->measured_peak_bytes = tli_larger_u64(counters->peak_bytes[TL_TIER_DEVICE], run->before_bytes[0]);
    report->measured_host_peak_bytes = tli_larger_u64(counters->peak_bytes[TL_TIER_HOST], run->before_bytes[1]);
    report->measured_arena_bytes = 0;
    if (run->arenas[TL_TIER_DEVICE].block_count)
        report->measured_arena_bytes =
            tli_larger_u64(tli_larger_u64(counters->arena_bytes, run->before_bytes[2]), run->input_arena_bytes);
    report->taken_bytes = counters->peak_taken_bytes[TL_TIER_DEVICE];
    report->planned_taken_bytes = tli_planned_taken_bytes(run, TL_TIER_DEVICE);
    report->host_taken_bytes = counters->peak_taken_bytes[TL_TIER_HOST];
    report->planned_host_taken_bytes = tli_planned_taken_bytes(run, TL_TIER_HOST);
    for (bank = 0; bank < TL_MOST_BANKS; bank++) {
        int is_taken = run->arenas[TL_TIER_DEVICE].block_count != 0;
        report->planned_bank_bytes[bank] = is_taken ? tli_taken_in_bank(run, TL_TIER_DEVICE, bank, 0) : 0;
        report->taken_bank_bytes[bank] = counters->bank_taken_bytes[bank];
    }
    report->end_bytes = counters->live_bytes[TL_TIER_DEVICE];
#ifndef TL_NO_ONLINE
    if (run->is_online) report->eviction_count = run->online.eviction_count;
#endif
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    if (run->hybrid.is_on) report->spared_count = run->planned.recompute_count - planned->recompute_count;
#endif
}

// Compare the bytes that the backend counted with the simulated ones: two independent counts.
static tl_result tli_check_pass(tl_run *run) {
    tl_run_report *report = &run->report;
    const tl_report *planned = tli_planned_pass(run);
    tl_account_counters counters;
    int32_t bank;
    tl_result result = run->backend.check(run->backend.self);
    if (result) return tli_run_fail_backend(run, result, TLI_RULE(CHECK_FAILED));
    tli_measure_store(&run->store, 0, &counters);
    tli_report_pass(run, &counters);
    if (report->measured_peak_bytes != report->planned_peak_bytes)
        return tli_run_mismatch(run, TLI_RULE(PEAK_MEASURED_BYTES_PLANNED), report->measured_peak_bytes,
                                report->planned_peak_bytes);
    if (report->measured_host_peak_bytes != report->planned_host_peak_bytes)
        return tli_run_mismatch(run, TLI_RULE(HOST_PEAK_MEASURED_BYTES_PLANNED),
                                report->measured_host_peak_bytes,
                                report->planned_host_peak_bytes);
    if (report->measured_arena_bytes != report->planned_arena_bytes)
        return tli_run_mismatch(run, TLI_RULE(ARENA_MEASURED_BYTES_PLANNED), report->measured_arena_bytes,
                                report->planned_arena_bytes);
    if (run->arenas[TL_TIER_DEVICE].block_count && report->taken_bytes > report->planned_taken_bytes)
        return tli_run_mismatch(run, TLI_RULE(TAKEN_MEASURED_BYTES_PLANNED), report->taken_bytes,
                                report->planned_taken_bytes);
    for (bank = 0; bank < TL_MOST_BANKS && run->arenas[TL_TIER_DEVICE].block_count; bank++)
        if (report->taken_bank_bytes[bank] > report->planned_bank_bytes[bank])
            return tli_run_mismatch(run, TLI_RULE(BANK_MEASURED_BYTES_PLANNED), report->taken_bank_bytes[bank],
                                    report->planned_bank_bytes[bank]);
    if (run->arenas[TL_TIER_HOST].block_count && report->host_taken_bytes > report->planned_host_taken_bytes)
        return tli_run_mismatch(run, TLI_RULE(TAKEN_ON_HOST_MEASURED_BYTES_PLANNED), report->host_taken_bytes,
                                report->planned_host_taken_bytes);
    if (report->end_bytes != planned->end_bytes)
        return tli_run_mismatch(run, TLI_RULE(IN_USE_AFTER_PASS_MEASURED_BYTES), report->end_bytes,
                                planned->end_bytes);
    if (counters.live_bytes[TL_TIER_HOST] != planned->end_host_bytes)
        return tli_run_mismatch(run, TLI_RULE(IN_USE_ON_HOST_AFTER_PASS_MEASURED),
                                counters.live_bytes[TL_TIER_HOST], planned->end_host_bytes);
    return TL_OK;
}

static tl_result tli_end_pass(tl_run *run) {
    tl_result result = tli_submit_store(&run->store);
    if (result == TL_NOT_READY) return result;  // the next call tries again
    if (result) return tli_run_fail_backend(run, result, TLI_RULE(SUBMIT_FAILED));
    result = tli_give_all_freed(run);
    if (result) return tli_run_fail_backend(run, result, TLI_RULE(RELEASE_FAILED));
#ifndef TL_NO_ONLINE
    if (run->is_online) result = tli_sim_end(&run->online.sim);
#endif
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    if (run->hybrid.is_on) result = tli_sim_end(&run->hybrid.sim);
#endif
    return result ? result : tli_check_pass(run);
}
#else
static tl_result tli_end_pass(tl_run *run) { (void)run; return TL_OK; }
#endif

static void tli_start_training_step(tl_run *run) {
    run->training_step = run->next_step++;
#ifndef TL_ONLY_TABLES
    run->loss_scale = 1.0f;
#endif
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (!run->desc.loss_scaler) return;
    *run->desc.loss_scaler = tl_default_loss_scaler(run->desc.loss_scaler);
    run->loss_scale = run->desc.loss_scaler->scale;
#endif
}

// Count from here on: offsets, accesses, forwards, and what the report says.
static void tli_start_counting(tl_run *run) {
    tli_zero(&run->report, sizeof run->report);
#ifdef TL_ONLY_TABLES
    run->next_offset = run->first_count;
    tli_zero(run->ran, (size_t)run->slot_count * (size_t)run->graph->node_count);    // slot 0 is chosen
#else
    tl_account_counters counters;
    run->touched_count = 0;
    run->arenas[TL_TIER_DEVICE].next_offset = run->first_count;  // the offsets before are taken already
    run->arenas[TL_TIER_HOST].next_offset = 0;
    tli_zero(run->all_ran, (size_t)run->slot_count * (size_t)run->graph->node_count);
    run->report.limiting_node = -1;
    run->report.worker_count = run->desc.transport ? run->desc.transport->rank_count : 1;
#ifndef TL_NO_PLANNERS
    run->report.cached_bytes = run->cache.kept_bytes;
    if (run->cache.is_warm) run->report.cached_count = run->cache.skipped_count;
#endif
    run->report.fused_count = run->members.fused_count;
    tli_zero(run->before_bytes, sizeof run->before_bytes);
    tli_measure_store(&run->store, 1, &counters);
    run->defers = run->flights != NULL;
#endif
}

// The neighbours of a rank are greeted before its first pass. TL_NOT_READY: not all have answered.
static tl_result tli_greet(tl_run *run) {
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (run->reduction)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(START_PASS), TLI_RULE(REDUCTION_IS_UNDER_WAY));
    return run->messages ? tli_greet_ranks(run, &run->messages->stages) : TL_OK;
#else
    (void)run;
    return TL_OK;
#endif
}

TLI_IMPL tl_result tl_start_pass(tl_run *run, int32_t micro_batch) {
    tl_result result;
    TL_ASSERT(run);
    if (run->active || (run->in_plan && !run->by_itself))
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(START_PASS),
                        TLI_RULE(RUN_PASS_IS_UNDER_WAY));
    if (micro_batch < 0 || micro_batch > INT32_MAX - run->slot_count)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(START_PASS), micro_batch < 0
                            ? TLI_RULE(MICRO_BATCH_MUST_BE_NOT_NEGATIVE)
                            : TLI_RULE(MICRO_BATCHES_DO_NOT_FIT_31_BITS));
    result = tli_greet(run);
    if (result) return result;
#ifndef TL_NO_PLANNERS
    if (run->cache.is_on) tli_choose_cached_plan(run, micro_batch);
#endif
    tli_release_buffers(run, 0);
#ifndef TL_NO_ONLINE
    tli_forget_reports(run);
#endif
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    if (run->hybrid.is_on && tli_start_hybrid(run))
        return tli_fail(run->env, TL_ERROR_INVALID_PLAN, TLI_IN(START_PASS), TLI_RULE(STATE_OF_RUN_NO_MEMORY));
#endif
#ifndef TL_ONLY_TABLES
    if (tli_claim_entry(run))
        return tli_fail(run->env, TL_ERROR_BACKEND, TLI_IN(START_PASS), TLI_RULE(BACKEND_COULD_NOT_TAKE_ENTRY));
#endif
    if (micro_batch == tli_first_micro_batch(run)) tli_start_training_step(run);
    run->micro_batch = micro_batch;
    run->position = 0;
    run->computing = TLI_COMPUTING_NOT;
    tli_start_counting(run);
#ifndef TL_NO_ONLINE
    if (run->is_online) result = tli_start_online(run, run->live_budget[TL_TIER_DEVICE]);
#endif
    run->active = !result;
    return result;
}

// The next step of the plan or of the online record; *done = 1: there is none.
static tl_result tli_pull_step(tl_run *run, tl_step *step, int32_t *done) {
    *done = 0;
#ifndef TL_NO_ONLINE
    if (run->is_online) {
        tl_result result = TL_OK;
        while (!run->by_hand && !result && !*done && run->position >= run->online.record.count)
            result = tli_online_next_goal(run, done);
        if (result) return result;
        *done |= run->position >= run->online.record.count;
        if (!*done) *step = run->online.record.steps[run->position];
        return TL_OK;
    }
#endif
    *done = run->position >= tli_plan_of(run)->step_count;
    if (!*done) *step = tl_find_step(tli_plan_of(run), run->position);
    return TL_OK;
}

#ifndef TL_ONLY_TABLES
// Ask the kernel of a call that was set aside whether it is ready.
static tl_result tli_poll_begun(tl_run *run, tli_begun *begun) {
    tl_result result;
    if (begun->is_ready) return TL_OK;
    tli_swap_begun(run, begun);
    result = tli_call_kernel(run, &begun->yielded);
    tli_swap_begun(run, begun);
    begun->is_ready = !result;
    return result;
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
            result = (run->by_itself ? backend->wait : backend->poll)(backend->self, run->tensors[i].copied);
    return result;
}

// Where others are under way, a memory step that moves bytes waits for those that make or overwrite them.
static tl_result tli_order_memory_step(tl_run *run) {
    tl_step_kind kind = (tl_step_kind)run->last.kind;
    int moves = kind == TL_STEP_SPILL || kind == TL_STEP_FETCH || kind == TL_STEP_COMPRESS ||
                kind == TL_STEP_EXPAND;
    int32_t i, end, before, latest = -1;
    if (!run->flights || !moves) return TL_OK;
    tli_step_outputs(run, &run->last, &i, &end);
    for (; i < end; i++) {
        tl_access access;
        if (!tli_acts_on_buffer(&run->tensors[i], kind)) continue;
        access.range = kind == TL_STEP_FETCH ? run->tensors[i].host.range : run->tensors[i].device.range;
        access.writes = 0;
        before = tli_find_conflict(run, &access, 1);
        if (before > latest) latest = before;
    }
    return latest >= 0 ? tli_wait_for(run, latest) : TL_OK;
}
#endif

static void tli_count_compute(tl_run *run) {
    int32_t id = run->last.node;
    if (run->last.kind == TL_STEP_BACKWARD) { run->report.backward_count++; return; }
    run->event.recompute = run->ran[id];
    run->report.forward_count++;
    run->report.recompute_count += run->ran[id];
    run->ran[id] = 1;
}

static void tli_keep_first(tl_result *first, tl_result result) { if (!*first) *first = result; }

// Close a compute step that was carried out: release the ranges that only the call needed, and the gradients
// and saved bytes that only this backward read.
static tl_result tli_close_compute(tl_run *run) {
    const tl_node *node = &run->graph->nodes[run->last.node];
    int32_t i, end = node->first_output + node->output_count;
    tl_result first;
    run->computing = TLI_COMPUTING_NOT;
#ifndef TL_ONLY_TABLES
    run->store.enqueued = 1;
#endif
    tli_end_random(run);  // where the caller called the last kernel itself
    first = tli_free_held(run, &run->call.scratch);
    for (i = 0; i < node->output_count; i++)
        tli_keep_first(&first, tli_free_held(run, &run->call.twice[i]));
    for (i = node->first_output; i < end && run->last.kind == TL_STEP_BACKWARD; i++)
        tli_keep_first(&first, tli_buffer_drop(run, &run->gradients[i]));
    if (run->last.kind == TL_STEP_BACKWARD)
        tli_keep_first(&first, tli_buffer_drop(run, tli_saved_buffer(run, run->last.node)));
#ifndef TL_NO_ONLINE
    tli_keep_first(&first, tli_take_reports(run));
#endif
    if (first) return tli_run_fail_backend(run, first, TLI_RULE(RELEASE_FAILED));
#ifndef TL_ONLY_TABLES
    if (!run->event.end_ns) tli_end_event(run);
#endif
    tli_observe_step(run);
    return TL_OK;
}

#ifndef TL_ONLY_TABLES
// Close the step that began a call, at the W that ends it.
static tl_result tli_end_begun(tl_run *run, tli_begun *begun) {
    tl_result result = TL_OK, closed;
    tli_swap_begun(run, begun);
    if (run->call.is_mapped) result = tli_unmap_accesses(run, run->call.access_count);
    if (result) result = tli_run_fail_backend(run, result, TLI_RULE(UNMAP_FAILED));
    closed = tli_close_compute(run);
    tli_swap_begun(run, begun);
    begun->is_used = 0;
    return result ? result : closed;
}
#endif

static void tli_open_step(tl_run *run, tl_step step, tl_run_step *out) {
    run->last = step;
    tli_run_choose_slot(run, step.slot);
    tli_zero(&run->event, sizeof run->event);
    run->event.index = run->position;
    run->event.micro_batch = run->micro_batch + step.slot;
    tli_start_event(run);
    run->call.operand_count = 0;
#ifndef TL_ONLY_TABLES
    run->event.step = step;
    run->event.training_step = run->training_step;
    run->call.access_count = 0;
#endif
    out->step = step;
    out->index = run->event.index;
    out->depends_on = -1;
}

// Pull a step, and carry it out or prepare its first call.
static tl_result tli_open_next_step(tl_run *run, tl_run_step *out, int32_t *done) {
#ifndef TL_ONLY_TABLES
    tli_begun *begun;
#endif
    tl_step step;
    tl_result result;
    tli_zero(&step, sizeof step);
    result = tli_pull_step(run, &step, done);
    if (result) return result;
#ifdef TL_ONLY_TABLES
    if (*done) return TL_OK;
    tli_open_step(run, step, out);
#else
    if (*done) {
        int32_t latest = tli_find_latest_flight(run);
        if (latest < 0) return TL_OK;
        *done = 0;
        return tli_wait_for(run, latest);
    }
    result = tli_enter_flight(run, &step);
    if (result == TL_NOT_READY) return result;
    if (result) return tli_run_fail_backend(run, result, TLI_RULE(RELEASE_FAILED));
    tli_open_step(run, step, out);
    result = tli_order_memory_step(run);
    begun = tli_find_begun(run, &step);
    if (!result) result = begun ? tli_poll_begun(run, begun) : tli_poll_step(run, &step);
    if (result == TL_NOT_READY || (result && begun)) return result;
    if (result) return tli_run_fail_backend(run, result, TLI_RULE(POLL_FAILED));
#endif
    run->position++;
    run->report.step_count++;
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    if (run->hybrid.is_on) result = tli_follow_step(run, &step);
    if (result) return result;
#endif
    if (step.kind <= TL_STEP_BACKWARD) {
        tli_count_compute(run);
        result = tli_begin_compute(run, out);
    } else {
#ifndef TL_ONLY_TABLES
        result = begun ? tli_end_begun(run, begun) : tli_memory_step(run);
#else
        result = tli_memory_step(run);
#endif
        tli_end_event(run);
        if (!result) tli_observe_step(run);
        if (!result && !run->by_itself) result = tli_find_dependency(run, &out->depends_on);
    }
    return result;
}

// Close a step that was carried out for all elements. One at a time, that is left to the next call.
static tl_result tli_close_flight(tl_run *run) {
    int is_done = tli_has_flights(run) && run->computing == TLI_COMPUTING_DONE && !tli_has_more_ranges(run);
    return is_done ? tli_close_compute(run) : TL_OK;
}

// Go on with the step before, for its next elements, or close it and open the next one.
static tl_result tli_take_step(tl_run *run, tl_run_step *out, int32_t *done) {
    tl_result result = TL_OK;
#ifdef TL_ONLY_TABLES
    {
#else
    run->waits_for = -1;
    tli_choose_step(run, run->position - 1);
    if (run->computing == TLI_COMPUTING_OPENED) {
        result = tli_go_on_compute(run, out);
    } else if (run->computing && tli_has_more_ranges(run)) {
        if (run->computing == TLI_COMPUTING_YIELDED) return tli_wait_for(run, run->event.index);
        result = tli_yield_next_range(run, out);
    } else {
#endif
        if (run->computing == TLI_COMPUTING_DONE) result = tli_close_compute(run);
        if (!result) result = tli_open_next_step(run, out, done);
    }
    if (!result && !*done) result = tli_close_flight(run);
#ifndef TL_ONLY_TABLES
    if (result || *done) return result;
    out->accesses = run->call.accesses;
    out->access_count = run->call.access_count;
    if (!run->limits.in_order) out->ticket = run->store.last_ticket;
#endif
    return result;
}

static tl_result tli_fail_unfinished(tl_run *run) {
    tli_sentence s = tli_begin_error(run->env, TL_ERROR_INVALID_ARG, TLI_IN(NEXT_STEP),
                                     TLI_RULE(WAS_NOT_CARRIED_OUT_CALL),
                                     (uint64_t)run->event.index, (uint64_t)run->last.node);
    if (TLI_ERROR_TEXT) {
        tli_put_last_step(run, &s.text);
        tli_put(&s.text, ": ");
    }
    return tli_end_error(run->env, &s, TL_ERROR_INVALID_ARG);
}

TLI_IMPL tl_result tl_next_step(tl_run *run, tl_run_step *step, int32_t *done) {
    tl_result result;
    TL_ASSERT(run && step && done);
    *done = 0;
    if (run->in_plan && !run->by_itself)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(NEXT_STEP), TLI_RULE(RUN_PLAN_IS_UNDER_WAY));
    if (run->active && !tli_has_flights(run) && run->computing == TLI_COMPUTING_YIELDED)
        return tli_fail_unfinished(run);
    tli_zero(step, sizeof *step);
    if (!run->active)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(NEXT_STEP),
                        TLI_RULE(RUN_NO_PASS_IS_UNDER_WAY));
    result = tli_take_step(run, step, done);
    if (!result && *done && !tli_is_by_hand(run)) {
        result = tli_end_pass(run);
        if (!result) run->active = 0;
#ifndef TL_NO_PLANNERS
        if (!result) run->cache.is_kept = run->cache.is_on;
#endif
    }
    if (!result) return TL_OK;
    tli_zero(step, sizeof *step);
    *done = 0;
    if (result != TL_NOT_READY) return tli_abort_pass(run, result);
#ifndef TL_ONLY_TABLES
    if (run->flights) step->depends_on = run->waits_for;
#endif
    return result;
}

// -- the executor: calls of the caller --

// Whether it is a compute step that was yielded and not carried out yet. It is the one at hand then.
static int tli_is_current(tl_run *run, const tl_run_step *step) {
    if (run->active && step->is_compute) tli_choose_step(run, step->index);
    return run->active && run->computing == TLI_COMPUTING_YIELDED && step->is_compute &&
           step->index == run->event.index && step->call.first == run->call.first &&
           step->call.node == run->call.node && step->call.kind == run->call.kind &&
           step->call.step == run->training_step && step->call.micro_batch == run->event.micro_batch;
}

static tl_result tli_fail_stale_step(tl_run *run, tli_function function) {
    return tli_fail(run->env, TL_ERROR_STALE, function,
                    TLI_RULE(STEP_NOT_COMPUTE_STEP_THAT_WAS_YIELDED));
}

#ifndef TL_ONLY_TABLES
static tl_result tli_map_last_step(tl_run *run, tli_function function) {
    tl_result result = run->call.is_mapped ? TL_OK : tli_map_accesses(run);
    if (result == TL_NOT_READY)
        return tli_fail(run->env, result, function, TLI_RULE(BACKEND_WORK_IS_UNDER_WAY_THAT_IT));
    return result ? tli_abort_pass(run, tli_run_fail_backend(run, result, TLI_RULE(MAP_FAILED))) : TL_OK;
}

#else
// On the host operands have their addresses from the beginning.
static tl_result tli_map_last_step(tl_run *run, tli_function function) {
    (void)run;
    (void)function;
    return TL_OK;
}
#endif

// The step yielded last was carried out, with this result.
static tl_result tli_leave_kernel(tl_run *run, tl_result result) {
#ifndef TL_ONLY_TABLES
    tl_result unmapped = run->call.is_mapped ? tli_unmap_accesses(run, run->call.access_count) : TL_OK;
    if (!result && unmapped) result = tli_run_fail_backend(run, unmapped, TLI_RULE(UNMAP_FAILED));
#endif
    run->computing = TLI_COMPUTING_DONE;
    if (!result) result = tli_close_flight(run);
    return result ? tli_abort_pass(run, result) : TL_OK;
}

TLI_IMPL tl_result tl_map_step(tl_run *run, tl_run_step *step) {
    tl_result result;
    TL_ASSERT(run && step);
    if (!tli_is_current(run, step)) return tli_fail_stale_step(run, TLI_IN(MAP_STEP));
    result = tli_map_last_step(run, TLI_IN(MAP_STEP));
    if (!result) tli_update_call(run, &step->call);
    return result;
}

#ifndef TL_NO_ONLINE
TLI_IMPL tl_result tl_report_bytes(tl_run *run, int32_t output, uint64_t bytes) {
    const tl_node *node;
    TL_ASSERT(run);
    node = &run->graph->nodes[run->last.node];
    if (!run->active || !(run->computing == TLI_COMPUTING_YIELDED || run->call.is_inside) ||
        run->last.kind == TL_STEP_BACKWARD || !node->dynamic)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(REPORT_BYTES),
                        TLI_RULE(NO_FORWARD_OF_DYNAMIC_NODE));
    if (output < 0 || output >= node->output_count)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(REPORT_BYTES), TLI_RULE(OUTPUT_NOT_BELOW_COUNT));
    return tli_note_report(run, output, bytes);
}
#endif

TLI_IMPL tl_result tl_run_step_kernel(tl_run *run, const tl_run_step *step) {
    const tli_function function = TLI_IN(RUN_STEP_KERNEL);
    tl_result result;
    TL_ASSERT(run && step);
    if (!tli_is_current(run, step)) return tli_fail_stale_step(run, function);
    result = tli_is_host_visible(run) ? tli_map_last_step(run, function) : TL_OK;
    if (result) return result;
    run->computing = TLI_COMPUTING_DONE;
    result = tli_call_kernel(run, step);
    if ((!result || result == TL_NOT_READY) && tli_set_aside(run, step, !result)) return TL_OK;
    if (result != TL_NOT_READY) return tli_leave_kernel(run, result);
    run->computing = TLI_COMPUTING_YIELDED;
    return result;
}

TLI_IMPL tl_result tl_finish_step(tl_run *run, const tl_run_step *step) {
    TL_ASSERT(run && step);
    if (!step->is_compute) return TL_OK;
    if (!tli_is_current(run, step)) return tli_fail_stale_step(run, TLI_IN(FINISH_STEP));
#ifndef TL_NO_ONLINE
    if (tli_check_reports(run)) return TL_ERROR_INVALID_ARG;
#endif
    tli_end_event(run);
    if (tli_set_aside(run, step, 1)) return TL_OK;
    return tli_leave_kernel(run, TL_OK);
}

#ifndef TL_ONLY_TABLES
// Call the kernels of the steps under way that were not asked in this turn. *moved: 1 = one of them was carried
// out; else as it was.
static tl_result tli_poll_kernels(tl_run *run, int *moved) {
    tl_result result = TL_OK;
    int32_t f;
    for (f = 0; f < tli_count_flights(run) && !result; f++) {
        tli_choose_flight(run, f);
        if (run->computing != TLI_COMPUTING_YIELDED || run->call.is_asked) continue;
        result = tl_run_step_kernel(run, &run->yielded);
        if (!result) *moved = 1;
        if (result != TL_NOT_READY) continue;
        run->call.is_asked = 1;
        result = TL_OK;
    }
    return result;
}

// Pull a step if there is one that can be yielded, and call kernels. TL_NOT_READY: nothing has moved.
static tl_result tli_move_pass(tl_run *run, int32_t *done) {
    tl_run_step step;
    int moved = 0;
    tl_result result = TL_NOT_READY, polled;
    tli_zero(&step, sizeof step);
    if (run->flights || run->computing != TLI_COMPUTING_YIELDED) result = tl_next_step(run, &step, done);
    if (result && result != TL_NOT_READY) return result;
    if (!result && step.is_compute) run->yielded = step;
    moved = !result;
    polled = run->active ? tli_poll_kernels(run, &moved) : TL_OK;
    return polled ? polled : moved ? TL_OK : TL_NOT_READY;
}

// Whether a kernel has answered that it is not ready.
static int tli_has_polled(const tl_run *run) {
    int is_polled = (run->computing == TLI_COMPUTING_YIELDED && run->call.polled) || tli_has_begun(run);
    int32_t f;
    for (f = 0; run->flights && f < run->flight_count; f++)
        is_polled |= tli_is_under_way(run, &run->flights[f]) && run->flights[f].call.polled;
    return is_polled;
}

// Carry out the rest of the pass (by hand: the steps of the goals decided so far). TL_NOT_READY: up to a kernel
// that is not ready, or to work that the backend cannot wait for.
static tl_result tli_run_steps(tl_run *run) {
    int32_t done = 0, f;
    tl_result result = TL_OK;
    for (f = 0; f < tli_count_flights(run); f++) {
        tli_choose_flight(run, f);
        run->call.is_asked = 0;
    }
    run->by_itself = 1;
    while (!result && !done) result = tli_move_pass(run, &done);
    run->by_itself = 0;
    if (result != TL_NOT_READY || tli_has_polled(run)) return result;
    return tli_fail(run->env, result, TLI_IN(RUN_PLAN), TLI_RULE(BACKEND_WORK_IS_UNDER_WAY_THAT_IT));
}
#else
// Pull a step and call its kernel, or call once more one that was not ready.
static tl_result tli_move_pass(tl_run *run, int32_t *done) {
    tl_run_step step;
    tl_result result = TL_OK;
    tli_zero(&step, sizeof step);
    if (run->computing == TLI_COMPUTING_YIELDED) {
        step.step = run->last;
        step.index = run->event.index;
        tli_name_call(run, run->kernel_of[run->last.node], &step);
    } else {
        result = tl_next_step(run, &step, done);
    }
    return result || !step.is_compute ? result : tl_run_step_kernel(run, &step);
}

// Carry out the rest of the pass. TL_NOT_READY: up to a kernel that is not ready.
static tl_result tli_run_steps(tl_run *run) {
    int32_t done = 0;
    tl_result result = TL_OK;
    run->by_itself = 1;
    while (!result && !done) result = tli_move_pass(run, &done);
    run->by_itself = 0;
    return result;
}
#endif

// Let the caller write the inputs of each slot before a pass.
static tl_result tli_load_slots(tl_run *run, int32_t micro_batch) {
    int32_t chosen = run->caller_slot, slot;
    tl_result result = TL_OK;
    for (slot = 0; run->desc.load && slot < run->slot_count && !result; slot++) {
        run->caller_slot = slot;
        result = run->desc.load(run, micro_batch + slot, run->desc.load_user);
    }
    run->caller_slot = chosen;
    if (!result || result == TL_NOT_READY) return result;
    result = tli_fail(run->env, TL_ERROR_KERNEL, TLI_IN(RUN_PLAN), TLI_RULE(LOAD_HOOK_REPORTED_FAILURE));
    return tli_abort_pass(run, result);
}

// Begin the next pass of tl_run_plan.
static tl_result tli_begin_plan_pass(tl_run *run) {
    int32_t micro_batch = tli_first_micro_batch(run) + run->plan_pass * run->slot_count;
    tl_result result = tli_greet(run);
    if (!result) result = tli_load_slots(run, micro_batch);
    run->by_itself = 1;
    if (!result) result = tl_start_pass(run, micro_batch);
    run->by_itself = 0;
    return result;
}

TLI_IMPL tl_result tl_run_plan(tl_run *run) {
    tl_result result = TL_OK;
    TL_ASSERT(run);
    if (run->active && !run->in_plan)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(RUN_PLAN), TLI_RULE(RUN_PASS_IS_UNDER_WAY));
    if (!run->in_plan) {
        run->plan_pass = 0;
        run->plan_step = run->next_step;
    }
    while (run->plan_pass < run->repeat_count && !result) {
        if (!run->active) result = tli_begin_plan_pass(run);
        if (!result) result = tli_run_steps(run);
        run->plan_pass += !result;
    }
    run->in_plan = result == TL_NOT_READY;
    if (result && !run->in_plan) run->next_step = run->plan_step;
    return result;
}

TLI_IMPL tl_result tl_reset_run(tl_run *run) {
    TL_ASSERT(run);
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    tli_stop_reduction(run);
#endif
    return tli_abort_pass(run, TL_OK);
}

TLI_IMPL void tl_measure_run(const tl_run *run, tl_run_report *report) {
    TL_ASSERT(run && report);
    *report = run->report;
}

#ifndef TL_NO_ONLINE
// The steps decided in the last online pass, as a plan.
static void tli_copy_record(const tl_run *run, tl_plan *plan) {
    const tl_report *report = &run->online.sim.report;
    plan->steps = run->online.record.steps;
    plan->step_count = run->online.record.count;
    plan->inference = run->inference;
    plan->repeat_count = run->repeat_count;
    plan->peak_bytes = report->peak_bytes;
    plan->host_peak_bytes = report->host_peak_bytes;
    plan->cost = report->cost;
    plan->base_cost = report->base_cost;
    if (plan->step_count == run->plan.step_count) return;   // with the places that the run takes
    plan->offsets = plan->host_offsets = NULL;              // a pass that is under way
    plan->offset_count = plan->host_offset_count = 0;
    plan->arena_bytes = plan->host_arena_bytes = 0;
    plan->blocks = NULL;
    plan->block_count = 0;
    plan->alignment_bytes = 0;
}
#endif

TLI_IMPL void tl_find_run_plan(const tl_run *run, tl_plan *plan) {
    TL_ASSERT(run && plan);
    *plan = *tli_plan_of(run);
    plan->memory = NULL;
#ifndef TL_ONLY_TABLES
    plan->base_bytes = run->desc.base_bytes;
    if (tli_keeps_results(run)) {   // the run's own bytes are those of both plans
        plan->arena_bytes = run->planned.arena_bytes;
        plan->host_arena_bytes = run->planned.host_arena_bytes;
    }
#endif
#ifndef TL_NO_ONLINE
    if (run->is_online) tli_copy_record(run, plan);
#endif
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    if (run->hybrid.is_on) tli_copy_figures(run, plan);
#endif
}

TLI_IMPL const tl_graph *tl_find_run_graph(const tl_run *run) {
    TL_ASSERT(run);
    return run->graph;
}

// -- tensors of the caller --

TLI_IMPL tl_result tl_choose_slot(tl_run *run, int32_t slot) {
    TL_ASSERT(run);
    if (slot < 0 || slot >= run->slot_count)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(CHOOSE_SLOT),
                        TLI_RULE(SLOT_NOT_BELOW_SLOT_COUNT));
    run->caller_slot = slot;
    return TL_OK;
}

static tl_result tli_access_tensor(tl_run *run, tli_function function, tl_tensor tensor,
                                   uint64_t bytes, tli_buffer **buffer) {
    const tl_graph *graph = run->graph;
    tli_buffer *found;
    int32_t index;
    *buffer = NULL;
    index = graph->nodes[tensor.node].first_output + tensor.output;
    if (bytes != tli_known_bytes(run, run->caller_slot, index))
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, function, TLI_RULE(BYTES_NOT_THOSE_OF_TENSOR));
    if (run->active)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, function, TLI_RULE(RUN_PASS_IS_UNDER_WAY));
    found = tli_caller_buffer(run, run->caller_slot, index);
    if (!tli_is_readable(found))
        return tli_fail(run->env, TL_ERROR_NOT_FOUND, function,
                        TLI_RULE(TENSOR_NEITHER_INPUT_NOR_RESULT));
    *buffer = found;
    return TL_OK;
}

#ifndef TL_ONLY_TABLES
static tl_result tli_move_tensor(tl_run *run, tli_function function, tl_range range, uint64_t bytes,
                                 tl_map_mode mode, void *to, const void *from) {
    tl_access access;
    void *host = NULL;
    tl_result result;
    if (!bytes) return TL_OK;
    range.bytes = bytes;    // of a dynamic tensor there may be more
    access.range = range;
    access.writes = mode == TL_MAP_WRITE;
    // On a backend that works in order, map itself waits for the work on the range.
    result = run->limits.in_order ? TL_OK : run->backend.order(run->backend.self, &access, 1);
    if (!result) result = run->backend.map(run->backend.self, range, mode, &host);
    if (!result) {
        if (mode == TL_MAP_WRITE) tli_copy(host, from, (size_t)range.bytes);
        else tli_copy(to, host, (size_t)range.bytes);
        result = run->backend.unmap(run->backend.self, range, mode, host);
    }
    if (result == TL_NOT_READY)
        return tli_fail(run->env, result, function, TLI_RULE(BACKEND_WORK_IS_UNDER_WAY_THAT_IT));
    return result ? tli_fail(run->env, result, function, TLI_RULE(TENSOR_BACKEND_COULD_NOT_MAP_IT))
                  : TL_OK;
}

// Whether the plan's entry names a tensor, in the slot of the caller.
static int tli_enters(const tl_run *run, tl_tensor tensor) {
    int32_t i;
    if (tli_keeps_results(run)) return 0;   // what is kept is not the caller's to write
    for (i = 0; i < run->plan.entry_count; i++) {
        const tl_entry *entry = &run->plan.entry[i];
        if (entry->node == tensor.node && entry->output == tensor.output && entry->slot == run->caller_slot)
            return 1;
    }
    return 0;
}

// Make room for the plan's entry where the last pass has freed a part of it: its results go.
static tl_result tli_prepare_entry(tl_run *run) {
    if (run->active) return TL_OK;  // the write is refused
    tli_release_buffers(run, 0);
    if (!tli_claim_entry(run)) return TL_OK;
    return tli_fail(run->env, TL_ERROR_BACKEND, TLI_IN(WRITE_TENSOR), TLI_RULE(BACKEND_COULD_NOT_TAKE_ENTRY));
}
#endif

TLI_IMPL tl_result tl_write_tensor(tl_run *run, tl_tensor tensor, const void *data,
                                   uint64_t bytes) {
    tli_buffer *buffer;
    int enters = 0;
    tl_result result = TL_OK;
    TL_ASSERT(run && (data || !bytes));
    result = tli_find_caller_tensor(run, TLI_IN(WRITE_TENSOR), &tensor);
    if (result) return result;
#ifndef TL_ONLY_TABLES
    enters = tli_enters(run, tensor);
    if (enters) result = tli_prepare_entry(run);
#endif
    if (!result) result = tli_access_tensor(run, TLI_IN(WRITE_TENSOR), tensor, bytes, &buffer);
    if (!result && !enters && !run->graph->nodes[tensor.node].is_input)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(WRITE_TENSOR),
                        TLI_RULE(TENSOR_NOT_GRAPH_INPUT));
    if (result) return result;
#ifndef TL_NO_PLANNERS
    if (run->cache.is_on && run->cache.is_watched[tensor.node]) tli_forget_cache(run);
#endif
#ifdef TL_ONLY_TABLES
    tli_copy(tli_place_address(run, buffer->place), data, (size_t)bytes);
    return TL_OK;
#else
    return tli_move_tensor(run, TLI_IN(WRITE_TENSOR), buffer->device.range, bytes, TL_MAP_WRITE, NULL,
                           data);
#endif
}

TLI_IMPL tl_result tl_read_tensor(tl_run *run, tl_tensor tensor, void *data, uint64_t bytes) {
    tli_buffer *buffer;
    tl_result result;
    TL_ASSERT(run && (data || !bytes));
    result = tli_find_caller_tensor(run, TLI_IN(READ_TENSOR), &tensor);
    if (!result) result = tli_access_tensor(run, TLI_IN(READ_TENSOR), tensor, bytes, &buffer);
    if (result) return result;
#ifdef TL_ONLY_TABLES
    tli_copy(data, tli_place_address(run, buffer->place), (size_t)bytes);
    return TL_OK;
#else
    return tli_move_tensor(run, TLI_IN(READ_TENSOR), buffer->device.range, bytes, TL_MAP_READ, data,
                           NULL);
#endif
}

TLI_IMPL tl_result tl_find_tensor_bytes(tl_run *run, tl_tensor tensor, uint64_t *bytes) {
    tl_result result;
    TL_ASSERT(run && bytes);
    *bytes = 0;
    result = tli_find_caller_tensor(run, TLI_IN(FIND_TENSOR_BYTES), &tensor);
    if (result) return result;
    *bytes = tli_known_bytes(run, run->caller_slot,
                             run->graph->nodes[tensor.node].first_output + tensor.output);
    return TL_OK;
}
#endif  // TL_STRATEGY_IMPLEMENTATION

