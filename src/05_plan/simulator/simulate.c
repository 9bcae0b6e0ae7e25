#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- replay from the first step to the end --
//
// A plan is replayed from the graph's inputs and its entry on, step by step, up to the comparison at the end:
// each result is there, and each offset was used. The figures of the report are those of the state.

// Whether a step is one that an input that dies takes.
static int tli_moves_input(tl_step_kind kind) {
    return kind == TL_STEP_DROP || kind == TL_STEP_SPILL || kind == TL_STEP_FETCH || kind == TL_STEP_WAIT ||
           kind == TL_STEP_DROP_HOST;
}

static tl_result tli_sim_check_step(tli_sim *sim, const tl_step *step) {
    const tl_graph *graph = sim->graph;
    int packs = step->kind == TL_STEP_COMPRESS;
    if (step->kind >= TL_STEP_COUNT) return tli_sim_broken(sim, TLI_RULE(NO_SUCH_KIND_OF_STEP));
    if (step->slot >= sim->slot_count) return tli_sim_broken(sim, TLI_RULE(NO_SUCH_SLOT));
    if (step->begins &&
        (step->begins != 1 || (step->kind != TL_STEP_FORWARD && step->kind != TL_STEP_BACKWARD)))
        return tli_sim_broken(sim, TLI_RULE(BEGINS_MUST_BE_0));
    if (step->begins && sim->in_flight > 1) return tli_sim_broken(sim, TLI_RULE(BEGINS_ONE_STEP_UNDER_WAY));
    if (step->node < 0 || step->node >= graph->node_count) return tli_sim_broken(sim, TLI_RULE(NO_SUCH_NODE));
    if (graph->nodes[step->node].is_input && !graph->nodes[step->node].state &&
        !(tli_dies(&graph->nodes[step->node]) && tli_moves_input((tl_step_kind)step->kind)))
        return tli_sim_broken(sim, TLI_RULE(INPUT_NODES_TAKE_NO_STEPS));
    if (graph->nodes[step->node].state && (step->kind != TL_STEP_BACKWARD || step->begins))
        return tli_sim_broken(sim, TLI_RULE(STATES_TAKE_UPDATES_ALONE));
    if (tli_acts_on_node((tl_step_kind)step->kind)) {
        if (step->output != TL_ALL_OUTPUTS)
            return tli_sim_broken(sim, TLI_RULE(ACTS_ON_NODE_OUTPUT));
    } else if (step->output < TL_ALL_OUTPUTS || step->output >= graph->nodes[step->node].output_count) {
        return tli_sim_broken(sim, TLI_RULE(NO_SUCH_OUTPUT));
    }
    if (packs && (step->codec == TL_CODEC_NONE || step->codec >= TL_CODEC_COUNT))
        return tli_sim_broken(sim, TLI_RULE(CODEC_MUST_BE_F16_BF16_OR_Q8_2));
    if (!packs && step->codec != TL_CODEC_NONE)
        return tli_sim_broken(sim, TLI_RULE(CODEC_IS_FOR_COMPRESS_ONLY));
    return TL_OK;
}

static tl_result tli_sim_run_step(tli_sim *sim, const tl_step *step) {
    tli_sim_node *node;
    tl_result result = tli_sim_check_step(sim, step);
    if (result) return result;
    tli_sim_choose_slot(sim, step->slot);
    node = &sim->nodes[step->node];
    if (node->under_way) {
        if (step->kind == TL_STEP_WAIT) return tli_sim_end_call(sim, step);
        return tli_sim_broken(sim, TLI_RULE(CALL_IS_UNDER_WAY));
    }
    switch ((tl_step_kind)step->kind) {
    case TL_STEP_FORWARD:
    case TL_STEP_FORWARD_INPLACE:
    case TL_STEP_FORWARD_SAVE: return tli_sim_forward(sim, step->node, (tl_step_kind)step->kind);
    case TL_STEP_BACKWARD: return tli_sim_backward(sim, step->node);
    case TL_STEP_DROP_SAVED:
        if (!node->has_saved) return tli_sim_broken(sim, TLI_RULE(SAVED_BYTES_ARE_NOT_RESIDENT));
        node->has_saved = 0;
        tli_sim_release(sim, TLI_USE_SAVED, step->node, sim->graph->nodes[step->node].saved_bytes);
        return TL_OK;
    case TL_STEP_DROP:
    case TL_STEP_SPILL:
    case TL_STEP_FETCH:
    case TL_STEP_WAIT:
    case TL_STEP_DROP_HOST:
    case TL_STEP_COMPRESS:
    case TL_STEP_EXPAND: return tli_sim_tensor_step(sim, step);
    case TL_STEP_COUNT: break;
    }
    return TL_OK;
}

