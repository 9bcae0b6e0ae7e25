#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- the caller's variables, and users by node --
//
// What kernels read and write beside their operands is known by ranges of the caller's memory. They are
// compared with each other and with the arena once, when a run is made: where two overlapped, what is restored,
// saved or summed of one would change the other.
//
//     variables   |== conv weights ==|== their gradient ==|    |== running mean ==|
//     arena                                                                           |####...####|

#define TLI_VARIABLE_NAME(id, name, what) name,
static const char *const tli_variable_names[] = { TL_VARIABLES(TLI_VARIABLE_NAME) };
#undef TLI_VARIABLE_NAME

TLI_IMPL const char *tl_name_variable(tl_variable_kind kind) {
    return tli_is_below((int64_t)kind, TL_VARIABLE_COUNT) ? tli_variable_names[kind] : "?";
}

// Check that desc.users has an entry for each node's origin (tl_node.origin), where the node has one.
static tl_result tli_check_users(tl_run *run) {
    const tl_graph *graph = tli_caller_graph(run);
    tli_sentence s;
    int32_t id;
    for (id = 0; id < graph->node_count && run->desc.users; id++) {
        int32_t origin = graph->nodes[id].origin;
        if (origin < run->desc.user_count) continue;
        s = tli_begin_error(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN), TLI_RULE(USERS_NONE_FOR_ORIGIN),
                            (uint64_t)id, (uint64_t)origin);
        tli_put_text(&s, tl_name_node(graph, id));
        return tli_end_error(run->env, &s, TL_ERROR_INVALID_ARG);
    }
    return TL_OK;
}

#ifndef TL_NO_CHECKS
static uint64_t tli_variable_address(const tl_variable *variable) {
    return (uint64_t)(uintptr_t)variable->host;
}

static tli_rule tli_find_shard_rule(const tl_run *run, const tl_variable *variable) {
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (variable->kind != TL_VARIABLE_GRADIENT || variable->node < 0 || variable->bytes % 4)
        return TLI_RULE(VARIABLE_SHARD_OF_WHAT_HAS_NONE);
    if (!run->limits.host_visible) return TLI_RULE(VARIABLE_SHARD_NEEDS_HOST);
    return run->in_flight > 1 ? TLI_RULE(VARIABLE_SHARDS_ONE_STEP_AT_A_TIME) : TLI_NO_RULE;
#else
    (void)run;
    (void)variable;
    return TLI_RULE(VARIABLE_SHARDS_ARE_LEFT_OUT);
#endif
}

static tli_rule tli_find_variable_rule(const tl_run *run, const tl_variable *variable) {
    if (variable->node < -1 || variable->node >= tli_caller_graph(run)->node_count)
        return TLI_RULE(VARIABLE_NODE_UNKNOWN);
    if (!tli_is_below((int64_t)variable->kind, TL_VARIABLE_COUNT)) return TLI_RULE(VARIABLE_KIND_UNKNOWN);
    if (variable->bytes && !variable->host) return TLI_RULE(VARIABLE_NULL_WITH_BYTES);
    if (variable->bytes > UINTPTR_MAX - (uintptr_t)variable->host) return TLI_RULE(VARIABLE_BEYOND_MEMORY);
    return variable->shard ? tli_find_shard_rule(run, variable) : TLI_NO_RULE;
}

// Range number i, or beyond these the shard of range i - variable_count.
static tl_variable tli_find_memory(const tl_run *run, int32_t i) {
    int32_t count = run->desc.variable_count;
    tl_variable found = run->desc.variables[i < count ? i : i - count];
    if (i < count) return found;
    if (found.shard) tli_find_variable_bytes(run, i - count, &found.host, &found.bytes);
    else found.bytes = 0;
    found.shard = NULL;
    return found;
}

// Refuse ranges that overlap. They are taken in the order of their addresses: one that overlaps any before it
// overlaps the one of these that ends last. ends: the range that ends last so far, of those without a shard
// and of those with one, which may overlap each other.
static tl_result tli_compare_variables(tl_run *run, int32_t *order, uint64_t *keys) {
    int32_t variables = run->desc.variable_count, count = run->has_shards ? 2 * variables : variables;
    int32_t ends[2] = { -1, -1 }, i, k;
    for (i = 0; i < count; i++) {
        tl_variable variable = tli_find_memory(run, i);
        keys[i] = tli_variable_address(&variable);
    }
    tli_sort_numbers(order, count, keys);
    for (i = 0; i < count; i++) {
        tl_variable variable = tli_find_memory(run, order[i]);
        int32_t *end = &ends[variable.shard != NULL];
        uint64_t to = keys[order[i]] + variable.bytes;
        if (!variable.bytes) continue;
        for (k = 0; k < (variable.shard ? 1 : 2); k++)
            if (ends[k] >= 0 && keys[order[i]] - keys[ends[k]] < tli_find_memory(run, ends[k]).bytes)
                return tli_fail_values(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN),
                                       run->has_shards ? TLI_RULE(VARIABLE_SHARDS_OVERLAP)
                                                       : TLI_RULE(VARIABLES_OVERLAP),
                                       (uint64_t)(ends[k] % variables), (uint64_t)(order[i] % variables));
        if (*end < 0 || to > keys[*end] + tli_find_memory(run, *end).bytes) *end = order[i];
    }
    return TL_OK;
}

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
static int tli_do_overlap(const tl_variable *a, const tl_variable *b) {
    uint64_t from = tli_variable_address(a), to = tli_variable_address(b);
    return from < to + b->bytes && to < from + a->bytes;
}

