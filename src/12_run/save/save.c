#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- saving a run --
//
// One walk over what a run is made of writes it, checks what was read, and takes it over: so the three cannot
// differ. A first walk over the data changes nothing and refuses whatever does not belong to this run; then a
// second takes it over.
//
//     head | the caller's variables | inputs | between passes: the entry, or results that are kept | checksum
//                                         | in a pass: what is live, by tensors and nodes        |
//
// Where something lies, and what is live at a step, is not in the data: the simulator tells it, from the plan.

#define TLI_SAVE_BLOCK 512     // bytes that are handed to the sink at a time; the last time fewer

typedef struct tli_saving {
    tl_run      *run;
    tli_function function;
    const tl_sink *sink;      // NULL = reads
    uint64_t     sent;        // bytes that the sink took
    const uint8_t *data;      // [length] without the checksum
    size_t       length, at;
    int          applies;     // reading: 1 = takes over what was checked
    uint64_t     checksum;
    tl_result    result;      // the first error
    int32_t      in_pass;
    int32_t      variables_only;  // 1 = only variables are read: slots, micro-batches and compressed copies of
                              // the run that saved may be others
    uint64_t     next_step;   // that was read
    int32_t      takes_entry; // 1 = the data's entry, or kept results, are those of this run
    tli_sim      sim;         // in a pass: after the steps that were carried out
    uint8_t      block[TLI_SAVE_BLOCK];
    size_t       used;
} tli_saving;

static void tli_refuse_saving(tli_saving *s, tl_result code, tli_rule rule) {
    if (!s->result) s->result = tli_fail(s->run->env, code, s->function, rule);
}

// -- saving a run: bytes --

static uint64_t tli_checksum_bytes(uint64_t sum, const uint8_t *bytes, size_t length) {
    size_t i;
    for (i = 0; i < length; i++) sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static void tli_flush_saving(tli_saving *s) {
    tl_result result = TL_OK;
    if (!s->result && s->used) result = (s->sink->write)(s->sink->user, (const char *)s->block, s->used);
    if (result) s->result = tli_fail_sink(s->run->env, result, s->function, s->sent);
    s->sent += s->used;
    s->used = 0;
}

// Write bytes, or read them: to NULL = go past them.
static void tli_save_bytes(tli_saving *s, void *bytes, uint64_t count) {
    uint8_t *at = (uint8_t *)bytes;
    if (s->result) return;
    if (!s->sink) {
        if (count > s->length - s->at) {
            tli_refuse_saving(s, TL_ERROR_PARSE, TLI_RULE(SAVED_ENDS_OR_HOLDS_WHAT_IT_MAY_NOT));
            return;
        }
        if (at) tli_copy(at, s->data + s->at, (size_t)count);
        s->at += (size_t)count;
        return;
    }
    s->checksum = tli_checksum_bytes(s->checksum, at, (size_t)count);
    while (count && !s->result) {
        size_t part = sizeof s->block - s->used;
        if (part > count) part = (size_t)count;
        tli_copy(s->block + s->used, at, part);
        s->used += part;
        at += part;
        count -= part;
        if (s->used == sizeof s->block) tli_flush_saving(s);
    }
}

// Write a number of so many bytes, the lowest first, or read one. Returns what is in the data; 0 after an
// error.
static uint64_t tli_save_number(tli_saving *s, uint64_t value, int bytes) {
    uint8_t text[8];
    uint64_t read = 0;
    int i;
    for (i = 0; i < bytes; i++) text[i] = (uint8_t)(value >> (8 * i));
    tli_save_bytes(s, text, (uint64_t)bytes);
    for (i = 0; i < bytes && !s->result; i++) read |= (uint64_t)text[i] << (8 * i);
    return read;
}

// A number that must be this one.
static void tli_save_same(tli_saving *s, uint64_t value, int bytes, tli_rule rule) {
    if (tli_save_number(s, value, bytes) != value) tli_refuse_saving(s, TL_ERROR_INVALID_ARG, rule);
}

// A number that is not above a limit.
static uint64_t tli_save_limited(tli_saving *s, uint64_t value, int bytes, uint64_t most) {
    uint64_t read = tli_save_number(s, value, bytes);
    if (read <= most) return read;
    tli_refuse_saving(s, TL_ERROR_PARSE, TLI_RULE(SAVED_ENDS_OR_HOLDS_WHAT_IT_MAY_NOT));
    return 0;
}

// The bytes of a range of the backend.
static void tli_save_range(tli_saving *s, tl_range range) {
    const tl_backend *backend = &s->run->backend;
    tl_map_mode mode = s->sink ? TL_MAP_READ : TL_MAP_WRITE;
    void *host = NULL;
    tl_result result, unmapped;
    if (!range.bytes || s->result) return;
    if (!s->sink && !s->applies) { tli_save_bytes(s, NULL, range.bytes); return; }
    result = tli_order_range(&s->run->store, &range, !s->sink);
    if (!result) result = (backend->map)(backend->self, range, mode, &host);
    if (!result) {
        tli_save_bytes(s, host, range.bytes);
        unmapped = (backend->unmap)(backend->self, range, mode, host);
        result = unmapped;
    }
    if (result) tli_refuse_saving(s, result, TLI_RULE(SAVED_BACKEND_COULD_NOT_MAP));
}

// -- saving a run: what it belongs to --

// A state has the same content and the same update whether it is trained whole or in pieces.
static uint64_t tli_hash_graph(const tl_graph *graph) {
    uint64_t hash = tl_mix_u64((uint64_t)graph->node_count, (uint64_t)graph->tensor_count);
    int32_t id, i;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        const char *op = tl_name_op(graph, id);
        int32_t in_pieces = tli_is_in_pieces(node), has_grad = node->has_grad | in_pieces;
        int32_t flags = (node->is_input > 0) + 2 * has_grad + 4 * node->keep + 8 * node->dynamic;
        hash = tl_mix_u64(hash, tli_checksum_bytes(0, (const uint8_t *)op, tli_text_length(op)));
        hash = tl_mix_u64(hash, (uint64_t)node->input_count << 32 | (uint64_t)(uint32_t)node->output_count);
        hash = tl_mix_u64(hash, node->saved_bytes);
        hash = tl_mix_u64(hash, (uint64_t)flags);
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            hash = tl_mix_u64(hash, (uint64_t)graph->inputs[i].tensor * 2 + (uint64_t)graph->inputs[i].needed);
        for (i = node->first_output; i < node->first_output + node->output_count; i++) {
            int32_t needed = graph->outputs[i].needed | in_pieces;
            hash = tl_mix_u64(hash, graph->outputs[i].bytes * 2 + (uint64_t)needed);
        }
    }
    return tli_mix_attributes(hash, graph);
}

