#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- blocks of rows: what a region costs --

// What a call moves: of tensors that are whole in each call, and of those that are cut into blocks.
typedef struct tli_cut_traffic { uint64_t whole, rows; } tli_cut_traffic;

static void tli_count_cut_bytes(tli_cut_traffic *t, uint64_t bytes, int is_whole, uint64_t times) {
    uint64_t *sum = is_whole ? &t->whole : &t->rows, product;
    if (!tli_mul_u64(bytes, times, &product)) product = UINT64_MAX;
    *sum = tli_add_capped(*sum, product);
}

static tli_cut_traffic tli_find_cut_traffic(const tli_cutting *c, int32_t id, tl_step_kind kind) {
    const tl_node *node = &c->graph->nodes[id];
    uint64_t bytes = c->graph->outputs[node->first_output].bytes;
    int backward = kind == TL_STEP_BACKWARD, reduces = tli_cut_reduces(c, id);
    tli_cut_traffic t;
    int32_t k;
    tli_zero(&t, sizeof t);
    for (k = 0; k < node->input_count; k++) {
        int32_t tensor = tli_cut_tensor(c, id, k);
        int is_whole = tli_reads_whole(c, id, k);
        uint64_t size = c->graph->outputs[tensor].bytes;
        if (!backward || c->graph->inputs[node->first_input + k].needed)
            tli_count_cut_bytes(&t, size, is_whole, 1);
        if (backward && tli_is_summed(c->graph, tensor)) tli_count_cut_bytes(&t, size, is_whole, 2);
    }
    tli_count_cut_bytes(&t, bytes, reduces, 1);     // the output, or its gradient
    if (backward && c->graph->outputs[node->first_output].needed) tli_count_cut_bytes(&t, bytes, reduces, 1);
    return t;
}

// What a turn costs: the work of the call for all rows, but for what is whole in each call at least the time to
// move it for each block; and the calls.
static uint64_t tli_find_turn_cost(const tli_cutting *c, const tl_row_turn *turn) {
    int32_t id = c->members[turn->member].node;
    const tl_node *node = &c->graph->nodes[id];
    const tl_device *device = c->desc->device;
    uint64_t cost = turn->kind == TL_STEP_BACKWARD ? node->bwd_cost : node->fwd_cost, call = c->desc->call_cost;
    if (device && device->bytes_per_second && c->block_count > 1) {
        tli_cut_traffic t = tli_find_cut_traffic(c, id, (tl_step_kind)turn->kind);
        uint64_t once = tli_find_traffic_ns(tli_add_capped(t.whole, t.rows), device->bytes_per_second), all;
        if (!tli_mul_u64(t.whole, c->block_count, &all)) all = UINT64_MAX;
        all = tli_find_traffic_ns(tli_add_capped(all, t.rows), device->bytes_per_second);
        once = tli_larger_u64(once, cost);
        if (all > once) cost = tli_add_capped(cost, all - once);
    }
    if (!call && device) call = device->call_latency_ns;
    if (!tli_mul_u64(call, c->block_count - 1, &call)) call = UINT64_MAX;
    return tli_add_capped(cost, call);
}

static uint64_t tli_sum_turn_costs(const tli_cutting *c, const tl_rows_plan *plan, int32_t first, int32_t end) {
    uint64_t cost = 0;
    for (; first < end; first++) cost = tli_add_capped(cost, tli_find_turn_cost(c, &plan->turns[first]));
    return cost;
}

// -- blocks of rows: the graph with regions as nodes --

// Write the members at hand and their links.
static void tli_write_cut_members(const tli_cutting *c, tl_rows_plan *plan) {
    tl_row_member *members = (tl_row_member *)plan->members;
    tl_row_link *links = (tl_row_link *)plan->links;
    int32_t at, k;
    for (at = 0; at < c->count; at++) {
        c->members[at].first_link = plan->link_count;
        members[plan->member_count++] = c->members[at];
        for (k = 0; k < c->graph->nodes[c->members[at].node].input_count; k++) {
            const tl_row_member *maker = tli_cut_maker(c, tli_cut_tensor(c, c->members[at].node, k));
            links[plan->link_count].relation = tli_find_row_relation(c->graph, c->members[at].node, k);
            links[plan->link_count++].member = maker ? (int32_t)(maker - c->members) : -1;
        }
    }
}

// The place of a tensor from outside among the inputs of the region, which it is added to; -1 = it is inside.
static int32_t tli_place_cut_input(tli_cutting *c, const tl_graph *made, int32_t tensor, int32_t *count) {
    int32_t now = tli_cut_maker(c, tensor) ? -1 : c->tensors[tensor], i;
    if (now < 0) return -1;
    for (i = 0; i < *count; i++)
        if (c->inputs[i].node == made->outputs[now].node && c->inputs[i].output == made->outputs[now].output)
            return i;
    c->inputs[i].node = made->outputs[now].node;
    c->inputs[i].output = made->outputs[now].output;
    ++*count;
    return i;
}

