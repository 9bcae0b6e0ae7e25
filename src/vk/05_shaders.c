#if defined(TL_VK_BACKEND_IMPLEMENTATION) && !defined(TL_VK_BACKEND_IMPLEMENTATION_DONE)

// The built-in shaders as operations on ranges: sums, extremes, conversions to integers, checksums. Each checks
// its ranges and enqueues an operation of [2]; parameters longer than push constants are written to staging.

// -- the table of words --

static tli_vk_words tli_vk_words_of(int shader) {
#define TLI_VK_WORDS(id, name) { tli_vk_##name##_words, sizeof tli_vk_##name##_words / 4 },
    static const tli_vk_words words[] = { TLI_VK_SHADERS(TLI_VK_WORDS) };
#undef TLI_VK_WORDS
    return words[shader];
}

static tl_result tli_vk_set_words(tli_vk *b, const tl_range *range, uint64_t from, uint64_t bytes,
                                  uint32_t word, const char *function) {
    tl_result result = TL_OK;
    const tli_vk_block *block = tli_vk_find_range(b, range, function, &result);
    tli_vk_op op;
    if (!block) return result;
    memset(&op, 0, sizeof op);
    op.kind = TLI_VK_OP_FILL;
    op.to = tli_vk_place_of(block, range);
    op.to.at += from;
    op.to.bytes = bytes;
    op.word = word;
    return tli_vk_enqueue(b, &op, range->block, 0, function);
}

static tl_result tli_vk_check_words(tli_vk *b, const tl_range *to, const tl_range *from, uint64_t to_bytes,
                                    const char *function) {
    const tli_vk_block *target, *source;
    tl_result result = TL_OK;
    tli_vk_place place, written;
    if (b->lost) return tli_vk_fail_lost(b, function);
    if (from->bytes % 4)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "from: bytes: must be a multiple of 4");
    if (to->bytes != to_bytes)
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "to: bytes: not what the result takes");
    if (tli_vk_overlap(to, from)) return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "to: overlaps from");
    if (!from->bytes) return TL_OK;
    target = tli_vk_find_range(b, to, function, &result);
    source = target ? tli_vk_find_range(b, from, function, &result) : NULL;
    if (!source) return result;
    place = tli_vk_place_of(source, from);
    written = tli_vk_place_of(target, to);
    if (tli_vk_meet(&written, &place))  // two blocks of one buffer of the caller
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "to: overlaps from");
    if (b->lost_count && tli_vk_is_lost(b, &place))
        return tli_vk_fail_stale(b, function, "range");
    return TL_OK;
}

TLI_VK_IMPL tl_result tl_vk_record_add(const tl_backend *backend, tl_range to, tl_range from) {
    const char *function = "tl_vk_record_add";
    tli_vk *b = tli_vk_self(backend);
    tl_result result = tli_vk_check_words(b, &to, &from, from.bytes, function);
    const tli_vk_block *block;
    tli_vk_place place;
    if (result || !from.bytes) return result;
    block = tli_vk_find_range(b, &to, function, &result);
    if (!block) return result;
    place = tli_vk_place_of(block, &to);
    if (b->lost_count && tli_vk_is_lost(b, &place))
        return tli_vk_fail_stale(b, function, "to");
    return tli_vk_move(b, TLI_VK_OP_SHADER, TLI_VK_SHADER_ADD, &to, &from, from.bytes, function);
}

static tl_result tli_vk_min_max(tli_vk *b, const tl_range *to, const tl_range *from, const char *function) {
    tl_result result = tli_vk_check_words(b, to, from, sizeof(tl_vk_extremes), function);
    if (!result) result = tli_vk_set_words(b, to, 0, 4, UINT32_MAX, function);
    if (!result) result = tli_vk_set_words(b, to, 4, sizeof(tl_vk_extremes) - 4, 0, function);
    if (result || !from->bytes) return result;
    return tli_vk_move(b, TLI_VK_OP_SHADER, TLI_VK_SHADER_MIN_MAX, to, from, to->bytes, function);
}

