#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- preparing a run: tables --
//
// What a run keeps beside its arena as long as it lives, in memory of the env:
//
//     graph      nodes, inputs, outputs, names        where the run made it
//     plan       steps and offsets                    where the run made it: narrow, if its numbers fit
//     state      buffers of tensors and gradients, of saved bytes where a node has some, of host copies where
//                something is spilled; kernels; operands of a call
//
// A figure of all that is of use only if it is exact, so each allocation stands here once more, by its size.

// As tli_alloc_array counts.
static uint64_t tli_count_array(uint64_t count, uint64_t item_bytes) {
    return (count ? count : 1) * item_bytes;
}

// -- tables: the plan --

// The greatest unit of which all offsets are multiples; *highest: the highest of them.
static uint64_t tli_find_offset_unit(const tl_plan *plan, uint64_t *highest) {
    uint64_t unit = 0;
    int32_t i, count = plan->offset_count + plan->host_offset_count;
    *highest = 0;
    for (i = 0; i < count; i++) {
        int is_host = i >= plan->offset_count;
        uint64_t a = tl_find_offset(plan, is_host ? i - plan->offset_count : i, is_host);
        if (a > *highest) *highest = a;
        while (a) {
            uint64_t rest = unit % a;
            unit = a;
            a = rest;
        }
    }
    return unit ? unit : 1;
}

// Fill in how the plan is written in narrow numbers. 0 = it cannot be.
static int tli_find_narrow(const tl_plan *plan, tl_narrow_plan *narrow) {
    uint64_t highest;
    int32_t k;
    tli_zero(narrow, sizeof *narrow);
    narrow->unit_bytes = tli_find_offset_unit(plan, &highest);
    highest /= narrow->unit_bytes;
    narrow->offset_bytes = highest <= UINT16_MAX ? 2 : 4;
    narrow->step_words = tli_count_slots(plan) > 1 ? 3 : 2;
    for (k = 0; k < plan->step_count; k++) {
        const tl_step step = tl_find_step(plan, k);
        if (step.kind > 15 || step.codec > 15 || step.output >= 255) return 0;
        if ((uint32_t)step.node > UINT16_MAX) return 0;
    }
    return highest <= UINT32_MAX;
}

static void tli_fill_narrow(const tl_plan *plan, const tl_narrow_plan *narrow, uint16_t *words,
                            uint16_t *offsets) {
    int32_t k, count = plan->offset_count + plan->host_offset_count;
    for (k = 0; k < plan->step_count; k++) {
        const tl_step step = tl_find_step(plan, k);
        unsigned codec = step.begins ? (unsigned)step.begins : step.codec;
        *words++ = (uint16_t)(step.kind | codec << 4 | (unsigned)(step.output + 1) << 8);
        *words++ = (uint16_t)step.node;
        if (narrow->step_words > 2) *words++ = step.slot;
    }
    for (k = 0; k < count; k++) {
        int is_host = k >= plan->offset_count;
        uint64_t offset = tl_find_offset(plan, is_host ? k - plan->offset_count : k, is_host);
        uint32_t unit = (uint32_t)(offset / narrow->unit_bytes);
        if (narrow->offset_bytes == 4) tli_copy(offsets + 2 * (size_t)k, &unit, sizeof unit);
        else offsets[k] = (uint16_t)unit;
    }
}

// Where entry, offsets and steps begin in the memory of a narrow plan, behind tl_narrow_plan, the widest
// numbers first. Returns the bytes of all.
static uint64_t tli_count_narrow(const tl_plan *plan, const tl_narrow_plan *narrow, uint64_t *entry,
                                 uint64_t *offsets, uint64_t *steps) {
    uint64_t count = (uint64_t)plan->offset_count + (uint64_t)plan->host_offset_count;
    *entry = sizeof *narrow;
    *offsets = *entry + (uint64_t)plan->entry_count * sizeof *plan->entry;
    *steps = *offsets + count * (uint64_t)narrow->offset_bytes;
    return *steps + 2 * (uint64_t)plan->step_count * (uint64_t)narrow->step_words;
}