// Simulate one step. After an error the simulation is over: release it.
static tl_result tli_sim_step(tli_sim *sim, const tl_step *step) {
    tl_result result;
    if (sim->step_count == INT32_MAX)
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(STEPS_DO_NOT_FIT_31_BITS));
    sim->step = step;
    tli_sim_free_late(sim, sim->step_count++);
    sim->step_bytes = sim->live_bytes;
    sim->made_count = 0;
    result = tli_sim_run_step(sim, step);
    if (!result && sim->has_failed)
        result = tli_sim_fail(sim, TL_ERROR_NO_MEMORY, TLI_RULE(NO_MEMORY_FOR_SIMULATION));
    sim->step = NULL;
    TLI_INVARIANT(result || (!sim->call_bytes && tli_sim_holds_often(sim)));
    return result;
}

static int tli_sim_is_result(const tli_sim *sim, int32_t id, int any_keep) {
    const tl_node *node = &sim->graph->nodes[id];
    if (node->keep) return 1;
    return sim->inference && !any_keep && !node->is_input && !sim->nodes[id].is_read;
}

// Check the rules of the end in the present slot.
static tl_result tli_sim_end_slot(tli_sim *sim, int any_keep) {
    const tl_graph *graph = sim->graph;
    int32_t id, i;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        if (!sim->inference && node->has_grad && !sim->nodes[id].done)
            return tli_sim_broken_node(sim, TLI_RULE(NODE_NEVER_RAN_BACKWARD), id);
        if (sim->nodes[id].under_way) return tli_sim_broken_node(sim, TLI_RULE(CALL_HAS_NOT_ENDED), id);
        if (!tli_sim_is_result(sim, id, any_keep)) continue;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (!tli_sim_readable(sim, i))
                return tli_sim_broken_tensor(sim, TLI_RULE(RESULT_IS_NOT_RESIDENT), i);
    }
    return TL_OK;
}

// Check the rules of the end, and complete sim->report.
static tl_result tli_sim_end(tli_sim *sim) {
    const tl_graph *graph = sim->graph;
    int32_t id, slot;
    int any_keep = 0;
    tl_result result = TL_OK;
    sim->made_count = 0;
    tli_sim_free_late(sim, INT32_MAX);
    for (id = 0; id < graph->node_count; id++) any_keep |= graph->nodes[id].keep;
    for (slot = 0; slot < sim->slot_count && !result; slot++) {
        tli_sim_choose_slot(sim, slot);
        result = tli_sim_end_slot(sim, any_keep);
    }
    if (result) return result;
    tli_sim_choose_slot(sim, 0);
    if (sim->arena.offsets && sim->report.allocation_count != sim->arena.count)
        return tli_sim_broken(sim, TLI_RULE(OFFSETS_MORE_THAN_ALLOCATIONS));
    if (sim->host_arena.offsets && sim->report.host_allocation_count != sim->host_arena.count)
        return tli_sim_broken(sim, TLI_RULE(HOST_OFFSETS_MORE_THAN_COPIES));
    sim->report.end_bytes = sim->live_bytes;
    sim->report.end_host_bytes = sim->host_bytes;
    sim->report.cost = sim->now;
    TLI_INVARIANT(tli_sim_holds(sim));
    return TL_OK;
}

