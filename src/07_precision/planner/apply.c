#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- sensitivity --
//
// Measure the loss of each node and scheme with a callback of the caller; then, below, make the graph of a
// plan: the nodes of the old graph in their schemes, and a conversion node for each tensor and format that
// its readers want.

static tl_result tli_check_sensitivity(tl_env *env, const tl_sensitivity_desc *desc) {
    const tli_function function = TLI_IN(MEASURE_SENSITIVITY);
    tl_result result;
    int32_t i;
    if (desc->schemes >> TL_SCHEME_COUNT)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(SCHEMES_UNKNOWN_BIT));
    if (!desc->evaluate)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(EVALUATE_MUST_NOT_BE_NULL));
    result = tl_check_graph(env, desc->graph);
    for (i = 0; !result && desc->node_schemes && i < desc->graph->node_count; i++)
        if (desc->node_schemes[i] >> TL_SCHEME_COUNT)
            result = tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(NODE_SCHEMES_UNKNOWN_BIT));
    return result;
}

// The schemes of a node to evaluate, as bits.
static uint32_t tli_find_evaluated(const tl_sensitivity_desc *desc, int32_t id) {
    uint32_t schemes = desc->schemes ? desc->schemes : TLI_USUAL_SCHEMES;
    if (desc->graph->nodes[id].is_input) return 0;
    if (desc->node_schemes && desc->node_schemes[id]) schemes &= desc->node_schemes[id];
    return schemes & ~TLI_BIT(TL_SCHEME_F32);
}

static tl_result tli_measure_op(tl_env *env, const tl_sensitivity_desc *desc, int32_t id, tl_scheme scheme,
                                double *loss) {
    double value = tli_not_a_number();
    tl_result result = (desc->evaluate)(id, scheme, &value, desc->user);
    tli_sentence s;
    if (!result && (tli_is_amount(value) || tli_is_amount(-value))) {
        *loss = value > 0 ? value : 0;
        return TL_OK;
    }
    s = tli_begin_error(env, TL_ERROR_KERNEL, TLI_IN(MEASURE_SENSITIVITY),
                        result ? TLI_RULE(EVALUATE_NODE_IN)
                               : TLI_RULE(EVALUATE_NODE_IN_LOSS_IS_NOT_FINITE),
                        (uint64_t)id, (uint64_t)scheme);
    tli_put_text(&s, tl_name_node(desc->graph, id));
    tli_put_text(&s, tl_name_scheme(scheme));
    if (result) tli_put_text(&s, tl_name_result(result));
    return tli_end_error(env, &s, TL_ERROR_KERNEL);
}

static tl_result tli_measure_ops(tl_env *env, const tl_sensitivity_desc *desc, double *losses) {
    int32_t done = 0, all = 0, id, k;
    tl_result result;
    double *loss;
    for (id = 0; id < desc->graph->node_count; id++)
        for (k = 0; k < TL_SCHEME_COUNT; k++) all += (int32_t)(tli_find_evaluated(desc, id) >> k & 1);
    for (id = 0; id < desc->graph->node_count; id++)
        for (k = 0; k < TL_SCHEME_COUNT; k++) {
            if (!(tli_find_evaluated(desc, id) >> k & 1)) continue;
            loss = &losses[(size_t)id * TL_SCHEME_COUNT + (size_t)k];
            result = tli_measure_op(env, desc, id, (tl_scheme)k, loss);
            if (result) return result;
            if (desc->progress && (desc->progress)(++done, all, *loss, desc->user)) return TL_OK;
        }
    return TL_OK;
}

// Set the losses of f32 to `f32`, 0 or NaN, and all others to NaN.
static void tli_reset_losses(const tl_graph *graph, double f32, double *losses) {
    uint64_t places = (uint64_t)graph->node_count * TL_SCHEME_COUNT, i;
    for (i = 0; i < places; i++) losses[i] = i % TL_SCHEME_COUNT == TL_SCHEME_F32 ? f32 : tli_not_a_number();
}

