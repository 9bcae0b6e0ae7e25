#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- sensitivity, estimated --
//
//     runs of the first half:   tensors --observers--> ranges
//     runs of the second half:  tensors, gradients --> sum of g^2 e^2 of each tensor in each format, of the
//                               weights of each node in each scheme --> losses of nodes
//
// What a tensor loses in a format is found once, however many nodes store or read it so.

typedef struct tli_estimate {
    tl_env *env;
    const tl_estimate_sensitivity_desc *desc;
    const tl_graph  *graph;
    tl_observer    **observers;   // [tensor_count] NULL = no numbers
    tl_quantization *narrow, *wide;  // [tensor_count] of tensors in i8; in i16
    double          *tensor_sums;    // [tensor_count x formats] of g^2 e^2 over all batches
    double          *weight_sums;    // [node_count x schemes]
} tli_estimate;

static tl_result tli_check_estimate(tl_env *env, const tl_estimate_sensitivity_desc *desc) {
    const tli_function function = TLI_IN(ESTIMATE_SENSITIVITY);
    tl_result result;
    int32_t i;
    tli_rule rule = TLI_NO_RULE;
    if (desc->schemes >> TL_SCHEME_COUNT) rule = TLI_RULE(SCHEMES_UNKNOWN_BIT);
    else if (desc->batch_count <= 0) rule = TLI_RULE(BATCH_COUNT_MUST_BE_POSITIVE);
    else if (!desc->row_count) rule = TLI_RULE(ROW_COUNT_MUST_BE_POSITIVE);
    else if (!desc->run) rule = TLI_RULE(RUN_MUST_NOT_BE_NULL);
    else if (!desc->find_tensor) rule = TLI_RULE(FIND_TENSOR_MUST_NOT_BE_NULL);
    else if (!tli_is_below((int64_t)desc->observer, TL_OBSERVER_COUNT)) rule = TLI_RULE(KIND_NO_SUCH_OBSERVER);
    if (rule) return tli_fail(env, TL_ERROR_INVALID_ARG, function, rule);
    result = tl_check_graph(env, desc->graph);
    for (i = 0; !result && desc->node_schemes && i < desc->graph->node_count; i++)
        if (desc->node_schemes[i] >> TL_SCHEME_COUNT)
            result = tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(NODE_SCHEMES_UNKNOWN_BIT));
    return result;
}

static tl_result tli_fail_estimate(const tli_estimate *e, tli_rule rule, tl_result code) {
    tli_sentence s = tli_begin_error(e->env, TL_ERROR_KERNEL, TLI_IN(ESTIMATE_SENSITIVITY), rule,
                                     (uint64_t)code, 0);
    tli_put_text(&s, tl_name_result(code));
    return tli_end_error(e->env, &s, TL_ERROR_KERNEL);
}

// The schemes of a node to estimate, as bits.
static uint32_t tli_find_estimated(const tli_estimate *e, int32_t id) {
    const tl_estimate_sensitivity_desc *desc = e->desc;
    uint32_t schemes = desc->schemes ? desc->schemes : TLI_USUAL_SCHEMES;
    if (e->graph->nodes[id].is_input) return 0;
    if (desc->node_schemes && desc->node_schemes[id]) schemes &= desc->node_schemes[id];
    return schemes & ~TLI_BIT(TL_SCHEME_F32);
}

// -- samples --

static tl_result tli_check_sample(const tli_estimate *e, const tl_sample *sample) {
    const tli_function function = TLI_IN(ESTIMATE_SENSITIVITY);
    uint64_t i;
    if (sample->channel_count < 0 || (sample->values && !sample->count))
        return tli_fail(e->env, TL_ERROR_INVALID_ARG, function, TLI_RULE(SAMPLE_COUNTS_MUST_BE_POSITIVE));
    for (i = 0; sample->values && i < sample->count; i++)
        if (!tli_is_finite_f32(sample->values[i]) ||
            (sample->gradients && !tli_is_finite_f32(sample->gradients[i])))
            return tli_fail(e->env, TL_ERROR_INVALID_ARG, function, TLI_RULE(SAMPLE_VALUE_IS_NOT_FINITE));
    return TL_OK;
}

static tl_result tli_take_tensor(const tli_estimate *e, int32_t tensor, tl_sample *sample) {
    tl_result result;
    tli_zero(sample, sizeof *sample);
    result = (e->desc->find_tensor)(tensor, sample, e->desc->user);
    return result ? tli_fail_estimate(e, TLI_RULE(FIND_TENSOR_FAILED), result) : tli_check_sample(e, sample);
}

