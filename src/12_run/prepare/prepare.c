#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- preparing a run --
//
// tl_init_run checks the desc, finds a kernel for every node, makes or checks the plan (online: tries the
// decisions out on the simulator), checks the budget, and claims the graph's inputs:
//
//     desc + strategy -> graph (scaled to the precision) -> kernels -> plan or decisions -> budget -> arena
//
// -- preparing a run: strategy --

static tl_result tli_unsupported(tl_run *run, tli_rule what) {
    return tli_fail(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN), what);
}

// Hybrid plans what is known before a run: everything but what an eviction function decides.
static int tli_decides_online(const tl_run_desc *desc, const tl_strategy *strategy) {
    return strategy->mode == TL_MODE_EAGER || (strategy->mode == TL_MODE_HYBRID && desc->evict);
}

// Stages need a transport, with a multiple of their number of ranks. Where there is a transport, other
// workers, if several, are as many as its ranks.
static tl_result tli_support_parallelism(tl_run *run, const tl_strategy *strategy) {
    const tl_transport *transport = run->desc.transport;
    uint64_t workers = tl_find_worker_count(strategy, 1), ranks;
    int has_stages = strategy->parallelism.kind == TL_PARALLELISM_MODEL ||
                     strategy->parallelism.kind == TL_PARALLELISM_PIPELINE;
    if (has_stages && !transport) return tli_unsupported(run, TLI_RULE(STRATEGY_PARALLELISM_THIS_VERSION_RUNS));
    if (strategy->parallelism.kind == TL_PARALLELISM_AUTOMATIC || !transport || transport->rank_count < 1)
        return TL_OK;
    ranks = (uint64_t)transport->rank_count;
    if (has_stages ? ranks % workers == 0 : workers == 1 || workers == ranks) return TL_OK;
    return tli_fail_values(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN),
                           TLI_RULE(STRATEGY_PARALLELISM_IS_NOT_THAT_OF_THE_TRANSPORT), workers, ranks);
}

static tl_result tli_support_strategy(tl_run *run, const tl_strategy *strategy) {
    const tl_run_desc *desc = &run->desc;
    int placed = desc->plan && desc->plan->offset_count > 0;
    if (strategy->memory != TL_MEMORY_STANDARD && desc->evict)
        return tli_unsupported(run, TLI_RULE(STRATEGY_MEMORY_POOLED_NEEDS_PLAN));
    if (strategy->memory == TL_MEMORY_CACHED && desc->version) {
#ifdef TL_NO_PLANNERS
        return tli_unsupported(run, TLI_RULE(STRATEGY_MEMORY_CACHED_TL_NO_PLANNERS));
#else
        if (desc->plan || desc->policy.kind != TL_POLICY_KEEP_ALL || desc->eviction || desc->codec)
            return tli_unsupported(run, TLI_RULE(STRATEGY_MEMORY_CACHED_MAKES_PLANS));
#endif
    }
    if (strategy->memory == TL_MEMORY_MINIMAL_PEAK && strategy->mode == TL_MODE_EAGER)
        return tli_unsupported(run, TLI_RULE(STRATEGY_MEMORY_MINIMAL_PEAK_NEEDS_PLAN));
    if (strategy->memory == TL_MEMORY_STANDARD && placed)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN),
                        TLI_RULE(STRATEGY_MEMORY_STANDARD_BUT_PLAN));
    return tli_support_parallelism(run, strategy);
}

// The strategy must not contradict the rest of the desc.
static tl_result tli_match_strategy(tl_run *run, const tl_strategy *strategy) {
    const tl_run_desc *desc = &run->desc;
    const tl_gradient *gradient = &strategy->gradient;
    tli_rule why = TLI_NO_RULE;
    if (tli_decides_online(desc, strategy) && !run->is_online)
        why = TLI_RULE(STRATEGY_MODE_EAGER_DECIDES_ONLINE);
    if (desc->plan && desc->plan->inference == gradient->computes)
        why = TLI_RULE(STRATEGY_GRADIENT_PLAN_IS_OF_OTHER);
    if ((desc->plan || desc->checkpoints) && gradient->checkpoint_interval)
        why = TLI_RULE(STRATEGY_GRADIENT_INTERVAL_AND_PLAN);
    if (desc->checkpoints && !gradient->checkpointed)
        why = TLI_RULE(STRATEGY_GRADIENT_NOT_CHECKPOINTED_BUT);
    if (desc->policy.kind != TL_POLICY_KEEP_ALL && gradient->computes &&
        (!gradient->checkpointed || gradient->checkpoint_interval))
        why = TLI_RULE(STRATEGY_GRADIENT_SAYS_WHAT_IS_KEPT);
    if (gradient->accumulation_steps > INT32_MAX)
        why = TLI_RULE(STRATEGY_GRADIENT_ACCUMULATION_STEPS);
    if (desc->plan && gradient->accumulation_steps % (uint64_t)tli_count_slots(desc->plan))
        why = TLI_RULE(STRATEGY_GRADIENT_STEPS_ARE_NOT_OF_WHOLE_PASSES);
    return why ? tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN), why) : TL_OK;
}

// Set the flags of the run from the strategy.
static tl_result tli_apply_strategy(tl_run *run) {
    tl_run_desc *desc = &run->desc;
    const tl_strategy *strategy = desc->strategy;
    uint64_t slot_total = desc->plan ? (uint64_t)tli_count_slots(desc->plan) : 1;
    tl_result result;
    run->precision = TL_PRECISION_SINGLE;
    run->profiling = desc->profiling;
    run->checkpoints_on = 1;
    run->inference = desc->plan ? desc->plan->inference : desc->inference;
    run->is_online = !desc->plan && !desc->checkpoints;
    run->in_arena = !desc->evict;       // what it decides is known in the pass only
    run->in_flight = desc->in_flight > 1 ? desc->in_flight : 1;
    if (!strategy) return TL_OK;
    result = tl_check_strategy(run->env, strategy);
    if (!result) result = tli_support_strategy(run, strategy);
    if (result) return result;
    result = tli_match_strategy(run, strategy);
    if (result) return result;
    run->is_online = tli_decides_online(desc, strategy);
    run->is_hybrid = strategy->mode == TL_MODE_HYBRID;
    run->in_arena = strategy->memory != TL_MEMORY_STANDARD;
    run->inference = !strategy->gradient.computes;
    run->precision = strategy->precision;
    run->profiling = desc->profiling || strategy->enable_profiling;
    if (!desc->repeat_count) desc->repeat_count = (int32_t)(strategy->gradient.accumulation_steps / slot_total);
#ifndef TL_NO_ONLINE
    if (run->is_online) {
        tl_policy asked;
        run->checkpoints_on = run->inference || strategy->gradient.checkpointed;
        if (tl_find_policy(strategy, &asked)) desc->policy = asked;
    }
#endif
    return TL_OK;
}

static tl_result tli_check_run_desc(tl_run *run) {
    const tl_run_desc *desc = &run->desc;
    tli_rule why = TLI_NO_RULE;
    tl_result result = TL_OK;
#ifndef TL_NO_ONLINE
    result = tli_check_online_policy(run->env, TLI_IN(INIT_RUN), &desc->policy);
#endif
    if (!result && desc->device) result = tl_check_device(run->env, desc->device);
    if (!result && desc->plan) result = tli_check_plan(run->env, TLI_IN(INIT_RUN_PLAN), desc->plan);
    if (result) return result;
    if (desc->plan && desc->checkpoints) why = TLI_RULE(PLAN_CHECKPOINTS_GIVE_ONE_OF_THEM);
    if ((uint32_t)desc->eviction >= TL_EVICTION_COUNT || (uint32_t)desc->codec >= TL_CODEC_COUNT)
        why = TLI_RULE(EVICTION_CODEC_UNKNOWN_KIND);
    if ((desc->eviction == TL_EVICTION_CALLER) != (desc->evict != NULL))
        why = TLI_RULE(EVICT_GOES_WITH_TL_EVICTION_CALLER);
    if (desc->kernel_count < 0 || (desc->kernel_count && !desc->kernels))
        why = TLI_RULE(KERNEL_COUNT_REPEAT_COUNT_MUST_BE_NOT);
    if (desc->repeat_count < 0) why = TLI_RULE(REPEAT_COUNT_MUST_BE_NOT_NEGATIVE);
    if (desc->in_flight < 0) why = TLI_RULE(IN_FLIGHT_MUST_BE_NOT_NEGATIVE);
    if (desc->first_micro_batch < 0) why = TLI_RULE(MICRO_BATCH_MUST_BE_NOT_NEGATIVE);
    if (desc->inference != 0 && desc->inference != 1) why = TLI_RULE(INFERENCE_MUST_BE_0_OR_1);
    if (desc->checkpoints && desc->inference) why = TLI_RULE(CHECKPOINTS_FORWARD_ONLY_RUN_HAS_NONE);
    if ((desc->plan || desc->checkpoints) &&
        (desc->policy.kind != TL_POLICY_KEEP_ALL || desc->eviction || desc->codec))
        why = TLI_RULE(POLICY_EVICTION_CODEC_ARE_FOR_ONLINE);
#if defined(TL_NO_PLANNERS) || defined(TL_NO_PRECISION)
    if (desc->formats || desc->loss_scaler)
#ifdef TL_NO_PRECISION
        return tli_unsupported(run, TLI_RULE(FORMATS_LOSS_SCALER_TL_NO_PRECISION));
#else
        return tli_unsupported(run, TLI_RULE(FORMATS_LOSS_SCALER_TL_NO_PLANNERS));
#endif
#endif
    if (why) return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN), why);
    if (!TLI_CODECS && desc->codec != TL_CODEC_NONE)
        return tli_unsupported(run, TLI_RULE(CODEC_TL_NO_CODECS_LEFT_ALL_OF_THEM));
    if (desc->codec != TL_CODEC_NONE && !(run->limits.codecs & (1u << desc->codec)))
        return tli_unsupported(run, TLI_RULE(CODEC_BACKEND_CANNOT_CONVERT_IT));
    return TL_OK;
}