// Ranges with shards of one node of the run's graph are written by the same backward: they must not overlap.
static tl_result tli_compare_shards(tl_run *run, int32_t *order, uint64_t *keys) {
    const tl_variable *variables = run->desc.variables;
    int32_t count = run->desc.variable_count, i, k;
    for (i = 0; i < count; i++) {
        int32_t node = variables[i].shard ? tli_find_run_node(run, variables[i].node) : -1;
        keys[i] = node < 0 ? UINT64_MAX : (uint64_t)node;
    }
    tli_sort_numbers(order, count, keys);
    for (i = 0; i < count && keys[order[i]] != UINT64_MAX; i++)
        for (k = i + 1; k < count && keys[order[i]] == keys[order[k]]; k++)
            if (tli_do_overlap(&variables[order[i]], &variables[order[k]]))
                return tli_fail_values(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN),
                                       TLI_RULE(VARIABLES_OVERLAP), (uint64_t)order[i], (uint64_t)order[k]);
    return TL_OK;
}

// A backward that is begun goes on beside others, which may use the bytes of its gradient: none has a shard.
static tl_result tli_check_begun_shards(tl_run *run) {
    const tl_variable *variables = run->desc.variables;
    int32_t i, k;
    for (i = 0; i < run->plan.step_count && run->has_shards; i++) {
        const tl_step step = tl_find_step(&run->plan, i);
        for (k = 0; k < run->desc.variable_count && step.begins && step.kind == TL_STEP_BACKWARD; k++)
            if (variables[k].shard && tli_find_run_node(run, variables[k].node) == step.node)
                return tli_fail_values(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN),
                                       TLI_RULE(BEGINS_SHARDED_GRADIENT), (uint64_t)i, (uint64_t)step.node);
    }
    return TL_OK;
}
#else
static tl_result tli_check_begun_shards(tl_run *run) { (void)run; return TL_OK; }

static tl_result tli_compare_shards(tl_run *run, int32_t *order, uint64_t *keys) {
    (void)run;
    (void)order;
    (void)keys;
    return TL_OK;
}
#endif

static tl_result tli_check_variables(tl_run *run) {
    uint64_t count = run->desc.variable_count > 0 ? (uint64_t)run->desc.variable_count : 0, i, *keys;
    int32_t *order;
    tl_result result;
    if (run->desc.variable_count < 0 || !run->desc.variables != !count)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN),
                        TLI_RULE(VARIABLE_COUNT_WITHOUT_VARIABLES));
    for (i = 0; i < count; i++) {
        const tl_variable *variable = &run->desc.variables[i];
        tli_rule rule = tli_find_variable_rule(run, variable);
        if (rule)
            return tli_fail_values(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN), rule, i, variable->bytes);
    }
    if (!count) return TL_OK;
    keys = (uint64_t *)tli_alloc_array(run->env, 2 * count, sizeof *keys);
    order = (int32_t *)tli_alloc_array(run->env, 2 * count, sizeof *order);
    result = keys && order ? tli_compare_variables(run, order, keys)
                           : tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN),
                                      TLI_RULE(STATE_OF_RUN_NO_MEMORY));
    if (!result && run->has_shards) result = tli_compare_shards(run, order, keys);
    tli_release(run->env, keys);
    tli_release(run->env, order);
    return result;
}

static tl_result tli_compare_block(tl_run *run, const char *host, uint64_t bytes) {
    uint64_t from = (uint64_t)(uintptr_t)host;
    int32_t i;
    for (i = 0; i < run->desc.variable_count; i++) {
        const tl_variable *variable = &run->desc.variables[i];
        uint64_t at = tli_variable_address(variable);
        if (!variable->bytes || at >= from + bytes || from >= at + variable->bytes) continue;
        return tli_fail_values(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN),
                               TLI_RULE(VARIABLE_OVERLAPS_ARENA),
                               (uint64_t)i, 0);
    }
    return TL_OK;
}

// Compare the variables with what a claimed range maps to. A checked backend maps copies, which overlap
// nothing.
static tl_result tli_compare_range(tl_run *run, tl_range range) {
    const tl_backend *backend = &run->backend;
    void *host = NULL;
    tl_result result;
    if ((backend->map)(backend->self, range, TL_MAP_READ, &host)) return TL_OK;
    result = tli_compare_block(run, (const char *)host, range.bytes);
    (void)(backend->unmap)(backend->self, range, TL_MAP_READ, host);
    return result;
}

// Compare the ranges with the arena of a backend whose memory is the host's: each block is claimed and mapped
// for that, before anything else is claimed.
static tl_result tli_check_variable_arena(tl_run *run) {
    const tl_backend *backend = &run->backend;
    const tli_run_arena *arena = &run->arenas[TL_TIER_DEVICE];
    uint64_t account = tli_account_of(&run->store);
    tl_account_counters counters;
    tl_result result = TL_OK;
    int32_t k;
    if (!run->desc.variable_count || !run->limits.host_visible) return TL_OK;
    for (k = 0; k < arena->block_count && !result; k++) {
        tl_range range;
        range.block = arena->handles[k];
        range.offset = 0;
        range.bytes = arena->blocks[k].bytes;
        if (!range.bytes) continue;
        if (account ? (backend->claim_on)(backend->self, account, range)
                    : (backend->claim)(backend->self, range))
            continue;
        result = tli_compare_range(run, range);
        if (account) (void)(backend->release_on)(backend->self, account, range);
        else (void)(backend->release)(backend->self, range);
    }
    tli_measure_store(&run->store, 1, &counters);   // what was claimed here belongs to no peak
    return result;
}
#else
static tl_result tli_check_variables(tl_run *run) { (void)run; return TL_OK; }
static tl_result tli_check_begun_shards(tl_run *run) { (void)run; return TL_OK; }
static tl_result tli_check_variable_arena(tl_run *run) { (void)run; return TL_OK; }
#endif
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
