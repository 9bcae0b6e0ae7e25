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

// How many forwards come first, before a forward and a backward take turns (the forward first).
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

// -- schedules: simulation --
//
//     rank 0  [F0][F1]        [B0]        ready[stage, micro-batch] is when what a call reads has arrived;
//                \  channel  /            not known yet for calls that wait. Ranks take turns to make all
//     rank 1      [F0][B0][F1]            calls that they can, until none is left. No order waits for
//                                         itself, so some rank always can.

typedef struct tli_pipeline {
    const tl_pipeline_desc *desc;
    tl_pipeline_report *report;
    int32_t   stage_count;
    uint64_t *ready[2];         // [stage_count * micro_batch_count] forwards, backwards; UINT64_MAX = waits
    uint64_t *transfer;         // [stage_count] of the output of a stage, if it goes to another rank
    uint64_t *free_at[2];       // [rank_count] when the channel to the next rank, or the one before, is free
    uint64_t *now;              // [rank_count] when its last call ended
    uint64_t *bytes;            // [rank_count] in flight
    int32_t  *next, *flying;    // [rank_count] index of the next call; micro-batches in flight
} tli_pipeline;

static size_t tli_pipeline_place(const tli_pipeline *p, int32_t stage, int32_t micro_batch) {
    return (size_t)stage * (size_t)p->desc->micro_batch_count + (size_t)micro_batch;
}

// Hand on what a call made: the output to the stage after, the gradient to the one before.
static void tli_pipeline_send(tli_pipeline *p, int32_t stage, const tl_pipeline_event *event) {
    int32_t ranks = p->desc->rank_count, rank = stage % ranks, to = event->is_backward ? stage - 1 : stage + 1;
    int32_t boundary = event->is_backward ? to : stage;
    uint64_t *channel = &p->free_at[event->is_backward][rank], at = event->end_ns;
    if (!event->is_backward && to == p->stage_count)        // the gradient of the last output is there at once
        p->ready[1][tli_pipeline_place(p, stage, event->micro_batch)] = at;
    if (to < 0 || to == p->stage_count) return;
    if (ranks > 1) {
        *channel = tli_larger_u64(*channel, at) + p->transfer[boundary];
        at = *channel;
        if (p->desc->output_bytes) p->report->ranks[rank].sent_bytes += p->desc->output_bytes[boundary];
    }
    p->ready[event->is_backward][tli_pipeline_place(p, to, event->micro_batch)] = at;
}

// Make the next call of a rank. 0 = it has to wait, or has none left.
static int tli_pipeline_call_next(tli_pipeline *p, int32_t rank) {
    const tl_pipeline_desc *desc = p->desc;
    tl_pipeline_rank *r = &p->report->ranks[rank];
    const uint64_t *times;
    tl_pipeline_event event;
    uint64_t ready, bytes;
    int32_t stage;
    if (p->next[rank] == p->report->event_count) return 0;
    event = tli_pipeline_event_at(desc, rank, p->next[rank]);
    stage = event.chunk * desc->rank_count + rank;
    ready = p->ready[event.is_backward][tli_pipeline_place(p, stage, event.micro_batch)];
    if (ready == UINT64_MAX) return 0;
    times = event.is_backward ? desc->backward_ns : desc->forward_ns;
    bytes = desc->activation_bytes ? desc->activation_bytes[stage] : 0;
    event.start_ns = tli_larger_u64(ready, p->now[rank]);
    event.end_ns = p->now[rank] = r->end_ns = event.start_ns + (times ? times[stage] : 0);
    r->busy_ns += event.end_ns - event.start_ns;
    p->flying[rank] += event.is_backward ? -1 : 1;
    if (event.is_backward) p->bytes[rank] -= bytes;
    else p->bytes[rank] += bytes;
    if (p->flying[rank] > r->in_flight_count) r->in_flight_count = p->flying[rank];
    r->peak_bytes = tli_larger_u64(r->peak_bytes, p->bytes[rank]);
    if (p->report->events)
        p->report->events[(size_t)rank * (size_t)p->report->event_count + (size_t)p->next[rank]] = event;
    p->next[rank]++;
    tli_pipeline_send(p, stage, &event);
    return 1;
}

static void tli_pipeline_run(tli_pipeline *p) {
    tl_pipeline_report *report = p->report;
    int32_t ranks = p->desc->rank_count, rank;
    int moves = 1;
    while (moves)
        for (moves = 0, rank = 0; rank < ranks; rank++)
            while (tli_pipeline_call_next(p, rank)) moves = 1;
    for (rank = 0; rank < ranks; rank++)
        report->total_ns = tli_larger_u64(report->total_ns, report->ranks[rank].end_ns);
    for (rank = 0; rank < ranks; rank++) report->bubble_ns += report->total_ns - report->ranks[rank].busy_ns;
    if (report->total_ns)
        report->bubble_ratio = (double)report->bubble_ns / ((double)report->total_ns * (double)ranks);
}