static int32_t tli_list_cut_inputs(tli_cutting *c, const tl_graph *made) {
    int32_t at, k, count = 0;
    for (at = 0; at < c->count; at++)
        for (k = 0; k < c->graph->nodes[c->members[at].node].input_count; k++)
            (void)tli_place_cut_input(c, made, tli_cut_tensor(c, c->members[at].node, k), &count);
    return count;
}

// Describe the region at hand, whose turns begin at number `from` of the plan.
static void tli_describe_cut(tli_cutting *c, const tl_rows_plan *plan, int32_t from, int32_t forward_end,
                             tl_node_desc *desc) {
    tli_describe_node(c->graph, c->cut->last, desc);
    tli_omit_rows(desc);
    tli_describe_members(c->graph, c->members, c->count, c->stored, c->bytes, desc);
    desc->op = c->desc->op ? c->desc->op : "rows";
    desc->saved_bytes = 0;
    desc->inplace = desc->takes_blocks = desc->weight_rows = 0;
    desc->once = c->is_late ? TL_ONCE_LATE : 0;
    desc->needs = c->is_late ? "out" : "none";
    desc->no_grad = !tli_cut_trains(c);
    desc->fwd_cost = tli_sum_turn_costs(c, plan, from, forward_end);
    desc->bwd_cost = tli_sum_turn_costs(c, plan, forward_end, plan->turn_count);
    desc->input_count = tli_list_cut_inputs(c, &plan->graph);
    desc->inputs = c->inputs;
}

// Note the outputs of the region that was added last, and what its backward reads.
static void tli_note_cut(tli_cutting *c, tl_rows_plan *plan) {
    const tl_graph *made = &plan->graph;
    const tl_node *node = &made->nodes[made->node_count - 1];
    tl_node_input *inputs = (tl_node_input *)made->inputs + node->first_input;
    tl_node_output *outputs = (tl_node_output *)made->outputs;
    int32_t at, k, count = 0, output = node->first_output;
    for (at = 0; at < c->count; at++) {
        const tl_node *old = &c->graph->nodes[c->members[at].node];
        for (k = 0; k < old->input_count; k++) {
            int32_t tensor = tli_cut_tensor(c, c->members[at].node, k);
            int32_t place = tli_place_cut_input(c, made, tensor, &count);
            if (place >= 0 && c->is_needed[tensor]) inputs[place].needed = 1;
        }
        if (c->members[at].ring_rows) continue;
        outputs[output].format = c->graph->outputs[old->first_output].format;
        if (c->is_needed[old->first_output] &&
            (!c->members[at].again || tli_cut_reduces(c, c->members[at].node)))
            outputs[output].needed = 1;
        c->tensors[old->first_output] = output++;
    }
}

// Add the region at hand, which ends the cut with this number.
static tl_result tli_add_cut(tli_cutting *c, const tl_row_cut *cut, int32_t number, tl_rows_plan *plan) {
    int32_t *forward_turns = (int32_t *)plan->forward_turns, from = plan->turn_count, at, forward_end;
    tl_node_desc desc;
    uint64_t forward = 0, backward = 0;
    tl_result result = tli_find_cut_members(c, cut, number);
    if (result) return result;
    tli_choose_blocks(c);
    for (at = 0; at < c->count; at++) tli_describe_cut_member(c, at);
    tli_find_rows_again(c);
    result = tli_plan_forward_turns(c, plan, &forward);
    forward_end = plan->turn_count;
    if (!result) result = tli_plan_backward_turns(c, plan, &backward);
    if (result) return result;
    forward_turns[plan->graph.node_count] = forward_end - from;
    tli_describe_cut(c, plan, from, forward_end, &desc);
    desc.fwork_bytes = desc.swork_bytes = forward;
    desc.bwork_bytes = backward;
    plan->region_count++;
    plan->call_count += c->block_count * (uint64_t)(plan->turn_count - from);
    result = tli_add_node(&c->rules, &plan->graph, &desc);
    if (result) return result;
    tli_write_cut_members(c, plan);
    tli_note_cut(c, plan);
    return TL_OK;
}

