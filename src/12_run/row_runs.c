#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_ONLY_TABLES) && !defined(TL_NO_PLANNERS)

// -- regions: which of both --

// Whether the call at hand is for rows.
static int tli_calls_rows(const tl_run *run) {
    return tli_is_region(run, run->at.last.node) && !run->members.graph->nodes[run->at.call.node].takes_blocks;
}

// Prepare the first call of a region's step.
static void tli_start_region(tl_run *run) {
    int32_t id = run->at.last.node, k;
    for (k = 0; k < tli_count_region(run, id) || k < 2; k++) run->rows_made[k] = 0;
    run->at.call.turns = 2;
    run->at.call.block_bytes = 0;
    if (tli_has_row_turns(run, id)) tli_choose_row_turn(run);
    else tli_choose_row_call(run);
}

// Go on to the next one.
static void tli_take_region_call(tl_run *run) {
    if (tli_has_row_turns(run, run->at.last.node)) tli_take_row_turn(run);
    else tli_choose_row_call(run);
}

static void tli_describe_region_call(tl_run *run) {
    if (tli_has_row_turns(run, run->at.last.node)) tli_describe_row_turn(run);
    else tli_describe_row_call(run);
}

// Gradients that the call at hand adds to first begin as zeroes.
static tl_result tli_clear_region_gradients(tl_run *run) {
    return tli_has_row_turns(run, run->at.last.node) ? tli_clear_turn_gradients(run) : TL_OK;
}

// -- regions of rows: preparing a run --

// The bytes that a call of a member has of a tensor that is `size` bytes, inside of the region or outside.
static uint64_t tli_find_part_bytes(const tl_run *run, const tl_row_member *m, uint64_t size, int is_inside,
                                    int is_cut, uint64_t ring_bytes) {
    int is_elements = run->members.graph->nodes[m->node].takes_blocks;
    if (!is_cut) return size;
    if (run->rows->turns) {
        if (!is_inside && tli_find_row_axis(run->members.graph, m->node)) return size;
        return size / m->rows * m->block_rows;
    }
    if (is_elements) return m->block_rows * m->row_bytes;
    return is_inside ? ring_bytes : size;
}

// The bytes of the largest operand of a member's calls.
static uint64_t tli_find_member_binding(const tl_run *run, int32_t id, const tl_row_member *m) {
    const tl_row_member *members = tli_region_members(run, id), *from;
    const tl_graph *graph = run->members.graph;
    const tl_node *node = &graph->nodes[m->node];
    uint64_t work = tli_larger_u64(node->fwork_bytes, run->inference ? 0 : tli_larger_u64(node->swork_bytes,
                                                                                         node->bwork_bytes));
    uint64_t most = tli_row_scratch(work, m->block_rows, m->rows);
    int32_t k;
    if (!run->inference) most = tli_larger_u64(most, node->saved_bytes / m->rows * m->block_rows);
    most = tli_larger_u64(most, tli_find_part_bytes(run, m, graph->outputs[node->first_output].bytes,
                                                    m->ring_rows > 0, m->row_bytes > 0,
                                                    m->ring_rows * m->row_bytes));
    for (k = 0; k < node->input_count; k++) {
        const tl_row_link *link = &run->rows->links[m->first_link + k];
        from = link->member >= 0 ? &members[link->member] : NULL;
        most = tli_larger_u64(
            most, tli_find_part_bytes(run, m, graph->outputs[graph->inputs[node->first_input + k].tensor].bytes,
                                      from && from->ring_rows, !tli_is_all_rows(&link->relation),
                                      from ? from->ring_rows * from->row_bytes : 0));
    }
    return most;
}

// Refuse a region that has a call with an operand above the backend's largest binding.
static tl_result tli_check_region_binding(tl_run *run, int32_t id) {
    uint64_t binding = run->limits.binding_bytes;
    int32_t at;
    for (at = 0; at < tli_count_region(run, id) && binding; at++) {
        const tl_row_member *m = &tli_region_members(run, id)[at];
        uint64_t bytes = tli_find_member_binding(run, id, m);
        if (bytes <= binding) continue;
        return tli_fail_size(run, TLI_RULE(BACKEND_LARGEST_BINDING_IS_BYTES), binding, bytes, id);
    }
    return TL_OK;
}

// Whether everything that a run of the desc computes is f32: formats are chosen from nothing else.
static int tli_computes_f32(const tl_run_desc *desc) {
    uint32_t can = desc->kernel_precisions ? desc->kernel_precisions : 1u << TL_PRECISION_SINGLE;
    tl_precision precision = desc->strategy ? desc->strategy->precision : TL_PRECISION_SINGLE;
    if (precision == TL_PRECISION_FULL) precision = tli_find_widest(can);
    if (precision == TL_PRECISION_MIXED) return !(can & 1u << TL_PRECISION_MIXED);
    return precision == TL_PRECISION_SINGLE;
}

// What regions of rows do not go with, of what a desc asks for.
static tli_rule tli_find_rows_rule(const tl_run_desc *desc) {
    if (desc->compiled || desc->may_split || desc->fusion || desc->formats || desc->random ||
        desc->transport || desc->version || (desc->strategy && desc->strategy->enable_fusion))
        return TLI_RULE(ROWS_GO_WITH_PLANS_ALONE);
    return tli_computes_f32(desc) ? TLI_NO_RULE : TLI_RULE(ROWS_GO_WITH_F32);
}