TLI_VK_IMPL tl_result tl_vk_record_min_max(const tl_backend *backend, tl_range to, tl_range from) {
    return tli_vk_min_max(tli_vk_self(backend), &to, &from, "tl_vk_record_min_max");
}

static float tli_vk_float_of_key(uint32_t key) {
    uint32_t bits = key & 0x80000000u ? key ^ 0x80000000u : ~key;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

TLI_VK_IMPL int tl_vk_read_extremes(const tl_vk_extremes *extremes, float *least, float *largest) {
    *least = *largest = 0;
    if (!extremes->finite_count) return 0;
    *least = tli_vk_float_of_key(extremes->least_key);
    *largest = tli_vk_float_of_key(extremes->largest_key);
    return 1;
}

// -- channels --

#define TLI_VK_QUANTIZATION_BYTES 20  // of one quantisation, as shaders read it; tl_vk_extremes is smaller

// The shaders index with 32 bits: the elements of a piece and of the periods of channels that it cuts.
static tl_result tli_vk_check_channels(tli_vk *b, int32_t channel_count, uint64_t inner_count,
                                       const char *function) {
    const uint64_t most = (uint64_t)1 << 30;
    if (b->lost) return tli_vk_fail_lost(b, function);
    if (channel_count < 1) return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "channel_count: must be > 0");
    if (!inner_count) return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "inner_count: must be > 0");
    if ((uint32_t)channel_count > b->device_limits.maxStorageBufferRange / TLI_VK_QUANTIZATION_BYTES)
        return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function, "channel_count: more than the device binds");
    if (channel_count > 1 && inner_count > most / (uint64_t)channel_count)
        return tli_vk_fail(b, TL_ERROR_UNSUPPORTED, function,
                           "inner_count: more than 2^30 elements in all channels");
    return TL_OK;
}

static tli_vk_op tli_vk_channels_op(tli_vk_shader shader, int32_t channel_count, uint64_t inner_count) {
    tli_vk_op op;
    memset(&op, 0, sizeof op);
    op.kind = TLI_VK_OP_SHADER;
    op.shader = shader;
    op.channel_count = (uint32_t)channel_count;
    op.inner_count = channel_count > 1 ? (uint32_t)inner_count : 1;  // no effect with one channel
    return op;
}

// Take staging for words that the host writes and a shader reads; then tli_vk_flush_words, tli_vk_end_words.
static tl_result tli_vk_start_words(tli_vk *b, uint64_t bytes, const char *function, tli_vk_place *place,
                                    int32_t *slot, uint32_t **words) {
    tl_result result = tli_vk_take_staging(b, bytes, function, place, slot);
    *words = result ? NULL : (uint32_t *)tli_vk_address(b, place);
    return result;
}

static tl_result tli_vk_flush_words(tli_vk *b, const tli_vk_place *place, const char *function) {
    VkResult result = tli_vk_flush_host(b, place);
    return result ? tli_vk_fail_result(b, function, "vkFlushMappedMemoryRanges", result) : TL_OK;
}

// Free the staging of the words when the work that was enqueued so far has finished.
static void tli_vk_end_words(tli_vk *b, int32_t slot) {
    tli_vk_give_staging(b, slot, b->has_work ? b->serial : b->serial - 1);
}

// Set the extremes of each channel to those of no element.
static tl_result tli_vk_clear_extremes(tli_vk *b, const tl_range *to, int32_t channel_count,
                                       const char *function) {
    tl_result result = TL_OK;
    const tli_vk_block *block = tli_vk_find_range(b, to, function, &result);
    tli_vk_op op;
    uint32_t *words;
    int32_t slot;
    int32_t i;
    if (!block) return result;
    memset(&op, 0, sizeof op);
    op.kind = TLI_VK_OP_COPY;
    result = tli_vk_start_words(b, to->bytes, function, &op.from, &slot, &words);
    if (result) return result;
    memset(words, 0, (size_t)to->bytes);
    for (i = 0; i < channel_count; i++) words[4 * i] = UINT32_MAX;
    op.to = tli_vk_place_of(block, to);
    result = tli_vk_flush_words(b, &op.from, function);
    if (!result) result = tli_vk_enqueue(b, &op, to->block, 0, function);
    tli_vk_end_words(b, slot);
    return result;
}