// -- preparing a run: graph, kernels, plan --

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
// Check that every format is known, that tensors of 16-bit formats have even bytes, and that integers need no
// gradient. With formats the run's precision is mixed.
static tl_result tli_check_formats(tl_run *run) {
    const tl_run_desc *desc = &run->desc;
    const tl_graph *graph = run->graph;
    tli_rule why = TLI_NO_RULE;
    int is_mixed = 0;
    int32_t i;
    for (i = 0; i < graph->tensor_count && desc->formats && !why; i++) {
        const tl_node_output *output = &graph->outputs[i];
        uint8_t format = desc->formats[i];
        is_mixed |= format != TL_FORMAT_F32;
        if (format >= TL_FORMAT_COUNT) why = TLI_RULE(FORMATS_UNKNOWN_FORMAT);
        else if (output->format && !graph->nodes[output->node].is_input &&
                 output->format != tli_declare_format((tl_format)format))
            why = TLI_RULE(FORMATS_ANOTHER_IS_DECLARED);
        else if (format != TL_FORMAT_F32 && format != TL_FORMAT_I8 && output->bytes % 2)
            why = TLI_RULE(FORMATS_16_BIT_ELEMENTS_BUT_ODD_NUMBER);
        else if (format >= TL_FORMAT_I16 && !run->inference && graph->nodes[output->node].has_grad)
            why = TLI_RULE(FORMATS_INTEGERS_HAVE_NO_GRADIENT_RUN);
    }
    if (desc->formats && run->desc.strategy && run->precision != TL_PRECISION_MIXED)
        why = TLI_RULE(STRATEGY_PRECISION_WITH_FORMATS_IT);
    if (why) return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN), why);
    if (desc->formats) run->precision = TL_PRECISION_MIXED;
    if (is_mixed && !(desc->kernel_precisions & (1u << TL_PRECISION_MIXED)))
        return tli_unsupported(run, TLI_RULE(FORMATS_MIXED_IS_NOT_AMONG));
    return TL_OK;
}
#endif

// Scale the bytes of a graph, which are those of f32, to the precision. Graph inputs keep theirs. scaled: the
// copy, with nodes and outputs that the run owns.
static tl_result tli_scale_copy(tl_run *run, const tl_graph *graph, tl_graph *scaled) {
    tl_node *nodes = (tl_node *)tli_alloc_array(run->env, (uint64_t)graph->node_count, sizeof *nodes);
    tl_node_output *outputs = (tl_node_output *)tli_alloc_array(run->env, (uint64_t)graph->tensor_count,
                                                                sizeof *outputs);
    int32_t i;
    *scaled = *graph;
    scaled->attributes = NULL;      // runs do not go by them
    scaled->nodes = nodes;
    scaled->outputs = outputs;
    run->owns_nodes = 1;
    if (!nodes || !outputs)
        return tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(GRAPH_OF_PRECISION_NO_MEMORY));
    tli_copy(nodes, graph->nodes, (size_t)graph->node_count * sizeof *nodes);
    tli_copy(outputs, graph->outputs, (size_t)graph->tensor_count * sizeof *outputs);
    for (i = 0; i < graph->node_count; i++) {
        tl_node *node = &nodes[i];
        node->saved_bytes = tli_scale_bytes(node->saved_bytes, run->precision);
        node->fwork_bytes = tli_scale_bytes(node->fwork_bytes, run->precision);
        if (!node->state && !tli_reads_pieces(graph, node))     // the bytes of states stay
            node->bwork_bytes = tli_scale_bytes(node->bwork_bytes, run->precision);
        node->swork_bytes = tli_scale_bytes(node->swork_bytes, run->precision);
    }
    for (i = 0; i < graph->tensor_count; i++) {
        tl_node_output *output = &outputs[i];
        if (graph->nodes[output->node].is_input) continue;
        output->bytes = tli_scale_bytes(output->bytes, run->precision);
#if TLI_ATTRIBUTES
        output->format = tli_scale_tensor_format(output->format, run->precision);
#endif
    }
    return tl_check_graph(run->env, scaled);
}

#if TLI_ATTRIBUTES
// Without formats, tensors are of the run's precision: refuse those that are declared to be of others where
// bytes are scaled, compressed or counted in elements.
static tl_result tli_check_declared(tl_run *run) {
    const tl_graph *graph = run->graph;
    int32_t i;
    int matters = run->precision != TL_PRECISION_SINGLE || run->desc.codec != TL_CODEC_NONE;
    for (i = 0; i < graph->tensor_count && !matters; i++) {
        const tl_node_output *output = &graph->outputs[i];
        matters = graph->nodes[output->node].takes_blocks && output->format != TL_TENSOR_FORMAT_NONE &&
                  output->format != TL_TENSOR_FORMAT_F32;
    }
    return matters ? tli_refuse_formats(run->env, TLI_IN(INIT_RUN), graph, 0,
                                        TLI_RULE(FORMATS_MUST_SAY_WHAT_IS_DECLARED)) : TL_OK;
}
#endif

static tl_result tli_scale_graph(tl_run *run) {
    uint32_t can =
        run->desc.kernel_precisions ? run->desc.kernel_precisions : 1u << TL_PRECISION_SINGLE;
    tl_result result;
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (run->desc.formats) return tli_check_formats(run);
#endif
    if (tli_has_compiled(run)) return TL_OK;
    if (run->precision == TL_PRECISION_FULL) run->precision = tli_find_widest(can);
    if (run->precision == TL_PRECISION_MIXED) run->precision = TL_PRECISION_SINGLE;  // nothing to choose from
    if (!(can & (1u << run->precision)))
        return tli_unsupported(run, TLI_RULE(STRATEGY_PRECISION_NOT_AMONG));
#if TLI_ATTRIBUTES
    result = tli_check_declared(run);
    if (result) return result;
#endif
    if (run->precision == TL_PRECISION_SINGLE) return TL_OK;
    result = tli_scale_copy(run, run->graph, &run->own_graph);
    run->graph = &run->own_graph;
    if (result || !tli_has_members(run)) return result;
    result = tli_scale_copy(run, run->members.graph, &run->own_source);
    run->members.graph = &run->own_source;
    return result;
}

// id: of the run's graph; node: the one that needs a kernel, of `graph`.
static tl_result tli_fail_kernels(tl_run *run, int32_t id, const tl_graph *graph, int32_t node) {
    tli_sentence s = tli_begin_error(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN), run->kernel_of[id] < 0
        ? TLI_RULE(KERNELS_NONE_FOR_OP_OF_NODE)
        : TLI_RULE(KERNELS_FORWARD_OR_BACKWARD_MISSING), (uint64_t)node, 0);
    tli_put_text(&s, tl_name_op(graph, node));
    if (run->kernel_of[id] >= 0) tli_put_text(&s, tl_name_node(graph, node));
    return tli_end_error(run->env, &s, TL_ERROR_INVALID_ARG);
}

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
static tl_result tli_fail_conversion(tl_run *run, tl_result code, tli_rule rule, int32_t id) {
    tli_sentence s = tli_begin_error(run->env, code, TLI_IN(INIT_RUN), rule, (uint64_t)id, 0);
    if (TLI_ERROR_TEXT) {
        tli_put_rule(&s);
        tli_put(&s.text, ": node ");
        tli_put_named(&s.text, id, tl_name_node(run->graph, id));
    }
    return tli_end_error(run->env, &s, code);
}

// Why a tensor cannot be converted; TLI_NO_RULE = it can.
static tli_rule tli_find_missing(tl_run *run, int32_t tensor, tl_result *code) {
    tl_format format = tli_run_format(run, tensor);
    tl_codec codec = tli_format_codec(format);
    float none = 0.0f;
    int16_t to;
    *code = TL_ERROR_UNSUPPORTED;
    if (codec != TL_CODEC_NONE && !TLI_CODECS)
        return TLI_RULE(FORMATS_TL_NO_CODECS_LEFT_CONVERSIONS);
    if (codec != TL_CODEC_NONE && !(run->limits.codecs & (1u << codec)))
        return TLI_RULE(FORMATS_BACKEND_HAS_NO_SUCH_CODEC_GIVE);
    if (!tli_is_integer(format)) return TLI_NO_RULE;
    if (!run->limits.host_visible)
        return TLI_RULE(FORMATS_INTEGERS_NEED_HOST_VISIBLE);
    *code = TL_ERROR_INVALID_ARG;
    if (run->desc.quantizations &&
        !tl_quantize(run->env, &run->desc.quantizations[tensor], 1, 1, format, &none, &to,
                     1)) return TLI_NO_RULE;
    return TLI_RULE(QUANTIZATIONS_CONVERSION_NEEDS_ONE);
}