static tl_result tli_take_weights(const tli_estimate *e, int32_t id, tl_sample *sample) {
    tl_result result;
    tli_zero(sample, sizeof *sample);
    if (!e->desc->find_weights) return TL_OK;
    result = (e->desc->find_weights)(id, sample, e->desc->user);
    return result ? tli_fail_estimate(e, TLI_RULE(FIND_WEIGHTS_FAILED), result) : tli_check_sample(e, sample);
}

// -- ranges --

static tl_result tli_observe_sample(const tli_estimate *e, int32_t tensor) {
    tl_observer_desc desc;
    tl_sample sample;
    tl_result result = tli_take_tensor(e, tensor, &sample);
    if (result || !sample.values) return result;
    tli_zero(&desc, sizeof desc);
    desc.kind = e->desc->observer;
    if (!e->observers[tensor]) result = tl_init_observer(e->env, &desc, &e->observers[tensor]);
    return result ? result : tl_observe_data(e->observers[tensor], sample.values, sample.count);
}

static tl_result tli_find_ranges(const tli_estimate *e) {
    tl_observation seen;
    int32_t i;
    for (i = 0; i < e->graph->tensor_count; i++) {
        const tl_observer *observer = e->observers[i];
        tl_result result;
        if (!observer) continue;
        result = tl_find_observed_quantization(observer, 0, TL_RANGE_AFFINE, -128, 127, &e->narrow[i]);
        if (!result) result = tl_measure_observer(observer, 0, &seen);
        if (!result)
            result = tl_find_quantization(e->env, TL_RANGE_NARROW, seen.least, seen.most, -32768, 32767,
                                          &e->wide[i]);
        if (result) return result;
    }
    return TL_OK;
}

// -- noise --

static double tli_weigh_error(float value, float stored, float gradient) {
    double error = ((double)value - (double)stored) * (double)gradient;
    return error * error;
}

static float tli_round_by(const tl_quantization *q, float value) {
    return tli_dequantize_integer(q, tli_clamp_integer(q, tli_quantize_freely(q, value)));
}

// Sum of squared gradients x squared errors of a sample in a format. q is read for i8 and i16 alone.
static double tli_sum_noise(const tl_sample *sample, tl_format format, const tl_quantization *q) {
    int is_half = format == TL_FORMAT_F16 || format == TL_FORMAT_BF16, clipped;
    double sum = 0;
    uint64_t i;
    if (!sample->gradients || format == TL_FORMAT_F32) return 0;
    for (i = 0; i < sample->count; i++) {
        float value = sample->values[i];
        sum += tli_weigh_error(value, is_half ? tli_round_to_format(format, value, &clipped)
                                              : tli_round_by(q, value), sample->gradients[i]);
    }
    return sum;
}

// Find the symmetric quantisation of each channel of weights.
static tl_result tli_find_weight_ranges(const tli_estimate *e, const tl_sample *weights, int32_t channels,
                                        int32_t high, tl_quantization *q) {
    uint64_t inner = weights->inner_count ? weights->inner_count : 1, i;
    tl_result result = TL_OK;
    int32_t c;
    for (i = 0; i < weights->count; i++) {  // scale holds the largest magnitude until the quantisation is found
        float size = weights->values[i] < 0 ? -weights->values[i] : weights->values[i];
        tl_quantization *of = &q[i / inner % (uint64_t)channels];
        if (size > of->scale) of->scale = size;
    }
    for (c = 0; c < channels && !result; c++)
        result = tl_find_quantization(e->env, TL_RANGE_NARROW, -q[c].scale, q[c].scale, -high, high, &q[c]);
    return result;
}

// Add to *sum the squared gradients x squared errors of weights as integers of -high .. high, with a scale for
// each channel or one for all of them.
static tl_result tli_sum_weight_noise(const tli_estimate *e, const tl_sample *weights, int per_channel,
                                      int32_t high, double *sum) {
    int32_t channels = per_channel && weights->channel_count ? weights->channel_count : 1;
    uint64_t inner = weights->inner_count ? weights->inner_count : 1, i;
    tl_quantization *q = (tl_quantization *)tli_alloc_array(e->env, (uint64_t)channels, sizeof *q);
    tl_result result;
    if (!q)
        return tli_fail(e->env, TL_ERROR_NO_MEMORY, TLI_IN(ESTIMATE_SENSITIVITY),
                        TLI_RULE(NO_MEMORY_FOR_SUMS));
    result = tli_find_weight_ranges(e, weights, channels, high, q);
    for (i = 0; i < weights->count && !result; i++) {
        float value = weights->values[i];
        *sum += tli_weigh_error(value, tli_round_by(&q[i / inner % (uint64_t)channels], value),
                                weights->gradients[i]);
    }
    tli_release(e->env, q);
    return result;
}

// -- noise of weights in groups, as w4a8 has them --

