#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- ranks: what a stage would take --
//
// The nodes stand in units, between which may be cut: one node each, or several where there are many. A stage
// is a range of them. What it takes is estimated from sums: of f micro-batches in flight each holds what
// keeping everything holds at the turn; where that is too much, the tensors that cost least for each byte to
// make again are dropped, until the rest fits. That is less than any plan takes which drops the same ones, and
// it is corrected by stages that have been planned: one that has more nodes and as many micro-batches in flight
// takes no less, and no less of its calls run again.

#define TLI_CUT_UNITS 256    // at most, where the bytes of stages are asked

// Sums over the units before this one.
typedef struct tli_cut_sums {
    uint64_t forward, backward;     // costs
    uint64_t held;                  // bytes between the forward and the backward of a micro-batch
    uint64_t kept;                  // results, of every micro-batch
    uint64_t parameters;
} tli_cut_sums;

typedef struct tli_cut_unit {
    tli_cut_sums before;
    int32_t  first_node;            // its nodes end where those of the next begin
    int32_t  first_read;            // into tli_cuts.reads
    uint64_t droppable, remake;     // of held, what may be dropped, and what it costs to make that again
    uint64_t work;                  // bytes of the largest call: what it makes, and scratch
    uint64_t crossing;              // bytes of the tensors that are made before it and read from there on
} tli_cut_unit;

// A unit reads an input of the graph, or its backwards read a tensor of another unit.
typedef struct tli_cut_read {
    int32_t  maker;                 // the unit; -1 = an input
    int32_t  previous;              // the last unit before that reads it in the same way; -1 = none
    uint64_t bytes;
} tli_cut_read;

// A stage that has been planned.
typedef struct tli_stage_plan {
    int32_t        rank;
    uint64_t       least_bytes;     // of its rank, that would do; 0 = it fits
    uint64_t       cost, base_cost; // of a micro-batch; where everything is kept
    tl_rank_plan   plan;
    tli_rank_stage stage;
} tli_stage_plan;

typedef struct tli_cuts {
    tl_env              *env;
    const tl_ranks_desc *desc;
    tli_cut_unit        *units;     // [unit_count + 1] the last one holds all sums
    int32_t              unit_count;
    tli_cut_read        *reads;
    int32_t             *order;     // [unit_count] units, those that cost least to make again first
    tl_unit             *chain;     // [unit_count] what tl_plan_partition is told of them
    tli_stage_plan      *known;     // [known_count]
    int32_t              known_count, known_limit;
    tli_stage_plan      *chosen;    // [rank_count] of the cut that is taken
    uint64_t            *times;     // [3 x all stages] scratch of tli_time_cut
    int                  is_small;  // 1 = all cuts are tried
    int                  by_time;   // 1 = bytes are not looked at
    int                  is_tight;  // 1 = the cut that takes the fewest bytes is looked for, 0 = the least time
} tli_cuts;

// The bytes that a rank may take; 0 = no limit.
static uint64_t tli_budget_of_rank(const tl_ranks_desc *desc, int32_t rank) {
    return desc->ranks ? desc->ranks[rank].budget_bytes : desc->budget_bytes;
}

static int tli_has_budget(const tl_ranks_desc *desc) {
    int32_t rank;
    for (rank = 0; rank < desc->rank_count; rank++)
        if (tli_budget_of_rank(desc, rank)) return 1;
    return 0;
}

// Micro-batches in flight at a rank.
static uint64_t tli_in_flight_of(const tl_ranks_desc *desc, int32_t rank) {
    int32_t after = desc->rank_count - rank;
    if (desc->inference) return 1;
    if (desc->pipeline == TL_PIPELINE_1F1B && after < desc->micro_batch_count) return (uint64_t)after;
    return (uint64_t)desc->micro_batch_count;
}

// -- units --