static uint64_t tli_hash_steps(uint64_t hash, const tl_plan *plan) {
    int32_t i;
    for (i = 0; i < plan->step_count; i++) {
        tl_step step = tl_find_step(plan, i);
        hash = tl_mix_u64(hash, (uint64_t)(uint32_t)step.begins << 56 | (uint64_t)step.kind << 48 |
                                 (uint64_t)step.codec << 40 | step.slot);
        hash = tl_mix_u64(hash, (uint64_t)(uint32_t)step.node << 32 | (uint32_t)step.output);
    }
    return hash;
}

// Everything of a plan by which a pass goes.
static uint64_t tli_hash_plan(const tl_run *run) {
    const tl_plan *plan = &run->plan;
    uint64_t hash = tl_mix_u64((uint64_t)plan->step_count, (uint64_t)tli_count_slots(plan));
    int32_t i;
    hash = tl_mix_u64(hash, (uint64_t)plan->inference + 2 * (uint64_t)plan->any_order);
    hash = tl_mix_u64(hash, (uint64_t)run->in_flight);
    hash = tl_mix_u64(hash, plan->alignment_bytes);
    hash = tli_hash_steps(hash, plan);
    for (i = 0; i < plan->offset_count; i++) hash = tl_mix_u64(hash, tl_find_offset(plan, i, 0));
    for (i = 0; i < plan->host_offset_count; i++) hash = tl_mix_u64(hash, tl_find_offset(plan, i, 1));
    for (i = 0; i < plan->block_count; i++) hash = tl_mix_u64(hash, plan->blocks[i].offset);
    for (i = 0; i < plan->entry_count; i++)
        hash = tl_mix_u64(hash,
                          (uint64_t)(uint32_t)plan->entry[i].node << 32 | (uint32_t)plan->entry[i].output);
    return hash;
}

// -- saving a run: what its bits depend on beside graph and seed --

static uint32_t tli_float_bits(float value) {
    uint32_t bits;
    tli_copy(&bits, &value, sizeof bits);
    return bits;
}

// How a tensor of the run's graph is stored.
static uint64_t tli_hash_format(const tl_run *run, uint64_t hash, int32_t tensor) {
    tl_format format = tli_run_format(run, tensor);
    hash = tl_mix_u64(hash, (uint64_t)format);
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (run->desc.quantizations && (format == TL_FORMAT_I8 || format == TL_FORMAT_I16)) {
        const tl_quantization *q = &run->desc.quantizations[tensor];
        hash = tl_mix_u64(hash, (uint64_t)tli_float_bits(q->scale) << 32 | (uint32_t)q->zero_point);
        hash = tl_mix_u64(hash, (uint64_t)(uint32_t)q->low << 32 | (uint32_t)q->high);
        hash = tl_mix_u64(hash, (uint64_t)q->rounding);
    }
#endif
    return hash;
}

// The formats that the kernel of member number `at` of a node sees.
static uint64_t tli_hash_member_formats(const tl_run *run, int32_t id, int32_t at) {
    const tl_graph *graph = tli_caller_graph(run);
    int32_t caller = tli_find_member(run, id, at), first = run->graph->nodes[id].first_output, i;
    int32_t place = run->graph->nodes[id].first_input + (tli_has_members(run) ? run->members.outer[caller] : 0);
    const tl_node *member = &graph->nodes[caller];
    uint64_t hash = (uint64_t)caller + 1;
    for (i = 0; i < member->input_count; i++) {
        int32_t tensor = graph->inputs[member->first_input + i].tensor;
        if (tli_is_region(run, id)) hash = tl_mix_u64(hash, TL_FORMAT_F32);
        else if (tli_is_inner(run, id, at, tensor)) hash = tli_hash_format(run, hash, first);
        else hash = tli_hash_format(run, hash, run->graph->inputs[place++].tensor);
    }
    for (i = 0; i < member->output_count; i++)
        hash = tli_hash_format(run, hash, tli_calls_members(run, id) ? first : first + i);
    return hash;
}

// The formats of all that the caller's kernels see on this rank. It is a sum, because the order of nodes is
// another where others are fused, and that changes no bits.
static uint64_t tli_hash_formats(const tl_run *run) {
    uint64_t hash = 0;
    int32_t id, at;
    for (id = 0; id < run->graph->node_count; id++)
        for (at = 0; at < tli_count_members(run, id); at++) hash += tli_hash_member_formats(run, id, at);
    return hash;
}

// Which micro-batches of a training step this run has, and of how many ranks it is which.
static uint64_t tli_hash_share(const tl_run *run) {
    uint64_t hash = (uint64_t)(uint32_t)run->repeat_count << 32 | (uint32_t)run->desc.first_micro_batch;
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    const tl_compiled_plan *compiled = run->compiled;
    hash = tl_mix_u64(hash, (uint64_t)tli_count_replicas(run) << 32 | (uint32_t)tli_find_replica(run));
    if (tli_count_stages(run) == 1) return hash;
    hash = tl_mix_u64(hash, (uint64_t)compiled->rank_count << 32 | (uint32_t)compiled->rank);
    hash = tl_mix_u64(hash, (uint64_t)compiled->chunk_count);
#endif
    return hash;
}

