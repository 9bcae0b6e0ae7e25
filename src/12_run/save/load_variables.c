#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- loading variables from the saves of other runs --
//
// A range is known by its node, its kind and its number among those of both. Each save is walked over once, and
// where it has a range that this run registers, the place is noted; nothing is copied before all are there.
//
//     saves        rank 0 [ 1 2 3 ]    rank 1 [ 4 5 ]    rank 2 [ 6 7 8 ]      nodes of their ranges
//     this run     [ 3 4 5 ]                                                   another cut, fewer ranks

typedef struct tli_gathering {
    tl_run      *run;
    int32_t     *order;        // [variables] sorted by node and kind, equal ones as they are registered
    uint64_t    *keys;         // [variables] of node and kind
    int32_t     *seen;         // [variables] at the place in order of the first of a node and kind: how many of
                               // these the save at hand has had so far
    const uint8_t **found;     // [variables] its bytes in a save; NULL = in none so far
    const uint8_t *scaler;     // bytes of the loss scaler in the first save
    size_t       scaler_bytes;
    uint64_t     next_step;
} tli_gathering;

static uint64_t tli_variable_key(int32_t node, tl_variable_kind kind) {
    return ((uint64_t)node + 1) * TL_VARIABLE_COUNT + (uint64_t)kind;
}

static void tli_close_gathering(tli_gathering *g) {
    tli_release(g->run->env, g->order);
    tli_release(g->run->env, g->keys);
    tli_release(g->run->env, g->seen);
    tli_release(g->run->env, g->found);
}

static tl_result tli_open_gathering(tl_run *run, tli_gathering *g) {
    const tl_run_desc *desc = &run->desc;
    uint64_t count = (uint64_t)desc->variable_count + 1;
    int32_t i;
    tli_zero(g, sizeof *g);
    g->run = run;
    g->order = (int32_t *)tli_alloc_array(run->env, count, sizeof *g->order);
    g->keys = (uint64_t *)tli_alloc_array(run->env, count, sizeof *g->keys);
    g->seen = (int32_t *)tli_alloc_array(run->env, count, sizeof *g->seen);
    g->found = (const uint8_t **)tli_alloc_array(run->env, count, sizeof *g->found);
    if (!g->order || !g->keys || !g->seen || !g->found)
        return tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(LOAD_VARIABLES), TLI_RULE(STATE_OF_RUN_NO_MEMORY));
    for (i = 0; i < desc->variable_count; i++)
        g->keys[i] = tli_variable_key(desc->variables[i].node, desc->variables[i].kind);
    tli_sort_numbers(g->order, desc->variable_count, g->keys);
    return TL_OK;
}

static tl_result tli_fail_variable(const tli_gathering *g, tli_rule rule, int32_t variable) {
    const tl_run *run = g->run;
    const tl_variable *at = &run->desc.variables[variable];
    tli_sentence s = tli_begin_error(run->env, TL_ERROR_INVALID_ARG, TLI_IN(LOAD_VARIABLES), rule,
                                     at->node < 0 ? UINT64_MAX : (uint64_t)at->node, (uint64_t)variable);
    tli_put_text(&s, tl_name_variable(at->kind));
    tli_put_text(&s, "");
    if (TLI_ERROR_TEXT)
        tli_put_named(&s.text, at->node, at->node < 0 ? "several, or none"
                                                      : tl_name_node(tli_caller_graph(run), at->node));
    return tli_end_error(run->env, &s, TL_ERROR_INVALID_ARG);
}

// The place in order of the first range of a node and kind; if there is none, that of the next greater key, or
// variable_count.
static int32_t tli_find_first_variable(const tli_gathering *g, uint64_t key) {
    int32_t low = 0, high = g->run->desc.variable_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (g->keys[g->order[middle]] < key) low = middle + 1;
        else high = middle;
    }
    return low;
}

// The range of this run that the next range of this node and kind in the save stands for; -1 = this run has
// none of them. A save that has more of them than this run is refused.
static int32_t tli_match_variable(tli_gathering *g, tli_saving *s, uint64_t key) {
    int32_t first = tli_find_first_variable(g, key), at;
    if (first == g->run->desc.variable_count || g->keys[g->order[first]] != key) return -1;
    at = first + g->seen[first]++;
    if (at < g->run->desc.variable_count && g->keys[g->order[at]] == key) return g->order[at];
    tli_refuse_saving(s, TL_ERROR_INVALID_ARG, TLI_RULE(SAVED_VARIABLES_ARE_OTHERS));
    return -1;
}

// What replicas have of their own may differ between saves: what is summed, running means, random numbers.
// Weights and moments are the same in all, and what belongs to no node could be anything.
static int tli_is_own_variable(const tl_variable *variable) {
    return variable->node >= 0 && variable->kind != TL_VARIABLE_PARAMETER &&
           variable->kind != TL_VARIABLE_OPTIMIZER;
}