TLI_VK_IMPL tl_result tl_vk_record_min_max_channels(const tl_backend *backend, tl_range to, tl_range from,
                                                    int32_t channel_count, uint64_t inner_count) {
    const char *function = "tl_vk_record_min_max_channels";
    tli_vk *b = tli_vk_self(backend);
    tl_result result = tli_vk_check_channels(b, channel_count, inner_count, function);
    uint64_t expected = (uint64_t)channel_count * sizeof(tl_vk_extremes);
    tli_vk_op op = tli_vk_channels_op(TLI_VK_SHADER_MIN_MAX_CHANNELS, channel_count, inner_count);
    if (result) return result;
    if (channel_count == 1) return tli_vk_min_max(b, &to, &from, function);
    result = tli_vk_check_words(b, &to, &from, expected, function);
    if (!result) result = tli_vk_clear_extremes(b, &to, channel_count, function);
    if (result || !from.bytes) return result;
    return tli_vk_move_by(b, &op, &to, &from, to.bytes, function);
}

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
TLI_VK_IMPL tl_result tl_vk_observe_extremes(tl_env *env, tl_observer *observer,
                                             const tl_vk_extremes *extremes, int32_t channel_count) {
    const char *function = "tl_vk_observe_extremes";
    tl_result result = TL_OK;
    int32_t i;
    if (channel_count < 1)
        return tl_record_error(env, TL_ERROR_INVALID_ARG, function, "channel_count: must be > 0");
    for (i = 0; i < channel_count; i++)
        if (extremes[i].other_count)
            return tl_record_error(env, TL_ERROR_INVALID_ARG, function,
                                   "extremes: of values that are not finite");
    for (i = channel_count - 1; i >= 0 && !result; i--) {  // a channel it lacks fails before any is changed
        float least, largest;
        if (!tl_vk_read_extremes(&extremes[i], &least, &largest)) continue;
        result = tl_observe_extremes(observer, i, least, largest, extremes[i].finite_count);
    }
    return result;
}
#endif

#ifndef TL_NO_PRECISION
// -- quantisation --

// Check the lengths of both operands. All other rules are those of tl_quantize or tl_dequantize: `result` is
// what it said of no elements.
static tl_result tli_vk_check_integers(tli_vk *b, tl_result result, const tl_range *plain,
                                       const tl_range *integers, int32_t channel_count, uint64_t inner_count,
                                       tl_format format, const char *function) {
    if (!result) result = tli_vk_check_channels(b, channel_count, inner_count, function);
    if (result) return result;
    if (plain->bytes % 4 || integers->bytes != plain->bytes / 4 * (format == TL_FORMAT_I8 ? 1 : 2))
        return tli_vk_fail(b, TL_ERROR_INVALID_ARG, function, "to: bytes: do not fit those of from");
    return TL_OK;
}

static void tli_vk_write_quantizations(uint32_t *words, const tl_quantization *quantizations, int32_t count) {
    int32_t i;
    for (i = 0; i < count; i++) {
        const tl_quantization *q = &quantizations[i];
        memcpy(words, &q->scale, 4);
        memcpy(words + 1, &q->zero_point, 4);
        memcpy(words + 2, &q->low, 4);
        memcpy(words + 3, &q->high, 4);
        words[4] = q->rounding == TL_ROUNDING_AWAY;
        words += TLI_VK_QUANTIZATION_BYTES / 4;
    }
}

static tl_result tli_vk_record_integers(tli_vk *b, tli_vk_op *op, const tl_range *to, const tl_range *from,
                                        const tl_quantization *quantizations, const char *function) {
    uint32_t *words;
    int32_t slot;
    tl_result result;
    if (!from->bytes) return TL_OK;
    result = tli_vk_start_words(b, (uint64_t)op->channel_count * TLI_VK_QUANTIZATION_BYTES, function,
                                &op->quantizations, &slot, &words);
    if (result) return result;
    tli_vk_write_quantizations(words, quantizations, (int32_t)op->channel_count);
    result = tli_vk_flush_words(b, &op->quantizations, function);
    if (!result) result = tli_vk_move_by(b, op, to, from, to->bytes, function);
    tli_vk_end_words(b, slot);
    return result;
}

TLI_VK_IMPL tl_result tl_vk_record_quantize(const tl_backend *backend, tl_range to, tl_range from,
                                            const tl_quantization *quantizations, int32_t channel_count,
                                            uint64_t inner_count, tl_format format) {
    const char *function = "tl_vk_record_quantize";
    tli_vk *b = tli_vk_self(backend);
    tl_result result = tl_quantize(b->env, quantizations, channel_count, inner_count, format, NULL, NULL, 0);
    tli_vk_op op = tli_vk_channels_op(TLI_VK_SHADER_QUANTIZE, channel_count, inner_count);
    op.word = format == TL_FORMAT_I8 ? 1 : 2;
    result = tli_vk_check_integers(b, result, &from, &to, channel_count, inner_count, format, function);
    return result ? result : tli_vk_record_integers(b, &op, &to, &from, quantizations, function);
}

TLI_VK_IMPL tl_result tl_vk_record_dequantize(const tl_backend *backend, tl_range to, tl_range from,
                                              const tl_quantization *quantizations, int32_t channel_count,
                                              uint64_t inner_count, tl_format format) {
    const char *function = "tl_vk_record_dequantize";
    tli_vk *b = tli_vk_self(backend);
    tl_result result = tl_dequantize(b->env, quantizations, channel_count, inner_count, format, NULL, NULL, 0);
    tli_vk_op op = tli_vk_channels_op(TLI_VK_SHADER_DEQUANTIZE, channel_count, inner_count);
    op.word = format == TL_FORMAT_I8 ? 1 : 2;
    result = tli_vk_check_integers(b, result, &to, &from, channel_count, inner_count, format, function);
    return result ? result : tli_vk_record_integers(b, &op, &to, &from, quantizations, function);
}
#endif

// -- checksums --

TLI_VK_IMPL tl_result tl_vk_record_checksum(const tl_backend *backend, tl_range to, tl_range from) {
    const char *function = "tl_vk_record_checksum";
    tli_vk *b = tli_vk_self(backend);
    tl_result result = tli_vk_check_words(b, &to, &from, 8, function);
    if (!result) result = tli_vk_set_words(b, &to, 0, 8, 0, function);
    if (result || !from.bytes) return result;
    return tli_vk_move(b, TLI_VK_OP_SHADER, TLI_VK_SHADER_CHECKSUM, &to, &from, to.bytes, function);
}

// Appleby, MurmurHash3, 2011, fmix32; Wellons, Prospecting for hash functions, 2018, lowbias32.
static uint32_t tli_vk_mix(uint32_t x, int which) {
    x = (x ^ x >> 16) * (which ? 0x7FEB352Du : 0x85EBCA6Bu);
    x = which ? (x ^ x >> 15) * 0x846CA68Bu : (x ^ x >> 13) * 0xC2B2AE35u;
    return x ^ x >> 16;
}

TLI_VK_IMPL void tl_vk_checksum_bytes(const void *bytes, size_t count, uint32_t sum[2]) {
    size_t i;
    sum[0] = sum[1] = 0;
    for (i = 0; i < count / 4; i++) {
        uint32_t word;
        memcpy(&word, (const char *)bytes + 4 * i, 4);
        sum[0] += tli_vk_mix(word + (uint32_t)i * 0x9E3779B9u, 0);
        sum[1] += tli_vk_mix(word + (uint32_t)i * 0x7F4A7C15u, 1);
    }
}
#endif  // TL_VK_BACKEND_IMPLEMENTATION
