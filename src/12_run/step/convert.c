#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- the executor: conversions without a kernel --
//
// A node that only changes the format of a tensor needs no kernel: the run converts. The backend does it where
// it has the codecs, without waiting; integers, and gradients that are added to, are converted on the host:
//
//     f32 <-> f16, bf16      the backend's copy with a codec
//     f16 <-> bf16           the same twice, by f32 in the scratch
//     integers, sums         on the host, some elements at a time, by f32

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
    tl_result result =
        (run->backend.order)(run->backend.self, run->at.call.accesses, run->at.call.access_count);
    tl_result unmapped;
    if (!result) result = tli_map_accesses(run);
    if (result) return result;
    result = tli_convert_elements(run, to, from, adds);
    unmapped = tli_unmap_accesses(run, run->at.call.access_count);
    return result ? result : unmapped;
}

// Convert with the backend's codecs, without waiting. Between f16 and bf16 the values pass through f32.
static tl_result tli_convert_on_backend(tl_run *run, const tli_side *to, const tli_side *from) {
    tl_codec from_codec = tli_format_codec(from->format), to_codec = tli_format_codec(to->format);
    tl_range target = to->operand->range, source = from->operand->range, wide = run->at.call.scratch.range;
    tl_result result;
    if (!tli_find_wide_bytes(to, from))
        return tli_transfer(&run->store, &target, to_codec, &source, from_codec);
    wide.bytes = 4 * to->count;
    result = tli_transfer(&run->store, &wide, TL_CODEC_NONE, &source, from_codec);
    return result ? result : tli_transfer(&run->store, &target, to_codec, &wide, TL_CODEC_NONE);
}

// Convert; the operands of the step are claimed. adds: the gradient of the input was there before.
static tl_result tli_convert(tl_run *run, int adds) {
    const tl_node *node = &run->graph->nodes[run->at.last.node];
    const tl_operand *operands = run->at.call.operands;
    int backward = run->at.last.kind == TL_STEP_BACKWARD;
    int32_t input = run->graph->inputs[node->first_input].tensor, output = node->first_output;
    tli_side from = backward ? tli_side_of(run, &operands[2], output) : tli_side_of(run, &operands[0], input);
    tli_side to = backward ? tli_side_of(run, &operands[3], input) : tli_side_of(run, &operands[1], output);
    tl_result result = TL_OK;
    if (to.operand->range.bytes) {  // else no gradient is wanted
        if (adds || tli_is_integer(from.format) || tli_is_integer(to.format) ||
            run->at.call.scratch.range.bytes < tli_find_wide_bytes(&to, &from))
            result = tli_convert_on_host(run, &to, &from, adds);
        else result = tli_convert_on_backend(run, &to, &from);
    }
    run->at.event.end_ns = tli_run_now(run);
    run->report.convert_count++;
    return result ? tli_run_fail_backend(run, result, TLI_RULE(CONVERT_FAILED)) : TL_OK;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