// Whether the backward of a later node adds to the gradient of a tensor before that of this node does.
static int tli_is_added_to(const tl_run *run, int32_t tensor, int32_t id) {
    const tl_graph *graph = run->graph;
    int32_t i;
    while (++id < graph->node_count) {
        const tl_node *node = &graph->nodes[id];
        for (i = 0; i < node->input_count && node->has_grad; i++)
            if (graph->inputs[node->first_input + i].tensor == tensor) return 1;
    }
    return 0;
}

static tl_result tli_check_conversion(tl_run *run, int32_t id) {
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t input, output = node->first_output;
    tl_format from, to;
    uint64_t wide;
    tli_rule why = TLI_NO_RULE;
    tl_result code = TL_ERROR_INVALID_ARG;
    int trains = !run->inference && node->has_grad;
    if (node->dynamic || (node->input_count && graph->nodes[tli_input_node(graph, node->first_input)].dynamic))
        return tli_fail_conversion(run, TL_ERROR_UNSUPPORTED, TLI_RULE(FORMATS_CONVERSION_OF_DYNAMIC), id);
    if (node->input_count != 1 || node->output_count != 1 || node->inplace >= 0 || node->saved_bytes)
        return tli_fail_conversion(run, code,
                                   TLI_RULE(FORMATS_CONVERSION_HAS_ONE_INPUT_ONE),
                                   id);
    input = graph->inputs[node->first_input].tensor;
    from = tli_run_format(run, input);
    to = tli_run_format(run, output);
    wide = tli_count_in_format(to, graph->outputs[output].bytes);
    if (wide != tli_count_in_format(from, graph->outputs[input].bytes))
        why = TLI_RULE(FORMATS_CONVERSION_HAS_AS_MANY);
    wide = from != to && from != TL_FORMAT_F32 && to != TL_FORMAT_F32 ? 4 * wide : 0;
    if (!why && !run->limits.host_visible &&
        (node->fwork_bytes < wide || (trains && node->bwork_bytes < wide))) {
        code = TL_ERROR_UNSUPPORTED;
        why = TLI_RULE(FORMATS_BETWEEN_F16_AND_BF16_THIS);
    }
    if (!why) why = tli_find_missing(run, input, &code);
    if (!why) why = tli_find_missing(run, output, &code);
    trains = trains && tli_gets_gradient(graph, input);  // else the gradient ends here
    if (!why && trains && !run->limits.host_visible && tli_is_added_to(run, input, id)) {
        code = TL_ERROR_UNSUPPORTED;
        why = TLI_RULE(FORMATS_ADDING_TO_GRADIENT_NEEDS_HOST);
    }
    return why ? tli_fail_conversion(run, code, why, id) : TL_OK;
}
#endif

// The first kernel of the op of a node of the caller's graph, or its own; -1 = there is none.
static int32_t tli_find_kernel(const tl_run *run, const tl_graph *graph, int32_t node) {
    const char *op = tl_name_op(graph, node);
    int32_t k;
    if (run->by_node) return node;
    for (k = 0; k < run->desc.kernel_count; k++)
        if (tli_same_text(run->kernels[k].op, op)) return k;
    return -1;
}

// Find the kernels of the members of a fused node; that of the last one stands for the node.
static tl_result tli_find_member_kernels(tl_run *run, int32_t id) {
    const tl_graph *graph = run->members.graph;
    int32_t at;
    for (at = 0; at < tli_count_members(run, id); at++) {
        int32_t member = tli_find_member(run, id, at), k = tli_find_kernel(run, graph, member);
        int trains = !run->inference && graph->nodes[member].has_grad;
        run->kernel_of[id] = run->members.kernels[member] = k;
        if (k < 0 || !run->kernels[k].forward || (trains && !run->kernels[k].backward))
            return tli_fail_kernels(run, id, graph, member);
    }
    return TL_OK;
}

// Texts of the caller need not outlive the call: those of the graph do.
static void tli_keep_kernel_names(tl_run *run) {
    const tl_graph *graph = tli_caller_graph(run);
    int32_t id, at, k;
    for (k = 0; k < run->desc.kernel_count; k++) run->kernels[k].op = "";
    for (id = 0; id < run->graph->node_count; id++)
        for (at = 0; at < tli_count_members(run, id); at++) {
            int32_t member = tli_find_member(run, id, at);
            k = tli_calls_members(run, id) ? run->members.kernels[member] : run->kernel_of[id];
            if (k >= 0) run->kernels[k].op = tl_name_op(graph, member);
        }
}

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
// Whether a node is carried out by the run's own kernel of messages.
static int tli_is_message(const tl_run *run, int32_t id) {
    return run->messages && run->messages->numbers && run->messages->numbers[id] >= 0;
}
#endif

// Whether the run updates a node, which is a state then.
static int tli_updates_node(const tl_run *run, const tl_node *node) {
    return !run->inference && tli_learns(node);
}

static tl_result tli_find_kernels(tl_run *run) {
    const tl_graph *graph = run->graph;
    int32_t id;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        run->kernel_of[id] = -1;
        if (node->is_input && !tli_updates_node(run, node)) continue;
        if (tli_calls_members(run, id)) {
            tl_result result = tli_find_member_kernels(run, id);
            if (result) return result;
            continue;
        }
        if (run->by_node) run->kernel_of[id] = tli_count_members(run, id) ? tli_find_member(run, id, 0) : -1;
        else run->kernel_of[id] = tli_find_kernel(run, graph, id);
        if (run->kernel_of[id] >= 0 && (node->is_input || run->kernels[run->kernel_of[id]].forward) &&
            (run->inference || !(node->has_grad || node->state) || run->kernels[run->kernel_of[id]].backward))
            continue;
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
        if (run->kernel_of[id] < 0 && tli_is_message(run, id)) {
            run->kernel_of[id] = run->desc.kernel_count;    // behind the caller's
            continue;
        }
        if (run->kernel_of[id] < 0 && run->desc.formats && tli_same_text(tl_name_op(graph, id), "convert")) {
            tl_result result = tli_check_conversion(run, id);
            if (result) return result;
            run->kernel_of[id] = TLI_CONVERSION;
            continue;
        }
#endif
        return tli_fail_kernels(run, id, graph, id);
    }
    tli_keep_kernel_names(run);
    return TL_OK;
}

#ifndef TL_NO_PLANNERS
#define TLI_EXPECTED_STEPS 1000  // where the caller does not say how many

// What the strategy, or none, asks of the run's graph.
static tli_asked tli_ask_for_run(const tl_run *run) {
    tli_asked asked;
    tli_zero(&asked, sizeof asked);
    asked.env = run->env;
    asked.function = TLI_IN(INIT_RUN);
    asked.graph = run->graph;
    if (run->desc.strategy) {
        asked.gradient = &run->desc.strategy->gradient;
        asked.memory = run->desc.strategy->memory;
    }
    asked.inference = run->inference;
    asked.in_arena = run->in_arena;
    asked.device = run->desc.device;
    asked.live = run->budget;
    asked.arena = tli_arena_budget(run);
    asked.alignment_bytes = run->limits.alignment_bytes;
    asked.block_bytes = tli_run_cut(run);
    asked.in_flight = run->in_flight;
    asked.work_limit = run->desc.work_limit;
    asked.expected_steps = run->desc.expected_steps ? run->desc.expected_steps : TLI_EXPECTED_STEPS;
    asked.costs_are_ns = tli_costs_are_ns(&run->desc);
    asked.pool = run->desc.pool;
    asked.progress = run->desc.progress;
    asked.user = run->desc.progress_user;
    asked.formats = run->desc.formats;
    if (run->precision == TL_PRECISION_MIXED || run->precision == TL_PRECISION_SINGLE)
        asked.codec = run->desc.codec;
    return asked;
}

// The plan for the checkpoints or the strategy.
static tl_result tli_plan_desc(tl_run *run) {
    const tl_run_desc *desc = &run->desc;
    tl_remat_report report;
    tli_asked asked;
    tl_result result;
    if (desc->checkpoints && !run->inference)
        return tli_plan_checkpoints(run->env, run->graph, desc->checkpoints, &run->budget, &run->plan);
    asked = tli_ask_for_run(run);
    result = tli_plan_asked(&asked, &run->plan, &report);
    run->planning_work += report.work;
    if (!result && run->plan.offset_count) run->plan.base_bytes = run->budget.base_bytes;
    return result;
}
#else
static tl_result tli_plan_desc(tl_run *run) {
    return tli_unsupported(run, TLI_RULE(PLAN_GIVE_ONE_TL_NO_PLANNERS_LEFT));
}
#endif