// -- a simulation: set-up --

static void tli_free_sim_arena(tl_env *env, tli_sim_arena *arena) {
    tli_release(env, arena->ranks);
    tli_release(env, arena->by_rank);
    tli_release(env, arena->ends);
    tli_release(env, arena->live);
    tli_release(env, arena->places);
    tli_release(env, arena->highs);
    tli_zero(arena, sizeof *arena);
}

static void tli_free_sim(tli_sim *sim) {
    tli_release(sim->env, sim->all_tensors);
    tli_release(sim->env, sim->all_nodes);
    tli_release(sim->env, sim->next_backward);
    tli_release(sim->env, sim->wide_offsets);
    tli_release(sim->env, sim->made);
    tli_release(sim->env, sim->late);
    tli_free_sim_arena(sim->env, &sim->arena);
    tli_free_sim_arena(sim->env, &sim->host_arena);
    tli_zero(sim, sizeof *sim);
}

// An upper bound on the allocations of one step, and of the graph inputs of a slot before the first step.
static uint64_t tli_sim_most_made(const tl_graph *graph) {
    uint64_t most = 0, inputs = 0;
    int32_t id;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        uint64_t made = (uint64_t)node->output_count + (uint64_t)node->input_count + 2;
        if (made > most) most = made;
        if (node->is_input) inputs += (uint64_t)node->output_count;
    }
    return most > inputs ? most : inputs;
}

// Get what checks the offsets of an arena, if it has some. 0 = no memory.
static int tli_sim_alloc_arena(tl_env *env, tli_sim_arena *arena) {
    uint64_t count = (uint64_t)arena->count;
    int32_t rank;
    if (!arena->offsets) return 1;
    arena->leaf_count = 1;
    while (arena->leaf_count < arena->count && arena->leaf_count <= INT32_MAX / 4) arena->leaf_count *= 2;
    arena->places = (int32_t *)tli_alloc_array(env, (uint64_t)arena->owner_count, sizeof *arena->places);
    arena->ranks = (int32_t *)tli_alloc_array(env, count, sizeof *arena->ranks);
    arena->by_rank = (int32_t *)tli_alloc_array(env, count, sizeof *arena->by_rank);
    arena->ends = (uint64_t *)tli_alloc_array(env, count, sizeof *arena->ends);
    arena->live = (uint8_t *)tli_alloc_array(env, 2 * (uint64_t)arena->leaf_count, 1);
    arena->highs = (uint64_t *)tli_alloc_array(env, (uint64_t)arena->block_count + 1, sizeof *arena->highs);
    if (!arena->places || !arena->ranks || !arena->by_rank || !arena->ends || !arena->live || !arena->highs)
        return 0;
    tli_sort_numbers(arena->by_rank, arena->count, arena->offsets);
    for (rank = 0; rank < arena->count; rank++) arena->ranks[arena->by_rank[rank]] = rank;
    return arena->leaf_count >= arena->count;
}

static void tli_reset_sim_arena(tli_sim_arena *arena) {
    int32_t i;
    if (!arena->offsets) return;
    for (i = 0; i < arena->owner_count; i++) arena->places[i] = -1;
    tli_zero(arena->live, 2 * (size_t)arena->leaf_count);
    tli_zero(arena->highs, ((size_t)arena->block_count + 1) * sizeof *arena->highs);
}