// The hash of a plan as far as compressed copies change bits: 0 = it compresses nothing. Else every step
// counts, because a pass goes on with the bits that are expanded.
static uint64_t tli_hash_losses(const tl_run *run) {
    tl_plan plan;
    int32_t i;
    tl_find_run_plan(run, &plan);
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    if (run->hybrid.is_on) plan = run->hybrid.bounds;
#endif
    for (i = 0; i < plan.step_count; i++)
        if (tl_find_step(&plan, i).kind == TL_STEP_COMPRESS) return tli_hash_steps(1, &plan);
    return 0;
}

static int tli_has_stages(const tl_run *run) {
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    return tli_count_stages(run) > 1;
#else
    (void)run;
    return 0;
#endif
}

// What has to be the same. Variables alone go to other ranks, which have other micro-batches, and other nodes.
static void tli_save_settings(tli_saving *s) {
    tl_run *run = s->run;
    uint64_t has_stages = (uint64_t)tli_has_stages(run), formats = tli_hash_formats(run);
    uint64_t read = tli_save_number(s, has_stages, 4);
    if (s->variables_only && (read || has_stages)) (void)tli_save_number(s, 0, 8);
    else tli_save_same(s, formats, 8, TLI_RULE(SAVED_HAS_OTHER_FORMATS));
    tli_save_same(s, run->desc.loss_gradient_word, 4, TLI_RULE(SAVED_HAS_ANOTHER_LOSS));
    if (s->variables_only) {
        tli_save_bytes(s, NULL, 20);
        return;
    }
    tli_save_same(s, (uint64_t)run->inference, 4, TLI_RULE(SAVED_IS_FORWARD_ONLY_OR_NOT));
    tli_save_same(s, tli_hash_share(run), 8, TLI_RULE(SAVED_HAS_OTHER_MICRO_BATCHES));
    tli_save_same(s, tli_hash_losses(run), 8, TLI_RULE(SAVED_LOSES_OTHER_BITS));
}

// The number of the next training step; and of one that was saved between two of its passes, what the next
// pass needs to go on with it.
static void tli_save_training_step(tli_saving *s) {
    tl_run *run = s->run;
    uint64_t begun = tli_is_in_training_step(run) ? (uint64_t)run->ended_passes : 0, step;
    uint64_t most = s->variables_only ? INT32_MAX : (uint64_t)run->repeat_count;
    uint32_t bits = (uint32_t)tli_save_number(s, tli_float_bits(run->loss_scale), 4);
    float scale;
    tli_copy(&scale, &bits, sizeof scale);
    step = tli_save_number(s, run->training_step, 8);
    begun = tli_save_limited(s, begun, 4, most);
    s->next_step = tli_save_number(s, run->next_step, 8);
    if (!(scale >= 0.0f && scale <= 3.4e38f))
        tli_refuse_saving(s, TL_ERROR_PARSE, TLI_RULE(SAVED_ENDS_OR_HOLDS_WHAT_IT_MAY_NOT));
    if (begun && s->variables_only)
        tli_refuse_saving(s, TL_ERROR_INVALID_ARG, TLI_RULE(SAVED_IN_A_TRAINING_STEP));
    if (!s->applies || s->result) return;
    run->loss_scale = scale;
    run->training_step = step;
    run->next_step = s->next_step;
    run->ended_passes = (int32_t)begun;
    run->resumes = begun > 0 && !s->in_pass;
}

#define TLI_SAVE_VERSION 2

static const uint8_t tli_save_magic[8] = { 'T', 'L', 'R', 'U', 'N', '\r', '\n', 26 };

static void tli_save_head(tli_saving *s) {
    const uint16_t one = 1;
    uint8_t read[8], first;
    tl_run *run = s->run;
    size_t i;
    tli_copy(read, tli_save_magic, sizeof read);
    tli_save_bytes(s, read, sizeof read);
    for (i = 0; i < sizeof read; i++)
        if (read[i] != tli_save_magic[i]) tli_refuse_saving(s, TL_ERROR_PARSE, TLI_RULE(SAVED_IS_NOT_A_RUN));
    if (tli_save_number(s, TLI_SAVE_VERSION, 4) != TLI_SAVE_VERSION)
        tli_refuse_saving(s, TL_ERROR_UNSUPPORTED, TLI_RULE(SAVED_IS_OF_ANOTHER_VERSION));
    tli_copy(&first, &one, 1);
    tli_save_same(s, first, 4, TLI_RULE(SAVED_HAS_ANOTHER_BYTE_ORDER));
    s->in_pass = (int32_t)tli_save_limited(s, (uint64_t)s->in_pass, 4, 1);
    tli_save_same(s, tli_hash_graph(tli_caller_graph(run)), 8, TLI_RULE(SAVED_IS_OF_ANOTHER_GRAPH));
    tli_save_same(s, (uint64_t)run->precision, 4, TLI_RULE(SAVED_IS_OF_ANOTHER_GRAPH));
    if (s->variables_only) (void)tli_save_number(s, 0, 4);
    else tli_save_same(s, (uint64_t)run->slot_count, 4, TLI_RULE(SAVED_IS_OF_ANOTHER_GRAPH));
    tli_save_same(s, run->desc.seed, 8, TLI_RULE(SAVED_HAS_ANOTHER_SEED));
    tli_save_settings(s);
    tli_save_training_step(s);
    if (s->in_pass && s->variables_only) tli_refuse_saving(s, TL_ERROR_INVALID_ARG, TLI_RULE(SAVED_IN_A_PASS));
    else if (s->in_pass) tli_save_same(s, tli_hash_plan(run), 8, TLI_RULE(SAVED_IN_A_PASS_OF_ANOTHER_PLAN));
}