// Find the times of transfers. 0 = the times or the bytes of all calls together do not fit 62 bits.
static int tli_pipeline_sum(tli_pipeline *p) {
    const tl_pipeline_desc *desc = p->desc;
    uint64_t m = (uint64_t)desc->micro_batch_count, most = (UINT64_C(1) << 62) / m, time = 0, bytes = 0;
    uint64_t ranks = (uint64_t)desc->rank_count;
    int32_t i, q;
    for (i = 0; i < p->stage_count; i++) {
        uint64_t out = desc->output_bytes && i + 1 < p->stage_count ? desc->output_bytes[i] : 0, part[6];
        if (!tli_find_link_time(desc->link, out, 1, &p->transfer[i])) return 0;
        part[0] = desc->forward_ns ? desc->forward_ns[i] : 0;
        part[1] = desc->backward_ns ? desc->backward_ns[i] : 0;
        part[2] = part[3] = p->transfer[i];
        part[4] = out;
        part[5] = desc->activation_bytes ? desc->activation_bytes[i] : 0;
        for (q = 0; q < 6; q++) {
            uint64_t *sum = q < 4 ? &time : &bytes;
            if (!tli_add_u64(*sum, part[q], sum) || *sum > most) return 0;
        }
    }
    return time <= most / ranks;    // bubbles of all ranks are summed, too
}

// Get all arrays. 0 = no memory.
static int tli_pipeline_alloc(tli_pipeline *p, tl_env *env) {
    uint64_t ranks = (uint64_t)p->desc->rank_count, stages = (uint64_t)p->stage_count, i;
    uint64_t places = stages * (uint64_t)p->desc->micro_batch_count;
    tl_pipeline_report *report = p->report;
    report->event_count = tl_count_pipeline_events(p->desc);
    p->ready[0] = (uint64_t *)tli_alloc_array(env, 2 * places, sizeof(uint64_t));
    p->transfer = (uint64_t *)tli_alloc_array(env, stages, sizeof(uint64_t));
    p->free_at[0] = (uint64_t *)tli_alloc_array(env, 4 * ranks, sizeof(uint64_t));
    p->next = (int32_t *)tli_alloc_array(env, 2 * ranks, sizeof(int32_t));
    report->ranks = (tl_pipeline_rank *)tli_alloc_array(env, ranks, sizeof *report->ranks);
    if (p->desc->keep_events)
        report->events = (tl_pipeline_event *)tli_alloc_array(env, ranks * (uint64_t)report->event_count,
                                                              sizeof *report->events);
    if (!p->ready[0] || !p->transfer || !p->free_at[0] || !p->next || !report->ranks) return 0;
    if (p->desc->keep_events && !report->events) return 0;
    p->ready[1] = p->ready[0] + places;
    p->free_at[1] = p->free_at[0] + ranks;
    p->now = p->free_at[1] + ranks;
    p->bytes = p->now + ranks;
    p->flying = p->next + ranks;
    for (i = 0; i < 2 * places; i++)                        // the first stage waits for nothing
        p->ready[0][i] = i < (uint64_t)p->desc->micro_batch_count ? 0 : UINT64_MAX;
    return 1;
}

TLI_IMPL tl_result tl_simulate_pipeline(tl_env *env, const tl_pipeline_desc *desc, tl_pipeline_report *report) {
    tli_function in = TLI_IN(SIMULATE_PIPELINE);
    tli_pipeline p;
    tl_result result;
    TL_ASSERT(desc && report);
    tli_zero(report, sizeof *report);
    result = tli_pipeline_check(env, in, desc);
    if (result) return result;
    tli_zero(&p, sizeof p);
    p.desc = desc;
    p.report = report;
    p.stage_count = desc->rank_count * tli_chunks_of(desc);
    if (!tli_pipeline_alloc(&p, env))
        result = tli_fail(env, TL_ERROR_NO_MEMORY, in, TLI_RULE(NO_MEMORY_FOR_PIPELINE));
    else if (!tli_pipeline_sum(&p))
        result = tli_fail(env, TL_ERROR_OVERFLOW, in, TLI_RULE(PIPELINE_SUMS_MUST_FIT_62_BITS));
    if (!result) tli_pipeline_run(&p);
    else tl_free_pipeline_report(env, report);
    tli_release(env, p.ready[0]);
    tli_release(env, p.transfer);
    tli_release(env, p.free_at[0]);
    tli_release(env, p.next);
    return result;
}

TLI_IMPL void tl_free_pipeline_report(tl_env *env, tl_pipeline_report *report) {
    TL_ASSERT(report);
    tli_release(env, report->ranks);
    tli_release(env, report->events);
    tli_zero(report, sizeof *report);
}

static const char *const tli_pipeline_names[] = { TL_PIPELINES(TLI_NAME) };

TLI_IMPL const char *tl_name_pipeline(tl_pipeline pipeline) {
    return tli_name(tli_pipeline_names, TL_PIPELINE_COUNT, (int64_t)pipeline);
}

#ifndef TL_NO_TEXT
TLI_IMPL int tl_parse_pipeline(const char *text, tl_pipeline *pipeline) {
    int32_t value;
    int known = tli_parse_word(tli_pipeline_names, TL_PIPELINE_COUNT, text, &value);
    TL_ASSERT(pipeline);
    *pipeline = (tl_pipeline)value;
    return known;
}
#endif
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