static tl_result tli_sim_alloc_state(tli_sim *sim) {
    uint64_t tensors = (uint64_t)sim->graph->tensor_count, nodes = (uint64_t)sim->graph->node_count;
    uint64_t most = tli_sim_most_made(sim->graph), slot_total = (uint64_t)sim->slot_count;
    uint64_t owners = slot_total * (3 * tensors + nodes);  // no overflow: slots fit 17 bits
    if (owners > INT32_MAX) return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(GRAPH_TOO_MANY_TENSORS));
    sim->arena.owner_count = (int32_t)owners;
    sim->host_arena.owner_count = (int32_t)(slot_total * tensors);
    sim->all_tensors = (tli_sim_tensor *)tli_alloc_array(sim->env, slot_total * tensors, sizeof *sim->tensors);
    sim->all_nodes = (tli_sim_node *)tli_alloc_array(sim->env, slot_total * nodes, sizeof *sim->nodes);
    sim->next_backward = (int32_t *)tli_alloc_array(sim->env, slot_total, sizeof *sim->next_backward);
    sim->made = (tli_made *)tli_alloc_array(sim->env, most, sizeof *sim->made);
    if (!sim->all_tensors || !sim->all_nodes || !sim->next_backward || !sim->made ||
        !tli_sim_alloc_arena(sim->env, &sim->arena) || !tli_sim_alloc_arena(sim->env, &sim->host_arena))
        return tli_fail(sim->env, TL_ERROR_NO_MEMORY, sim->function, TLI_RULE(NO_MEMORY_FOR_SIMULATION));
    return TL_OK;
}

// Set what depends on the graph only, in the present slot: readers, the first backward. Returns the base cost,
// which fits 64 bits: tl_check_graph.
static uint64_t tli_sim_read_graph(tli_sim *sim) {
    const tl_graph *graph = sim->graph;
    uint64_t cost = 0;
    int32_t id, i;
    sim->next_backward[sim->slot] = -1;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        cost += node->fwd_cost + (!sim->inference && node->has_grad ? node->bwd_cost : 0);
        if (tli_sim_is_ordered(graph, id)) sim->next_backward[sim->slot] = id;
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            tli_sim_node *maker = &sim->nodes[graph->outputs[graph->inputs[i].tensor].node];
            maker->is_read = 1;
            maker->waits_for += node->has_grad;
        }
    }
    return cost;
}

// Make a slot ready: its graph inputs are resident.
static tl_result tli_sim_start_slot(tli_sim *sim, int32_t slot) {
    const tl_graph *graph = sim->graph;
    uint64_t *cost = &sim->report.base_cost;
    tl_result result = TL_OK;
    int32_t i;
    tli_sim_choose_slot(sim, slot);
    sim->made_count = 0;
    if (!tli_add_u64(*cost, tli_sim_read_graph(sim), cost))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(COST_DOES_NOT_FIT_64_BITS));
    for (i = 0; i < graph->tensor_count && !result; i++) {
        if (!graph->nodes[graph->outputs[i].node].is_input) continue;
        sim->tensors[i].state = TLI_RESIDENT;
        result = tli_sim_alloc(sim, TLI_USE_TENSOR, i, graph->outputs[i].bytes);
    }
    TLI_INVARIANT(result || tli_sim_call_holds(sim));
    return result;
}

// A tensor of the entry is resident.
static tl_result tli_sim_enter(tli_sim *sim, int32_t index) {
    const tl_graph *graph = sim->graph;
    const tl_entry *entry = &sim->entry[index];
    int is_node = entry->node >= 0 && entry->node < graph->node_count;
    const tl_node *node = is_node ? &graph->nodes[entry->node] : NULL;
    tli_rule rule = TLI_NO_RULE;
    int32_t tensor, i;
    sim->made_count = 0;
    if (!node) rule = TLI_RULE(ENTRY_NAMES_NO_NODE);
    else if (node->is_input) rule = TLI_RULE(ENTRY_NAMES_GRAPH_INPUT);
    else if (entry->output < 0 || entry->output >= node->output_count) rule = TLI_RULE(ENTRY_NAMES_NO_OUTPUT);
    else if (entry->slot < 0 || entry->slot >= sim->slot_count) rule = TLI_RULE(ENTRY_NAMES_NO_SLOT);
    if (rule) return tli_sim_fail_entry(sim, rule, index);
    tli_sim_choose_slot(sim, entry->slot);
    tensor = node->first_output + entry->output;
    if (sim->tensors[tensor].state != TLI_ABSENT)
        return tli_sim_fail_entry(sim, TLI_RULE(ENTRY_NAMES_TENSOR_TWICE), index);
    sim->tensors[tensor].state = TLI_RESIDENT;
    i = 0;
    while (i < node->output_count && sim->tensors[node->first_output + i].state != TLI_ABSENT) i++;
    sim->nodes[entry->node].enters = i == node->output_count;
    TLI_INVARIANT(!sim->call_bytes);
    return tli_sim_alloc(sim, TLI_USE_TENSOR, tensor, graph->outputs[tensor].bytes);
}