typedef struct tli_terms {
    const tl_sample *weights;
    uint64_t index, count, inner;   // of so many channels this one; elements of a channel side by side
} tli_terms;

// Where a term of a channel is among the weights; what is not below their count is behind the last term.
static uint64_t tli_find_term(const tli_terms *c, uint64_t term) {
    return (term / c->inner * c->count + c->index) * c->inner + term % c->inner;
}

// The largest magnitude of some terms of a channel.
static float tli_find_most_of(const tli_terms *c, uint64_t first, uint64_t end) {
    float most = 0;
    uint64_t at;
    for (; first < end && (at = tli_find_term(c, first)) < c->weights->count; first++) {
        float size = c->weights->values[at] < 0 ? -c->weights->values[at] : c->weights->values[at];
        if (size > most) most = size;
    }
    return most;
}

// Sum of squared gradients x squared errors of a group: its largest magnitude is rounded up to 127ths of the
// channel's, its factor, of which an integer of -7 .. 7 is a seventh.
static double tli_sum_group_noise(const tli_terms *c, uint64_t first, float channel_most) {
    uint64_t end = first + TLI_GROUP_TERMS, at;
    float most = tli_find_most_of(c, first, end);
    double share = 127 * (double)most, sum = 0;
    tl_quantization q;
    int32_t factor;
    if (!(most > 0)) return 0;
    share /= (double)channel_most;
    factor = (int32_t)share + ((double)(int32_t)share < share);
    most = (float)((double)channel_most * factor / 127);
    tl_find_quantization(NULL, TL_RANGE_NARROW, -most, most, -7, 7, &q);   // cannot fail: all is finite
    for (; first < end && (at = tli_find_term(c, first)) < c->weights->count; first++) {
        float value = c->weights->values[at];
        sum += tli_weigh_error(value, tli_round_by(&q, value), c->weights->gradients[at]);
    }
    return sum;
}

static double tli_sum_grouped_noise(const tl_sample *weights) {
    double sum = 0;
    tli_terms c;
    uint64_t first;
    c.weights = weights;
    c.index = 0;
    c.count = weights->channel_count ? (uint64_t)weights->channel_count : 1;
    c.inner = weights->inner_count ? weights->inner_count : 1;
    for (; c.index < c.count && tli_find_term(&c, 0) < weights->count; c.index++) {
        float most = tli_find_most_of(&c, 0, weights->count);
        for (first = 0; tli_find_term(&c, first) < weights->count; first += TLI_GROUP_TERMS)
            sum += tli_sum_group_noise(&c, first, most);
    }
    return sum;
}

// Add the noise of a node's weights in each scheme.
static tl_result tli_add_weight_noise(const tli_estimate *e, int32_t id) {
    double *sums = e->weight_sums + (size_t)id * TL_SCHEME_COUNT, channel = 0, whole = 0, wide = 0;
    tl_sample weights;
    tl_result result = tli_take_weights(e, id, &weights);
    if (result || !weights.values || !weights.gradients) return result;
    result = tli_sum_weight_noise(e, &weights, 1, 127, &channel);
    if (!result) result = tli_sum_weight_noise(e, &weights, 0, 127, &whole);
    if (!result) result = tli_sum_weight_noise(e, &weights, 0, 32767, &wide);
    if (result) return result;
    sums[TL_SCHEME_F16] += tli_sum_noise(&weights, TL_FORMAT_F16, NULL);
    sums[TL_SCHEME_BF16] += tli_sum_noise(&weights, TL_FORMAT_BF16, NULL);
    sums[TL_SCHEME_I16] += wide;
    sums[TL_SCHEME_I8] += whole;
    sums[TL_SCHEME_FAKE] += whole;
    sums[TL_SCHEME_I8_CHANNEL] += channel;
    sums[TL_SCHEME_W8A16] += channel;
    sums[TL_SCHEME_DYNAMIC] += channel;
    if (tli_find_estimated(e, id) >> TL_SCHEME_W4A8 & 1)
        sums[TL_SCHEME_W4A8] += tli_sum_grouped_noise(&weights);
    return TL_OK;
}

static tl_result tli_add_tensor_noise(const tli_estimate *e, int32_t tensor) {
    double *sums = e->tensor_sums + (size_t)tensor * TL_FORMAT_COUNT;
    tl_sample sample;
    int32_t k;
    tl_result result = tli_take_tensor(e, tensor, &sample);
    if (result || !sample.values || !e->observers[tensor]) return result;
    for (k = 0; k < TL_FORMAT_COUNT; k++)
        sums[k] += tli_sum_noise(&sample, (tl_format)k,
                                 k == TL_FORMAT_I8 ? &e->narrow[tensor] : &e->wide[tensor]);
    return TL_OK;
}