TLI_IMPL tl_result tl_measure_sensitivity(tl_env *env, const tl_sensitivity_desc *desc, double *losses) {
    tl_result result;
    TL_ASSERT(desc && desc->graph && losses);
    result = tli_check_sensitivity(env, desc);
    if (result) return result;
    tli_reset_losses(desc->graph, 0, losses);
    result = tli_measure_ops(env, desc, losses);
    if (result) tli_reset_losses(desc->graph, tli_not_a_number(), losses);
    return result;
}

// -- apply --

// Why a tensor is converted to a format, as bits; 0 = it is not.
#define TLI_WANT_READ   1  // a node reads it in this format
#define TLI_WANT_GRAD   2  // the gradient passes back through the conversion
#define TLI_WANT_RESULT 4  // the conversion is a result

typedef struct tli_apply {
    tl_env          *env;
    const tl_apply_desc *desc;
    const tl_graph  *old;
    int32_t         *tensors;   // [old tensors x formats] tensor of the new graph; -1 = not made yet
    uint8_t         *wants;     // [old tensors x formats] TLI_WANT_ bits
    uint8_t         *is_read;   // [old tensors] some node reads it
    uint32_t        *names;     // [2 name_count] nodes and views of the old graph, sorted by name; then scratch
    uint32_t         name_count;
    tl_tensor       *inputs;    // [old inputs] inputs of the node being made
    uint64_t        *bytes;     // [old tensors] bytes of the outputs of that node
    tl_stored       *stored;    // [old constants + TLI_MOST_FACTORS] constants of that node
    int32_t         *nodes, *new_nodes;      // the arrays of the result
    uint8_t         *formats, *schemes;
    tl_quantization *quantizations;
    tl_precision_graph applied;
} tli_apply;

static tl_scheme tli_apply_scheme(const tli_apply *a, int32_t node) {
    return a->desc->plan->nodes[node].scheme;
}

// The format of the inputs and outputs of a node.
static tl_format tli_apply_format(const tli_apply *a, int32_t node) {
    return tl_find_scheme_format(tli_apply_scheme(a, node));
}

// The format in which a node reads a tensor. Running statistics are changed where they are: a conversion would
// be changed in their place.
static tl_format tli_find_read_format(const tli_apply *a, int32_t node, int32_t tensor) {
    return tli_is_statistic(a->old, tensor) ? TL_FORMAT_F32 : tli_apply_format(a, node);
}

static int32_t *tli_apply_place(const tli_apply *a, int32_t tensor, tl_format format) {
    return a->tensors + (size_t)tensor * TL_FORMAT_COUNT + (size_t)format;
}

// -- apply: rules --

static tli_rule tli_check_applied_node(const tl_apply_desc *desc, int32_t id) {
    const tl_precision_node *chosen = &desc->plan->nodes[id];
    const tl_node *node = &desc->graph->nodes[id];
    int is_free = desc->any_input && !node->state;
    if (!tli_is_below((int64_t)chosen->scheme, TL_SCHEME_COUNT)) return TLI_RULE(SCHEME_THERE_IS_NO_SUCH);
    if (node->is_input && chosen->scheme != TL_SCHEME_F32 &&
        !(is_free && TLI_INPUT_SCHEMES >> chosen->scheme & 1)) return TLI_RULE(SCHEME_GRAPH_INPUT_MUST_BE_F32);
    if (!tli_is_amount(chosen->speedup) || (chosen->speedup == 0 && (node->fwd_cost || node->bwd_cost)))
        return TLI_RULE(SPEEDUP_MUST_BE_FINITE_AND_POSITIVE);
    return tli_find_constant_rule(desc->graph, id, chosen->scheme);
}