// Write a plan that the run has made in narrow numbers, where they fit; blocks stay where they are. What
// decides or changes steps in a pass needs them as they are: they get memory of exactly their size then.
static tl_result tli_narrow_run_plan(tl_run *run, int stays_wide) {
    tl_plan *plan = &run->plan, compact = *plan;
    uint64_t entry, offsets, steps, bytes;
    tl_narrow_plan narrow;
    char *memory;
    tl_result result = TL_OK;
    if (!run->owns_plan || !plan->memory) return TL_OK;
    if (stays_wide || !plan->step_count || !tli_find_narrow(plan, &narrow)) {
        result = tli_join_plan(run->env, TLI_IN(INIT_RUN), plan, &compact);
        if (!result && run->own_blocks && compact.block_count) compact.blocks = plan->blocks;
    } else {
        bytes = tli_count_narrow(plan, &narrow, &entry, &offsets, &steps);
        memory = (char *)tli_alloc_array(run->env, bytes, 1);
        if (!memory)
            return tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(STATE_OF_RUN_NO_MEMORY));
        tli_copy(memory + entry, plan->entry, (size_t)plan->entry_count * sizeof *plan->entry);
        tli_fill_narrow(plan, &narrow, (uint16_t *)(void *)(memory + steps),
                        (uint16_t *)(void *)(memory + offsets));
        narrow.steps = (uint16_t *)(void *)(memory + steps);
        if (plan->offset_count) narrow.offsets = memory + offsets;
        if (plan->host_offset_count)
            narrow.host_offsets = memory + offsets + (size_t)plan->offset_count * (size_t)narrow.offset_bytes;
        tli_copy(memory, &narrow, sizeof narrow);
        compact.narrow = (tl_narrow_plan *)(void *)memory;
        compact.steps = NULL;
        compact.offsets = compact.host_offsets = NULL;
        compact.entry = plan->entry_count ? (tl_entry *)(void *)(memory + entry) : NULL;
        compact.memory = memory;
    }
    if (result) return result;
    tli_release(run->env, plan->memory);
    *plan = compact;
    return TL_OK;
}

// The memory of a plan that the library has made. blocks: 1 = those are in it.
static uint64_t tli_count_plan(const tl_plan *plan, int blocks) {
    uint64_t entry, offsets, steps, bytes;
    if (!plan->memory) return 0;
    if (plan->narrow) return tli_count_narrow(plan, plan->narrow, &entry, &offsets, &steps);
    bytes = (uint64_t)plan->step_count * sizeof *plan->steps +
            (uint64_t)plan->entry_count * sizeof *plan->entry +
            ((uint64_t)plan->offset_count + (uint64_t)plan->host_offset_count) * sizeof *plan->offsets;
    if (blocks) bytes += (uint64_t)plan->block_count * sizeof *plan->blocks;
    return tli_count_array(bytes, 1);
}

// The same of one that the library would have made, as a run keeps it.
static uint64_t tli_count_compact(const tl_plan *plan, int stays_wide) {
    uint64_t entry, offsets, steps;
    tl_narrow_plan narrow;
    tl_plan owned = *plan;
    if (!stays_wide && plan->step_count && tli_find_narrow(plan, &narrow))
        return tli_count_narrow(plan, &narrow, &entry, &offsets, &steps);
    owned.memory = &owned;
    owned.narrow = NULL;
    return tli_count_plan(&owned, 1);
}

// -- tables: the graph --

static uint64_t tli_count_attributes(const tl_attributes *a) {
#if TLI_ATTRIBUTES
    return !a ? 0 : sizeof *a + (uint64_t)a->row_capacity * sizeof *a->rows +
                    (uint64_t)a->relation_capacity * sizeof *a->relations +
                    (uint64_t)a->stored_capacity * sizeof *a->stored;
#else
    (void)a;
    return 0;
#endif
}

static uint64_t tli_count_graph(const tl_graph *graph) {
    return (graph->tensor_capacity ? tli_count_attributes(graph->attributes) : 0) +
           (uint64_t)graph->node_capacity * sizeof *graph->nodes +
           (uint64_t)graph->input_capacity * sizeof *graph->inputs +
           (uint64_t)graph->tensor_capacity * sizeof *graph->outputs +
           (uint64_t)graph->view_capacity * sizeof *graph->views + graph->text_capacity;
}

