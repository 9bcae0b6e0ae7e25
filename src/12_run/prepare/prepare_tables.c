#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifdef TL_ONLY_TABLES

// -- runs of TL_ONLY_TABLES: preparing one --
//
// The plan and the graph are taken as they are. Checked is what the caller chooses beside them: that nothing is
// asked for that was left out, that there are kernels, and that memory is there and aligned.

static tl_result tli_fail_run(tl_run *run, tl_result code, tli_rule rule) {
    return tli_fail(run->env, code, TLI_IN(INIT_RUN), rule);
}

static int tli_asks_for_more(const tl_run_desc *desc) {
    uint64_t ratio;     // its bits: no machine needs arithmetic of f64 for this
    tli_copy(&ratio, &desc->budget_ratio, sizeof ratio);
    return desc->strategy || desc->checkpoints || desc->device || desc->host_budget_bytes ||
           desc->policy.kind || desc->eviction || desc->evict || desc->codec || desc->observe ||
           desc->profiling || desc->formats || desc->quantizations || desc->loss_scaler || desc->version ||
           desc->fusion || desc->compiled || desc->precision || desc->may_split || desc->variables ||
           desc->in_flight > 1 || ratio || desc->costs || desc->figures || desc->rehearsal ||
           desc->transport || desc->may_train_in_pieces || desc->may_cut_rows || desc->first_micro_batch ||
           desc->progress ||
           desc->pool || desc->counts_tables ||
           (desc->kernel_precisions && !(desc->kernel_precisions & 1u << TL_PRECISION_SINGLE));
}

static tl_result tli_check_table(tl_run *run) {
    const tl_plan *plan = run->plan;
    int is_table = plan && plan->offset_count && !plan->host_offset_count && !plan->entry_count &&
                   plan->in_flight <= 1;
    int32_t k;
    for (k = 0; is_table && k < plan->step_count; k++)
        is_table = tl_find_step(plan, k).kind <= TL_STEP_DROP_SAVED;
    return is_table ? TL_OK : tli_fail_run(run, TL_ERROR_UNSUPPORTED, TLI_RULE(TABLES_TAKE_A_PLACED_PLAN));
}

#ifdef TL_SMALL_SIZES
// Every place ends before its block does, so no offset exceeds 32 bits where no end of a block does.
static tl_result tli_check_small_sizes(tl_run *run) {
    const tl_graph *graph = run->graph;
    const tl_plan *plan = run->plan;
    uint64_t most = plan->arena_bytes;
    int32_t i;
    for (i = 0; i < plan->block_count; i++)
        if (plan->blocks[i].offset + plan->blocks[i].bytes > most)
            most = plan->blocks[i].offset + plan->blocks[i].bytes;
    for (i = 0; i < graph->tensor_count; i++) most = tli_larger_u64(most, graph->outputs[i].bytes);
    for (i = 0; i < graph->node_count; i++) {
        const tl_node *node = &graph->nodes[i];
        most = tli_larger_u64(tli_larger_u64(most, node->saved_bytes), node->fwork_bytes);
        most = tli_larger_u64(tli_larger_u64(most, node->swork_bytes), node->bwork_bytes);
    }
    if (most < UINT32_MAX) return TL_OK;
    return tli_fail_values(run->env, TL_ERROR_OVERFLOW, TLI_IN(INIT_RUN), TLI_RULE(SIZES_DO_NOT_FIT_32_BITS),
                           most, 0);
}
#else
static tl_result tli_check_small_sizes(tl_run *run) { (void)run; return TL_OK; }
#endif