static tl_result tli_check_apply(tl_env *env, const tl_apply_desc *desc) {
    tli_graph_rules rules = tli_rules_of(env, TLI_IN(APPLY_PRECISION));
    const tl_graph *graph = desc->graph;
    tl_result result;
    int32_t id;
    if ((desc->training | desc->any_result | desc->any_input) & ~1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, rules.function,
                        TLI_RULE(TRAINING_ANY_RESULT_MUST_BE_0_OR_1));
    result = tl_check_graph(env, graph);
    if (!result) result = tli_refuse_formats(env, rules.function, graph, 1, TLI_RULE(FORMAT_NO_OTHER_THAN_F32));
    if (!result && desc->device) result = tl_check_device(env, desc->device);
    if (result) return result;
    if (desc->plan->node_count != graph->node_count || !desc->plan->nodes)
        return tli_fail(env, TL_ERROR_INVALID_ARG, rules.function,
                        TLI_RULE(PLAN_NODES_THERE_MUST_BE_ONE_FOR_EACH));
    for (id = 0; id < graph->node_count; id++) {
        tli_rule rule = tli_check_applied_node(desc, id);
        if (rule)
            return tli_fail_item(&rules, TL_ERROR_INVALID_ARG, "node", id, tl_name_node(graph, id), rule);
    }
    return TL_OK;
}

// -- apply: conversions to make --

static void tli_add_want(tli_apply *a, int32_t tensor, tl_format format, int has_grad, int why) {
    a->wants[(size_t)tensor * TL_FORMAT_COUNT + (size_t)format] |=
        (uint8_t)(has_grad && tli_gets_gradient(a->old, tensor) ? why | TLI_WANT_GRAD : why);
}

// Find all conversions and return their number. Backward begins at a result without readers, so its conversion
// to f32 has a gradient.
static uint64_t tli_find_wants(tli_apply *a) {
    const tl_graph *old = a->old;
    uint64_t count = 0, i, places = (uint64_t)old->tensor_count * TL_FORMAT_COUNT;
    int32_t id, k;
    for (id = 0; id < old->node_count; id++) {
        const tl_node *node = &old->nodes[id];
        for (k = node->first_input; k < node->first_input + node->input_count; k++) {
            int32_t tensor = old->inputs[k].tensor;
            tl_format format = tli_find_read_format(a, id, tensor);
            a->is_read[tensor] = 1;
            if (tli_apply_format(a, old->outputs[tensor].node) != format)
                tli_add_want(a, tensor, format, node->has_grad, TLI_WANT_READ);
        }
    }
    for (id = 0; id < old->node_count && !a->desc->any_result; id++) {
        const tl_node *node = &old->nodes[id];
        if (!node->keep || tli_apply_format(a, id) == TL_FORMAT_F32) continue;
        for (k = node->first_output; k < node->first_output + node->output_count; k++)
            tli_add_want(a, k, TL_FORMAT_F32, !a->is_read[k], TLI_WANT_RESULT);
    }
    for (i = 0; i < places; i++) count += a->wants[i] != 0;
    return count;
}

// -- apply: costs --

// cost / speedup, rounded to the nearest integer, so that a speed-up computed as a quotient of costs gives the
// cost again. Returns 0 if that is 2^63 or more; a speed-up of 1 keeps every cost.
static int tli_speed_up(uint64_t cost, double speedup, uint64_t *quick) {
    uint64_t mantissa, twice;
    int32_t exponent;
    *quick = cost;
    if (!cost || speedup == 1) return 1;
    exponent = tli_split_f64(speedup, &mantissa);
    twice = tli_divide_shifted(cost, 1 - exponent, mantissa, 0);
    *quick = twice / 2 + twice % 2;
    return twice != UINT64_MAX;
}

// In training the sum of forward and backward is rounded once, as the plan did.
static int tli_apply_costs(const tli_apply *a, int32_t id, tl_node_desc *desc) {
    const tl_node *node = &a->old->nodes[id];
    double speedup = a->desc->plan->nodes[id].speedup;
    uint64_t sum;
    if (!tli_speed_up(node->fwd_cost, speedup, &desc->fwd_cost) ||
        !tli_speed_up(node->bwd_cost, speedup, &desc->bwd_cost) ||
        !tli_speed_up(node->fwd_cost + node->bwd_cost, speedup, &sum)) return 0;
    if (a->desc->training && node->bwd_cost) desc->bwd_cost = sum - desc->fwd_cost;  // sum >= fwd_cost
    return 1;
}