// Return to the state before the first step, without allocating.
static tl_result tli_reset_sim(tli_sim *sim) {
    size_t slot_total = (size_t)sim->slot_count;
    tl_result result = TL_OK;
    int32_t slot, i;
    tli_zero(sim->all_tensors, slot_total * (size_t)sim->graph->tensor_count * sizeof *sim->tensors);
    tli_zero(sim->all_nodes, slot_total * (size_t)sim->graph->node_count * sizeof *sim->nodes);
    tli_zero(&sim->report, sizeof sim->report);
    sim->report.broken_step = -1;
    sim->report.peak_step = -1;
    sim->live_bytes = sim->host_bytes = sim->step_bytes = sim->call_bytes = 0;
    sim->now = 0;
    tli_reset_copy_clock(&sim->copies);
    sim->step = NULL;
    sim->step_count = sim->made_count = 0;
    sim->late_first = sim->late_count = 0;
    tli_reset_sim_arena(&sim->arena);
    tli_reset_sim_arena(&sim->host_arena);
    for (slot = 0; slot < sim->slot_count && !result; slot++) result = tli_sim_start_slot(sim, slot);
    for (i = 0; i < sim->entry_count && !result; i++) result = tli_sim_enter(sim, i);
    if (!result) tli_sim_choose_slot(sim, 0);
    TLI_INVARIANT(result || tli_sim_holds(sim));
    return result;
}

// The blocks of a tier among those of a plan.
static void tli_sim_take_blocks(tli_sim_arena *arena, const tl_plan *plan, uint8_t tier) {
    int32_t k;
    for (k = 0; k < plan->block_count && plan->blocks[k].tier < tier; k++) { }
    arena->first_block = k;
    for (; k < plan->block_count && plan->blocks[k].tier == tier; k++) arena->block_count++;
    arena->blocks = arena->block_count ? plan->blocks + arena->first_block : NULL;
}

// Find the offsets of both arenas: those of a plan, or the numbers of a narrow one as plain ones.
static tl_result tli_sim_read_offsets(tli_sim *sim, const tl_plan *plan) {
    int reads = plan->offset_count && !plan->offsets;
    int reads_host = plan->host_offset_count && !plan->host_offsets;
    uint64_t *wide = NULL;
    int32_t i, k, count = 0;
    sim->arena.offsets = plan->offset_count ? plan->offsets : NULL;
    sim->host_arena.offsets = plan->host_offset_count ? plan->host_offsets : NULL;
    if (!reads && !reads_host) return TL_OK;
    wide = sim->wide_offsets = (uint64_t *)tli_alloc_array(
        sim->env, (uint64_t)plan->offset_count + (uint64_t)plan->host_offset_count, sizeof *wide);
    if (!wide) return tli_fail(sim->env, TL_ERROR_NO_MEMORY, sim->function, TLI_RULE(NO_MEMORY_FOR_SIMULATION));
    for (k = 0; k < 2; k++) {
        tli_sim_arena *arena = k ? &sim->host_arena : &sim->arena;
        if (!(k ? reads_host : reads)) continue;
        arena->offsets = wide + count;
        for (i = 0; i < arena->count; i++)
            if (!tli_mul_u64(tli_narrow_offset(plan->narrow, i, k), plan->narrow->unit_bytes, &wide[count++]))
                return tli_fail(sim->env, TL_ERROR_OVERFLOW, sim->function,
                                TLI_RULE(OFFSETS_OFFSET_BYTES_DOES_NOT_FIT_64));
    }
    return TL_OK;
}