// Find what a micro-batch holds at the turn, where everything is kept. ran: [nodes] 0, scratch.
static tl_result tli_find_held_nodes(tl_env *env, const tl_ranks_desc *desc, uint8_t *kept, uint8_t *ran) {
    const tl_graph *graph = desc->graph;
    tl_plan plan;
    int32_t turn, i, k;
    tl_result result = tl_plan_keep_all(env, graph, desc->inference, &plan);
    turn = result ? 0 : tli_find_turn(&plan, 0, graph->node_count, ran);
    for (i = 0; i < turn; i++) {
        const tl_step *step = &plan.steps[i];
        const tl_node *node = &graph->nodes[step->node];
        if (step->kind == TL_STEP_FORWARD_SAVE) kept[graph->tensor_count + step->node] = 1;
        if (step->kind == TL_STEP_DROP_SAVED) kept[graph->tensor_count + step->node] = 0;
        if (step->kind == TL_STEP_FORWARD_INPLACE)
            kept[graph->inputs[node->first_input + node->inplace].tensor] = 0;
        for (k = 0; k < node->output_count; k++) {
            if (step->kind < TL_STEP_BACKWARD) kept[node->first_output + k] = 1;
            if (step->kind == TL_STEP_DROP && (step->output == k || step->output == TL_ALL_OUTPUTS))
                kept[node->first_output + k] = 0;
        }
    }
    tl_free_plan(env, &plan);
    return result;
}

// Bytes of the largest call of a node: its outputs, or in a backward their gradients, and scratch.
static uint64_t tli_find_work(const tl_graph *graph, int32_t id, int32_t inference) {
    const tl_node *node = &graph->nodes[id];
    uint64_t outputs = 0, work = node->fwork_bytes;
    int32_t k;
    for (k = 0; k < node->output_count; k++) outputs += graph->outputs[node->first_output + k].bytes;
    if (node->has_grad && !inference) work = tli_larger_u64(work, node->bwork_bytes);
    return outputs + work;
}

// Add a node to the last unit.
static void tli_add_to_unit(tli_cuts *c, const uint8_t *kept, const uint8_t *wanted, int32_t id) {
    const tl_graph *graph = c->desc->graph;
    const tl_node *node = &graph->nodes[id];
    tli_cut_unit *unit = &c->units[c->unit_count - 1], *next = unit + 1;
    uint64_t held = kept[graph->tensor_count + id] ? node->saved_bytes : 0, work;
    int32_t k;
    for (k = 0; k < node->output_count; k++) {
        uint64_t bytes = graph->outputs[node->first_output + k].bytes;
        if (node->keep) next->before.kept += bytes;
        else if (kept[node->first_output + k]) held += bytes;
    }
    if (wanted[id]) next->before.forward += node->fwd_cost;
    if (node->has_grad && !c->desc->inference) next->before.backward += node->bwd_cost;
    next->before.held += held;
    next->before.parameters += node->param_bytes;
    if (held && !node->once) {
        unit->droppable += held;
        unit->remake += node->fwd_cost;
    }
    work = tli_find_work(graph, id, c->desc->inference);
    if (work > unit->work) unit->work = work;
}

static void tli_open_unit(tli_cuts *c, int32_t first_node) {
    tli_cut_unit *unit = &c->units[c->unit_count++];
    unit->first_node = first_node;
    unit[1].before = unit->before;
}

// Whether the last unit ends before the next node, where there are more nodes than `most` units: what is done,
// costs and nodes together, has reached the even share of all for the units so far.
static int tli_ends_unit(const tli_cuts *c, uint64_t done, uint64_t all, int32_t most) {
    return done >= all / (uint64_t)most * (uint64_t)c->unit_count;
}

// Make the units and their sums. kept: tli_find_held_nodes; wanted: tli_mark_wanted.
static void tli_make_units(tli_cuts *c, const uint8_t *kept, const uint8_t *wanted, int32_t most) {
    const tl_graph *graph = c->desc->graph;
    uint64_t all = 0, done = 0, share;
    int32_t id, nodes = 0;
    for (id = 0; id < graph->node_count; id++) nodes += !graph->nodes[id].is_input;
    for (id = 0; id < graph->node_count; id++)
        all += graph->nodes[id].fwd_cost / 4 + graph->nodes[id].bwd_cost / 4;
    share = all / (uint64_t)nodes + 1;
    all += share * (uint64_t)nodes;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        if (node->is_input) continue;
        if (nodes <= most || !c->unit_count || tli_ends_unit(c, done, all, most)) tli_open_unit(c, id);
        tli_add_to_unit(c, kept, wanted, id);
        done += node->fwd_cost / 4 + node->bwd_cost / 4 + share;
    }
    c->units[c->unit_count].first_node = graph->node_count;
}

// Find the unit of each node; what it says of inputs is not used.
static void tli_number_units(const tli_cuts *c, int32_t *unit_of) {
    int32_t id, unit = -1;
    for (id = 0; id < c->desc->graph->node_count; id++) {
        if (unit + 1 < c->unit_count && id == c->units[unit + 1].first_node) unit++;
        unit_of[id] = unit;
    }
}