static tli_rule tli_check_rows_run(const tl_run *run) {
    const tl_rows_plan *rows = run->desc.rows;
    tli_rule rule = run->owns_layers ? TLI_RULE(ROWS_GO_WITH_PLANS_ALONE) : tli_find_rows_rule(&run->desc);
    if (rule) return rule;
    if (run->inference != rows->inference)
        return run->inference ? TLI_RULE(ROWS_ARE_OF_A_TRAINING) : TLI_RULE(ROWS_ARE_OF_AN_INFERENCE);
    return tli_is_rows_of(run->graph, rows, tli_larger_u64(1, run->limits.alignment_bytes))
               ? TLI_NO_RULE
               : TLI_RULE(ROWS_NOT_OF_THE_GRAPH);
}

// Go on with the graph that has regions as nodes; the kernels stay those of the caller's. Members of nodes that
// are no regions are these alone.
static tl_result tli_take_rows(tl_run *run) {
    const tl_rows_plan *rows = run->desc.rows;
    uint64_t old, made, tensors;
    int32_t id, at, count = 0, *numbers;
    tli_rule rule;
    if (!rows) return TL_OK;
    rule = tli_check_rows_run(run);
    if (rule) return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN), rule);
    old = (uint64_t)run->graph->node_count;
    made = (uint64_t)rows->graph.node_count;
    tensors = (uint64_t)run->graph->tensor_count;
    run->members.outer =
        (int32_t *)tli_alloc_array(run->env, 3 * old + 2 * made + 1 + tensors, sizeof *numbers);
    run->rows_made =
        (uint64_t *)tli_alloc_array(run->env, (uint64_t)rows->member_count + 2, sizeof *run->rows_made);
    if (!run->members.outer || !run->rows_made)
        return tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(STATE_OF_RUN_NO_MEMORY));
    run->members.kernels = run->members.outer + old;
    numbers = run->members.kernels + old;
    run->members.members = numbers;
    run->members.first_members = numbers + old;
    run->members.recompute_counts = numbers + old + made + 1;
    run->members.tensors = numbers + old + 2 * made + 1;
    for (id = 0; id < rows->graph.node_count; id++) {
        numbers[old + (uint64_t)id] = count;
        numbers[old + made + 1 + (uint64_t)id] = 0;
        for (at = rows->first_members[id]; at < rows->first_members[id + 1]; at++)
            numbers[count++] = rows->members[at].node;
        for (at = 0; rows->first_members[id] == rows->first_members[id + 1] && at < run->graph->node_count;
             at++)
            if (rows->nodes[at] == id) numbers[count++] = at;
    }
    numbers[old + made] = count;
    tli_map_row_tensors(run->graph, rows, run->members.outer, (int32_t *)run->members.tensors);
    for (id = 0; id < run->graph->node_count; id++) run->members.outer[id] = 0;
    run->members.graph = run->graph;
    run->members.nodes = rows->nodes;
    run->members.fused_count = rows->region_count;
    run->rows = rows;
    run->graph = &rows->graph;
    return TL_OK;
}
// The cost of a pass in which every forward and backward of the caller's graph runs once. planned: that of the
// run's graph, whose regions make members again.
static uint64_t tli_find_base_cost(const tl_run *run, uint64_t planned) {
    uint64_t slot_total = (uint64_t)run->slot_count, sum;
    if (!run->rows) return planned;
    sum = tli_sum_step_costs(run->members.graph, run->inference);
    return sum <= UINT64_MAX / slot_total ? sum * slot_total : UINT64_MAX;
}
#elif !defined(TL_ONLY_TABLES)
static uint64_t tli_find_base_cost(const tl_run *run, uint64_t planned) {
    (void)run;
    return planned;
}
static int tli_is_region(const tl_run *run, int32_t id) {
    (void)run;
    (void)id;
    return 0;
}
static void tli_start_region(tl_run *run) { (void)run; }
static void tli_take_region_call(tl_run *run) { (void)run; }
static void tli_describe_region_call(tl_run *run) { (void)run; }
static tl_result tli_clear_region_gradients(tl_run *run) {
    (void)run;
    return TL_OK;
}
static int tli_has_no_turns(const tl_run *run) {
    (void)run;
    return 0;
}
static int tli_calls_rows(const tl_run *run) {
    (void)run;
    return 0;
}
static tl_result tli_check_region_binding(tl_run *run, int32_t id) {
    (void)run;
    (void)id;
    return TL_OK;
}
static tl_result tli_take_rows(tl_run *run) {
    return run->desc.rows ? tli_fail(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN),
                                     TLI_RULE(ROWS_TL_NO_PLANNERS_LEFT_THEM_OUT)) : TL_OK;
}
#endif

TLI_IMPL void *tl_find_row(const tl_operand *operand, uint64_t row, uint64_t row_bytes) {
    TL_ASSERT(operand);
#ifndef TL_ONLY_TABLES
    if (operand->rows)
        return (char *)operand->host + (row + operand->shift) % operand->rows * operand->row_bytes;
#endif
    return (char *)operand->host + row * row_bytes;
}
#endif  // TL_STRATEGY_IMPLEMENTATION