// Take what copies and allocations cost. device: NULL = no time, and nothing is rounded.
static void tli_sim_read_device(tli_sim *sim, const tl_device *device, uint64_t alignment) {
    tli_init_copy_clock(&sim->copies, device);
    sim->alignment = alignment ? alignment : 1;
    if (!device) return;
    sim->link_rates[0] = tli_copy_rate(device, 0);
    sim->link_rates[1] = tli_copy_rate(device, 1);
    sim->link_latency = device->link_latency_ns;
    sim->codec_rate = device->codec_bytes_per_second;
    if (device->alignment_bytes > sim->alignment) sim->alignment = device->alignment_bytes;
}

// Start a simulation of a graph that passed tl_check_graph. Of the plan flags, alignment, slots, in_flight,
// entry, offsets and blocks are read, not the steps; its arrays must outlive the simulation. Release it with
// tli_free_sim, also after an error. ledger: NULL = none.
static tl_result tli_init_sim(tl_env *env, tli_sim *sim, tli_function function, const tl_graph *graph,
                              const tl_device *device, const tl_plan *plan, tli_ledger *ledger) {
    tl_result result;
    tli_zero(sim, sizeof *sim);
    sim->env = env;
    sim->function = function;
    sim->graph = graph;
    sim->slot_count = tli_count_slots(plan);
    sim->entry = plan->entry;
    sim->entry_count = plan->entry_count;
    sim->inference = plan->inference;
    sim->any_order = plan->any_order;
    sim->in_flight = tli_count_in_flight(plan);
    tli_sim_read_device(sim, device, plan->alignment_bytes);
    sim->arena.count = plan->offset_count;
    sim->host_arena.count = plan->host_offset_count;
    sim->host_arena.is_host = 1;
    tli_sim_take_blocks(&sim->arena, plan, 0);
    tli_sim_take_blocks(&sim->host_arena, plan, 1);
    sim->ledger = ledger;
    sim->report.broken_step = -1;
    result = tli_sim_read_offsets(sim, plan);
    if (!result) result = tli_sim_alloc_state(sim);
    return result ? result : tli_reset_sim(sim);
}

// -- simulating and measuring plans --

static void tli_sim_copy_highs(const tli_sim_arena *arena, uint64_t *bytes) {
    if (arena->offsets && arena->block_count)
        tli_copy(bytes + arena->first_block, arena->highs, (size_t)arena->block_count * sizeof *bytes);
}

// Simulate a plan on a graph and a device that were checked.
static tl_result tli_simulate(tl_env *env, tli_function function, const tl_simulate_desc *desc,
                              tli_ledger *ledger, tl_report *report) {
    const tl_plan *plan = desc->plan;
    tli_sim sim;
    int32_t i;
    tl_result result = tli_init_sim(env, &sim, function, desc->graph, desc->device, plan, ledger);
    for (i = 0; i < plan->step_count && !result; i++) {
        tl_step step = tl_find_step(plan, i);
        int copies = step.kind == TL_STEP_SPILL || step.kind == TL_STEP_FETCH;
        const uint64_t *free_at =
            &sim.copies.free_at[tli_copy_channel(&sim.copies, step.kind == TL_STEP_FETCH)];
        uint64_t start = copies && *free_at > sim.now ? *free_at : sim.now;
        result = tli_sim_step(&sim, &step);
        if (desc->live_bytes) desc->live_bytes[i] = sim.step_bytes;
        if (desc->host_bytes) desc->host_bytes[i] = sim.host_bytes;
        if (desc->start_cost) desc->start_cost[i] = start;
        if (desc->end_cost) desc->end_cost[i] = copies && *free_at > sim.now ? *free_at : sim.now;
    }
    if (!result) result = tli_sim_end(&sim);
    for (i = 0; i < plan->block_count && desc->block_bytes; i++) desc->block_bytes[i] = 0;
    if (!result && desc->block_bytes) {
        tli_sim_copy_highs(&sim.arena, desc->block_bytes);
        tli_sim_copy_highs(&sim.host_arena, desc->block_bytes);
    }
    if (result) {
        i = sim.report.broken_step;
        tli_zero(&sim.report, sizeof sim.report);
        sim.report.broken_step = i;
    }
    *report = sim.report;
    tli_free_sim(&sim);
    return result;
}