static tl_result tli_run_batches(const tli_estimate *e, int is_second) {
    int32_t batch, i;
    for (batch = 0; batch < e->desc->batch_count; batch++) {
        tl_result result = (e->desc->run)(batch, e->desc->user);
        if (result) return tli_fail_estimate(e, TLI_RULE(RUN_FAILED), result);
        for (i = 0; i < e->graph->tensor_count && !result; i++)
            result = is_second ? tli_add_tensor_noise(e, i) : tli_observe_sample(e, i);
        for (i = 0; is_second && i < e->graph->node_count && !result; i++)
            if (!e->graph->nodes[i].is_input) result = tli_add_weight_noise(e, i);
        if (result) return result;
    }
    return TL_OK;
}

// -- losses --

static double tli_estimate_node(const tli_estimate *e, int32_t id, int32_t scheme) {
    const tl_node *node = &e->graph->nodes[id];
    tl_format format = tl_find_scheme_format((tl_scheme)scheme), read = format;
    double sum = e->weight_sums[(size_t)id * TL_SCHEME_COUNT + (size_t)scheme];
    int32_t i;
    if (scheme == TL_SCHEME_DYNAMIC || scheme == TL_SCHEME_FAKE) read = TL_FORMAT_I8;
    if (scheme == TL_SCHEME_FAKE) format = TL_FORMAT_I8;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        sum += e->tensor_sums[(size_t)e->graph->inputs[i].tensor * TL_FORMAT_COUNT + (size_t)read];
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        sum += e->tensor_sums[(size_t)i * TL_FORMAT_COUNT + (size_t)format];
    return sum * (double)e->desc->row_count / 2 / e->desc->batch_count;
}

static void tli_fill_estimates(const tli_estimate *e, double *losses) {
    int32_t id, k;
    for (id = 0; id < e->graph->node_count; id++)
        for (k = 0; k < TL_SCHEME_COUNT; k++)
            if (tli_find_estimated(e, id) >> k & 1)
                losses[(size_t)id * TL_SCHEME_COUNT + (size_t)k] = tli_estimate_node(e, id, k);
}

static void tli_close_estimate(tli_estimate *e) {
    int32_t i;
    for (i = 0; e->observers && i < e->graph->tensor_count; i++) tl_free_observer(e->observers[i]);
    tli_release(e->env, e->observers);
    tli_release(e->env, e->narrow);
    tli_release(e->env, e->tensor_sums);
}

static tl_result tli_open_estimate(tli_estimate *e) {
    uint64_t tensors = (uint64_t)e->graph->tensor_count, nodes = (uint64_t)e->graph->node_count;
    e->observers = (tl_observer **)tli_alloc_array(e->env, tensors, sizeof(void *));
    e->narrow = (tl_quantization *)tli_alloc_array(e->env, 2 * tensors, sizeof *e->narrow);
    e->tensor_sums = (double *)tli_alloc_array(e->env, tensors * TL_FORMAT_COUNT + nodes * TL_SCHEME_COUNT,
                                               sizeof *e->tensor_sums);
    if (!e->observers || !e->narrow || !e->tensor_sums)
        return tli_fail(e->env, TL_ERROR_NO_MEMORY, TLI_IN(ESTIMATE_SENSITIVITY),
                        TLI_RULE(NO_MEMORY_FOR_SUMS));
    e->wide = e->narrow + tensors;
    e->weight_sums = e->tensor_sums + tensors * TL_FORMAT_COUNT;
    return TL_OK;
}

TLI_IMPL tl_result tl_estimate_sensitivity(tl_env *env, const tl_estimate_sensitivity_desc *desc,
                                           double *losses, tl_quantization *narrow, tl_quantization *wide) {
    size_t bytes;
    tli_estimate e;
    tl_result result;
    TL_ASSERT(desc && desc->graph && losses);
    result = tli_check_estimate(env, desc);
    if (result) return result;
    tli_zero(&e, sizeof e);
    e.env = env;
    e.desc = desc;
    e.graph = desc->graph;
    bytes = (size_t)e.graph->tensor_count * sizeof *narrow;
    result = tli_open_estimate(&e);
    if (!result) result = tli_run_batches(&e, 0);
    if (!result) result = tli_find_ranges(&e);
    if (!result) result = tli_run_batches(&e, 1);
    tli_reset_losses(e.graph, result ? tli_not_a_number() : 0, losses);
    if (narrow) tli_zero(narrow, bytes);
    if (wide) tli_zero(wide, bytes);
    if (!result) {
        tli_fill_estimates(&e, losses);
        if (narrow) tli_copy(narrow, e.narrow, bytes);
        if (wide) tli_copy(wide, e.wide, bytes);
    }
    tli_close_estimate(&e);
    return result;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION
