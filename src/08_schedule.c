#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- schedules: the order of one rank --
//
// A rank makes as many forwards as backwards, one of each for every micro-batch and chunk. The k-th forward and
// the k-th backward are known by number, so an order is the number of forwards that come first: then one
// forward and one backward take turns, until only backwards are left.

static int32_t tli_chunks_of(const tl_pipeline_desc *desc) { return desc->chunk_count ? desc->chunk_count : 1; }

TLI_IMPL int32_t tl_count_pipeline_events(const tl_pipeline_desc *desc) {
    int64_t count;
    TL_ASSERT(desc);
    count = 2 * (int64_t)desc->micro_batch_count * tli_chunks_of(desc);
    return desc->micro_batch_count > 0 && count > 0 && count <= INT32_MAX ? (int32_t)count : 0;
}

static tl_result tli_pipeline_check(tl_env *env, tli_function in, const tl_pipeline_desc *desc) {
    int32_t chunks = tli_chunks_of(desc);
    if (!tli_is_below((int64_t)desc->kind, TL_PIPELINE_COUNT))
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(PIPELINE_UNKNOWN));
    if (desc->rank_count < 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(RANK_COUNT_MUST_BE_POSITIVE));
    if (chunks < 1 || (chunks > 1) != (desc->kind == TL_PIPELINE_INTERLEAVED))
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(CHUNK_COUNT_ONLY_INTERLEAVED));
    if (desc->micro_batch_count < 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(MICRO_BATCH_COUNT_MUST_BE_POSITIVE));
    if (chunks > 1 && desc->micro_batch_count % desc->rank_count)
        return tli_fail_values(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(MICRO_BATCHES_NOT_MULTIPLE_OF_RANKS),
                               (uint64_t)desc->micro_batch_count, (uint64_t)desc->rank_count);
    if (desc->link && !desc->link->bytes_per_second)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(LINK_RATE_MUST_BE_POSITIVE));
    if (!tl_count_pipeline_events(desc) || tl_count_pipeline_events(desc) > INT32_MAX / desc->rank_count)
        return tli_fail(env, TL_ERROR_OVERFLOW, in, TLI_RULE(PIPELINE_EVENTS_MUST_FIT_31_BITS));
    return TL_OK;
}

// How many forwards come before the first backward takes turns with them.
static int32_t tli_pipeline_lead(const tl_pipeline_desc *desc, int32_t rank) {
    int64_t ranks = desc->rank_count, chunks = tli_chunks_of(desc), all = desc->micro_batch_count * chunks;
    int64_t lead = ranks - 1 - rank;
    if (desc->kind == TL_PIPELINE_GPIPE) lead = all;
    if (desc->kind == TL_PIPELINE_INTERLEAVED) lead = 2 * lead + (chunks - 1) * ranks;
    return (int32_t)(lead < all ? lead : all);
}

// The number-th forward or backward of a rank.
static tl_pipeline_event tli_pipeline_call(const tl_pipeline_desc *desc, int is_backward, int32_t number) {
    int32_t ranks = desc->rank_count, chunks = tli_chunks_of(desc), group, within;
    tl_pipeline_event event;
    tli_zero(&event, sizeof event);
    event.is_backward = is_backward;
    event.micro_batch = number;
    if (chunks == 1) return event;
    group = number / ranks / chunks;            // rank_count micro-batches go through all chunks, then the next
    within = number - group * ranks * chunks;
    event.micro_batch = group * ranks + within % ranks;
    event.chunk = is_backward ? chunks - 1 - within / ranks : within / ranks;
    return event;
}

// The index-th call of a rank.
static tl_pipeline_event tli_pipeline_event_at(const tl_pipeline_desc *desc, int32_t rank, int32_t index) {
    int32_t all = desc->micro_batch_count * tli_chunks_of(desc), lead = tli_pipeline_lead(desc, rank);
    int32_t turn = index - lead;                // forward and backward in turn: all - lead of each
    if (turn < 0) return tli_pipeline_call(desc, 0, index);
    if (turn >= 2 * (all - lead)) return tli_pipeline_call(desc, 1, index - all);
    return turn % 2 ? tli_pipeline_call(desc, 1, turn / 2) : tli_pipeline_call(desc, 0, lead + turn / 2);
}

TLI_IMPL tl_result tl_list_pipeline(tl_env *env, const tl_pipeline_desc *desc, int32_t rank,
                                    tl_pipeline_event *events) {
    int32_t i, count;
    tl_result result;
    TL_ASSERT(desc && events);
    result = tli_pipeline_check(env, TLI_IN(LIST_PIPELINE), desc);
    if (result) return result;
    if (!tli_is_below(rank, desc->rank_count))
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(LIST_PIPELINE), TLI_RULE(RANK_IS_NOT_BELOW_COUNT));
    count = tl_count_pipeline_events(desc);
    for (i = 0; i < count; i++) events[i] = tli_pipeline_event_at(desc, rank, i);
    return TL_OK;
}

static const char *const tli_pipeline_names[] = { TL_PIPELINES(TLI_NAME) };

TLI_IMPL const char *tl_name_pipeline(tl_pipeline pipeline) {
    return tli_name(tli_pipeline_names, TL_PIPELINE_COUNT, (int64_t)pipeline);
}

#ifndef TL_NO_TEXT
TLI_IMPL int tl_parse_pipeline(const char *text, tl_pipeline *pipeline) {
    int32_t value;
    int ok = tli_parse_name(tli_pipeline_names, TL_PIPELINE_COUNT, text, tli_text_length(text), &value);
    *pipeline = (tl_pipeline)value;
    return ok;
}
#endif
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