// Add a node that is in no region.
static tl_result tli_add_uncut(tli_cutting *c, int32_t id, tl_rows_plan *plan) {
    const tl_node *node = &c->graph->nodes[id];
    tl_node_desc desc;
    tl_result result;
    int32_t k;
    tli_describe_node(c->graph, id, &desc);
    for (k = 0; k < node->input_count; k++) {
        const tl_node_output *from = &plan->graph.outputs[c->tensors[tli_cut_tensor(c, id, k)]];
        c->inputs[k].node = from->node;
        c->inputs[k].output = from->output;
    }
    for (k = 0; k < node->output_count; k++) c->bytes[k] = c->graph->outputs[node->first_output + k].bytes;
    desc.inputs = c->inputs;
    desc.output_bytes = c->bytes;
    if (tli_is_late(node)) desc.needs = "out";
    result = tli_add_node(&c->rules, &plan->graph, &desc);
    if (result) return result;
    tli_copy_needs(c->graph, id, &plan->graph);
    for (k = 0; k < node->output_count; k++)
        c->tensors[node->first_output + k] = plan->graph.nodes[plan->graph.node_count - 1].first_output + k;
    plan->call_count += !node->is_input;
    return TL_OK;
}

// The bytes of a node's largest operand.
static uint64_t tli_find_largest_operand(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    uint64_t most = tli_larger_u64(node->fwork_bytes, tli_larger_u64(node->swork_bytes, node->bwork_bytes));
    int32_t k;
    most = tli_larger_u64(most, node->saved_bytes);
    for (k = 0; k < node->input_count; k++)
        most = tli_larger_u64(most, graph->outputs[graph->inputs[node->first_input + k].tensor].bytes);
    for (k = 0; k < node->output_count; k++)
        most = tli_larger_u64(most, graph->outputs[node->first_output + k].bytes);
    return most;
}

// Whether a node has operands that are too large for a call, and can be called for blocks of its rows. Those
// that take blocks are called for elements, and where rows are an axis within others operands are whole.
static int tli_is_cut_alone(tli_cutting *c, int32_t id) {
    const tl_node *node = &c->graph->nodes[id];
    tl_row_cut alone;
    tli_quiet quiet;
    tl_result result;
    if (!c->desc->binding_bytes || node->is_input || node->takes_blocks || !tli_find_rows(c->graph, id) ||
        tli_find_largest_operand(c->graph, id) <= c->desc->binding_bytes) return 0;
    alone.first = alone.last = id;
    alone.block_count = 1;
    quiet = tli_begin_quiet(c->env);
    result = tli_find_cut_members(c, &alone, 0);
    tli_end_quiet(&quiet, TL_OK);
    c->cuts[id] = -1;
    return !result && !c->axis;
}

// List the nodes from `first` on, before `end`, that are cut alone.
static void tli_list_alone(tli_cutting *c, int32_t first, int32_t end) {
    for (; first < end; first++) {
        if (!tli_is_cut_alone(c, first)) continue;
        c->list[c->list_count].first = c->list[c->list_count].last = first;
        c->list[c->list_count++].block_count = 1;
    }
}

// List all cuts and mark their members. The desc's follow each other in the graph.
static tl_result tli_mark_cuts(tli_cutting *c) {
    int32_t k, id, end = 0;
    for (id = 0; id < c->graph->node_count; id++) c->cuts[id] = -1;
    for (k = 0; k < c->desc->cut_count; k++) {
        const tl_row_cut *cut = &c->desc->cuts[k];
        if (cut->first < end || cut->last < cut->first || cut->last >= c->graph->node_count)
            return tli_fail(c->env, TL_ERROR_INVALID_ARG, c->rules.function, TLI_RULE(CUTS_ARE_IN_ORDER));
        if (c->graph->nodes[cut->last].is_input)
            return tli_fail_cut_node(c, cut->last, TLI_RULE(CUT_NODE_IS_CALLED_AS_A_WHOLE));
        tli_list_alone(c, end, cut->first);
        c->list[c->list_count++] = *cut;
        end = cut->last + 1;
    }
    tli_list_alone(c, end, c->graph->node_count);
    for (k = 0; k < c->list_count; k++)
        for (id = c->list[k].first; id <= c->list[k].last; id++)
            if (!c->graph->nodes[id].is_input) c->cuts[id] = k;
    tli_mark_outer(c);
    return TL_OK;
}

static tl_result tli_build_cuts(tli_cutting *c, tl_rows_plan *plan) {
    int32_t *nodes = (int32_t *)plan->nodes, *first_members = (int32_t *)plan->first_members;
    int32_t *first_turns = (int32_t *)plan->first_turns, id, k;
    tl_result result = tli_mark_cuts(c);
    plan->graph.batch = c->graph->batch;
    plan->inference = c->desc->inference;
    for (id = 0; id < c->graph->tensor_count; id++) c->tensors[id] = -1;
    for (id = 0; id < c->graph->node_count && !result; id++) {
        int32_t number = c->cuts[id];
        if (number >= 0 && id != c->list[number].last) continue;
        first_members[plan->graph.node_count] = plan->member_count;
        first_turns[plan->graph.node_count] = plan->turn_count;
        result = number < 0 ? tli_add_uncut(c, id, plan) : tli_add_cut(c, &c->list[number], number, plan);
        if (result) return result;
        nodes[id] = plan->graph.node_count - 1;
        for (k = number < 0 ? id : c->list[number].first; k < id; k++)
            if (c->cuts[k] == number) nodes[k] = nodes[id];
    }
    first_members[plan->graph.node_count] = plan->member_count;
    first_turns[plan->graph.node_count] = plan->turn_count;
    return result ? result : tli_copy_views(c->env, c->graph, c->tensors, &plan->graph);
}