// A plan may compress f32 tensors only, because the backend's codecs read f32.
static tl_result tli_check_compressed(tl_run *run) {
    int32_t k, i, end;
    for (k = 0; k < run->plan.step_count; k++) {
        const tl_step step = tl_find_step(&run->plan, k);
        if (step.kind != TL_STEP_COMPRESS) continue;
        if (!TLI_CODECS) return tli_unsupported(run, TLI_RULE(PLAN_COMPRESSES_TL_NO_CODECS_LEFT));
        tli_step_outputs(run, &step, &i, &end);
        for (; i < end; i++)
            if (!tli_is_f32(run, i))
                return tli_fail(run->env, TL_ERROR_INVALID_PLAN, TLI_IN(INIT_RUN),
                                TLI_RULE(PLAN_COMPRESSES_TENSOR_WHOSE_FORMAT));
    }
    return TL_OK;
}

// -- preparing a run: the arena --

// Give a plan the places that `bare`, the same without some of its offsets, lacks, in a copy that the run owns
// then. work_limit: of the layout, at most that of the desc.
static tl_result tli_place_run_plan(tl_run *run, const tl_plan *bare, uint64_t work_limit) {
    tl_device device = tli_run_device(run);
    tl_plan lacking = *bare, before = run->plan;
    tl_places_desc desc;
    tl_result result;
    tli_zero(&desc, sizeof desc);
    desc.graph = run->graph;
    desc.device = &device;
    desc.work_limit = work_limit;
    if (run->desc.work_limit && run->desc.work_limit < work_limit) desc.work_limit = run->desc.work_limit;
    desc.block_bytes = tli_run_cut(run);
    if (!run->owns_plan) run->plan.memory = NULL;   // it stays the caller's
    result = tli_plan_places(run->env, TLI_IN(INIT_RUN_PLAN), &desc, &lacking,
                             before.block_count ? &before : NULL, &run->plan, NULL);
    if (!result) run->owns_plan = 1;
    return result;
}

#define TLI_RUN_PLACE_WORK 1000000  // steps of a first layout; ten times as many where its arena is too large

// Whether offsets suit the alignment of the backend. Some that were placed for a smaller one do, too.
static int tli_suit_backend(const tl_run *run, const tl_plan *plan, int is_host) {
    int32_t count = is_host ? plan->host_offset_count : plan->offset_count;
    uint64_t alignment = run->limits.alignment_bytes ? run->limits.alignment_bytes : 1;
    int32_t i;
    if (run->plan.alignment_bytes >= alignment) return 1;
    for (i = 0; i < count; i++)
        if (tl_find_offset(plan, i, is_host) & (alignment - 1)) return 0;
    return 1;
}

// Remove the offsets and the blocks of a tier from a plan.
static void tli_take_off_places(tl_plan *bare, int tier) {
    int32_t k = 0;
    while (k < bare->block_count && bare->blocks[k].tier == TL_TIER_DEVICE) k++;
    if (tier == TL_TIER_HOST) {
        bare->host_offsets = NULL;
        bare->host_offset_count = 0;
        bare->block_count = k;
        return;
    }
    bare->offsets = NULL;
    bare->offset_count = 0;
    if (k) bare->blocks += k;
    bare->block_count -= k;
}

// Whether the plan lacks places in one of the run's arenas. bare: the plan with those that suit the backend.
static int tli_lacks_places(const tl_run *run, tl_plan *bare) {
    int32_t k, is_too_tight = tli_count_in_flight(&run->plan) < run->in_flight;
    *bare = run->plan;
    bare->in_flight = run->in_flight;
    if (is_too_tight || !tli_suit_backend(run, bare, 0)) bare->offset_count = 0;
    if (is_too_tight || !tli_suit_backend(run, bare, 1)) bare->host_offset_count = 0;
    if (!bare->offset_count) tli_take_off_places(bare, TL_TIER_DEVICE);
    if (!bare->host_offset_count) tli_take_off_places(bare, TL_TIER_HOST);
    bare->alignment_bytes = run->limits.alignment_bytes;    // their arenas end as this backend aligns
    if (!bare->offset_count) return 1;
    for (k = 0; k < bare->step_count && !bare->host_offset_count; k++)
        if (tl_find_step(bare, k).kind == TL_STEP_SPILL) return 1;
    return 0;
}

// Place what has places in a tier once more, with more work.
static tl_result tli_place_again(tl_run *run, int on_device, int on_host) {
    tl_plan bare = run->plan;
    if (on_device) tli_take_off_places(&bare, TL_TIER_DEVICE);
    if (on_host) tli_take_off_places(&bare, TL_TIER_HOST);
    bare.alignment_bytes = run->limits.alignment_bytes;
    return tli_place_run_plan(run, &bare, 10 * TLI_RUN_PLACE_WORK);
}

// Take the plan given, or make one, and give it the places that it lacks.
static tl_result tli_take_run_plan(tl_run *run) {
    tl_result result = TL_OK;
    tl_plan bare;
    run->owns_plan = !run->desc.plan;
    if (run->desc.plan) run->plan = *run->desc.plan;
    else if (tli_has_compiled(run)) tli_take_compiled_plan(run);
    else result = tli_plan_desc(run);
    if (result || !run->in_arena) {
        run->plan.in_flight = run->in_flight;
        return result;
    }
    if (!tli_lacks_places(run, &bare)) {
        run->plan.alignment_bytes = bare.alignment_bytes;
        run->plan.in_flight = run->in_flight;
        return TL_OK;
    }
    result = tli_place_run_plan(run, &bare, TLI_RUN_PLACE_WORK);
    if (result || tli_arenas_fit(run)) return result;
    return tli_place_again(run, !bare.offset_count, !bare.host_offset_count);
}

// Whether the backend has no block as large as one of a tier of the plan.
static int tli_is_too_large(const tl_run *run, tl_tier tier) {
    uint64_t block = run->limits.block_bytes;
    return run->in_arena && block && tli_taken_in_bank(run, (int)tier, -1, 1) > block;
}

// Measure the plan of a run, given or made, and the bytes that are used of its blocks.
static tl_result tli_measure_run_plan(tl_run *run) {
    uint64_t count = (uint64_t)run->plan.block_count;
    uint64_t *block_bytes = (uint64_t *)tli_alloc_array(run->env, count, sizeof *block_bytes);
    tl_simulate_desc simulate;
    tl_device device = tli_run_device(run);
    tl_result result;
    int32_t k;
    tli_release(run->env, run->own_blocks);
    run->own_blocks = (tl_plan_block *)tli_alloc_array(run->env, count, sizeof *run->own_blocks);
    if (!block_bytes || !run->own_blocks) {
        tli_release(run->env, block_bytes);
        return tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(STATE_OF_RUN_NO_MEMORY));
    }
    tli_zero(&simulate, sizeof simulate);
    simulate.graph = run->graph;
    simulate.plan = &run->plan;
    simulate.device = &device;
    simulate.block_bytes = block_bytes;
    result = tli_simulate_checked(run->env, TLI_IN(INIT_RUN_PLAN), &simulate, NULL, &run->planned);
    run->plan.arena_bytes = run->planned.arena_bytes;    // as this backend aligns
    run->plan.host_arena_bytes = run->planned.host_arena_bytes;
    for (k = 0; k < run->plan.block_count && !result; k++) {
        run->own_blocks[k] = run->plan.blocks[k];
        run->own_blocks[k].bytes = block_bytes[k];
    }
    if (!result && count) run->plan.blocks = run->own_blocks;
    tli_release(run->env, block_bytes);
    return result;
}

// The plan that was given or is made, with places in blocks that the backend has.
static tl_result tli_make_run_plan(tl_run *run) {
    tl_result result = tli_take_run_plan(run);
    int on_device, on_host;
    if (!result) result = tli_measure_run_plan(run);
    on_device = !result && tli_is_too_large(run, TL_TIER_DEVICE);
    on_host = !result && tli_is_too_large(run, TL_TIER_HOST);
    if (on_device || on_host) {
        result = tli_place_again(run, on_device, on_host);
        if (!result) result = tli_measure_run_plan(run);
    }
    return result ? result : tli_check_compressed(run);
}

// -- preparing a run: budgets --

// Write how many of the bytes that a refusal names are those that the backend's memory loses to its alignment.
static void tli_put_alignment(const tl_run *run, tl_limit limit, tli_sentence *s) {
    uint64_t unusable = run->limits.unusable_bytes[TL_TIER_DEVICE];
    if (!TLI_ERROR_TEXT || limit != TL_LIMIT_BACKEND || !unusable) return;
    tli_put(&s->text, "; ");
    tli_put_u64(&s->text, unusable);
    tli_put(&s->text, " of them, because its memory is not aligned to ");
    tli_put_u64(&s->text, run->limits.alignment_bytes);
}

