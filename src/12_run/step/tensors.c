#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// -- tensors of the caller --
//
// Between passes the caller writes inputs and what the plan's entry names, and reads inputs and results.

TLI_IMPL tl_result tl_choose_slot(tl_run *run, int32_t slot) {
    TL_ASSERT(run);
    if (slot < 0 || slot >= run->slot_count)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(CHOOSE_SLOT),
                        TLI_RULE(SLOT_NOT_BELOW_SLOT_COUNT));
    run->caller_slot = slot;
    return TL_OK;
}

// Why a tensor is not there.
static tli_rule tli_find_absence(const tl_run *run, int32_t tensor) {
#ifndef TL_ONLY_TABLES
    if (tli_dies(&run->graph->nodes[run->graph->outputs[tensor].node])) return TLI_RULE(TENSOR_INPUT_DIED);
    if (run->is_result[tensor]) return TLI_RULE(TENSOR_WAS_RELEASED);
#endif
    (void)run;
    (void)tensor;
    return TLI_RULE(TENSOR_NEITHER_INPUT_NOR_RESULT);
}

// Refuse bytes that are not those of a tensor, and any access in a pass.
static tl_result tli_check_access(tl_run *run, tli_function function, tl_tensor tensor, uint64_t bytes) {
    int32_t index = run->graph->nodes[tensor.node].first_output + tensor.output;
    if (bytes != tli_known_bytes(run, run->caller_slot, index))
        return tli_fail_values(run->env, TL_ERROR_INVALID_ARG, function, TLI_RULE(BYTES_NOT_THOSE_OF_TENSOR),
                               bytes, tli_known_bytes(run, run->caller_slot, index));
    if (run->active)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, function, TLI_RULE(RUN_PASS_IS_UNDER_WAY));
    return TL_OK;
}

static tl_result tli_access_tensor(tl_run *run, tli_function function, tl_tensor tensor,
                                   uint64_t bytes, tli_buffer **buffer) {
    int32_t index = run->graph->nodes[tensor.node].first_output + tensor.output;
    tl_result result = tli_check_access(run, function, tensor, bytes);
    *buffer = tli_caller_buffer(run, run->caller_slot, index);
    if (result || tli_is_readable(*buffer)) return result;
    return tli_fail(run->env, TL_ERROR_NOT_FOUND, function, tli_find_absence(run, index));
}

#ifndef TL_ONLY_TABLES
static tl_result tli_move_tensor(tl_run *run, tli_function function, tl_range range, uint64_t bytes,
                                 tl_map_mode mode, void *to, const void *from) {
    tl_access access;
    void *host = NULL;
    tl_result result;
    if (!bytes) return TL_OK;
    range.bytes = bytes;    // of a dynamic tensor there may be more
    access.range = range;
    access.writes = mode == TL_MAP_WRITE;
    // On a backend that works in order, map itself waits for the work on the range.
    result = run->limits.in_order ? TL_OK : (run->backend.order)(run->backend.self, &access, 1);
    if (!result) result = (run->backend.map)(run->backend.self, range, mode, &host);
    if (!result) {
        if (mode == TL_MAP_WRITE) tli_copy(host, from, (size_t)range.bytes);
        else tli_copy(to, host, (size_t)range.bytes);
        result = (run->backend.unmap)(run->backend.self, range, mode, host);
    }
    if (result == TL_NOT_READY)
        return tli_fail(run->env, result, function, TLI_RULE(BACKEND_WORK_IS_UNDER_WAY_THAT_IT));
    return result ? tli_fail(run->env, result, function, TLI_RULE(TENSOR_BACKEND_COULD_NOT_MAP_IT))
                  : TL_OK;
}

// Whether the plan's entry names a tensor, in the slot of the caller, or it is of an input that has died.
static int tli_enters(const tl_run *run, tl_tensor tensor) {
    const tl_node *maker = &run->graph->nodes[tensor.node];
    int32_t i;
    if (tli_dies(maker))
        return !tli_caller_buffer(run, run->caller_slot, maker->first_output + tensor.output)->is_entry;
    if (tli_keeps_results(run)) return 0;   // what is kept is not the caller's to write
    for (i = 0; i < run->plan.entry_count; i++) {
        const tl_entry *entry = &run->plan.entry[i];
        if (entry->node == tensor.node && entry->output == tensor.output && entry->slot == run->caller_slot)
            return 1;
    }
    return 0;
}

// Make room for the plan's entry where the last pass has freed a part of it: its results go.
static tl_result tli_prepare_entry(tl_run *run) {
    tli_release_buffers(run, 0);
    if (!tli_claim_entry(run)) return TL_OK;
    return tli_fail(run->env, TL_ERROR_BACKEND, TLI_IN(WRITE_TENSOR), TLI_RULE(BACKEND_COULD_NOT_TAKE_ENTRY));
}
#endif