// -- apply: names --

static int tli_compare_text(const char *a, const char *b) {
    while (*a && *a == *b) { a++; b++; }
    return (int)(unsigned char)*a - (int)(unsigned char)*b;
}

// Merge sort of the names of the old graph; the second half of the array is scratch.
static void tli_sort_names(tli_apply *a) {
    uint32_t *from = a->names, *to = a->names + a->name_count, *swap;
    uint64_t width, i;
    for (i = 0; i < a->name_count; i++) from[i] = (uint32_t)i;
    for (width = 1; width < a->name_count; width *= 2) {
        tli_merge_names(a->old, from, to, a->name_count, width);
        swap = from; from = to; to = swap;
    }
    if (from != a->names) tli_copy(a->names, from, a->name_count * sizeof *from);
}

static int tli_is_name_taken(const tli_apply *a, const char *name) {
    uint32_t low = 0, high = a->name_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = tli_compare_text(tli_name_of(a->old, a->names[middle]), name);
        if (!order) return 1;
        if (order < 0) low = middle + 1; else high = middle;
    }
    return 0;
}

// Name a conversion: conv1_i8, split.2_i8. If that name is taken, too long, or could belong to another tensor,
// the number of the new node is appended, conv1_i8_17, then a counter until the name is free. Two conversions
// never get the same name: after the tensor's name follows a format, or a format and the node's own number.
static void tli_name_conversion(const tli_apply *a, int32_t tensor, tl_format format, char *name) {
    char text[TLI_NAME_LIMIT + 16], tail[64];
    const tl_node_output *output = &a->old->outputs[tensor];
    tli_writer whole = tli_writer_of(text, sizeof text), end, w;
    uint64_t attempt;
    size_t length;
    int several = a->old->nodes[output->node].output_count > 1;
    tli_put(&whole, tl_name_node(a->old, output->node));
    if (several) { tli_put(&whole, "."); tli_put_i64(&whole, output->output); }
    tli_finish(&whole);
    attempt = (several && tli_is_name_taken(a, text)) || whole.length + sizeof "_bf16" > TLI_NAME_LIMIT;
    for (;; attempt++) {
        end = tli_writer_of(tail, sizeof tail);
        tli_put(&end, "_");
        tli_put(&end, tl_name_format(format));
        if (attempt > 0) { tli_put(&end, "_"); tli_put_i64(&end, a->applied.graph.node_count); }
        if (attempt > 1) { tli_put(&end, "_"); tli_put_u64(&end, attempt); }
        w = tli_writer_of(name, TLI_NAME_LIMIT + 1);
        length = whole.length + end.length > TLI_NAME_LIMIT ? TLI_NAME_LIMIT - end.length : whole.length;
        length = tli_whole_characters(text, length);
        tli_put_bytes(&w, text, length);
        tli_put_bytes(&w, tail, end.length);
        tli_finish(&w);
        if (!tli_is_name_taken(a, name)) return;
    }
}

// -- apply: attributes --

// What is declared of a tensor in its new format. States keep theirs: they stay as they are.
static uint8_t tli_apply_declared(uint8_t declared, tl_format format) {
    return declared == TL_TENSOR_FORMAT_F32 ? tli_declare_format(format) : declared;
}

// Describe the rows of a conversion: those of the node whose output 0 it reads, one by one.
static void tli_convert_rows(const tli_apply *a, const tl_node_output *output, uint8_t declared,
                             tl_relation *relation, tl_node_desc *desc) {
    const tl_node_rows *r = output->output ? NULL : tli_find_rows(a->old, output->node);
    if (!r) return;
    tli_zero(relation, sizeof *relation);
    relation->kind = TL_RELATION_SAME;
    desc->rows = r->rows;
    desc->row_unit = r->unit;
    desc->row_axis = r->axis;
    desc->relations = relation;
    tli_fit_rows(desc, declared);
}

// -- apply: the new graph --