// Note what a node reads. last: [tensors] the last unit that was noted.
static void tli_note_reads(tli_cuts *c, const int32_t *unit_of, int32_t id, int32_t *last, int32_t *count) {
    const tl_graph *graph = c->desc->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t k;
    for (k = 0; k < node->input_count; k++) {
        const tl_node_input *input = &graph->inputs[node->first_input + k];
        int32_t maker = graph->outputs[input->tensor].node;
        int is_input = graph->nodes[maker].is_input;
        if (!is_input && (!input->needed || !node->has_grad || c->desc->inference)) continue;
        if (last[input->tensor] == unit_of[id] || (!is_input && unit_of[maker] == unit_of[id])) continue;
        c->reads[*count].maker = is_input ? -1 : unit_of[maker];
        c->reads[*count].previous = last[input->tensor];
        c->reads[(*count)++].bytes = graph->outputs[input->tensor].bytes;
        last[input->tensor] = unit_of[id];
    }
}

// Find what units read of others, and what crosses between them. last: [tensors] scratch.
static void tli_find_reads(tli_cuts *c, const int32_t *unit_of, int32_t *last) {
    const tl_graph *graph = c->desc->graph;
    int32_t id, k, count = 0, unit = -1;
    for (k = 0; k < graph->tensor_count; k++) last[k] = -1;
    for (id = 0; id < graph->node_count; id++) {
        if (graph->nodes[id].is_input) continue;
        for (; unit < unit_of[id]; unit++) c->units[unit + 1].first_read = count;
        tli_note_reads(c, unit_of, id, last, &count);
    }
    c->units[c->unit_count].first_read = count;
    tli_find_last_readers(graph, last);
    for (k = 0; k < graph->tensor_count; k++) {
        int32_t maker = graph->outputs[k].node;
        if (graph->nodes[maker].is_input || last[k] < 0) continue;
        for (unit = unit_of[maker] + 1; unit <= unit_of[last[k]]; unit++)
            c->units[unit].crossing += graph->outputs[k].bytes;
    }
}

// Sort units by what a byte costs to make again, free ones first.
static tl_result tli_sort_units(tli_cuts *c) {
    uint64_t *keys = (uint64_t *)tli_alloc_array(c->env, (uint64_t)c->unit_count, sizeof *keys);
    int32_t i;
    if (!keys) return tli_fail_ranks(c->env);
    for (i = 0; i < c->unit_count; i++) {
        const tli_cut_unit *unit = &c->units[i];
        keys[i] = unit->droppable ? tli_fixed_ratio(unit->remake, unit->droppable) : UINT64_MAX;
    }
    tli_sort_numbers(c->order, c->unit_count, keys);
    tli_release(c->env, keys);
    return TL_OK;
}

static tl_result tli_open_cuts(tl_env *env, const tl_ranks_desc *desc, tli_cuts *c) {
    const tl_graph *graph = desc->graph;
    uint64_t nodes = (uint64_t)graph->node_count, tensors = (uint64_t)graph->tensor_count;
    uint64_t ranks = (uint64_t)desc->rank_count;
    uint8_t *kept = (uint8_t *)tli_alloc_array(env, tensors + 2 * nodes, 1);
    int32_t *numbers = (int32_t *)tli_alloc_array(env, tensors + nodes, sizeof *numbers);
    int32_t most = graph->node_count;
    tl_result result;
    tli_zero(c, sizeof *c);
    c->env = env;
    c->desc = desc;
    if (tli_has_budget(desc)) most = TLI_CUT_UNITS;
    if (most < 2 * tli_count_all_stages(desc)) most = 2 * tli_count_all_stages(desc);
    c->units = (tli_cut_unit *)tli_alloc_array(env, nodes + 1, sizeof *c->units);
    c->reads = (tli_cut_read *)tli_alloc_array(env, (uint64_t)graph->input_count + 1, sizeof *c->reads);
    c->order = (int32_t *)tli_alloc_array(env, nodes, sizeof *c->order);
    c->chain = (tl_unit *)tli_alloc_array(env, nodes, sizeof *c->chain);
    c->chosen = (tli_stage_plan *)tli_alloc_array(env, ranks, sizeof *c->chosen);
    result = kept && numbers && c->units && c->reads && c->order && c->chain && c->chosen
        ? TL_OK : tli_fail_ranks(env);
    if (!result) result = tli_find_held_nodes(env, desc, kept, kept + tensors + nodes);
    if (!result) {
        tli_mark_wanted(graph, desc->inference, kept + tensors + nodes);
        tli_make_units(c, kept, kept + tensors + nodes, most);
        tli_number_units(c, numbers + tensors);
        tli_find_reads(c, numbers + tensors, numbers);
        result = tli_sort_units(c);
    }
    tli_release(env, kept);
    tli_release(env, numbers);
    return result;
}