#ifndef TL_NO_PLANNERS
// What a load hook writes while it is rehearsed. The rehearsal reads this when the hook has returned.
typedef struct tli_write_watch {
    uint8_t  *is_written;     // [tensor_count] of the caller's graph
    int32_t   count;          // writes that were carried out
    int32_t   is_refused;     // 1 = a write was refused, and that tensor was not written since
    tl_tensor refused;
    uint64_t  refused_bytes;
} tli_write_watch;

// tensor: as the caller named it.
static void tli_watch_write(const tl_run *run, tl_tensor tensor, uint64_t bytes, tl_result result) {
    const tl_graph *graph = tli_caller_graph(run);
    tli_write_watch *watch = run->watch;
    int is_same = tensor.node == watch->refused.node && tensor.output == watch->refused.output;
    if (!result) {
        watch->is_written[graph->nodes[tensor.node].first_output + tensor.output] = 1;
        watch->count++;
        if (is_same) watch->is_refused = 0;
    } else if ((result == TL_ERROR_INVALID_ARG || result == TL_ERROR_NOT_FOUND) && !watch->is_refused) {
        watch->is_refused = 1;
        watch->refused = tensor;
        watch->refused_bytes = bytes;
    }
}

// Whether the caller has ever written an input, in the slot that he has chosen.
static int tli_was_written(tl_run *run, tl_tensor tensor) {
    tli_quiet quiet = tli_begin_quiet(run->env);
    tl_result result = tli_find_caller_tensor(run, TLI_IN(WRITE_TENSOR), &tensor);
    int32_t index;
    tli_end_quiet(&quiet, TL_OK);
    if (result) return 0;
    index = run->graph->nodes[tensor.node].first_output + tensor.output;
    return tli_caller_buffer(run, run->caller_slot, index)->is_written;
}
#endif

static tl_result tli_write_tensor(tl_run *run, tl_tensor tensor, const void *data, uint64_t bytes) {
    tli_buffer *buffer;
    int enters = 0;
    tl_result result = tli_find_caller_tensor(run, TLI_IN(WRITE_TENSOR), &tensor);
    if (result) return result;
#ifndef TL_ONLY_TABLES
    enters = tli_enters(run, tensor);
    if (enters) result = tli_check_access(run, TLI_IN(WRITE_TENSOR), tensor, bytes);
    if (enters && !result) result = tli_prepare_entry(run);
#endif
    if (!result) result = tli_access_tensor(run, TLI_IN(WRITE_TENSOR), tensor, bytes, &buffer);
    if (!result && !enters && !run->graph->nodes[tensor.node].is_input)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(WRITE_TENSOR),
                        TLI_RULE(TENSOR_NOT_GRAPH_INPUT));
    if (result) return result;
#ifndef TL_NO_PLANNERS
    if (run->cache.is_on && run->cache.is_watched[tensor.node]) tli_forget_cache(run);
#endif
#ifdef TL_ONLY_TABLES
    tli_copy(tli_place_address(run, buffer->place), data, (size_t)bytes);
    return TL_OK;
#else
    buffer->is_written = 1;
    return tli_move_tensor(run, TLI_IN(WRITE_TENSOR), buffer->device.range, bytes, TL_MAP_WRITE, NULL,
                           data);
#endif
}

TLI_IMPL tl_result tl_write_tensor(tl_run *run, tl_tensor tensor, const void *data,
                                   uint64_t bytes) {
    tl_result result;
    TL_ASSERT(run && (data || !bytes));
    result = tli_write_tensor(run, tensor, data, bytes);
#ifndef TL_NO_PLANNERS
    if (run->watch) tli_watch_write(run, tensor, bytes, result);
#endif
    return result;
}

TLI_IMPL tl_result tl_read_tensor(tl_run *run, tl_tensor tensor, void *data, uint64_t bytes) {
    tli_buffer *buffer;
    tl_result result;
    TL_ASSERT(run && (data || !bytes));
    result = tli_find_caller_tensor(run, TLI_IN(READ_TENSOR), &tensor);
    if (!result) result = tli_access_tensor(run, TLI_IN(READ_TENSOR), tensor, bytes, &buffer);
    if (result) return result;
#ifdef TL_ONLY_TABLES
    tli_copy(data, tli_place_address(run, buffer->place), (size_t)bytes);
    return TL_OK;
#else
    return tli_move_tensor(run, TLI_IN(READ_TENSOR), buffer->device.range, bytes, TL_MAP_READ, data,
                           NULL);
#endif
}

TLI_IMPL tl_result tl_find_tensor_bytes(tl_run *run, tl_tensor tensor, uint64_t *bytes) {
    tl_result result;
    TL_ASSERT(run && bytes);
    *bytes = 0;
    result = tli_find_caller_tensor(run, TLI_IN(FIND_TENSOR_BYTES), &tensor);
    if (result) return result;
    *bytes = tli_known_bytes(run, run->caller_slot,
                             run->graph->nodes[tensor.node].first_output + tensor.output);
    return TL_OK;
}
#endif  // TL_STRATEGY_IMPLEMENTATION