// Check the blocks of a plan, of which the alignment was checked.
static tl_result tli_check_plan_blocks(tl_env *env, tli_function function, const tl_plan *plan) {
    uint64_t alignment = plan->alignment_bytes ? plan->alignment_bytes : 1, end;
    int32_t k;
    if (plan->block_count < 0 || (plan->block_count && !plan->blocks))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(BLOCK_COUNT_MUST_BE_NUMBER_OF_BLOCKS));
    for (k = 0; k < plan->block_count; k++) {
        const tl_plan_block *block = &plan->blocks[k], *before = k ? block - 1 : NULL;
        tli_rule why = TLI_NO_RULE;
        if (block->tier > 1 || block->bank >= TL_MOST_BANKS || block->reserved)
            why = TLI_RULE(BLOCK_IS_OF_NO_BANK);
        else if (!block->bytes || block->offset & (alignment - 1) ||
                 !tli_add_u64(block->offset, block->bytes, &end))
            why = TLI_RULE(BLOCK_LEAVES_TIER);
        else if (before && (before->tier > block->tier || (before->tier == block->tier &&
                                                           before->offset + before->bytes > block->offset)))
            why = TLI_RULE(BLOCKS_OVERLAP);
        if (why) return tli_fail_values(env, TL_ERROR_INVALID_ARG, function, why, (uint64_t)k, 0);
    }
    return TL_OK;
}

// Whether the narrow part of a plan can be read; of one without, too.
static int tli_is_narrow_plan(const tl_narrow_plan *narrow) {
    return !narrow || ((narrow->step_words == 2 || narrow->step_words == 3) && narrow->unit_bytes &&
                       (narrow->offset_bytes == 2 || narrow->offset_bytes == 4));
}

static tl_result tli_check_plan(tl_env *env, tli_function function, const tl_plan *plan) {
    const tl_narrow_plan *narrow = plan->narrow;
    if (!tli_is_narrow_plan(narrow))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(NARROW_MUST_HAVE_WIDTHS_AND_UNIT));
    if (plan->step_count < 0 || (plan->step_count && !plan->steps && !(narrow && narrow->steps)))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(STEP_COUNT_MUST_BE_NUMBER_OF_STEPS));
    if (plan->offset_count < 0 || (plan->offset_count && !plan->offsets && !(narrow && narrow->offsets)))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(OFFSET_COUNT_MUST_BE_NUMBER_OF_OFFSETS));
    if (plan->host_offset_count < 0 ||
        (plan->host_offset_count && !plan->host_offsets && !(narrow && narrow->host_offsets)))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function,
                        TLI_RULE(HOST_OFFSET_COUNT_MUST_BE_NUMBER_OF_OFFSETS));
    if (plan->repeat_count < 0)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(REPEAT_COUNT_MUST_BE_NOT_NEGATIVE));
    if (plan->entry_count < 0 || (plan->entry_count && !plan->entry))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(ENTRY_COUNT_MUST_BE_NUMBER_OF_TENSORS));
    if (plan->slot_count < 0 || plan->slot_count > TLI_MOST_SLOTS)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(SLOT_COUNT_MUST_BE_AT_MOST_65536));
    if (plan->alignment_bytes & (plan->alignment_bytes - 1 + !plan->alignment_bytes))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(ALIGNMENT_BYTES_MUST_BE_0_OR_POWER));
    if ((plan->inference != 0 && plan->inference != 1) || (plan->any_order != 0 && plan->any_order != 1))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(INFERENCE_ANY_ORDER_MUST_BE_0_OR_1));
    if (plan->in_flight < 0)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(IN_FLIGHT_MUST_BE_NOT_NEGATIVE));
    return tli_check_plan_blocks(env, function, plan);
}