static tl_result tli_check_budget(tl_run *run, const tl_run_desc *desc) {
    uint64_t bytes;
    tli_sentence s;
    if (!desc->budget_bytes) return TL_OK;
    if (tli_add_u64(run->plan->arena_bytes, desc->base_bytes, &bytes) && bytes <= desc->budget_bytes)
        return TL_OK;
    s = tli_begin_error(run->env, TL_ERROR_INFEASIBLE, TLI_IN(INIT_RUN), TLI_RULE(PLAN_TAKES_BYTES),
                        desc->budget_bytes, bytes);
    tli_put_limit(run->env, &s, TL_LIMIT_BUDGET);
    tli_put_text(&s, "");
    return tli_end_error(run->env, &s, TL_ERROR_INFEASIBLE);
}

static tl_result tli_check_run_desc(tl_run *run, const tl_run_desc *desc) {
    tl_result result;
    if (tli_asks_for_more(desc)) return tli_fail_run(run, TL_ERROR_UNSUPPORTED, TLI_RULE(TABLES_LEFT_IT_OUT));
    if (desc->kernel_count < 0 || desc->kernel_count > INT16_MAX || (desc->kernel_count && !desc->kernels) ||
        desc->repeat_count < 0)
        return tli_fail_run(run, TL_ERROR_INVALID_ARG, TLI_RULE(KERNEL_COUNT_REPEAT_COUNT_MUST_BE_NOT));
    result = tli_check_table(run);
    if (!result) result = tli_check_small_sizes(run);
    return result ? result : tli_check_budget(run, desc);
}

// -- runs of TL_ONLY_TABLES: kernels --

static tl_result tli_fail_kernels(tl_run *run, int32_t id) {
    tli_sentence s = tli_begin_error(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN), run->kernel_of[id] < 0
        ? TLI_RULE(KERNELS_NONE_FOR_OP_OF_NODE)
        : TLI_RULE(KERNELS_FORWARD_OR_BACKWARD_MISSING), (uint64_t)id, 0);
    tli_put_text(&s, tl_name_op(run->graph, id));
    if (run->kernel_of[id] >= 0) tli_put_text(&s, tl_name_node(run->graph, id));
    return tli_end_error(run->env, &s, TL_ERROR_INVALID_ARG);
}

static tl_result tli_fail_users(tl_run *run, int32_t id) {
    tli_sentence s = tli_begin_error(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN),
                                     TLI_RULE(USERS_NONE_FOR_ORIGIN), (uint64_t)id,
                                     (uint64_t)run->graph->nodes[id].origin);
    tli_put_text(&s, tl_name_node(run->graph, id));
    return tli_end_error(run->env, &s, TL_ERROR_INVALID_ARG);
}

static tl_result tli_find_kernels(tl_run *run, const tl_run_desc *desc) {
    int32_t id, k;
    for (id = 0; id < run->graph->node_count; id++) {
        const tl_node *node = &run->graph->nodes[id];
        const char *op = tl_name_op(run->graph, id);
        int trains = !run->inference && (node->has_grad || tli_is_in_pieces(node));
        if (node->is_input && !trains) continue;    // of a state there is an update
        if (desc->users && node->origin >= desc->user_count) return tli_fail_users(run, id);
        run->kernel_of[id] = -1;
        for (k = 0; k < desc->kernel_count && run->kernel_of[id] < 0; k++)
            if (tli_same_text(run->kernels[k].op, op)) run->kernel_of[id] = (int16_t)k;
        k = run->kernel_of[id];
        if (k < 0 || (!node->is_input && !run->kernels[k].forward) || (trains && !run->kernels[k].backward))
            return tli_fail_kernels(run, id);
    }
    return TL_OK;
}

// -- runs of TL_ONLY_TABLES: memory --

// The offset of an array behind those before it. Arrays come in the order of their alignments.
static size_t tli_add_part(uint64_t *at, uint64_t count, size_t item_bytes) {
    size_t from = (size_t)*at;
    *at += count * item_bytes;
    return from;
}