// Free the plans of stages.
static void tli_free_stages(tl_env *env, tli_stage_plan *stages, int32_t count) {
    int32_t i;
    for (i = 0; i < count; i++) {
        tl_free_plan(env, &stages[i].plan.compiled.plan);
        tl_free_graph(env, &stages[i].stage.graph);
        tli_release(env, stages[i].stage.map);
        tli_release(env, stages[i].stage.formats);
        tli_zero(&stages[i], sizeof stages[i]);
    }
}

static void tli_close_cuts(tli_cuts *c) {
    tli_free_stages(c->env, c->known, c->known_count);
    if (c->chosen) tli_free_stages(c->env, c->chosen, c->desc->rank_count);
    tli_release(c->env, c->units);
    tli_release(c->env, c->reads);
    tli_release(c->env, c->order);
    tli_release(c->env, c->chain);
    tli_release(c->env, c->times);
    tli_release(c->env, c->known);
    tli_release(c->env, c->chosen);
}

// -- stages --

// The first node of a stage that begins with a unit: inputs before the first one are its own.
static int32_t tli_first_node_of(const tli_cuts *c, int32_t unit) {
    return unit ? c->units[unit].first_node : 0;
}

// The planned stage of a rank; NULL = there is none.
static tli_stage_plan *tli_find_known(const tli_cuts *c, int32_t rank, int32_t first, int32_t end) {
    int32_t first_node = tli_first_node_of(c, first), end_node = tli_first_node_of(c, end), i;
    for (i = 0; i < c->known_count; i++) {
        tli_stage_plan *known = &c->known[i];
        if (known->rank == rank && known->plan.first_node == first_node && known->plan.end_node == end_node)
            return known;
    }
    return NULL;
}

// Costs of keeping everything.
static uint64_t tli_base_cost(const tli_cuts *c, int32_t rank, int32_t first, int32_t end) {
    const tli_cut_sums *from = &c->units[first].before, *to = &c->units[end].before;
    return tli_cost_on_rank(tli_rank_of(c->desc, rank),
                            to->forward - from->forward + to->backward - from->backward);
}

// Raise an estimate to what planned stages that are a part of this one take. *more: cost of what runs again.
static void tli_correct_stage(const tli_cuts *c, int32_t rank, int32_t first, int32_t end, uint64_t budget,
                              uint64_t *more, tl_stage_cell *cell) {
    int32_t first_node = tli_first_node_of(c, first), end_node = tli_first_node_of(c, end), i;
    for (i = 0; i < c->known_count; i++) {
        const tli_stage_plan *known = &c->known[i];
        if (known->plan.first_node < first_node || known->plan.end_node > end_node) continue;
        if (tli_in_flight_of(c->desc, known->rank) > tli_in_flight_of(c->desc, rank)) continue;
        if (known->least_bytes > cell->bytes) cell->bytes = known->least_bytes;
        if (c->is_tight || known->least_bytes || tli_budget_of_rank(c->desc, known->rank) < budget) continue;
        if (known->cost > known->base_cost) *more = tli_larger_u64(*more, known->cost - known->base_cost);
    }
}

// Bytes of the tensors that a stage reads: received = 0: inputs of the graph; 1: what its backwards read of
// other stages, which cannot be made again.
static uint64_t tli_count_reads(const tli_cuts *c, int32_t first, int32_t end, int received) {
    uint64_t sum = 0;
    int32_t i;
    for (i = c->units[first].first_read; i < c->units[end].first_read; i++) {
        const tli_cut_read *read = &c->reads[i];
        if ((read->maker >= 0) == received && read->maker < first && read->previous < first) sum += read->bytes;
    }
    return sum;
}