// -- blocks of rows: planning --

static tli_rule tli_check_cut_desc(const tl_cut_desc *desc) {
    tli_rule rule = tli_check_region_desc(desc->alignment_bytes, desc->op);
    if (rule) return rule;
    if (desc->inference & ~1) return TLI_RULE(INFERENCE_MUST_BE_0_OR_1);
    if (desc->may_round & ~1) return TLI_RULE(MAY_ROUND_MUST_BE_0_OR_1);
    return desc->cut_count < 0 || (desc->cut_count && !desc->cuts) ? TLI_RULE(CUTS_MISSING_OR_NEGATIVE_COUNT)
                                                                   : TLI_NO_RULE;
}

// Allocate the arrays; 0 if there is no memory. Those of int32_t share a block.
static int tli_open_cutting(tl_env *env, const tl_cut_desc *desc, tli_cutting *c) {
    const tl_graph *graph = desc->graph;
    const tl_attributes *a = graph->attributes;
    uint64_t nodes = (uint64_t)graph->node_count + 1, tensors = (uint64_t)graph->tensor_count;
    uint64_t inputs = (uint64_t)graph->input_count;
    tli_zero(c, sizeof *c);
    c->env = env;
    c->desc = desc;
    c->graph = graph;
    c->rules = tli_rules_of(env, TLI_IN(CUT_ROWS));
    c->alignment = tli_or_default(desc->alignment_bytes, 1);
    c->list = (tl_row_cut *)tli_alloc_array(env, nodes, sizeof *c->list);
    c->members = (tl_row_member *)tli_alloc_array(env, nodes, sizeof *c->members);
    c->cuts = (int32_t *)tli_alloc_array(env, 5 * nodes + tensors, sizeof *c->cuts);
    c->is_outer = (uint8_t *)tli_alloc_array(env, 2 * tensors + 1, 1);
    c->inputs = (tl_tensor *)tli_alloc_array(env, inputs + 1, sizeof *c->inputs);
    c->bytes = (uint64_t *)tli_alloc_array(env, tensors + 1, sizeof *c->bytes);
    c->stored = (tl_stored *)tli_alloc_array(env, a ? (uint64_t)a->stored_count + 1 : 1, sizeof *c->stored);
    c->buffers = (tl_layout_buffer *)tli_alloc_array(env, 5 * nodes, sizeof *c->buffers);
    c->offsets = (uint64_t **)tli_alloc_array(env, 5 * nodes, sizeof *c->offsets);
    if (!c->list || !c->members || !c->cuts || !c->is_outer || !c->inputs || !c->bytes || !c->stored ||
        !c->buffers || !c->offsets)
        return 0;
    c->places = c->cuts + nodes;
    c->turns = c->places + nodes;
    c->tensors = c->turns + 3 * nodes;
    c->is_needed = c->is_outer + tensors;
    return 1;
}

static void tli_close_cutting(tli_cutting *c) {
    tli_release(c->env, c->list);
    tli_release(c->env, c->members);
    tli_release(c->env, c->cuts);
    tli_release(c->env, c->is_outer);
    tli_release(c->env, c->inputs);
    tli_release(c->env, c->bytes);
    tli_release(c->env, c->stored);
    tli_release(c->env, c->buffers);
    tli_release(c->env, c->offsets);
}

TLI_IMPL tl_result tl_cut_rows(tl_env *env, const tl_cut_desc *desc, tl_rows_plan *rows) {
    const tli_function function = TLI_IN(CUT_ROWS);
    tli_rule rule;
    tli_cutting c;
    tl_rows_plan plan;
    tl_result result;
    TL_ASSERT(desc && desc->graph && rows);
    tli_zero(rows, sizeof *rows);
    tli_zero(&plan, sizeof plan);
    rule = tli_check_cut_desc(desc);
    if (rule) return tli_fail(env, TL_ERROR_INVALID_ARG, function, rule);
    result = tl_check_graph(env, desc->graph);
    if (!result && desc->device) result = tl_check_device(env, desc->device);
    if (result) return result;
    if (!tli_open_cutting(env, desc, &c) || !tli_open_rows_plan(env, desc->graph, 3, &plan))
        result = tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(ROWS_NO_MEMORY_TO_FIND_REGIONS));
    if (!result) result = tli_build_cuts(&c, &plan);
    tli_close_cutting(&c);
    if (result) tl_free_rows_plan(env, &plan);
    *rows = plan;
    return result;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
