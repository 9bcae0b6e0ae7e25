#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- gradients in shards --
//
// A range with a shard holds the gradient of its node during that node's backward alone, so that several nodes
// can share its bytes. Of the sum over replicas each keeps its own shard:
//
//     backward of node n     clear the range | the kernel adds to it | sum over replicas | shard += own part
//
// Source: Rajbhandari et al., ZeRO, 2020, arXiv:1910.02054, section 5.2.

#ifndef TL_ONLY_TABLES
// The first range that has a shard; variable_count if none has.
static int32_t tli_find_first_shard(const tl_run *run) {
    int32_t i = 0;
    while (run->desc.variables && i < run->desc.variable_count && !run->desc.variables[i].shard) i++;
    return i;
}
#endif

#if !defined(TL_ONLY_TABLES) && !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
static tl_result tli_open_shards(tl_run *run) {
    run->has_shards = tli_find_first_shard(run) < run->desc.variable_count;
    if (!run->has_shards || tli_count_replicas(run) == 1) return TL_OK;
    run->in_pass = tli_alloc_reduction(run, TLI_IN(INIT_RUN));
    TLI_INVARIANT(!run->has_shards || tli_count_replicas(run) > 1);
    return run->in_pass ? TL_OK : TL_ERROR_NO_MEMORY;
}

static void tli_clear_shards(tl_run *run) {
    int32_t i;
    for (i = 0; i < run->desc.variable_count && run->has_shards; i++) {
        const tl_variable *variable = &run->desc.variables[i];
        TLI_INVARIANT(!variable->shard || variable->host);
        if (tli_is_shard_at_hand(run, variable)) tli_zero(variable->host, (size_t)variable->bytes);
    }
}

// Add this replica's part of the sums to the shards.
static void tli_add_shards(tl_run *run) {
    int32_t i;
    for (i = 0; i < run->desc.variable_count; i++) {
        const tl_variable *variable = &run->desc.variables[i];
        uint64_t offset, bytes, k;
        const float *from;
        if (!tli_is_shard_at_hand(run, variable)) continue;
        tli_find_shard(run, i, &offset, &bytes);
        TLI_INVARIANT(offset + bytes <= variable->bytes && offset % 4 == 0);
        from = (const float *)variable->host + offset / 4;
        for (k = 0; k < bytes / 4; k++) variable->shard[k] += from[k];
    }
}

// Sum what the backward at hand has added, and keep this replica's part. TL_NOT_READY: others are not so far.
static tl_result tli_sum_shards(tl_run *run) {
    tl_result result = TL_OK;
    int32_t i, count = 0;
    if (!run->has_shards || run->at.last.kind != TL_STEP_BACKWARD) return TL_OK;
    for (i = 0; i < run->desc.variable_count; i++) count += tli_is_shard_at_hand(run, &run->desc.variables[i]);
    if (!count) return TL_OK;
    if (tli_count_replicas(run) > 1) result = tli_reduce_node(run, run->at.last.node, run->at.event.index);
    if (!result) tli_add_shards(run);
    TLI_INVARIANT(result || !run->reduction);
    return result;
}

// The bytes of a range between steps: of one with a shard, the shard.
static void tli_find_variable_bytes(const tl_run *run, int32_t i, void **host, uint64_t *bytes) {
    const tl_variable *variable = &run->desc.variables[i];
    uint64_t offset;
    *host = variable->shard ? variable->shard : variable->host;
    *bytes = variable->bytes;
    if (variable->shard) tli_find_shard(run, i, &offset, bytes);
}
#else
#ifndef TL_ONLY_TABLES
static tl_result tli_open_shards(tl_run *run) {
    run->has_shards = tli_find_first_shard(run) < run->desc.variable_count;
    return TL_OK;
}
#endif
static void tli_clear_shards(tl_run *run) { (void)run; }
static tl_result tli_sum_shards(tl_run *run) { (void)run; return TL_OK; }

#ifndef TL_ONLY_TABLES
static void tli_find_variable_bytes(const tl_run *run, int32_t i, void **host, uint64_t *bytes) {
    *host = run->desc.variables[i].host;
    *bytes = run->desc.variables[i].bytes;
}
#endif
#endif

#ifndef TL_ONLY_TABLES
// Whether a sum over ranks is under way: until it ends, ranges hold sums of some of the replicas.
static int tli_is_reducing(const tl_run *run) {
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    return run->reduction != NULL;
#else
    (void)run;
    return 0;
#endif
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