// Run and arrays in one piece of memory.
static tl_run *tli_alloc_run(tl_env *env, const tl_graph *graph, const tl_plan *plan) {
    uint64_t slot_total = (uint64_t)tli_count_slots(plan), nodes = (uint64_t)graph->node_count, at = 0;
    uint64_t tensors = (uint64_t)graph->tensor_count, inputs = 0, outputs = 0, saved = 0;
    size_t parts[10];
    tl_run *run;
    char *memory;
    int32_t i;
    for (i = 0; i < graph->node_count; i++) {
        inputs = tli_larger_u64(inputs, (uint64_t)graph->nodes[i].input_count);
        outputs = tli_larger_u64(outputs, (uint64_t)graph->nodes[i].output_count);
        if (graph->nodes[i].saved_bytes) saved = slot_total * nodes;
    }
    (void)tli_add_part(&at, 1, sizeof *run);
    parts[0] = tli_add_part(&at, plan->block_count ? (uint64_t)plan->block_count : 1, sizeof *run->blocks);
    parts[1] = tli_add_part(&at, 2 * inputs + 2 * outputs + 2, sizeof *run->at.call.operands);
    parts[2] = tli_add_part(&at, slot_total * tensors, sizeof *run->tensors);
    parts[3] = tli_add_part(&at, slot_total * tensors, sizeof *run->gradients);
    parts[4] = tli_add_part(&at, saved, sizeof *run->saved);
    parts[5] = tli_add_part(&at, outputs, sizeof *run->at.call.twice);
    parts[6] = tli_add_part(&at, nodes, sizeof *run->kernel_of);
    parts[7] = tli_add_part(&at, slot_total * nodes, 1);
    parts[8] = tli_add_part(&at, tensors, 1);
    parts[9] = tli_add_part(&at, outputs, 1);
    if (at > SIZE_MAX / 2) return NULL;
    memory = (char *)tli_alloc_array(env, at, 1);
    if (!memory) return NULL;
    run = (tl_run *)(void *)memory;
    run->blocks = (tli_table_block *)(void *)(memory + parts[0]);
    run->at.call.operands = (tl_operand *)(void *)(memory + parts[1]);
    run->tensors = (tli_buffer *)(void *)(memory + parts[2]);
    run->gradients = (tli_buffer *)(void *)(memory + parts[3]);
    if (saved) run->saved = (tli_buffer *)(void *)(memory + parts[4]);
    run->at.call.twice = (tli_held *)(void *)(memory + parts[5]);
    run->kernel_of = (int16_t *)(void *)(memory + parts[6]);
    run->ran = (uint8_t *)memory + parts[7];
    run->is_read = (uint8_t *)memory + parts[8];
    run->at.call.made = (uint8_t *)memory + parts[9];
    run->slot_count = (int32_t)slot_total;
    for (i = 0; i < graph->input_count; i++) run->is_read[graph->inputs[i].tensor] = 1;
    return run;
}

static void tli_free_blocks(tl_run *run) {
    int32_t k, count = run->plan->block_count ? run->plan->block_count : 1;
    for (k = 0; k < count; k++)
        if (run->blocks[k].handle) (void)(run->backend->free_block)(run->backend->self, run->blocks[k].handle);
}

static tl_result tli_take_block(tl_run *run, int32_t bank, uint64_t bytes, tli_table_block *block) {
    const tl_backend *backend = run->backend;
    uint64_t alignment = run->plan->alignment_bytes ? run->plan->alignment_bytes : 1, handle;
    void *host = NULL;
    tl_range whole;
    tl_result result = (backend->add_arena)(backend->self, TL_TIER_DEVICE, bank, bytes, &handle);
    if (result) {
        tli_sentence s = tli_begin_error(run->env, result, TLI_IN(INIT_RUN),
                                         TLI_RULE(BACKEND_COULD_NOT_TAKE_ARENA), bytes, 0);
        tli_put_text(&s, "");
        return tli_end_error(run->env, &s, result);
    }
    whole.block = block->handle = (tl_size)handle;
    whole.offset = 0;
    whole.bytes = (tl_size)bytes;
    result = (backend->map)(backend->self, whole, TL_MAP_CHANGE, &host);
    block->host = (char *)host;
    if (!result && (uintptr_t)host & (alignment - 1))
        result = tli_fail_values(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN),
                                 TLI_RULE(TABLES_MEMORY_IS_NOT_ALIGNED), alignment, 0);
    return result;
}