// Where the steps are repeated, several passes add to a gradient before one updates the state: it holds it
// then. A state is the same for all micro-batches, and each slot has tensors of its own.
static tl_result tli_check_plan_states(tl_env *env, tli_function function, const tl_simulate_desc *desc) {
    int is_repeated = desc->plan->repeat_count > 1 && !desc->plan->inference;
    int has_slots = tli_count_slots(desc->plan) > 1;
    int32_t id;
    for (id = 0; id < desc->graph->node_count && (is_repeated || has_slots); id++) {
        const tl_node *node = &desc->graph->nodes[id];
        tli_rule why = TLI_NO_RULE;
        tli_sentence s;
        if (is_repeated && tli_learns(node) && !tli_is_held(node))
            why = TLI_RULE(REPEATED_STATE_HOLDS_NO_GRADIENT);
        if (has_slots && node->state) why = TLI_RULE(STATE_IS_THE_SAME_IN_ALL_SLOTS);
        if (!why) continue;
        s = tli_begin_error(env, TL_ERROR_INVALID_PLAN, function, why, 0, (uint64_t)id);
        tli_put_text(&s, tl_name_node(desc->graph, id));
        return tli_end_error(env, &s, TL_ERROR_INVALID_PLAN);
    }
    return TL_OK;
}

static tl_result tli_simulate_checked(tl_env *env, tli_function function, const tl_simulate_desc *desc,
                                      tli_ledger *ledger, tl_report *report) {
    tl_result result = tl_check_graph(env, desc->graph);
    tli_zero(report, sizeof *report);
    report->broken_step = -1;
    if (!result && desc->device) result = tl_check_device(env, desc->device);
    if (!result) result = tli_check_plan(env, function, desc->plan);
    if (!result) {
        result = tli_check_plan_states(env, function, desc);
        if (result) report->broken_step = 0;
    }
    return result ? result : tli_simulate(env, function, desc, ledger, report);
}

TLI_IMPL tl_result tl_simulate_plan(tl_env *env, const tl_simulate_desc *desc, tl_report *report) {
    TL_ASSERT(desc && desc->graph && desc->plan && report);
    return tli_simulate_checked(env, TLI_IN(SIMULATE_PLAN), desc, NULL, report);
}

static tl_result tli_measure(tl_env *env, tli_function function, const tl_graph *graph, const tl_device *device,
                             int is_checked, tl_plan *plan) {
    tl_simulate_desc desc;
    tl_report report;
    tl_result result;
    tli_zero(&desc, sizeof desc);
    desc.graph = graph;
    desc.device = device;
    desc.plan = plan;
    result = is_checked ? tli_simulate(env, function, &desc, NULL, &report)
                        : tli_simulate_checked(env, function, &desc, NULL, &report);
    plan->peak_bytes = report.peak_bytes;
    plan->arena_bytes = report.arena_bytes;
    plan->host_peak_bytes = report.host_peak_bytes;
    plan->host_arena_bytes = report.host_arena_bytes;
    plan->cost = report.cost;
    plan->base_cost = report.base_cost;
    return result;
}

TLI_IMPL tl_result tl_measure_plan(tl_env *env, const tl_graph *graph, const tl_device *device,
                                   tl_plan *plan) {
    TL_ASSERT(graph && plan);
    return tli_measure(env, TLI_IN(MEASURE_PLAN), graph, device, 0, plan);
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