static tl_result tli_apply_quantization(tli_apply *a, const tli_graph_rules *rules, int32_t old_tensor,
                                        tl_format format, int32_t tensor) {
    const tl_quantization *given = format == TL_FORMAT_I8 ? a->desc->quantizations
                                 : format == TL_FORMAT_I16 ? a->desc->wide_quantizations : NULL;
    int32_t node = a->old->outputs[old_tensor].node;
    tli_rule rule;
    tli_sentence s;
    if (!given || given[old_tensor].scale == 0) return TL_OK;
    rule = tli_quantization_broken(&given[old_tensor]);
    if (!rule) rule = tli_format_lacks(&given[old_tensor], format);
    a->quantizations[tensor] = given[old_tensor];
    if (!rule) return TL_OK;
    s = tli_begin_item(rules, TL_ERROR_INVALID_ARG, "node", node, tl_name_node(a->old, node), rule);
    if (TLI_ERROR_TEXT) tli_put(&s.text, "quantizations: ");
    return tli_end_error(rules->env, &s, TL_ERROR_INVALID_ARG);
}

// Fill in the arrays of the result for the node that was just added.
static tl_result tli_note_applied(tli_apply *a, const tli_graph_rules *rules, int32_t old_node,
                                  int32_t old_tensor, tl_scheme scheme, tl_format format) {
    const tl_graph *graph = &a->applied.graph;
    int32_t id = graph->node_count - 1, first = graph->nodes[id].first_output, k;
    tl_result result = TL_OK;
    a->nodes[id] = old_node;
    a->schemes[id] = (uint8_t)scheme;
    for (k = 0; k < graph->nodes[id].output_count && !result; k++) {
        *tli_apply_place(a, old_tensor + k, format) = first + k;
        a->formats[first + k] = (uint8_t)format;
        result = tli_apply_quantization(a, rules, old_tensor + k, format, first + k);
    }
    return result;
}

static tl_result tli_add_conversion(tli_apply *a, tli_graph_rules *rules, int32_t tensor, tl_format format) {
    const tl_node_output *output = &a->old->outputs[tensor];
    const tl_node *producer = &a->old->nodes[output->node];
    tl_format from = tli_apply_format(a, output->node);
    uint8_t wants = a->wants[(size_t)tensor * TL_FORMAT_COUNT + (size_t)format];
    int has_grad = a->desc->training && (wants & TLI_WANT_GRAD);
    uint64_t bytes = tl_find_format_bytes(format, output->bytes);
    uint8_t declared = tli_apply_declared(output->format, format);
    char name[TLI_NAME_LIMIT + 1];
    tl_relation relation;
    tl_node_desc desc;
    tl_tensor input;
    tl_result result;
    tli_zero(&desc, sizeof desc);
    tli_name_conversion(a, tensor, format, name);
    input.node = a->new_nodes[output->node];
    input.output = output->output;
    desc.name = name;
    desc.op = "convert";
    desc.unit = producer->unit ? tl_name_unit(a->old, output->node) : NULL;
    desc.layer = producer->layer + 1;
    desc.inputs = &input; desc.input_count = 1;
    desc.output_bytes = &bytes; desc.output_count = 1;
    if (!tli_price_conversion(a->desc->device, tli_count_elements(output->bytes), from, format,
                              &desc.fwd_cost))
        return tli_fail_item(rules, TL_ERROR_OVERFLOW, "node", output->node, tl_name_node(a->old, output->node),
                             TLI_RULE(DEVICE_TIME_OF_CONVERSION_MUST_FIT_64));
    desc.bwd_cost = has_grad ? desc.fwd_cost : 0;
    desc.no_grad = !has_grad;
    desc.keep = (wants & TLI_WANT_RESULT) != 0;
    desc.fixed = producer->fixed; desc.origin = -1;
    desc.formats = &declared;
    tli_convert_rows(a, output, declared, &relation, &desc);
    result = tli_add_node(rules, &a->applied.graph, &desc);
    if (result) return result;
    a->applied.conversion_count++;
    return tli_note_applied(a, rules, output->node, tensor, TL_SCHEME_F32, format);
}