// Nodes and outputs of a graph whose other arrays are another's.
static uint64_t tli_count_scaled(const tl_graph *graph) {
    return (graph->nodes ? tli_count_array((uint64_t)graph->node_count, sizeof *graph->nodes) : 0) +
           (graph->outputs ? tli_count_array((uint64_t)graph->tensor_count, sizeof *graph->outputs) : 0) +
           tli_count_attributes(graph->attributes);
}

#ifndef TL_NO_PLANNERS
static uint64_t tli_count_fusion(const tl_fusion_plan *fusion) {
    uint64_t nodes = (uint64_t)(fusion->first_members - fusion->nodes) / 3;
    if (!fusion->memory) return 0;
    return tli_count_array(4 * nodes + 1, sizeof *fusion->nodes) + tli_count_graph(&fusion->graph);
}
#endif

#ifndef TL_NO_PLANNERS
// The maps of a run with regions of rows, and the plan of rows that it was chosen with.
static uint64_t tli_count_rows(const tl_run *run) {
    const tl_rows_plan *rows = run->rows;
    uint64_t nodes = (uint64_t)run->members.graph->node_count;
    uint64_t tensors = (uint64_t)run->members.graph->tensor_count;
    uint64_t bytes = tli_count_array(3 * nodes + 2 * (uint64_t)rows->graph.node_count + 1 + tensors,
                                     sizeof *run->members.outer) +
                     tli_count_array((uint64_t)rows->member_count + 2, sizeof *run->rows_made);
    if (run->own_rows)
        bytes += sizeof *rows + tli_count_graph(&rows->graph) +
                 tli_count_rows_plan(run->members.graph, rows->turns ? 3 : 0);
    return bytes;
}
#endif

// -- tables: what decides in a pass --

#if !defined(TL_NO_ONLINE)
static uint64_t tli_count_sim_arena(const tli_sim_arena *arena) {
    uint64_t count = (uint64_t)arena->count;
    if (!arena->offsets) return 0;
    return tli_count_array((uint64_t)arena->owner_count, sizeof *arena->places) +
           tli_count_array(count, sizeof *arena->ranks + sizeof *arena->by_rank + sizeof *arena->ends) +
           tli_count_array(2 * (uint64_t)arena->leaf_count, 1) +
           tli_count_array((uint64_t)arena->block_count + 1, sizeof *arena->highs);
}

static uint64_t tli_count_sim(const tli_sim *sim) {
    uint64_t slot_total = (uint64_t)sim->slot_count;
    if (!sim->all_tensors) return 0;
    return tli_count_array(slot_total * (uint64_t)sim->graph->tensor_count, sizeof *sim->tensors) +
           tli_count_array(slot_total * (uint64_t)sim->graph->node_count, sizeof *sim->nodes) +
           tli_count_array(slot_total, sizeof *sim->next_backward) +
           tli_count_array(tli_sim_most_made(sim->graph), sizeof *sim->made) +
           (sim->late ? tli_count_array((uint64_t)sim->late_capacity, sizeof *sim->late) : 0) +
           tli_count_sim_arena(&sim->arena) + tli_count_sim_arena(&sim->host_arena);
}

static uint64_t tli_count_online(const tl_run *run) {
    const tli_online *o = &run->online;
    uint64_t tensors = (uint64_t)run->graph->tensor_count, nodes = (uint64_t)run->graph->node_count;
    uint64_t items = tensors + nodes, bytes;
    if (!run->is_online) return 0;
    bytes = tli_count_array(tensors, sizeof *o->forward_uses + sizeof *o->backward_uses + sizeof *o->wanted +
                                         sizeof *o->wanted_uses + sizeof *o->left) +
            tli_count_array(items, sizeof *o->pins + sizeof *o->made_at + sizeof *o->used_at) +
            tli_count_array(nodes, sizeof *o->closure + sizeof *o->cuts) + tli_count_sim(&o->sim);
    bytes += (uint64_t)o->record.capacity * sizeof *o->record.steps;
    if (o->candidates)
        bytes += tli_count_array(items, sizeof *o->candidates + sizeof *o->candidate_items);
    if (o->until)
        bytes += tli_count_array(tensors, sizeof *o->until + sizeof *o->next_end) +
                 tli_count_array(2 * nodes, sizeof *o->ends);
    if (o->spans.of_node) bytes += tli_count_array(nodes, sizeof *o->spans.of_node);
    if (o->spans.crosses) bytes += tli_count_array(tensors, 1);
    return bytes;
}