static void tli_take_variable(tli_gathering *g, tli_saving *s, int32_t i, uint64_t bytes, const uint8_t *from) {
    const tl_variable *variable = &g->run->desc.variables[i];
    if (variable->shard) return;   // spent between training steps; with other replicas its bytes are others
    if (variable->bytes != bytes) s->result = tli_fail_variable(g, TLI_RULE(SAVED_VARIABLE_HAS_OTHER_BYTES), i);
    else if (!g->found[i]) g->found[i] = from;
    else if (!tli_is_own_variable(variable) && TLI_MEMCMP(g->found[i], from, (size_t)bytes) != 0)
        s->result = tli_fail_variable(g, TLI_RULE(SAVES_HAVE_A_VARIABLE_TWICE), i);
}

static void tli_gather_variables(tli_gathering *g, tli_saving *s) {
    uint64_t count = tli_save_number(s, 0, 4), k;
    tli_zero(g->seen, (size_t)g->run->desc.variable_count * sizeof *g->seen);
    for (k = 0; k < count && !s->result; k++) {
        uint64_t node = tli_save_number(s, 0, 4), kind = tli_save_limited(s, 0, 4, TL_VARIABLE_COUNT - 1);
        uint64_t bytes = tli_save_number(s, 0, 8);
        const uint8_t *from = s->data + s->at;
        int32_t i = -1;
        tli_save_bytes(s, NULL, bytes);
        if (!s->result)
            i = tli_match_variable(g, s, tli_variable_key((int32_t)(uint32_t)node, (tl_variable_kind)kind));
        if (i >= 0) tli_take_variable(g, s, i, bytes, from);
    }
}

// Look through one of the saves.
static tl_result tli_gather_save(tli_gathering *g, const tl_saved *saved, int is_first) {
    tl_run *run = g->run;
    tli_saving s;
    const uint8_t *scaler;
    tl_result result = tli_open_saved(run, TLI_IN(LOAD_VARIABLES), saved->data, saved->length, &s);
    if (result) return result;
    s.variables_only = 1;
    tli_save_head(&s);
    if (!s.result) tli_gather_variables(g, &s);
    scaler = s.data + s.at;
    if (!s.result) tli_save_scaler(&s);
    if (s.result) return s.result;
    if (is_first) {
        g->next_step = s.next_step;
        g->scaler = scaler;
        g->scaler_bytes = s.at - (size_t)(scaler - s.data);
    }
    if (g->next_step != s.next_step)
        return tli_fail_values(run->env, TL_ERROR_INVALID_ARG, TLI_IN(LOAD_VARIABLES),
                               TLI_RULE(SAVES_ARE_OF_OTHER_STEPS), g->next_step, s.next_step);
    if (TLI_MEMCMP(g->scaler, scaler, g->scaler_bytes) != 0)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(LOAD_VARIABLES),
                        TLI_RULE(SAVES_HAVE_OTHER_SCALERS));
    return TL_OK;
}

// Take over what was found.
static void tli_apply_gathering(const tli_gathering *g) {
    tl_run *run = g->run;
    tli_saving s;
    int32_t i;
    for (i = 0; i < run->desc.variable_count; i++) {
        const tl_variable *variable = &run->desc.variables[i];
        if (variable->bytes && !variable->shard) tli_copy(variable->host, g->found[i], (size_t)variable->bytes);
    }
    tli_zero(&s, sizeof s);
    s.run = run;
    s.function = TLI_IN(LOAD_VARIABLES);
    s.data = g->scaler;
    s.length = g->scaler_bytes;
    s.applies = 1;
    tli_save_scaler(&s);
    run->next_step = g->next_step;
    run->ended_passes = run->resumes = 0;
#ifndef TL_NO_PLANNERS
    tli_forget_cache(run);
#endif
}

// Refuse a run whose graph owns what a training changes: variables of a later training step than its states
// would go on from both.
static tl_result tli_check_no_states(tl_run *run) {
    const tl_graph *graph = tli_caller_graph(run);
    int32_t id = 0;
    tli_sentence s;
    while (id < graph->node_count && !tli_learns(&graph->nodes[id]) &&
           graph->nodes[id].state != TL_STATE_STATISTIC) id++;
    if (id == graph->node_count) return TL_OK;
    s = tli_begin_error(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(LOAD_VARIABLES),
                        TLI_RULE(STATES_ARE_NO_VARIABLES), (uint64_t)id, 0);
    tli_put_text(&s, tl_name_node(graph, id));
    return tli_end_error(run->env, &s, TL_ERROR_UNSUPPORTED);
}

TLI_IMPL tl_result tl_load_variables(tl_run *run, const tl_saved *saves, int32_t save_count) {
    tli_gathering g;
    tl_result result;
    int32_t i;
    TL_ASSERT(run && (saves || !save_count));
    result = tli_check_idle(run, TLI_IN(LOAD_VARIABLES));
    if (!result) result = tli_check_no_states(run);
    if (result) return result;
    if (save_count <= 0)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(LOAD_VARIABLES),
                        TLI_RULE(SAVES_THERE_MUST_BE_ONE));
    result = tli_open_gathering(run, &g);
    for (i = 0; i < save_count && !result; i++) result = tli_gather_save(&g, &saves[i], i == 0);
    for (i = 0; i < run->desc.variable_count && !result; i++)
        if (!g.found[i] && !run->desc.variables[i].shard)
            result = tli_fail_variable(&g, TLI_RULE(SAVES_LACK_A_VARIABLE), i);
    if (!result) tli_apply_gathering(&g);
    tli_close_gathering(&g);
    return result;
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