// The loss scaler, which is the caller's.
static void tli_save_scaler(tli_saving *s) {
    const tl_run_desc *desc = &s->run->desc;
    tli_save_same(s, desc->loss_scaler != NULL, 4, TLI_RULE(SAVED_VARIABLES_ARE_OTHERS));
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (desc->loss_scaler) {
        tl_loss_scaler scaler = tl_default_loss_scaler(desc->loss_scaler);
        uint32_t bits = (uint32_t)tli_save_number(s, tli_float_bits(scaler.scale), 4);
        tli_copy(&scaler.scale, &bits, sizeof bits);
        scaler.clean_count = (uint32_t)tli_save_number(s, scaler.clean_count, 4);
        scaler.skipped_count = tli_save_number(s, scaler.skipped_count, 8);
        tli_save_same(s, tli_float_bits(scaler.least), 4, TLI_RULE(SAVED_SCALER_HAS_OTHER_LIMITS));
        tli_save_same(s, tli_float_bits(scaler.most), 4, TLI_RULE(SAVED_SCALER_HAS_OTHER_LIMITS));
        tli_save_same(s, scaler.growth_interval, 4, TLI_RULE(SAVED_SCALER_HAS_OTHER_LIMITS));
        if (!(scaler.scale >= 0.0f && scaler.scale <= 3.4e38f))
            tli_refuse_saving(s, TL_ERROR_PARSE, TLI_RULE(SAVED_ENDS_OR_HOLDS_WHAT_IT_MAY_NOT));
        if (s->applies && !s->result) *desc->loss_scaler = scaler;
    }
#endif
}

// The caller's variables.
static void tli_save_variables(tli_saving *s) {
    const tl_run_desc *desc = &s->run->desc;
    const tli_rule rule = TLI_RULE(SAVED_VARIABLES_ARE_OTHERS);
    int32_t i;
    tli_save_same(s, (uint64_t)desc->variable_count, 4, rule);
    for (i = 0; i < desc->variable_count && !s->result; i++) {
        const tl_variable *variable = &desc->variables[i];
        uint64_t bytes;
        void *host;
        tli_find_variable_bytes(s->run, i, &host, &bytes);
        tli_save_same(s, (uint32_t)variable->node, 4, rule);
        tli_save_same(s, (uint64_t)variable->kind, 4, rule);
        tli_save_same(s, bytes, 8, rule);
        tli_save_bytes(s, s->sink || s->applies ? host : NULL, bytes);
    }
    tli_save_scaler(s);
}

// Whether a graph input is that of another rank's stage.
static int tli_is_elsewhere(const tl_run *run, int32_t tensor) {
    return tli_has_members(run) && run->members.tensors && run->members.tensors[tensor] < 0;
}

// What the caller has written into the graph's inputs, as far as this run has them.
static void tli_save_inputs(tli_saving *s) {
    tl_run *run = s->run;
    const tl_graph *graph = tli_caller_graph(run);
    int32_t slot, id, i;
    for (slot = 0; slot < run->slot_count; slot++)
        for (id = 0; id < graph->node_count && !s->result; id++)
            for (i = 0; tli_stays(graph, graph->nodes[id].first_output) && i < graph->nodes[id].output_count;
                 i++) {
                tl_tensor tensor;
                const tli_buffer *buffer;
                if (tli_is_elsewhere(run, graph->nodes[id].first_output + i)) continue;
                tensor.node = id;
                tensor.output = i;
                if (tli_find_caller_tensor(run, s->function, &tensor)) return;   // an input is no member
                buffer = tli_caller_buffer(run, slot,
                                           run->graph->nodes[tensor.node].first_output + tensor.output);
                tli_save_same(s, buffer->device.range.bytes, 8, TLI_RULE(SAVED_IS_OF_ANOTHER_GRAPH));
                tli_save_range(s, buffer->device.range);
            }
}

// -- saving a run: between passes --

static const tl_plan *tli_entry_plan(const tl_run *run) {
#ifndef TL_NO_PLANNERS
    if (run->cache.is_on) return &run->cache.plans[1];
#endif
    return &run->plan;
}

// Whether the entry's tensors are there: of results that are kept, when a pass has made them.
static int tli_has_entry(const tl_run *run) {
#ifndef TL_NO_PLANNERS
    if (run->cache.is_on) return run->cache.is_kept;
#endif
    return run->plan.entry_count > 0;
}

static uint64_t tli_entry_bytes(const tl_run *run, const tl_entry *entry) {
    return run->graph->outputs[run->graph->nodes[entry->node].first_output + entry->output].bytes;
}

// One tensor of the entry. A flag tells whether it is there: what the last pass freed is zeroes again.
static void tli_save_entry_tensor(tli_saving *s, const tl_entry *entry, uint64_t bytes) {
    tl_run *run = s->run;
    tl_range none;
    tli_buffer *buffer = NULL;
    uint64_t is_there;
    tli_zero(&none, sizeof none);
    none.bytes = bytes;
    if (entry)
        buffer = tli_caller_buffer(run, entry->slot,
                                   run->graph->nodes[entry->node].first_output + entry->output);
    is_there = tli_save_limited(s, buffer ? buffer->is_entry : 0, 4, 1);
    if (!is_there || s->result) return;
    if (s->sink || (s->applies && s->takes_entry)) tli_save_range(s, buffer->device.range);
    else tli_save_bytes(s, NULL, bytes);
}