static tl_result tli_infeasible(tl_run *run, tl_limit limit, tli_rule rule, uint64_t budget, uint64_t bytes,
                                int32_t node) {
    tli_sentence s;
    if (bytes == UINT64_MAX)
        return tli_fail(run->env, TL_ERROR_OVERFLOW, TLI_IN(INIT_RUN),
                        TLI_RULE(LEAST_BUDGET_DOES_NOT_FIT_64_BITS));
    s = tli_begin_error(run->env, TL_ERROR_INFEASIBLE, TLI_IN(INIT_RUN), rule, budget, bytes);
    tli_put_limit(run->env, &s, limit);
    tli_put_rule(&s);
    if (TLI_ERROR_TEXT && node >= 0) {
        tli_put(&s.text, ", because of node ");
        tli_put_named(&s.text, node, tl_name_node(run->graph, node));
    }
    tli_put_alignment(run, limit, &s);
    return tli_end_error(run->env, &s, TL_ERROR_INFEASIBLE);
}

#ifndef TL_NO_ONLINE
// Find a budget at which the decisions work: it grows, goal by goal, to the bytes that the goal needs,
// until a whole pass works without growing.
static tl_result tli_grow_budget(tl_run *run, uint64_t *works) {
    tli_online *o = &run->online;
    tl_result result = TL_OK;
    o->searches = 1;
    while (!result) {
        result = tli_rehearse(run, *works);
        if (o->budget == *works) break;
        *works = o->budget;
    }
    o->searches = 0;
    return result;
}

// Find the least budget of live bytes by bisection: it works, and one byte less does not. It depends on no
// budget of the device. node: what needs it.
static tl_result tli_find_least_online(tl_run *run, uint64_t *works, int32_t *node) {
    uint64_t fails = 0;
    tl_result result;
    *works = 0;
    *node = -1;
    result = tli_grow_budget(run, works);
    while (!result && *works - fails > 1) {
        uint64_t middle = fails + (*works - fails) / 2;
        result = tli_rehearse(run, middle);
        if (!result) { *works = middle; continue; }
        if (result != TL_ERROR_OVER_BUDGET) return result;
        fails = middle;
        *node = run->report.limiting_node;
        result = TL_OK;
    }
    return result;
}

// Try the decisions out within so many live bytes, and place what they allocate.
static tl_result tli_place_online(tl_run *run, uint64_t live, uint64_t host_live) {
    tl_result result;
    run->live_budget[TL_TIER_DEVICE] = live;
    run->live_budget[TL_TIER_HOST] = host_live;
    result = tli_rehearse(run, live);
    if (result || !run->in_arena) return result;
    if (run->owns_plan) tl_free_plan(run->env, &run->plan);
    tli_zero(&run->plan, sizeof run->plan);
    tli_copy_record(run, &run->plan);
    run->plan.repeat_count = 1;
    run->owns_plan = 0;             // the steps are those of the record
    run->plan.alignment_bytes = run->limits.alignment_bytes;
    return tli_place_run_plan(run, &run->plan, TLI_RUN_PLACE_WORK);
}

#define TLI_ONLINE_TURNS 24  // times that decisions are tried out at most to make their arenas fit

// Less live bytes for the next try: by what exceeds, and after a few by a part of the whole as well, because
// fewer live bytes need not mean a smaller arena.
static uint64_t tli_lower_live(uint64_t live, uint64_t excess, int turn) {
    if (excess && turn > 4 && live != UINT64_MAX) excess += live / 16;
    return live > excess ? live - excess : 0;
}

#define TLI_ONLINE_PARTS 32   // of the bytes at which decisions peak
#define TLI_ONLINE_LOWER 24   // the fewest parts within which they are tried out again

// Decisions are greedy, and fewer bytes can make better ones: where forwards run again, try some out, and take
// what costs least.
static tl_result tli_improve_online(tl_run *run) {
    const tl_report *report = &run->online.sim.report;
    uint64_t host_live = run->live_budget[TL_TIER_HOST], live = run->live_budget[TL_TIER_DEVICE];
    uint64_t best = report->cost, peak = report->peak_bytes;
    int part;
    tl_result result = TL_OK;
    if (!run->desc.budget_bytes || !report->recompute_count) return TL_OK;
    for (part = TLI_ONLINE_PARTS - 1; part >= TLI_ONLINE_LOWER && !result; part--) {
        uint64_t lower = peak / TLI_ONLINE_PARTS * (uint64_t)part;
        result = tli_place_online(run, lower, host_live);
        if (result || report->cost >= best || tli_arena_excess(run, TL_TIER_DEVICE) ||
            tli_arena_excess(run, TL_TIER_HOST)) continue;
        best = report->cost;
        live = lower;
    }
    return result && result != TL_ERROR_OVER_BUDGET ? result : tli_place_online(run, live, host_live);
}

// Try the decisions out, with less live bytes as long as an arena exceeds its budget, at last with nothing on
// the host. is_least: of the device they stay, and its arena may exceed the budget. TL_ERROR_OVER_BUDGET: they
// do not work, or no arena found fits.
static tl_result tli_settle_online(tl_run *run, uint64_t live, uint64_t host_live, int is_least) {
    int turn;
    for (turn = 1; turn <= TLI_ONLINE_TURNS; turn++) {
        uint64_t excess, host_excess;
        tl_result result = tli_place_online(run, live, host_live);
        if (result) return result;
        excess = is_least ? 0 : tli_arena_excess(run, TL_TIER_DEVICE);
        host_excess = tli_arena_excess(run, TL_TIER_HOST);
        if (!excess && !host_excess) return is_least ? TL_OK : tli_improve_online(run);
        live = tli_lower_live(live, excess, turn);
        host_live = tli_lower_live(host_live, host_excess, turn);
        if (host_excess && turn + 1 == TLI_ONLINE_TURNS) host_live = 0;
    }
    return TL_ERROR_OVER_BUDGET;
}

// Decide with the least live bytes that work. TL_ERROR_OVER_BUDGET: the host's arena exceeds its budget then.
static tl_result tli_try_least_online(tl_run *run, uint64_t host_live, uint64_t *least, int32_t *node) {
    tl_result result;
    run->live_budget[TL_TIER_HOST] = host_live;
    result = tli_find_least_online(run, least, node);
    return result ? result : tli_settle_online(run, *least, host_live, 1);
}

// Policy none without a budget of the caller's asks for the least bytes.
static int tli_wants_least_online(const tl_run *run) {
    return run->desc.policy.kind == TL_POLICY_NONE && run->checkpoints_on && !run->inference &&
           !run->desc.budget_bytes;
}

// Decide within the budgets. Without one of the caller's, checkpoints at an interval are tried with and without
// spans: what peaks lower is taken.
static tl_result tli_try_online(tl_run *run) {
    tli_online *o = &run->online;
    uint64_t live = run->budget.bytes, host_live = run->budget.host_bytes, peak;
    tl_result result;
    o->by_spans = 0;
    if (tli_wants_least_online(run)) return TL_ERROR_OVER_BUDGET;
    result = tli_settle_online(run, live, host_live, 0);
    if (result || run->desc.budget_bytes || !o->spans.any || !run->checkpoints_on) return result;
    peak = o->sim.report.peak_bytes;
    o->by_spans = 1;
    result = tli_settle_online(run, live, host_live, 0);
    if (result || o->sim.report.peak_bytes < peak) return result;
    o->by_spans = 0;
    return tli_settle_online(run, live, host_live, 0);
}

// The same, at last with the least live bytes that work; a refusal names what these take, which depends on no
// budget of the device. What is tried and fails on the way leaves no error.
static tl_result tli_check_online_budget(tl_run *run) {
    tli_quiet quiet = tli_begin_quiet(run->env);
    uint64_t least = 0;
    int32_t node = -1;
    tl_result result = tli_try_online(run);
    int fits = result != TL_ERROR_OVER_BUDGET;
    if (!fits) result = tli_try_least_online(run, run->budget.host_bytes, &least, &node);
    if (result == TL_ERROR_OVER_BUDGET) result = tli_try_least_online(run, 0, &least, &node);
    if (!fits && !result) {
        fits = run->in_arena ? tli_arenas_fit(run) : !run->budget.is_over && least <= run->budget.bytes;
        if (run->in_arena) least = tli_taken_bytes(run, TL_TIER_DEVICE);
    }
    tli_end_quiet(&quiet, result);
    return fits || result ? result
         : tli_infeasible(run, run->budget.limit, TLI_RULE(LEAST_THAT_WORKS_IS_BYTES),
                          run->budget.allowed_bytes, tli_needed_bytes(run, least), node);
}
#endif

// A sum; UINT64_MAX where it does not fit.
static uint64_t tli_add_reserved(uint64_t a, uint64_t b) {
    uint64_t sum;
    return tli_add_u64(a, b, &sum) ? sum : UINT64_MAX;
}

// The one rule for budgets ([5]); a plan that was given may need a host.
static void tli_set_budget(tl_run *run) {
    const tl_run_desc *desc = &run->desc;
    int has_host_steps = 0;
    int32_t k;
    for (k = 0; desc->plan && k < desc->plan->step_count; k++)
        has_host_steps |= tl_find_step(desc->plan, k).kind == TL_STEP_SPILL;
    run->budget = tli_find_budget(desc->budget_bytes, desc->host_budget_bytes,
                                  tli_add_reserved(desc->base_bytes, run->reserved_bytes), desc->device,
                                  run->limits.capacity_bytes, has_host_steps);
}