// Find the inputs of a node in its format; conversions that do not exist yet are added here, before the node.
static tl_result tli_find_applied_inputs(tli_apply *a, tli_graph_rules *rules, int32_t id) {
    const tl_node *node = &a->old->nodes[id];
    tl_result result = TL_OK;
    int32_t k;
    for (k = 0; k < node->input_count && !result; k++) {
        int32_t tensor = a->old->inputs[node->first_input + k].tensor;
        tl_format format = tli_find_read_format(a, id, tensor);
        const int32_t *place = tli_apply_place(a, tensor, format);
        if (*place < 0) result = tli_add_conversion(a, rules, tensor, format);
        if (result) return result;
        a->inputs[k].node = a->applied.graph.outputs[*place].node;
        a->inputs[k].output = a->applied.graph.outputs[*place].output;
    }
    return TL_OK;
}

static tl_result tli_add_applied(tli_apply *a, tli_graph_rules *rules, int32_t id) {
    const tl_graph *old = a->old;
    const tl_node *node = &old->nodes[id];
    tl_graph *graph = &a->applied.graph;
    tl_format format = tli_apply_format(a, id);
    tl_scheme scheme = tli_apply_scheme(a, id);
    tl_node_desc desc;
    tl_result result = tli_find_applied_inputs(a, rules, id);
    int32_t k;
    if (result) return result;
    tli_describe_node(old, id, &desc);
    for (k = 0; k < node->output_count; k++)
        a->bytes[k] = tl_find_format_bytes(format, old->outputs[node->first_output + k].bytes);
    desc.inputs = a->inputs;
    desc.output_bytes = a->bytes;
    if (!tli_apply_costs(a, id, &desc))
        return tli_fail_item(rules, TL_ERROR_OVERFLOW, "node", id, desc.name,
                             TLI_RULE(SPEEDUP_COST_MUST_FIT_64_BITS));
    desc.saved_bytes = tl_find_format_bytes(format, node->saved_bytes);
    desc.param_bytes = tli_find_weight_bytes(scheme, node->param_bytes);
    desc.stored = a->stored;
    desc.stored_count = tli_find_scheme_constants(old, id, scheme, a->stored).count;
    desc.keep = node->keep && (format == TL_FORMAT_F32 || a->desc->any_result);
    tli_fit_rows(&desc, tli_apply_declared(old->outputs[node->first_output].format, format));
    a->new_nodes[id] = graph->node_count;
    result = tli_add_node(rules, graph, &desc);
    if (result) return result;
    tli_copy_needs(old, id, graph);
    for (k = 0; k < node->output_count; k++) {
        int32_t tensor = graph->tensor_count - node->output_count + k;
        tl_node_output *output = (tl_node_output *)&graph->outputs[tensor];
        output->format = tli_apply_declared(output->format, format);
    }
    return tli_note_applied(a, rules, id, node->first_output, scheme, format);
}

static tl_result tli_build_applied(tli_apply *a) {
    tli_graph_rules rules = tli_rules_of(a->env, TLI_IN(APPLY_PRECISION));
    const tl_graph *old = a->old;
    tl_graph *graph = &a->applied.graph;
    tl_result result = TL_OK;
    int32_t i, places = old->tensor_count;
    graph->batch = old->batch;
    for (i = 0; i < old->node_count && !result; i++) result = tli_add_applied(a, &rules, i);
    for (i = 0; i < places && !result; i++)  // results that no node reads in f32
        if (a->wants[(size_t)i * TL_FORMAT_COUNT + TL_FORMAT_F32] && *tli_apply_place(a, i, TL_FORMAT_F32) < 0)
            result = tli_add_conversion(a, &rules, i, TL_FORMAT_F32);
    for (i = 0; i < old->view_count && !result; i++) {
        int32_t tensor = old->views[i].tensor, node = old->outputs[tensor].node;
        tl_tensor of;
        of.node = a->new_nodes[node];
        of.output = old->outputs[tensor].output;
        result = tl_add_view(a->env, graph, tli_text_at(old, old->views[i].name), of, NULL);
    }
    return result;
}