// Bytes that a stage takes once, whatever is dropped: weights, inputs and results of all micro-batches.
static uint64_t tli_count_fixed_bytes(const tli_cuts *c, int32_t first, int32_t end) {
    const tl_ranks_desc *desc = c->desc;
    const tli_cut_sums *from = &c->units[first].before, *to = &c->units[end].before;
    uint64_t weights = desc->weights_apart ? 0 : to->parameters - from->parameters, base, all;
    uint64_t fixed = to->kept - from->kept + tli_count_reads(c, first, end, 0);
    if (!tli_find_base_of(weights, desc->gradient_ratio, desc->optimizer_ratio, &base)) return UINT64_MAX;
    if (!tli_mul_u64(fixed, (uint64_t)desc->micro_batch_count, &all)) return UINT64_MAX;
    return tli_add_capped(tli_add_capped(base, all), desc->base_bytes);
}

// Bytes of the largest call of a stage.
static uint64_t tli_find_largest_call(const tli_cuts *c, int32_t first, int32_t end) {
    uint64_t work = 0;
    int32_t i;
    for (i = first; i < end; i++) work = tli_larger_u64(work, c->units[i].work);
    return work;
}

// What f micro-batches take that hold so much each: all f at the turn, or all but one while that one works.
static uint64_t tli_bytes_in_flight(uint64_t held, uint64_t work, uint64_t in_flight) {
    uint64_t bytes;
    work = tli_larger_u64(held, work);
    return tli_mul_u64(held, in_flight - 1, &bytes) ? tli_add_capped(bytes, work) : UINT64_MAX;
}

// How much a micro-batch may hold within the room of all in flight: what tli_bytes_in_flight takes then fits.
static uint64_t tli_share_room(uint64_t room, uint64_t work, uint64_t in_flight) {
    if (room / in_flight >= work || in_flight == 1) return room / in_flight;
    return room > work ? (room - work) / (in_flight - 1) : 0;
}

// Drop until what a micro-batch holds is within the room. *rest: what is held then. Returns what it costs to
// make again what was dropped.
static uint64_t tli_drop_held(const tli_cuts *c, int32_t first, int32_t end, uint64_t room, uint64_t *rest) {
    uint64_t held = c->units[end].before.held - c->units[first].before.held, cost = 0;
    int32_t i;
    for (i = 0; i < c->unit_count && held > room && !c->desc->keep_all; i++) {
        const tli_cut_unit *unit = &c->units[c->order[i]];
        uint64_t drop = unit->droppable;
        if (c->order[i] < first || c->order[i] >= end || !drop) continue;
        if (drop > held - room) {       // a part: what runs again is a whole call, but it is a bound
            cost += (uint64_t)((double)unit->remake * ((double)(held - room) / (double)drop));
            held = room;
        } else {
            cost += unit->remake;
            held -= drop;
        }
    }
    *rest = held;
    return cost;
}

// Estimate time and bytes of a stage on a rank.
static void tli_estimate_stage(const tli_cuts *c, int32_t rank, int32_t first, int32_t end,
                               tl_stage_cell *cell) {
    uint64_t budget = tli_budget_of_rank(c->desc, rank), in_flight = tli_in_flight_of(c->desc, rank);
    uint64_t fixed, received, work, held, room, more;
    const tli_stage_plan *known = tli_find_known(c, rank, first, end);
    if (!budget || c->is_tight) budget = c->is_tight ? 0 : UINT64_MAX;
    if (known) {
        cell->time_ns = known->cost;
        cell->bytes = known->least_bytes;
        cell->fits = !known->least_bytes;
        if (cell->fits) cell->bytes = known->plan.base_bytes + known->plan.compiled.plan.arena_bytes;
        return;
    }
    fixed = tli_count_fixed_bytes(c, first, end);
    received = tli_count_reads(c, first, end, 1);
    work = tli_find_largest_call(c, first, end);
    room = fixed < budget ? tli_share_room(budget - fixed, work, in_flight) : 0;
    more = tli_drop_held(c, first, end, room > received ? room - received : 0, &held);
    cell->bytes = tli_add_capped(fixed, tli_bytes_in_flight(tli_add_capped(held, received), work, in_flight));
    more = tli_cost_on_rank(tli_rank_of(c->desc, rank), more);
    tli_correct_stage(c, rank, first, end, budget, &more, cell);
    cell->time_ns = tli_add_capped(tli_base_cost(c, rank, first, end), more);
    cell->fits = cell->bytes <= budget;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