// The versions of kept results, by which the next pass finds that nothing has changed.
static void tli_save_versions(tli_saving *s, int has_entry) {
    uint64_t count = 0, i;
    uint64_t *versions = NULL;
    tl_run *run = s->run;
#ifndef TL_NO_PLANNERS
    if (run->cache.is_on) versions = run->cache.versions;
#endif
    if (s->sink && has_entry && versions) count = (uint64_t)run->graph->node_count;
    count = tli_save_number(s, count, 4);
    if (!s->sink && s->takes_entry && count != (versions ? (uint64_t)run->graph->node_count : 0))
        tli_refuse_saving(s, TL_ERROR_PARSE, TLI_RULE(SAVED_ENDS_OR_HOLDS_WHAT_IT_MAY_NOT));
    for (i = 0; i < count && !s->result; i++) {
        uint64_t version = tli_save_number(s, s->sink ? versions[i] : 0, 8);
        if (s->applies && s->takes_entry && versions && !s->result) versions[i] = version;
    }
}

// Make room for the entry that is to be read.
static void tli_open_entry(tli_saving *s) {
    tl_run *run = s->run;
    int32_t i;
#ifndef TL_NO_PLANNERS
    if (run->cache.is_on) tli_take_cached_plan(run, 1);
#endif
    for (i = 0; i < run->plan.entry_count; i++) {
        const tl_entry *entry = &run->plan.entry[i];
        int32_t tensor = run->graph->nodes[entry->node].first_output + entry->output;
        tli_caller_buffer(run, entry->slot, tensor)->is_entry = 0;  // it is zeroes but for what is read
    }
    tli_release_buffers(run, 0);    // of the last pass
    if (!tli_claim_entry(run)) return;
    tli_refuse_saving(s, TL_ERROR_BACKEND, TLI_RULE(BACKEND_COULD_NOT_TAKE_ENTRY));
}

// The entry of the plan, or the results that are kept. Those of another plan than the run's are passed over:
// what is kept is made again then, and a run whose plan has an entry of its own refuses the data.
static void tli_save_entry(tli_saving *s) {
    tl_run *run = s->run;
    const tl_plan *plan = tli_entry_plan(run);
    int has_entry = tli_has_entry(run);
    uint64_t hash = tli_hash_graph(run->graph), count, i;
    int is_same = tli_save_number(s, hash, 8) == hash;
    count = tli_save_number(s, has_entry ? (uint64_t)plan->entry_count : 0, 4);
    if (!s->sink && !s->applies) s->takes_entry = is_same && count && count == (uint64_t)plan->entry_count;
    if (s->applies && s->takes_entry) tli_open_entry(s);
    for (i = 0; i < count && !s->result; i++) {
        const tl_entry *entry = i < (uint64_t)plan->entry_count ? &plan->entry[i] : NULL;
        uint64_t own = entry ? tli_entry_bytes(run, entry) : 0, bytes;
        uint64_t node = tli_save_number(s, entry ? (uint32_t)entry->node : 0, 4);
        uint64_t output = tli_save_number(s, entry ? (uint32_t)entry->output : 0, 4);
        uint64_t slot = tli_save_number(s, entry ? (uint32_t)entry->slot : 0, 4);
        bytes = tli_save_number(s, own, 8);
        if (!entry || node != (uint32_t)entry->node || output != (uint32_t)entry->output ||
            slot != (uint32_t)entry->slot || bytes != own) s->takes_entry = 0;
        tli_save_entry_tensor(s, s->sink || s->takes_entry ? entry : NULL, bytes);
    }
    tli_save_versions(s, has_entry);
    if (s->sink || s->result) return;
    if (!s->takes_entry && !tli_keeps_results(run) && plan->entry_count)
        tli_refuse_saving(s, TL_ERROR_INVALID_ARG, TLI_RULE(SAVED_ENTRY_IS_ANOTHER));
#ifndef TL_NO_PLANNERS
    if (!s->applies || !run->cache.is_on) return;
    run->cache.is_kept = s->takes_entry;
    tli_mark_kept(run, s->takes_entry);
#endif
}

// -- saving a run: in a pass --

#define TLI_SAVE_COUNT (INT32_MAX / 2)  // at most: what is left of the pass adds to it

// The counts of the pass so far.
static void tli_save_counts(tli_saving *s) {
    tl_run_report *report = &s->run->report;
    int32_t *counts[11], k;
    counts[0] = &report->forward_count;  counts[1] = &report->recompute_count;
    counts[2] = &report->backward_count; counts[3] = &report->spill_count;
    counts[4] = &report->fetch_count;    counts[5] = &report->compress_count;
    counts[6] = &report->expand_count;   counts[7] = &report->drop_count;
    counts[8] = &report->step_count;     counts[9] = &report->convert_count;
    counts[10] = &report->kernel_count;
    for (k = 0; k < 11; k++) {
        int32_t read = (int32_t)tli_save_limited(s, (uint64_t)*counts[k], 4, TLI_SAVE_COUNT);
        if (s->applies) *counts[k] = read;
    }
}

// The peaks of the pass so far, by the count of the backend.
static void tli_save_peaks(tli_saving *s) {
    tl_account_counters counters;
    uint64_t *before = s->run->before_bytes;
    uint64_t now[3];
    int k;
    tli_measure_store(&s->run->store, 0, &counters);
    now[0] = counters.peak_bytes[TL_TIER_DEVICE];
    now[1] = counters.peak_bytes[TL_TIER_HOST];
    now[2] = counters.arena_bytes;
    for (k = 0; k < 3; k++) {
        uint64_t read = tli_save_number(s, tli_larger_u64(now[k], before[k]), 8);
        if (s->applies) before[k] = read;
    }
}

static void tli_save_reports(tli_saving *s) {
#ifndef TL_NO_ONLINE
    tl_run *run = s->run;
    int32_t count = run->slot_count * run->graph->tensor_count, i;
    for (i = 0; i < count && run->real_bytes && !s->result; i++) {
        uint64_t bound = run->graph->outputs[i % run->graph->tensor_count].bytes;
        uint64_t read = tli_save_number(s, run->real_bytes[i], 8);
        if (read > bound && read != TLI_UNREPORTED)
            tli_refuse_saving(s, TL_ERROR_PARSE, TLI_RULE(SAVED_ENDS_OR_HOLDS_WHAT_IT_MAY_NOT));
        if (s->applies && !s->result) run->real_bytes[i] = read;
    }
#else
    (void)s;
#endif
}

// Held bytes that are live by the simulation, as its allocation of this number. To take them over, they are
// claimed there.
static void tli_save_held(tli_saving *s, tli_held *held, tl_tier tier, int32_t number, uint64_t bytes) {
    tl_run *run = s->run;
    tl_range range;
    if (!bytes || s->result) return;
    if (s->applies && !held->range.bytes) {
        tl_result result;
        run->arenas[tier].next_offset = number;
        result = tli_claim_planned(run, tier, bytes, held);
        if (result) tli_refuse_saving(s, result, TLI_RULE(SAVED_BACKEND_COULD_NOT_CLAIM));
    }
    range = held->range;
    if (s->sink && range.bytes != bytes) {
        tli_refuse_saving(s, TL_ERROR_MISMATCH, TLI_RULE(SAVED_RUN_IS_NOT_AS_PLANNED));
        return;
    }
    range.bytes = bytes;
    tli_save_range(s, range);
}

// One tensor of the present slot: device, host, gradient.
static void tli_save_tensor(tli_saving *s, int32_t i) {
    tli_sim *sim = &s->sim;
    tl_run *run = s->run;
    const tli_sim_tensor *t = &sim->tensors[i];
    tli_buffer *buffer = &run->tensors[i];
    uint64_t bytes = run->graph->outputs[i].bytes;
    int is_input = tli_stays(run->graph, i), is_packed = t->state == TLI_PACKED;
    int32_t owner = tli_sim_owner(sim, is_packed ? TLI_USE_PACKED : TLI_USE_TENSOR, i);
    if (s->applies && !is_input) {
        buffer->state = t->state;
        buffer->codec = is_packed ? t->codec : (uint8_t)TL_CODEC_NONE;
        buffer->on_host = t->on_host;
    }
    if (s->applies) run->gradients[i].state = t->has_gradient ? TLI_RESIDENT : TLI_ABSENT;
    if (t->state != TLI_ABSENT && !is_input)
        tli_save_held(s, &buffer->device, TL_TIER_DEVICE, sim->arena.places[owner],
                      is_packed ? t->packed_bytes : bytes);
    if (t->on_host && bytes)
        tli_save_held(s, &tli_spilled_of(run, buffer)->host, TL_TIER_HOST,
                      sim->host_arena.places[tli_sim_host_owner(sim, i)], bytes);
    if (t->has_gradient)
        tli_save_held(s, &run->gradients[i].device, TL_TIER_DEVICE,
                      sim->arena.places[tli_sim_owner(sim, TLI_USE_GRADIENT, i)], bytes);
}

static void tli_save_slot(tli_saving *s) {
    tli_sim *sim = &s->sim;
    tl_run *run = s->run;
    tli_buffer *saved;
    int32_t i;
    for (i = 0; i < run->graph->tensor_count && !s->result; i++) tli_save_tensor(s, i);
    for (i = 0; i < run->graph->node_count && !s->result; i++) {
        if (s->applies) run->ran[i] = sim->nodes[i].ran;
        if (!sim->nodes[i].has_saved) continue;
        saved = tli_saved_buffer(run, i);
        if (!saved) continue;
        if (s->applies) saved->state = TLI_RESIDENT;
        tli_save_held(s, &saved->device, TL_TIER_DEVICE,
                      sim->arena.places[tli_sim_owner(sim, TLI_USE_SAVED, i)],
                      run->graph->nodes[i].saved_bytes);
    }
}

// Claim again, with nothing in it, what steps before have freed and the run does not give back yet.
static void tli_claim_late(tli_saving *s) {
    tl_run *run = s->run;
    int32_t k;
    for (k = s->sim.late_first; k < s->sim.late_count && !s->result; k++) {
        const tli_late *late = &s->sim.late[k];
        tl_tier tier = late->is_host ? TL_TIER_HOST : TL_TIER_DEVICE;
        tli_held held;
        tl_result result;
        tli_choose_step(run, late->until == INT32_MAX ? run->position - 1 : late->until - run->in_flight);
        run->arenas[tier].next_offset = late->number;
        result = tli_claim_planned(run, tier, late->made.bytes, &held);
        if (result) tli_refuse_saving(s, result, TLI_RULE(SAVED_BACKEND_COULD_NOT_CLAIM));
        else run->at.freed[run->at.freed_count++] = held;
    }
}

// Let go of what the entry has at the start of a pass, where a step has freed it, or put it elsewhere.
static void tli_drop_entry(tli_saving *s) {
    tl_run *run = s->run;
    int32_t number = run->input_count, i;
    for (i = 0; i < run->plan.entry_count; i++) {
        const tl_entry *entry = &run->plan.entry[i];
        int32_t tensor = run->graph->nodes[entry->node].first_output + entry->output;
        uint64_t bytes = run->graph->outputs[tensor].bytes;
        tli_sim_choose_slot(&s->sim, entry->slot);
        if (s->sim.arena.places[tli_sim_owner(&s->sim, TLI_USE_TENSOR, tensor)] != number || !bytes)
            (void)tli_buffer_drop(run, tli_caller_buffer(run, entry->slot, tensor));
        number += bytes > 0;
    }
}

// The same for inputs that die, whose lifetimes are the first.
static void tli_drop_dead_inputs(tli_saving *s) {
    tl_run *run = s->run;
    int32_t number = 0, slot, i;
    for (slot = 0; slot < run->slot_count; slot++) {
        tli_sim_choose_slot(&s->sim, slot);
        for (i = 0; i < run->graph->tensor_count; i++) {
            if (!run->graph->nodes[run->graph->outputs[i].node].is_input) continue;
            if (!tli_stays(run->graph, i) && (s->sim.tensors[i].state == TLI_ABSENT ||
                s->sim.arena.places[tli_sim_owner(&s->sim, TLI_USE_TENSOR, i)] != number))
                (void)tli_buffer_drop(run, tli_caller_buffer(run, slot, i));
            number += run->graph->outputs[i].bytes > 0;
        }
    }
}

// Begin the pass that is to be taken over.
static void tli_open_saved_pass(tli_saving *s) {
    tl_run *run = s->run;
    tl_account_counters counters;
    tli_release_buffers(run, 0);
    if (tli_claim_entry(run)) tli_refuse_saving(s, TL_ERROR_BACKEND, TLI_RULE(BACKEND_COULD_NOT_TAKE_ENTRY));
    run->active = 1;
    run->touched_count = 0;
    tli_zero(&run->report, sizeof run->report);
    run->report.limiting_node = -1;
    run->report.worker_count = run->desc.transport ? run->desc.transport->rank_count : 1;
    run->report.fused_count = run->members.fused_count;
    tli_zero(&run->at.last, sizeof run->at.last);
    tli_zero(&run->at.event, sizeof run->at.event);
    tli_measure_store(&run->store, 1, &counters);
    tli_drop_entry(s);
    tli_drop_dead_inputs(s);
}

// Replay the steps that were carried out.
static void tli_replay_saved(tli_saving *s, int32_t position) {
    tl_run *run = s->run;
    tl_device device = tli_run_device(run);
    int32_t i;
    tl_result result = tli_init_sim(run->env, &s->sim, s->function, run->graph, &device, &run->plan, NULL);
    for (i = 0; i < position && !result; i++) {
        tl_step step = tl_find_step(&run->plan, i);
        result = tli_sim_step(&s->sim, &step);
    }
    if (!s->result) s->result = result;
    for (i = 0; i < run->slot_count * run->graph->node_count && !s->result; i++)
        if (s->sim.all_nodes[i].under_way)
            tli_refuse_saving(s, TL_ERROR_INVALID_ARG, TLI_RULE(SAVED_STEP_OR_COPY_IS_UNDER_WAY));
    for (i = 0; i < run->slot_count * run->graph->tensor_count && !s->result; i++) {
        uint8_t state = s->sim.all_tensors[i].state;
        if (state == TLI_LEAVING || state == TLI_COMING)
            tli_refuse_saving(s, TL_ERROR_INVALID_ARG, TLI_RULE(SAVED_STEP_OR_COPY_IS_UNDER_WAY));
    }
}

// Whether a pass of this run can be saved at all.
static int tli_can_save_pass(const tl_run *run) {
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_ONLINE)
    if (run->hybrid.is_on) return 0;
#endif
    return !run->is_online && !tli_keeps_results(run) && run->arenas[TL_TIER_DEVICE].block_count > 0;
}

static void tli_save_pass(tli_saving *s) {
    tl_run *run = s->run;
    uint64_t micro_batch;
    int32_t position, slot;
    if (!tli_can_save_pass(run))
        tli_refuse_saving(s, TL_ERROR_UNSUPPORTED, TLI_RULE(SAVED_PASS_NEEDS_A_PLAN_WITH_PLACES));
    position = (int32_t)tli_save_limited(s, (uint64_t)run->position, 4, (uint64_t)run->plan.step_count);
    micro_batch = tli_save_limited(s, (uint64_t)run->micro_batch, 4, (uint64_t)(INT32_MAX - run->slot_count));
    if (s->result) return;
    tli_replay_saved(s, position);
    if (s->applies && !s->result) {
        tli_open_saved_pass(s);
        run->position = position;
        run->micro_batch = (int32_t)micro_batch;
    }
    tli_save_counts(s);
    tli_save_peaks(s);
    tli_save_reports(s);
    for (slot = 0; slot < run->slot_count && !s->result; slot++) {
        tli_run_choose_slot(run, slot);
        tli_sim_choose_slot(&s->sim, slot);
        tli_save_slot(s);
    }
    tli_run_choose_slot(run, 0);
    if (!s->applies || s->result) return;
    tli_claim_late(s);
    run->arenas[TL_TIER_DEVICE].next_offset = s->sim.report.allocation_count;
    run->arenas[TL_TIER_HOST].next_offset = s->sim.report.host_allocation_count;
    run->defers = run->flights != NULL;
}

// -- saving a run: both ways --

// Whether passes update states (tl_skip_updates), beside a bit: 2 = they do, 4 = they do not. Saves of earlier
// builds have neither, and leave it at what this run was told.
static uint64_t tli_save_skips(tli_saving *s, uint64_t bit) {
    tli_updates *u = &s->run->updates;
    uint64_t most = u->held_count == u->state_count ? 5 : 3;    // no others skip
    uint64_t read = tli_save_limited(s, bit + (u->skips ? 4 : 2), 4, most);
    if (s->applies && !s->result && read > 1) u->skips = read > 3;
    return read & 1;
}

// How many states were updated in the pass, whether sums of gradients wait for an update, and what is known of
// an overflow.
static void tli_save_updates(tli_saving *s) {
    tl_run *run = s->run;
    uint64_t count, is_summing, overflow = 0;
    if (run->updates.is_known && s->in_pass) overflow = 1 + (uint64_t)run->updates.overflows;
    if (!run->updates.state_count) return;
    count = tli_save_limited(s, s->in_pass ? (uint64_t)run->updates.count : 0, 4,
                             (uint64_t)run->updates.state_count);
    is_summing = tli_save_skips(s, run->updates.is_summing);
    if (run->desc.loss_scaler) overflow = tli_save_limited(s, overflow, 4, 2);
    if (!s->applies || s->result) return;
    run->updates.count = (int32_t)count;
    run->updates.has_begun = count > 0;
    run->updates.is_summing = (uint8_t)is_summing;
    tli_forget_overflow(run);
    run->updates.is_known = overflow > 0;
    run->updates.overflows = overflow > 1;
}

static void tli_walk_run(tli_saving *s) {
    tli_save_head(s);
    tli_save_variables(s);
    tli_save_inputs(s);
    tli_save_updates(s);
    if (s->result) return;
    if (s->in_pass) tli_save_pass(s);
    else tli_save_entry(s);
    if (s->sim.graph) tli_free_sim(&s->sim);
}

// Close the step that was carried out last. 0 = one is under way.
static int tli_settle_run(tli_saving *s) {
    tl_run *run = s->run;
    int32_t f;
    if (run->in_plan) return 0;
    if (!run->active) return 1;
    if (!run->flights && run->at.computing == TLI_COMPUTING_DONE && !tli_has_more_ranges(run))
        s->result = tli_end_compute(run);
    if (s->result == TL_NOT_READY) {
        s->result = TL_OK;
        return 0;
    }
    for (f = 0; f < tli_count_flights(run); f++) {
        tli_choose_flight(run, f);
        if (run->at.computing) return 0;
    }
    for (f = 0; f < run->begun_count; f++)
        if (run->begun[f].is_used) return 0;
    return 1;
}

TLI_IMPL tl_result tl_save_run(tl_run *run, tl_sink sink) {
    tli_saving s;
    uint64_t checksum;
    TL_ASSERT(run && sink.write);
    tli_zero(&s, sizeof s);
    s.run = run;
    s.function = TLI_IN(SAVE_RUN);
    s.sink = &sink;
    s.in_pass = run->active;
    if (tli_is_reducing(run))
        tli_refuse_saving(&s, TL_ERROR_INVALID_ARG, TLI_RULE(REDUCTION_IS_UNDER_WAY));
    else if (!tli_settle_run(&s))
        tli_refuse_saving(&s, TL_ERROR_INVALID_ARG, TLI_RULE(SAVED_STEP_OR_COPY_IS_UNDER_WAY));
    else if (s.result) return tli_abort_pass(run, s.result);
    else if (run->updates.is_torn)
        tli_refuse_saving(&s, TL_ERROR_INVALID_ARG, TLI_RULE(RUN_STATES_HALF_UPDATED));
    if (run->active && !tli_can_save_pass(run))
        tli_refuse_saving(&s, TL_ERROR_UNSUPPORTED, TLI_RULE(SAVED_PASS_NEEDS_A_PLAN_WITH_PLACES));
    if (!s.result && run->active) {     // nothing is written of what will be refused
        tli_replay_saved(&s, run->position);
        tli_free_sim(&s.sim);
    }
    if (!s.result) tli_walk_run(&s);
    checksum = s.checksum;
    (void)tli_save_number(&s, checksum, 8);
    tli_flush_saving(&s);
    return s.result;
}

// Whether data ends with 8 bytes that are the checksum of all bytes before them.
static int tli_is_whole(const uint8_t *data, size_t length) {
    uint64_t sum = length < 8 ? 0 : tli_checksum_bytes(0, data, length - 8), read = 0;
    int i;
    for (i = 0; i < 8 && length >= 8; i++) read |= (uint64_t)data[length - 8 + (size_t)i] << (8 * i);
    return length >= 8 && read == sum;
}

// Get ready to read what was saved, after a check that it is a save and undamaged.
static tl_result tli_open_saved(tl_run *run, tli_function function, const void *data, size_t length,
                                tli_saving *s) {
    tli_zero(s, sizeof *s);
    if (length < sizeof tli_save_magic || TLI_MEMCMP(data, tli_save_magic, sizeof tli_save_magic) != 0)
        return tli_fail(run->env, TL_ERROR_PARSE, function, TLI_RULE(SAVED_IS_NOT_A_RUN));
    if (!tli_is_whole((const uint8_t *)data, length))
        return tli_fail(run->env, TL_ERROR_PARSE, function, TLI_RULE(SAVED_IS_DAMAGED));
    s->run = run;
    s->function = function;
    s->data = (const uint8_t *)data;
    s->length = length - 8;
    return TL_OK;
}

// Refuse a run that is in a pass, or whose sum over ranks is under way.
static tl_result tli_check_idle(tl_run *run, tli_function function) {
    if (run->active || run->in_plan)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, function, TLI_RULE(RUN_PASS_IS_UNDER_WAY));
    if (tli_is_reducing(run))
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, function, TLI_RULE(REDUCTION_IS_UNDER_WAY));
    return TL_OK;
}

TLI_IMPL tl_result tl_load_run(tl_run *run, const void *data, size_t length) {
    tli_saving s;
    tl_result result;
    TL_ASSERT(run && (data || !length));
    result = tli_check_idle(run, TLI_IN(LOAD_RUN));
    if (!result) result = tli_open_saved(run, TLI_IN(LOAD_RUN), data, length, &s);
    if (result) return result;
    tli_walk_run(&s);
    if (!s.result && s.at != s.length)
        tli_refuse_saving(&s, TL_ERROR_PARSE, TLI_RULE(SAVED_ENDS_OR_HOLDS_WHAT_IT_MAY_NOT));
    if (s.result) return s.result;
#ifndef TL_NO_PLANNERS
    tli_forget_cache(run);
#endif
    s.at = 0;
    s.applies = 1;
    run->updates.is_torn = 0;
    tli_walk_run(&s);
    return s.result ? tli_abort_pass(run, s.result) : TL_OK;
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