// Allocate scratch memory and sort the names. Returns 0 = no memory.
static int tli_open_apply(tl_env *env, const tl_apply_desc *desc, tli_apply *a) {
    const tl_graph *old = desc->graph;
    uint64_t tensors = (uint64_t)old->tensor_count, i;
    uint64_t constants = old->attributes ? (uint64_t)old->attributes->stored_count : 0;
    tli_zero(a, sizeof *a);
    a->env = env;
    a->desc = desc;
    a->old = old;
    a->name_count = (uint32_t)old->node_count + (uint32_t)old->view_count;
    a->tensors = (int32_t *)tli_alloc_array(env, tensors * TL_FORMAT_COUNT, sizeof *a->tensors);
    a->wants = (uint8_t *)tli_alloc_array(env, tensors * (TL_FORMAT_COUNT + 1), 1);
    a->names = (uint32_t *)tli_alloc_array(env, 2 * (uint64_t)a->name_count, sizeof *a->names);
    a->inputs = (tl_tensor *)tli_alloc_array(env, (uint64_t)old->input_count, sizeof *a->inputs);
    a->bytes = (uint64_t *)tli_alloc_array(env, tensors, sizeof *a->bytes);
    a->stored = (tl_stored *)tli_alloc_array(env, constants + TLI_MOST_FACTORS, sizeof *a->stored);
    if (!a->tensors || !a->wants || !a->names || !a->inputs || !a->bytes || !a->stored) return 0;
    a->is_read = a->wants + tensors * TL_FORMAT_COUNT;
    for (i = 0; i < tensors * TL_FORMAT_COUNT; i++) a->tensors[i] = -1;
    tli_sort_names(a);
    return 1;
}

// Allocate the arrays of the result in one block, those of the largest items first, for alignment.
static int tli_add_applied_arrays(tli_apply *a, uint64_t conversions) {
    uint64_t old_nodes = (uint64_t)a->old->node_count, nodes = old_nodes + conversions;
    uint64_t tensors = (uint64_t)a->old->tensor_count + conversions;
    uint64_t bytes = tensors * sizeof *a->quantizations + (nodes + old_nodes) * sizeof *a->nodes +
                     tensors + nodes;
    tl_precision_graph *applied = &a->applied;
    applied->memory = tli_alloc_array(a->env, bytes, 1);
    if (!applied->memory) return 0;
    a->quantizations = (tl_quantization *)applied->memory;
    a->nodes = (int32_t *)(void *)(a->quantizations + tensors);
    a->new_nodes = a->nodes + nodes;
    a->formats = (uint8_t *)(a->new_nodes + old_nodes);
    a->schemes = a->formats + tensors;
    applied->nodes = a->nodes;
    applied->new_nodes = a->new_nodes;
    applied->formats = a->formats;
    applied->schemes = a->schemes;
    applied->quantizations = a->quantizations;
    return 1;
}

TLI_IMPL tl_result tl_apply_precision(tl_env *env, const tl_apply_desc *desc, tl_precision_graph *applied) {
    tli_apply a;
    tl_result result;
    TL_ASSERT(desc && desc->graph && desc->plan && applied);
    tli_zero(applied, sizeof *applied);
    result = tli_check_apply(env, desc);
    if (result) return result;
    if (tli_open_apply(env, desc, &a) && tli_add_applied_arrays(&a, tli_find_wants(&a)))
        result = tli_build_applied(&a);
    else
        result = tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(APPLY_PRECISION), TLI_RULE(NO_MEMORY_FOR_NEW_GRAPH));
    tli_release(env, a.tensors);
    tli_release(env, a.wants);
    tli_release(env, a.names);
    tli_release(env, a.inputs);
    tli_release(env, a.bytes);
    tli_release(env, a.stored);
    if (result) tl_free_precision_graph(env, &a.applied);
    *applied = a.applied;
    return result;
}

TLI_IMPL void tl_free_precision_graph(tl_env *env, tl_precision_graph *applied) {
    if (!applied) return;
    tl_free_graph(env, &applied->graph);
    tli_release(env, applied->memory);
    tli_zero(applied, sizeof *applied);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION

