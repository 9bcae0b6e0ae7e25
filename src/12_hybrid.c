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
    run->call.reported = (uint64_t *)tli_alloc_array(run->env, output_count, sizeof *run->call.reported);
    for (i = 0; i < tensor_count && run->real_bytes; i++) run->real_bytes[i] = TLI_UNREPORTED;
    return run->real_bytes && run->call.reported;
}

// A call begins: nothing is reported.
static void tli_clear_reports(tl_run *run) {
    const tl_node *node = &run->graph->nodes[run->last.node];
    int32_t i;
    for (i = 0; i < node->output_count && node->dynamic; i++) run->call.reported[i] = TLI_UNREPORTED;
}

static tl_result tli_fail_report(tl_run *run, tli_rule rule, uint64_t bytes, uint64_t most) {
    tli_sentence s = tli_begin_error(run->env, TL_ERROR_INVALID_ARG, TLI_IN(REPORT_BYTES), rule, bytes, most);
    tli_put_text(&s, tl_name_node(run->graph, run->last.node));
    return tli_end_error(run->env, &s, TL_ERROR_INVALID_ARG);
}

// Whether what was reported of an output can be: no more than its bound, and what it reported before.
static tl_result tli_check_report(tl_run *run, int32_t output) {
    int32_t tensor = run->graph->nodes[run->last.node].first_output + output;
    uint64_t bytes = run->call.reported[output], bound = run->graph->outputs[tensor].bytes;
    uint64_t known = run->real_bytes[(size_t)run->slot * (size_t)run->graph->tensor_count + (size_t)tensor];
    if (bytes == TLI_UNREPORTED) return TL_OK;
    if (known != TLI_UNREPORTED && bytes != known)
        return tli_fail_report(run, TLI_RULE(BYTES_DIFFER_FROM_REPORT), bytes, known);
    return bytes > bound ? tli_fail_report(run, TLI_RULE(BYTES_ABOVE_BOUND), bytes, bound) : TL_OK;
}

static tl_result tli_note_report(tl_run *run, int32_t output, uint64_t bytes) {
    run->call.reported[output] = bytes < TLI_UNREPORTED ? bytes : TLI_UNREPORTED - 1;   // is above any bound
    return tli_check_report(run, output);
}

// A step cannot end with a wrong report.
static tl_result tli_check_reports(tl_run *run) {
    const tl_node *node = &run->graph->nodes[run->last.node];
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < node->output_count && node->dynamic && !result; i++) result = tli_check_report(run, i);
    return result;
}

// A forward has ended: its reports count.
static tl_result tli_take_reports(tl_run *run) {
    const tl_node *node = &run->graph->nodes[run->last.node];
    size_t first = (size_t)run->slot * (size_t)run->graph->tensor_count + (size_t)node->first_output;
    int32_t i;
    for (i = 0; i < node->output_count && node->dynamic && run->last.kind != TL_STEP_BACKWARD; i++)
        if (run->call.reported[i] != TLI_UNREPORTED) run->real_bytes[first + (size_t)i] = run->call.reported[i];
    return TL_OK;
}

// A pass begins: nothing is known but of what stays from the pass before.
static void tli_forget_reports(tl_run *run) {
    size_t count = (size_t)run->slot_count * (size_t)run->graph->tensor_count, i;
    for (i = 0; i < count && run->real_bytes; i++)
        if (!run->all_tensors[i].is_entry) run->real_bytes[i] = TLI_UNREPORTED;
}

static void tli_free_reports(tl_run *run) {
    tli_release(run->env, run->real_bytes);
    tli_release(run->env, run->call.reported);
}
#endif  // TL_NO_ONLINE
#endif  // TL_STRATEGY_IMPLEMENTATION