// The bytes of one pass in a tier: of the plan, or of the decisions that were tried out.
static uint64_t tli_pass_bytes(const tl_run *run, tl_tier tier) {
    const tl_report *report = &run->planned;
#ifndef TL_NO_ONLINE
    if (run->is_online) report = &run->online.sim.report;
#endif
    if (tli_keeps_results(run)) return tli_taken_bytes(run, tier);
    if (tier == TL_TIER_HOST)
        return run->plan.host_offset_count ? tli_taken_bytes(run, tier) : report->host_peak_bytes;
    return run->plan.offset_count ? tli_taken_bytes(run, tier) : report->peak_bytes;
}

// What no memory helps against: a range that no kernel can be given, or that is larger than any block.
static tl_result tli_check_sizes(tl_run *run) {
    uint64_t binding = run->limits.binding_bytes, block = run->in_arena ? tli_run_cut(run) : 0;
    int32_t id;
    for (id = 0; tli_has_members(run) && id < run->graph->node_count; id++) {
        tl_result result = TL_OK;
        if (tli_is_region(run, id)) result = tli_check_region_binding(run, id);
        else if (tli_is_fused(run, id)) result = tli_check_fused(run, id);
        if (result) return result;
    }
    for (id = 0; id < run->graph->node_count && (binding || block); id++) {
        uint64_t bytes = block ? tli_largest_allocation(run->graph, id, run->inference) : 0;
        tl_result result = binding && !tli_calls_members(run, id) ? tli_check_binding(run, id) : TL_OK;
        if (result) return result;
        if (bytes > block)
            return tli_fail_size(run, TLI_RULE(BACKEND_LARGEST_BLOCK_IS_LESS_THAN_NODE), block, bytes, id);
    }
    return TL_OK;
}

// Whether the backend has the banks of the plan, and room in them at present.
static tl_result tli_check_run_banks(tl_run *run) {
    int32_t bank, k, banks = run->limits.bank_count > 1 ? run->limits.bank_count : 1;
    tli_sentence s;
    char text[24];
    tli_writer w = tli_writer_of(text, sizeof text);
    for (k = 0; k < run->plan.block_count; k++) {
        const tl_plan_block *block = &run->plan.blocks[k];
        int32_t here = block->tier == TL_TIER_DEVICE ? banks : 1;
        if (block->bank < here) continue;
        s = tli_begin_error(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN), TLI_RULE(BACKEND_HAS_NO_BANK),
                            block->bank, (uint64_t)here);
        tli_put_text(&s, tli_tier_names[block->tier]);
        return tli_end_error(run->env, &s, TL_ERROR_UNSUPPORTED);
    }
    for (bank = 0; bank < banks && banks > 1; bank++) {
        uint64_t bytes = run->plan.offset_count ? tli_taken_in_bank(run, TL_TIER_DEVICE, bank, 0) : 0;
        if (bytes <= run->limits.bank_bytes[bank]) continue;
        tli_put_i64(&w, bank);
        tli_finish(&w);
        s = tli_begin_error(run->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(BANK_TAKES_BYTES_OF),
                            run->limits.bank_bytes[bank], bytes);
        tli_put_text(&s, text);
        return tli_end_error(run->env, &s, TL_ERROR_NO_MEMORY);
    }
    return TL_OK;
}

// What the backend has free at present decides nothing but this: whether the run can be made now.
static tl_result tli_check_present(tl_run *run) {
    int tier;
    for (tier = 0; tier < TL_TIER_COUNT; tier++) {
        uint64_t bytes = tli_pass_bytes(run, (tl_tier)tier), present = run->limits.budget_bytes[tier];
        tli_sentence s;
        if (tier == TL_TIER_HOST && run->limits.tiers_share_memory && present != TL_UNLIMITED) {
            uint64_t device = tli_pass_bytes(run, TL_TIER_DEVICE);
            present = present > device ? present - device : 0;
        }
        if (bytes <= present) continue;
        s = tli_begin_error(run->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN),
                            TLI_RULE(BACKEND_PASS_TAKES_BYTES_OF_OF_WHICH),
                            bytes, present);
        tli_put_text(&s, tli_tier_names[tier]);
        return tli_end_error(run->env, &s, TL_ERROR_NO_MEMORY);
    }
    return TL_OK;
}

static tl_result tli_check_budget(tl_run *run) {
    const tl_report *planned = &run->planned;
    uint64_t bytes;
#ifndef TL_NO_ONLINE
    if (run->is_online) return tli_check_online_budget(run);
#endif
    bytes = tli_pass_bytes(run, TL_TIER_DEVICE);
    if (run->budget.is_over || bytes > run->budget.bytes)
        return tli_infeasible(run, run->budget.limit, TLI_RULE(PLAN_TAKES_BYTES),
                              run->budget.allowed_bytes,
                              tli_needed_bytes(run, bytes),
                              planned->peak_step >= 0 ? tl_find_step(&run->plan, planned->peak_step).node
                                                      : -1);
    bytes = tli_pass_bytes(run, TL_TIER_HOST);
    if (bytes > run->budget.host_bytes)
        return tli_infeasible(run, run->budget.host_limit, TLI_RULE(PLAN_TAKES_BYTES),
                              run->budget.host_bytes, bytes, -1);
    return TL_OK;
}

// -- preparing a run: memory --

// Number the nodes that save something.
static int tli_number_saved(tl_run *run) {
    const tl_graph *graph = run->graph;
    int32_t id;
    for (id = 0; id < graph->node_count; id++) run->saved_count += graph->nodes[id].saved_bytes > 0;
    if (!run->saved_count) return 1;
    run->saved_of = (int32_t *)tli_alloc_array(run->env, (uint64_t)graph->node_count, sizeof *run->saved_of);
    run->all_saved = (tli_buffer *)tli_alloc_array(
        run->env, (uint64_t)run->slot_count * (uint64_t)run->saved_count, sizeof *run->saved);
    run->saved_count = 0;
    for (id = 0; id < graph->node_count && run->saved_of; id++)
        run->saved_of[id] = graph->nodes[id].saved_bytes ? run->saved_count++ : -1;
    return run->saved_of && run->all_saved;
}

static tl_result tli_alloc_run(tl_run *run) {
    const tl_graph *graph = run->graph;
    tl_env *env = run->env;
    uint64_t nodes = (uint64_t)graph->node_count, tensors = (uint64_t)graph->tensor_count;
    uint64_t outputs, widest = tli_find_widest_call(run, &outputs), slot_total;
    int32_t id;
    run->slot_count = run->desc.plan ? tli_count_slots(run->desc.plan) : 1;
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (run->compiled) run->slot_count = tli_count_slots(&run->compiled->plan);
#endif
    slot_total = (uint64_t)run->slot_count;
    run->all_tensors = (tli_buffer *)tli_alloc_array(env, slot_total * tensors, sizeof *run->tensors);
    run->all_gradients = (tli_buffer *)tli_alloc_array(env, slot_total * tensors, sizeof *run->gradients);
    run->all_ran = (uint8_t *)tli_alloc_array(env, slot_total * nodes, 1);
    run->is_read = (uint8_t *)tli_alloc_array(env, tensors, 1);
    run->is_result = (uint8_t *)tli_alloc_array(env, tensors, 1);
    run->kernel_of = (int32_t *)tli_alloc_array(env, nodes, sizeof *run->kernel_of);
    run->kernels =
        (tl_kernel *)tli_alloc_array(env, (uint64_t)run->desc.kernel_count + 1, sizeof *run->kernels);
    if (!tli_alloc_call(env, widest, outputs, &run->at.call) || !run->all_tensors || !run->all_gradients ||
        !tli_number_saved(run) || !run->all_ran || !run->is_read || !run->is_result || !run->kernel_of ||
        !run->kernels)
        return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(STATE_OF_RUN_NO_MEMORY));
#ifndef TL_NO_ONLINE
    if (tli_has_dynamic(graph) && !tli_alloc_reports(run, slot_total * tensors, outputs))
        return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(STATE_OF_RUN_NO_MEMORY));
#endif
    tli_run_choose_slot(run, 0);
    tli_copy(run->kernels, run->desc.kernels,
             (size_t)run->desc.kernel_count * sizeof *run->kernels);
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    run->kernels[run->desc.kernel_count].op = "";
    run->kernels[run->desc.kernel_count].forward = tli_carry_message;
    run->kernels[run->desc.kernel_count].backward = tli_carry_message;
    run->kernels[run->desc.kernel_count].user = run;
#endif
    for (id = 0; id < graph->input_count; id++) run->is_read[graph->inputs[id].tensor] = 1;
    tli_mark_results(graph, run->inference, run->is_result);
    return TL_OK;
}

// The backend's own words on what it refused, after ": "; copied, as the next error may overwrite them.
static void tli_copy_backend_text(const tl_run *run, char *text, size_t size) {
    tli_writer w = tli_writer_of(text, size);
    if (run->limits.env && run->limits.env->error.code) {
        tli_put(&w, ": ");
        tli_put(&w, run->limits.env->error.text);
    }
    tli_finish(&w);
}