static tl_result tli_take_blocks(tl_run *run) {
    const tl_plan *plan = run->plan;
    tl_result result = TL_OK;
    int32_t k;
    if (!plan->block_count) return tli_take_block(run, 0, plan->arena_bytes, &run->blocks[0]);
    for (k = 0; k < plan->block_count && !result; k++)
        result = tli_take_block(run, plan->blocks[k].bank, plan->blocks[k].bytes, &run->blocks[k]);
    return result;
}

// The graph's inputs have the first places, and zeroes in them.
static tl_result tli_claim_inputs(tl_run *run) {
    const tl_graph *graph = run->graph;
    tl_result result = TL_OK;
    tl_range room;
    int32_t slot, i;
    for (slot = 0; slot < run->slot_count; slot++) {
        tli_run_choose_slot(run, slot);
        for (i = 0; i < graph->tensor_count && !result; i++) {
            if (!graph->nodes[graph->outputs[i].node].is_input) continue;
            result = tli_buffer_claim(run, graph->outputs[i].bytes, &run->tensors[i]);
            if (!result) result = tli_clear_range(run, tli_tensor_range(run, i, &room));
        }
    }
    tli_run_choose_slot(run, 0);
    run->first_count = run->next_offset;
    return result ? tli_fail_run(run, result, TLI_RULE(BACKEND_COULD_NOT_TAKE_GRAPHS_INPUTS)) : TL_OK;
}

static tl_result tli_prepare_run(tl_run *run, const tl_run_desc *desc) {
    tl_result result = tli_find_kernels(run, desc);
    run->repeat_count = desc->repeat_count ? desc->repeat_count : run->plan->repeat_count;
    if (!run->repeat_count) run->repeat_count = 1;
    if (!result && run->repeat_count > INT32_MAX / run->slot_count)
        result = tli_fail_run(run, TL_ERROR_OVERFLOW, TLI_RULE(MICRO_BATCHES_DO_NOT_FIT_31_BITS));
    if (!result) result = tli_take_blocks(run);
    return result ? result : tli_claim_inputs(run);
}

static void tli_set_run(tl_run *run, tl_env *env, const tl_run_desc *desc) {
    run->env = env;
    run->backend = desc->backend;
    run->graph = desc->graph;
    run->plan = desc->plan;
    run->kernels = desc->kernels;
    run->inference = (uint8_t)(desc->plan && desc->plan->inference);
    run->next_step = desc->first_step;
    run->desc.load = desc->load;
    run->desc.load_user = desc->load_user;
    run->desc.random = desc->random;
    run->desc.random_user = desc->random_user;
    run->desc.users = desc->users;
    run->desc.loss_gradient_word = desc->loss_gradient_word;
    run->desc.seed = desc->seed;
}

TLI_IMPL tl_result tl_init_run(tl_env *env, const tl_run_desc *desc, tl_run **out) {
    tl_run checked, *run;   // without arrays, until it is known what it needs
    tl_result result;
    TL_ASSERT(desc && desc->graph && desc->backend && out);
    *out = NULL;
    tli_zero(&checked, sizeof checked);
    tli_set_run(&checked, env, desc);
    result = tli_check_run_desc(&checked, desc);
    if (result) return result;
    run = tli_alloc_run(env, desc->graph, desc->plan);
    if (!run) return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(RUN_NO_MEMORY));
    tli_set_run(run, env, desc);
    result = tli_prepare_run(run, desc);
    if (result) tl_free_run(run);
    else *out = run;
    return result;
}

TLI_IMPL void tl_free_run(tl_run *run) {
    if (!run) return;
    tli_free_blocks(run);
    tli_release(run->env, run);
}

#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