static uint64_t tli_count_reports(const tl_run *run) {
    uint64_t tensors = (uint64_t)run->slot_count * (uint64_t)run->graph->tensor_count;
    if (!run->real_bytes) return 0;
    return tli_count_array(tensors, sizeof *run->real_bytes) +
           tli_count_array((uint64_t)run->at.call.twice_count, sizeof *run->at.call.reported);
}
#endif

#ifndef TL_NO_PLANNERS
static uint64_t tli_count_cache(const tl_run *run) {
    const tli_cache *cache = &run->cache;
    uint64_t nodes = (uint64_t)run->graph->node_count;
    if (!cache->is_on) return 0;
    return tli_count_plan(&cache->plans[0], 1) + tli_count_plan(&cache->plans[1], 1) +
           tli_count_array(nodes, sizeof *cache->versions + sizeof *cache->is_watched);
}
#ifndef TL_NO_ONLINE
static uint64_t tli_count_hybrid(const tl_run *run) {
    const tli_hybrid *h = &run->hybrid;
    if (!h->is_on) return 0;
    return tli_count_plan(&h->bounds, 1) + tli_count_sim(&h->sim) +
           tli_count_array((uint64_t)run->graph->tensor_count, sizeof *h->bound_bytes);
}
#endif
#endif

// -- tables: all --

// The most outputs of a node, and the most operands of a call.
static uint64_t tli_find_widest_call(const tl_run *run, uint64_t *outputs) {
    const tl_graph *graph = run->graph;
    uint64_t inputs = 0, most = 0, updated;
    int32_t id, k;
    *outputs = 0;
    for (id = 0; id < graph->node_count; id++) {
        for (k = 0, updated = 0; k < graph->nodes[id].input_count; k++) {
            const tl_node *state = tli_find_pieces(graph, &graph->nodes[id], k);
            if (state) updated += (uint64_t)state->output_count;
        }
        most = tli_larger_u64(most, updated);
        inputs = tli_larger_u64(inputs, (uint64_t)graph->nodes[id].input_count);
        *outputs = tli_larger_u64(*outputs, (uint64_t)graph->nodes[id].output_count);
    }
    for (id = 0; tli_has_members(run) && id < run->members.graph->node_count; id++)
        inputs = tli_larger_u64(inputs, (uint64_t)run->members.graph->nodes[id].input_count);
    return 2 * inputs + 2 * *outputs + 2 + most;
}

static uint64_t tli_count_call(const tl_run *run) {
    uint64_t outputs, operands = tli_find_widest_call(run, &outputs);
    return tli_count_array(operands, sizeof *run->at.call.operands + sizeof *run->at.call.access_of +
                                         sizeof *run->at.call.accesses + sizeof *run->at.call.writable +
                                         sizeof *run->at.call.hosts) +
           tli_count_array(outputs, sizeof *run->at.call.twice + sizeof *run->at.call.made);
}

// Buffers, kernels and the operands of all calls that may be under way.
static uint64_t tli_count_state(const tl_run *run) {
    uint64_t slot_total = (uint64_t)run->slot_count, outputs;
    uint64_t nodes = (uint64_t)run->graph->node_count, tensors = (uint64_t)run->graph->tensor_count;
    uint64_t flights = (uint64_t)run->flight_count;
    uint64_t bytes = sizeof *run + tli_count_array(slot_total * tensors, 2 * sizeof(tli_buffer)) +
                     tli_count_array(slot_total * nodes, 1) + tli_count_array(tensors, 2) +
                     tli_count_array(nodes, sizeof *run->kernel_of) +
                     ((uint64_t)run->desc.kernel_count + 1) * sizeof *run->kernels;
    (void)tli_find_widest_call(run, &outputs);
    bytes += tli_count_call(run) * (1 + (flights ? flights - 1 : 0) + (uint64_t)run->begun_count);
    if (run->saved_of)
        bytes += tli_count_array(nodes, sizeof *run->saved_of) +
                 tli_count_array(slot_total * (uint64_t)run->saved_count, sizeof(tli_buffer));
    if (run->all_spilled) bytes += tli_count_array(slot_total * tensors, sizeof *run->all_spilled);
    if (flights) bytes += flights * (sizeof *run->flights + tli_count_array(outputs + 2, sizeof(tli_held)));
    if (run->begun) bytes += (uint64_t)run->begun_count * sizeof *run->begun;
    if (run->own_blocks) bytes += tli_count_array((uint64_t)run->plan.block_count, sizeof *run->own_blocks);
    return bytes + (uint64_t)run->plan.block_count * sizeof(uint64_t);    // handles of their blocks
}

#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
static uint64_t tli_count_applied(const tl_precision_graph *applied) {
    uint64_t nodes = (uint64_t)applied->graph.node_count, tensors = (uint64_t)applied->graph.tensor_count;
    if (!applied->memory) return 0;
    nodes += (uint64_t)((const int32_t *)(const void *)applied->formats - applied->new_nodes);  // and old ones
    return tli_count_graph(&applied->graph) +
           tli_count_array(tensors * (sizeof *applied->quantizations + 1) + nodes * sizeof *applied->nodes +
                           (uint64_t)applied->graph.node_count, 1);
}

// What a strategy was compiled to: the plan, its graphs, and the map of these.
static uint64_t tli_count_compiled(const tl_compiled_plan *compiled) {
    const tli_compiled *own = (const tli_compiled *)compiled->memory;
    uint64_t bytes;
    if (!own) return 0;
    bytes = sizeof *own + tli_count_plan(&compiled->plan, 1) + tli_count_fusion(&own->fusion) +
            tli_count_applied(&own->applied);
    if (own->source.nodes) bytes += tli_count_graph(&own->source);
    if (own->map)
        bytes += tli_count_array(2 * ((uint64_t)compiled->source->node_count +
                                      (uint64_t)compiled->graph->node_count) + 1 +
                                 (uint64_t)compiled->source->tensor_count, sizeof *own->map);
    return bytes;
}

static uint64_t tli_count_messages(const tl_run *run) {
    if (!run->messages) return 0;
    return sizeof *run->messages + (run->in_pass ? sizeof *run->in_pass : 0) +
           (run->messages->numbers ? tli_count_array((uint64_t)run->graph->node_count, sizeof(int32_t)) : 0);
}
#endif

// All that the run keeps, but for the plans of ranks that it has compiled by itself.
static uint64_t tli_count_tables(const tl_run *run) {
    uint64_t bytes = tli_count_state(run) + tli_count_graph(&run->op_graph);
    if (run->owns_plan) bytes += tli_count_plan(&run->plan, !run->own_blocks);
    if (run->owns_nodes) bytes += tli_count_scaled(&run->own_graph) + tli_count_scaled(&run->own_source);
#ifndef TL_NO_ONLINE
    bytes += tli_count_online(run) + tli_count_reports(run);
#endif
#ifndef TL_NO_PLANNERS
    bytes += tli_count_cache(run) + tli_count_fusion(&run->own_fusion);
    if (run->rows)
        bytes += tli_count_rows(run);
    else if (run->members.outer)
        bytes += tli_count_array(2 * (uint64_t)run->members.graph->node_count, sizeof *run->members.outer);
#ifndef TL_NO_ONLINE
    bytes += tli_count_hybrid(run);
#endif
#ifndef TL_NO_PRECISION
    bytes += tli_count_messages(run) + tli_count_compiled(&run->own_compiled);
#endif
#endif
    return bytes;
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