// Take a block: of exactly its bytes, where the backend has such.
static tl_result tli_take_block_of(tl_run *run, tl_tier tier, int32_t bank, uint64_t bytes, uint64_t *handle) {
    const tl_backend *backend = &run->backend;
    char text[sizeof run->env->error.text];
    tli_quiet quiet = tli_begin_quiet(run->limits.env);
    tl_result result = backend->add_arena ? (backend->add_arena)(backend->self, tier, bank, bytes, handle)
                                          : (backend->add_block)(backend->self, tier, bytes, handle);
    tli_sentence s;
    tli_copy_backend_text(run, text, result ? sizeof text : 1);
    tli_end_quiet(&quiet, TL_OK);
    if (!result) return TL_OK;
    *handle = 0;
    s = tli_begin_error(run->env, result, TLI_IN(INIT_RUN), TLI_RULE(BACKEND_COULD_NOT_TAKE_ARENA), bytes, 0);
    tli_put_text(&s, text);
    return tli_end_error(run->env, &s, result);
}

// Find the blocks of a tier, or make one of so many bytes where the plan names none, and room for their
// handles.
static tl_result tli_find_arena_blocks(tl_run *run, tl_tier tier, uint64_t bytes) {
    tli_run_arena *arena = &run->arenas[tier];
    const tl_plan *plan = &run->plan;
    int32_t k = 0;
    while (k < plan->block_count && plan->blocks[k].tier < tier) k++;
    if (k < plan->block_count && plan->blocks[k].tier == tier) arena->blocks = &plan->blocks[k];
    for (; k < plan->block_count && plan->blocks[k].tier == tier; k++) arena->block_count++;
    if (arena->block_count) {
        arena->handles = (uint64_t *)tli_alloc_array(run->env, (uint64_t)arena->block_count,
                                                     sizeof *arena->handles);
        if (arena->handles) return TL_OK;
        arena->block_count = 0;
        return tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(STATE_OF_RUN_NO_MEMORY));
    }
    tli_zero(&arena->whole, sizeof arena->whole);
    arena->whole.bytes = bytes;
    arena->whole.tier = (uint8_t)tier;
    arena->blocks = &arena->whole;
    arena->handles = &arena->only;
    arena->block_count = 1;
    return TL_OK;
}

static tl_result tli_free_arena(tl_run *run, tl_tier tier) {
    tli_run_arena *arena = &run->arenas[tier];
    tl_result first = TL_OK;
    int32_t k;
    for (k = 0; k < arena->block_count; k++) {
        uint64_t block = arena->handles[k];
        tl_result result = block ? (run->backend.free_block)(run->backend.self, block) : TL_OK;
        if (!first) first = result;
    }
    if (arena->block_count && arena->handles != &arena->only) tli_release(run->env, arena->handles);
    tli_zero(arena, sizeof *arena);
    return first;
}

// Take the arena of a tier, if the plan has places there.
static tl_result tli_take_arena(tl_run *run, tl_tier tier) {
    tli_run_arena *arena = &run->arenas[tier];
    uint64_t bytes = tier == TL_TIER_HOST ? run->plan.host_arena_bytes : run->plan.arena_bytes;
    tl_result result;
    int32_t k;
    tli_zero(arena, sizeof *arena);
    arena->offset_count = tier == TL_TIER_HOST ? run->plan.host_offset_count : run->plan.offset_count;
    if ((!arena->offset_count && !tli_keeps_results(run)) || !bytes) return TL_OK;
    result = tli_find_arena_blocks(run, tier, bytes);
    for (k = 0; k < arena->block_count && !result; k++) {
        const tl_plan_block *block = &arena->blocks[k];
        if (block->bytes) result = tli_take_block_of(run, tier, block->bank, block->bytes, &arena->handles[k]);
    }
    if (result) (void)tli_free_arena(run, tier);
    return result;
}

static tl_result tli_take_arenas(tl_run *run) {
    tl_result result = tli_take_arena(run, TL_TIER_DEVICE);
    return result ? result : tli_take_arena(run, TL_TIER_HOST);
}

// Give the arenas back. Nothing is claimed in them any more.
static tl_result tli_free_arenas(tl_run *run) {
    tl_result result = tli_free_arena(run, TL_TIER_DEVICE), on_host = tli_free_arena(run, TL_TIER_HOST);
    return result ? result : on_host;
}

// Open the run's account, limited to its budgets.
static tl_result tli_open_run_store(tl_run *run) {
    uint64_t limits[TL_TIER_COUNT];
    tl_result result;
    limits[TL_TIER_DEVICE] = run->budget.bytes;
    limits[TL_TIER_HOST] = run->budget.host_bytes;
    result = tli_open_store(run->env, &run->backend, limits, &run->store);
    if (result) return result;
    run->store.is_strict = 1;
    return TL_OK;
}

// Claim the graph's inputs and the plan's entry, which stay claimed between passes, and fill them with zeroes.
static tl_result tli_claim_inputs(tl_run *run) {
    tl_account_counters counters;
    tl_result result;
    tli_measure_store(&run->store, 1, &counters);
    result = tli_claim_entry(run);
    tli_measure_store(&run->store, 0, &counters);
    run->input_arena_bytes = counters.arena_bytes;
    return result;
}

static tl_result tli_take_memory(tl_run *run) {
    tl_result result = tli_open_run_store(run), taken = result ? TL_OK : tli_take_arenas(run);
    if (!result && !taken) taken = tli_check_variable_arena(run);
    if (taken) return taken;
    if (!result) result = tli_claim_inputs(run);
    return result ? tli_fail(run->env, result, TLI_IN(INIT_RUN), TLI_RULE(BACKEND_COULD_NOT_TAKE_GRAPHS_INPUTS))
                  : TL_OK;
}

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
// Get ready to take what dynamic nodes report: the run's graph is its own, so that its bytes can follow.
static tl_result tli_prepare_hybrid(tl_run *run) {
    tl_result result = TL_OK;
    if (!run->owns_nodes) result = tli_scale_copy(run, run->graph, &run->own_graph);
    run->graph = &run->own_graph;
    return result ? result : tli_open_hybrid(run);
}
#endif

// Room for host copies, where there are any.
static tl_result tli_prepare_spilled(tl_run *run) {
    uint64_t count = (uint64_t)run->slot_count * (uint64_t)run->graph->tensor_count;
    int needs = run->is_online && run->budget.host_bytes;
    int32_t k;
    for (k = 0; k < run->plan.step_count && !needs; k++)
        needs = tl_find_step(&run->plan, k).kind == TL_STEP_SPILL;
#ifndef TL_NO_PLANNERS
    needs |= run->cache.is_on && run->budget.host_bytes;
#endif
    if (!needs) return TL_OK;
    run->all_spilled = (tli_spilled *)tli_alloc_array(run->env, count, sizeof *run->all_spilled);
    return run->all_spilled ? TL_OK : tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN),
                                               TLI_RULE(STATE_OF_RUN_NO_MEMORY));
}

// Room for the steps under way, of whatever plan is run.
static tl_result tli_prepare_flights(tl_run *run) {
    uint64_t outputs, widest = tli_find_widest_call(run, &outputs);
    int32_t steps = run->plan.step_count;
#ifndef TL_NO_PLANNERS
    int32_t k;
    for (k = 0; k < 2 && run->cache.is_on; k++)
        if (run->cache.plans[k].step_count > steps) steps = run->cache.plans[k].step_count;
#endif
    if (!run->is_online) {
        tl_result result = tli_open_begun(run, widest, outputs);
        if (result) return result;
    }
    return tli_open_flights(run, steps, widest, outputs);
}

// Whether the plan stays in plain numbers: its steps are decided or changed in a pass, or one of two plans is
// run.
static int tli_stays_wide(const tl_run *run) {
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    if (run->hybrid.is_on) return 1;
#endif
    return run->is_online || tli_keeps_results(run);
}

// How many passes a training step has, and whether states can be updated in them.
static tl_result tli_find_repeat_count(tl_run *run) {
    const tl_run_desc *desc = &run->desc;
    tl_result result;
    run->repeat_count = desc->repeat_count ? desc->repeat_count : run->plan.repeat_count;
    if (!run->repeat_count) run->repeat_count = 1;
    result = tli_check_states(run);
    if (result) return result;
    if (run->repeat_count > (INT32_MAX - desc->first_micro_batch) / run->slot_count)
        return tli_fail(run->env, TL_ERROR_OVERFLOW, TLI_IN(INIT_RUN),
                        TLI_RULE(MICRO_BATCHES_DO_NOT_FIT_31_BITS));
    return TL_OK;
}

// Refuse several passes a step where a state keeps no gradient between them: whatever the budget is, and before
// anything is planned for it.
static tl_result tli_check_passes(tl_run *run) {
    int32_t id;
    for (id = 0; id < run->graph->node_count && run->desc.repeat_count > 1 && !run->inference; id++)
        if (tli_learns(&run->graph->nodes[id]) && !tli_is_held(&run->graph->nodes[id]))
            return tli_fail_state(run, id, TLI_RULE(RUN_STATES_HOLD_NO_GRADIENTS));
    return TL_OK;
}

static tl_result tli_prepare_run(tl_run *run) {
    const tl_run_desc *desc = &run->desc;
    tl_result result = tl_check_graph(run->env, run->graph);
    if (!result) result = tli_check_run_desc(run);
    if (!result) result = tli_apply_strategy(run);
    if (!result) result = tli_check_passes(run);
    if (!result) tli_set_budget(run);
    if (!result) result = tli_take_compiled(run);
    if (!result) result = tli_take_rows(run);
    if (!result && !run->desc.rows) result = tli_take_fusion(run);
    if (!result) result = tli_scale_graph(run);
    if (!result) result = tli_alloc_run(run);
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (!result) result = tli_open_messages(run);
#endif
    if (!result) result = tli_find_kernels(run);
    if (!result) result = tli_check_users(run);
#ifndef TL_ONLY_TABLES
    if (!result) result = tli_open_shards(run);
#endif
    if (!result) result = tli_check_variables(run);
    if (!result) result = tli_check_sizes(run);
#ifndef TL_NO_PLANNERS
    if (!result) result = tli_open_cache(run, tli_plan_desc);
    if (!result && !run->is_online && !run->cache.is_on) result = tli_make_run_plan(run);
#else
    if (!result && !run->is_online) result = tli_make_run_plan(run);
#endif
#ifndef TL_NO_ONLINE
    if (!result && run->is_online) result = tli_init_online(run);
#else
    if (!result && run->is_online)
        result = tli_unsupported(run, TLI_RULE(PLAN_NONE_GIVEN_OR_ASKED));
#endif
    if (!result) result = tli_check_budget(run);
    if (!result) result = tli_check_run_banks(run);
    if (!result) result = tli_check_present(run);
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    if (!result && tli_can_follow(run)) result = tli_prepare_hybrid(run);
#endif
    if (!result) result = tli_check_in_flight(run);
    if (!result) result = tli_prepare_flights(run);
    if (!result) result = tli_check_begun_shards(run);
    if (!result) result = tli_prepare_spilled(run);
    if (!result) result = tli_narrow_run_plan(run, tli_stays_wide(run));
    if (result) return result;
    run->table_bytes = tli_count_tables(run);
    result = tli_find_repeat_count(run);
    if (result) return result;
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    result = tli_number_micro_batches(run);
    if (result) return result;
#endif
    run->next_step = desc->first_step;
    run->loss_scale = tli_find_loss_scale(run);
    tli_zero(&run->report, sizeof run->report);  // trying decisions out wrote to it
    run->report.limiting_node = -1;
    run->report.fused_count = run->members.fused_count;
    return TL_OK;
}
// Forget pointers that are valid during the call only, once what lasts was read from them.
static void tli_forget_desc(tl_run *run) {
    tli_init_submits(run);
    run->desc.strategy = NULL;
    run->desc.precision = NULL;
    run->desc.checkpoints = NULL;
    run->desc.device = NULL;
    run->desc.costs = NULL;
    run->desc.figures = NULL;
    run->desc.pool = NULL;
    run->desc.progress = NULL;
    run->desc.progress_user = NULL;
    run->desc.kernels = NULL;
    run->desc.graph = NULL;
    run->desc.backend = NULL;
}

#ifndef TL_NO_ONLINE
// -- preparing a run: other decisions, and another arena --

// Copy the graph's inputs to the host tier, or from there.
static tl_result tli_copy_inputs(tl_run *run, tli_held *hosts, int to_host) {
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < run->graph->tensor_count && !result; i++) {
        tli_held *input = &run->tensors[i].device;
        const tl_range *from, *to;
        if (!input->range.bytes || !run->graph->nodes[run->graph->outputs[i].node].is_input) continue;
        if (to_host) result = tli_claim(&run->store, TL_TIER_HOST, input->range.bytes, &tli_by_heap, &hosts[i]);
        from = to_host ? &input->range : &hosts[i].range;
        to = to_host ? &hosts[i].range : &input->range;
        if (!result) result = tli_transfer(&run->store, to, TL_CODEC_NONE, from, TL_CODEC_NONE);
    }
    return result ? result : tli_submit_store(&run->store);
}

// Give the arenas back, with the inputs in them, and take those of the present plan.
static tl_result tli_replace_arenas(tl_run *run) {
    tl_result result;
    tli_clear_run(run, 1);
    result = tli_free_arenas(run);
    if (!result) result = tli_take_arenas(run);
    return result ? result : tli_claim_inputs(run);
}

static tl_result tli_move_inputs(tl_run *run) {
    tli_held *hosts = (tli_held *)tli_alloc_array(run->env, (uint64_t)run->graph->tensor_count, sizeof *hosts);
    tl_result result = hosts ? tli_copy_inputs(run, hosts, 1) : TL_ERROR_NO_MEMORY;
    int32_t i;
    if (!result) result = tli_replace_arenas(run);
    if (!result) result = tli_copy_inputs(run, hosts, 0);
    for (i = 0; hosts && i < run->graph->tensor_count; i++) (void)tli_abandon(&run->store, &hosts[i]);
    tli_release(run->env, hosts);
    if (!result) return TL_OK;
    return tli_fail(run->env, result, TLI_IN(ENABLE_CHECKPOINTS),
                    TLI_RULE(BACKEND_COULD_NOT_TAKE_GRAPHS_INPUTS));
}

// Try out and place the decisions of a pass as they are made from now on. What is refused changes nothing.
static tl_result tli_decide_again(tl_run *run) {
    tl_plan before = run->plan;
    uint64_t live = run->live_budget[TL_TIER_DEVICE], host_live = run->live_budget[TL_TIER_HOST];
    int32_t by_spans = run->online.by_spans;
    tl_result result;
    run->plan.memory = NULL;        // it may be needed again
    run->owns_plan = 0;
    result = tli_check_online_budget(run);
    if (!result) {
        tl_free_plan(run->env, &before);
        return run->in_arena ? tli_move_inputs(run) : TL_OK;
    }
    if (run->owns_plan) tl_free_plan(run->env, &run->plan);
    run->plan = before;
    run->owns_plan = 1;
    run->online.by_spans = by_spans;
    run->live_budget[TL_TIER_DEVICE] = live;
    run->live_budget[TL_TIER_HOST] = host_live;
    run->checkpoints_on = !run->checkpoints_on;
    return result;
}

// Run one goal of a pass by hand; the last one closes the pass.
static tl_result tli_run_goal(tl_run *run, int32_t id, int backward, int is_last) {
    tl_result result;
    run->by_hand = 1;
    result = run->goal_waits ? TL_OK : tli_online_reach_goal(run, id, backward);
    if (result) (void)tli_abort_pass(run, result);
    else result = tli_run_steps(run);
    run->by_hand = 0;
    if (!result && is_last) result = tli_run_steps(run);
    run->goal_waits = result == TL_NOT_READY;
    return result;
}

static tl_result tli_fail_layer_turn(tl_run *run, tli_function function) {
    return tli_fail(run->env, TL_ERROR_INVALID_ARG, function,
                    TLI_RULE(LAYER_FORWARD_GOES_0_1_TO_LAST_THEN));
}

TLI_IMPL tl_result tl_run_forward(tl_run *run, int32_t layer) {
    tl_result result = TL_OK;
    int32_t id, last;
    TL_ASSERT(run);
    last = run->graph->node_count - 1;
    if (!run->is_online || !run->owns_layers || layer < 0 || layer >= last)
        return tli_fail_layer_turn(run, TLI_IN(RUN_FORWARD));
    id = layer + 1;
    if (!run->active && layer == 0) result = tl_start_pass(run, tli_first_micro_batch(run));
    if (result) return result;
    if (run->active && run->online.next_forward == 0) run->online.next_forward = 1;  // the input
    if (!run->active || id != run->online.next_forward - run->goal_waits)
        return tli_fail_layer_turn(run, TLI_IN(RUN_FORWARD));
    run->online.next_forward = id + 1;
    return tli_run_goal(run, id, 0, run->inference && id == last);
}

TLI_IMPL tl_result tl_run_backward(tl_run *run, int32_t layer) {
    TL_ASSERT(run);
    if (!run->is_online || !run->owns_layers || !run->active || run->inference || layer < 0 ||
        run->online.next_forward != run->graph->node_count ||
        layer != run->online.next_backward - !run->goal_waits)
        return tli_fail_layer_turn(run, TLI_IN(RUN_BACKWARD));
    run->online.next_backward = layer;
    return tli_run_goal(run, layer + 1, 1, layer == 0);
}

TLI_IMPL tl_result tl_enable_checkpoints(tl_run *run, int32_t on) {
    TL_ASSERT(run);
    if (run->active || !run->is_online)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(ENABLE_CHECKPOINTS),
                        TLI_RULE(RUN_NOT_ONLINE_OR_PASS_IS_UNDER_WAY));
    if (run->checkpoints_on == (on != 0)) return TL_OK;
    run->checkpoints_on = on != 0;
    return tli_decide_again(run);
}

TLI_IMPL int tl_uses_checkpoints(const tl_run *run) { return run->checkpoints_on; }
#endif  // TL_NO_ONLINE
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION

