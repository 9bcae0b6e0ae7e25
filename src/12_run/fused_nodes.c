#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- fused nodes --
//
// A node of the run's graph with several members is carried out block by block of elements. The members take
// turns, and what lies between two of them is a block of the node's scratch:
//
//     forward    a, b --> [m0] --> block 0 --> [m1] --> block 1 --> [m2] --> block 0 --> [m3] --> y
//     scratch    |block 0|block 1|scratch of a member|
//
//     backward   forwards of the members that run again, then backwards, last member first
//     scratch    |output of m0|.. of each that runs again|gradient 0|gradient 1|scratch of a member|
//
// That is how tl_plan_fusion counts scratch. How many elements a block has follows from the scratch that the
// graph gives, so it is right for every precision. Outer inputs, the output and their gradients are cut as
// ranges are. Kernels and seeds are those of the members in the caller's graph, so no result depends on the
// fusion.

static const tl_graph *tli_caller_graph(const tl_run *run) {
    return tli_has_members(run) ? run->members.graph : run->graph;
}

// How many nodes of the caller's graph a node computes.
static int32_t tli_count_members(const tl_run *run, int32_t id) {
    const tli_members *members = &run->members;
    return tli_has_members(run) ? members->first_members[id + 1] - members->first_members[id] : 1;
}

static int tli_is_fused(const tl_run *run, int32_t id) {
    return tli_has_members(run) && tli_count_members(run, id) > 1;
}

// Whether a node is carried out by calls of its members: it is fused, or a region of rows.
static int tli_calls_members(const tl_run *run, int32_t id) {
    return tli_is_fused(run, id) || tli_is_region(run, id);
}

// The node of the caller's graph that is member number `at` of a node.
static int32_t tli_find_member(const tl_run *run, int32_t id, int32_t at) {
    const tli_members *members = &run->members;
    return tli_has_members(run) ? members->members[members->first_members[id] + at] : id;
}

// Whether a tensor that member number `at` reads is made by the member before.
static int tli_is_inner(const tl_run *run, int32_t id, int32_t at, int32_t tensor) {
    return at > 0 && run->members.graph->outputs[tensor].node == tli_find_member(run, id, at - 1);
}

// -- fused nodes: blocks --

// The blocks of one step of a fused node.
typedef struct tli_blocks {
    uint64_t count;        // elements of a block; 0 = the scratch holds none
    uint64_t block_bytes;  // from one block in the scratch to the next
} tli_blocks;

// Most bytes of scratch of a member in a step.
static uint64_t tli_find_member_scratch(const tl_run *run, int32_t id, int backward) {
    int32_t count = tli_count_members(run, id), recomputed = run->members.recompute_counts[id], at;
    uint64_t most = 0;
    for (at = 0; at < count; at++) {
        const tl_node *node = &run->members.graph->nodes[tli_find_member(run, id, at)];
        if (backward) most = tli_larger_u64(most, node->bwork_bytes);
        if (!backward || at < recomputed) most = tli_larger_u64(most, node->fwork_bytes);
    }
    return most;
}

// How many blocks a step has in its scratch.
static int32_t tli_count_blocks(const tl_run *run, int32_t id, int backward) {
    int32_t turns = tli_count_members(run, id) > 2 ? 2 : 1;
    return backward ? turns + run->members.recompute_counts[id] : turns;
}

// Whether so many blocks, one every `stride` bytes, of which the last needs `bytes`, fit into `work` bytes,
// with `scratch` bytes for a member behind them.
static int tli_fits_whole(uint64_t work, uint64_t stride, uint64_t bytes, int32_t blocks, uint64_t scratch) {
    uint64_t sum;
    if (!tli_mul_u64(stride, (uint64_t)(scratch ? blocks : blocks - 1), &sum)) return 0;
    return tli_add_u64(sum, scratch ? scratch : bytes, &sum) && sum <= work;
}

// A block is the whole tensor, or as many elements as fit the scratch and a binding, with all parts aligned.
static tli_blocks tli_find_blocks(const tl_run *run, int32_t id, int backward) {
    const tl_node *node = &run->graph->nodes[id];
    uint64_t alignment = tli_larger_u64(1, run->limits.alignment_bytes), binding = run->limits.binding_bytes;
    uint64_t bytes = run->graph->outputs[node->first_output].bytes, work = node->fwork_bytes;
    uint64_t total = tli_tensor_elements(run, node->first_output), scratch, unit;
    uint64_t size = tli_element_bytes(run, node->first_output), least = size, most = size;
    int32_t blocks = tli_count_blocks(run, id, backward), i;
    tli_blocks found;
    if (backward) work = node->bwork_bytes;
    scratch = tli_find_member_scratch(run, id, backward);
    for (i = 0; i < node->input_count; i++) {
        uint64_t other = tli_element_bytes(run, tli_operand_tensor(run, node, i));
        most = tli_larger_u64(most, other);
        if (other < least) least = other;
    }
    found.count = total;
    found.block_bytes = (bytes + alignment - 1) & ~(alignment - 1);
    if (found.block_bytes >= bytes && (!binding || total <= binding / most) &&
        tli_fits_whole(work, found.block_bytes, bytes, blocks, scratch)) return found;
    unit = alignment > least ? alignment / least : 1;
    work = work > scratch ? (work - scratch) / (uint64_t)blocks : 0;
    found.count = work / size;
    if (binding && binding / most < found.count) found.count = binding / most;
    if (found.count > total) found.count = total;
    found.count -= found.count % unit;
    found.block_bytes = found.count * size;
    return found;
}

// A block of the scratch, of as many bytes as the output's part of the call.
static tl_range tli_block_range(const tl_run *run, int32_t block) {
    const tli_call *call = &run->at.call;
    int32_t output = run->graph->nodes[run->at.last.node].first_output;
    uint64_t size = tli_element_bytes(run, output);
    tl_range range = call->scratch.range;
    range.offset += (uint64_t)block * call->block_bytes;
    range.bytes = call->count * size;
    if (call->first + call->count < call->total) return range;
    range.bytes = run->graph->outputs[output].bytes - call->first * size;
    return range;
}

// The block that holds the output of a member, and that of its gradient.
static tl_range tli_output_block(const tl_run *run, int32_t at) {
    return tli_block_range(run, run->at.last.kind == TL_STEP_BACKWARD ? at : at % 2);
}

static tl_range tli_gradient_block(const tl_run *run, int32_t at) {
    return tli_block_range(run, run->members.recompute_counts[run->at.last.node] + at % 2);
}

// -- fused nodes: turns --

// Set whose turn it is, and what it does.
static void tli_choose_turn(tl_run *run) {
    tli_call *call = &run->at.call;
    int32_t id = run->at.last.node, again;
    call->kind = (tl_step_kind)run->at.last.kind;
    call->member = 0;
    if (tli_has_turns(run)) {
        again = call->kind == TL_STEP_BACKWARD ? run->members.recompute_counts[id] : call->turns;
        call->member = call->turn < again ? call->turn : call->turns - 1 - call->turn;
        call->kind = call->turn < again ? TL_STEP_FORWARD : TL_STEP_BACKWARD;
    }
    call->node = tli_count_members(run, id) ? tli_find_member(run, id, call->member) : id;
}

// Prepare the first call of a step. cut: of a node that is not fused.
static void tli_start_turns(tl_run *run, const tli_cut *cut) {
    tli_call *call = &run->at.call;
    int32_t id = run->at.last.node, backward = run->at.last.kind == TL_STEP_BACKWARD;
    if (tli_is_region(run, id)) { tli_start_region(run); return; }
    call->first = 0;
    call->total = cut->total;
    call->count = run->kernel_of[id] == TLI_CONVERSION ? cut->total : cut->count;
    call->turn = 0;
    call->turns = 1;
    call->block_bytes = 0;
    if (tli_is_fused(run, id)) {
        tli_blocks blocks = tli_find_blocks(run, id, backward);
        call->turns = tli_count_members(run, id);
        if (backward) call->turns += run->members.recompute_counts[id];
        call->count = blocks.count;
        call->block_bytes = blocks.block_bytes;
    }
    tli_choose_turn(run);
}

// Go on to the call of the next member, or to the next elements.
static void tli_take_turn(tl_run *run) {
    tli_call *call = &run->at.call;
    if (tli_is_region(run, run->at.last.node)) { tli_take_region_call(run); return; }
    if (++call->turn >= call->turns) {
        call->turn = 0;
        call->first += call->count;
        if (call->total - call->first < call->count) call->count = call->total - call->first;
    }
    tli_choose_turn(run);
}

// -- fused nodes: operands --

static void tli_member_operand(tl_run *run, tl_range range, int32_t tensor, int writes) {
    tli_call_operand(run, &range, writes);
    run->at.call.operands[run->at.call.operand_count - 1].format = tli_run_format(run, tensor);
}

// The part of an outer input that the call reads. In place, the output has taken over the range of one.
static tl_range tli_outer_range(const tl_run *run, int32_t tensor) {
    const tl_node *node = &run->graph->nodes[run->at.last.node];
    tl_range range;
    if (run->at.last.kind == TL_STEP_FORWARD_INPLACE &&
        run->graph->inputs[node->first_input + node->inplace].tensor == tensor) tensor = node->first_output;
    range = run->tensors[tensor].device.range;
    return tli_cut_range(run, tensor, range);
}

// The inputs of the member at hand, or with `gradients` the gradients of its inputs.
static void tli_describe_member_inputs(tl_run *run, int gradients) {
    const tl_graph *graph = run->members.graph;
    const tl_node *node = &run->graph->nodes[run->at.last.node], *member = &graph->nodes[run->at.call.node];
    int32_t at = run->at.call.member, place = node->first_input + run->members.outer[run->at.call.node], i;
    int backward = run->at.call.kind == TL_STEP_BACKWARD;
    int is_first = run->at.last.kind != TL_STEP_BACKWARD && !run->at.event.recompute;
    for (i = 0; i < member->input_count; i++) {
        const tl_node_input *input = &graph->inputs[member->first_input + i];
        int is_inner = tli_is_inner(run, run->at.last.node, at, input->tensor);
        int32_t tensor = is_inner ? node->first_output : run->graph->inputs[place++].tensor;
        tl_range range;
        tli_zero(&range, sizeof range);
        if (gradients) {
            if (backward && is_inner) range = tli_gradient_block(run, at - 1);
            else if (backward) range = tli_cut_range(run, tensor, run->gradients[tensor].device.range);
        } else if (!backward || input->needed) {
            range = is_inner ? tli_output_block(run, at - 1) : tli_outer_range(run, tensor);
        }
        tli_member_operand(run, range, tensor, gradients || (is_first && tli_is_statistic(run->graph, tensor)));
    }
}

// The operands of the member at hand in the order of tl_kernel_call.
static void tli_describe_member(tl_run *run) {
    const tl_graph *graph = run->members.graph;
    const tl_node *node = &run->graph->nodes[run->at.last.node], *member = &graph->nodes[run->at.call.node];
    int32_t id = run->at.last.node, at = run->at.call.member, output = node->first_output, blocks;
    int backward = run->at.call.kind == TL_STEP_BACKWARD, is_last = at + 1 == tli_count_members(run, id);
    const tl_range *whole = &run->tensors[output].device.range;
    tl_range range, none;
    if (tli_is_region(run, id)) { tli_describe_region_call(run); return; }
    tli_zero(&none, sizeof none);
    if (run->at.call.twice[0].range.bytes) whole = &run->at.call.twice[0].range;
    tli_describe_member_inputs(run, 0);
    range = is_last ? tli_cut_range(run, output, *whole) : tli_output_block(run, at);
    if (backward && !graph->outputs[member->first_output].needed) range = none;
    tli_member_operand(run, range, output, !backward);
    whole = &run->gradients[output].device.range;
    range = is_last ? tli_cut_range(run, output, *whole) : tli_gradient_block(run, at);
    tli_member_operand(run, backward ? range : none, output, 0);
    tli_describe_member_inputs(run, 1);
    tli_member_operand(run, none, output, 0);
    range = run->at.call.scratch.range;
    blocks = tli_count_blocks(run, id, run->at.last.kind == TL_STEP_BACKWARD);
    range.offset += (uint64_t)blocks * run->at.call.block_bytes;
    range.bytes = backward ? member->bwork_bytes : member->fwork_bytes;
    tli_call_operand(run, range.bytes ? &range : &none, 1);
}

// The gradient that a member passes to the one before begins as zeroes, block by block.
static tl_result tli_clear_gradient_block(tl_run *run) {
    tl_range block;
    if (tli_is_region(run, run->at.last.node)) return tli_clear_region_gradients(run);
    if (run->at.call.kind != TL_STEP_BACKWARD || !run->at.call.member) return TL_OK;
    block = tli_gradient_block(run, run->at.call.member - 1);
    return tli_fill_range(&run->store, &block, 0);
}

// -- fused nodes: preparing a run --

static tl_result tli_fail_member(tl_run *run, tli_rule rule, int32_t id, uint64_t a, uint64_t b) {
    tli_sentence s = tli_begin_error(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN), rule, a, b);
    tli_put_text(&s, "");
    if (TLI_ERROR_TEXT) tli_put_named(&s.text, id, tl_name_node(tli_caller_graph(run), id));
    return tli_end_error(run->env, &s, TL_ERROR_UNSUPPORTED);
}

// Refuse a fused node that cannot be carried out in blocks.
static tl_result tli_check_fused(tl_run *run, int32_t id) {
    const tl_node *node = &run->graph->nodes[id];
    int32_t count = tli_count_members(run, id), member = 0, at, i, backward;
    uint64_t binding = run->limits.binding_bytes, total = tli_tensor_elements(run, node->first_output);
    for (at = 0; at < count; at++) {
        member = tli_find_member(run, id, at);
        if (!run->members.graph->nodes[member].takes_blocks)
            return tli_fail_member(run, TLI_RULE(FUSION_MEMBER_TAKES_NO_BLOCKS), member, (uint64_t)member, 0);
    }
    for (i = 0; i < node->input_count; i++)
        if (tli_tensor_elements(run, tli_operand_tensor(run, node, i)) != total)
            return tli_fail_member(run, TLI_RULE(FUSION_MEMBER_HAS_OTHER_ELEMENTS), member,
                                   (uint64_t)member, 0);
    for (backward = 0; backward < (run->inference || !node->has_grad ? 1 : 2); backward++) {
        uint64_t scratch = tli_find_member_scratch(run, id, backward);
        if (binding && scratch > binding)
            return tli_fail_size(run, TLI_RULE(BACKEND_LARGEST_BINDING_IS_BYTES), binding, scratch, id);
        if (!tli_find_blocks(run, id, backward).count)
            return tli_fail_member(run, TLI_RULE(FUSION_SCRATCH_HOLDS_NO_BLOCK), member,
                                   run->limits.alignment_bytes,
                                   backward ? node->bwork_bytes : node->fwork_bytes);
    }
    return TL_OK;
}

#ifndef TL_NO_PLANNERS
// Where the outer inputs of each member begin among those of the fused node; room for kernels.
static tl_result tli_map_members(tl_run *run) {
    tli_members *members = &run->members;
    uint64_t count = (uint64_t)members->graph->node_count;
    int32_t id, at, i, place;
    members->outer = (int32_t *)tli_alloc_array(run->env, 2 * count, sizeof *members->outer);
    if (!members->outer)
        return tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(STATE_OF_RUN_NO_MEMORY));
    members->kernels = members->outer + count;
    for (id = 0; id < run->graph->node_count; id++)
        for (at = 0, place = 0; at < tli_count_members(run, id); at++) {
            const tl_node *member = &members->graph->nodes[tli_find_member(run, id, at)];
            members->outer[tli_find_member(run, id, at)] = place;
            for (i = 0; i < member->input_count; i++)
                place += !tli_is_inner(run, id, at, members->graph->inputs[member->first_input + i].tensor);
        }
    return TL_OK;
}

// Bytes of a block, measured by tests/bench/bench_fusion.c and bench_vk_fusion.c: the least above which time
// falls no more.
#define TLI_RUN_FUSION_BLOCK 16384          // on the host, where a node's blocks may take a quarter of a tensor
#define TLI_RUN_FUSION_DEVICE_BLOCK 262144  // on a device, where a call costs more: they may take a whole one

// Bytes of a block that suit the backend. Where it is known what a call takes, that is an eighth of the time
// in which a block is read and written, at most.
static uint64_t tli_find_fusion_block(const tl_run *run) {
    const tl_device *device = run->desc.device;
    uint64_t block = run->limits.host_visible ? TLI_RUN_FUSION_BLOCK : TLI_RUN_FUSION_DEVICE_BLOCK, bytes;
    if (device && tli_mul_u64(device->call_latency_ns, device->bytes_per_second, &bytes))
        block = tli_larger_u64(block, tli_align_u64(bytes / UINT64_C(250000000), 64));
    return tli_larger_u64(block, run->limits.alignment_bytes);
}

#ifndef TL_NO_PRECISION
// What a call costs, in units of the costs of nodes, where nobody measured it: nothing on the host; on a
// device, where it takes microseconds, so much that a chain is fused only where the bytes that this saves are
// needed.
static uint64_t tli_find_fusion_call_cost(const tl_run *run) {
    if (run->limits.host_visible || (run->desc.device && run->desc.device->call_latency_ns)) return 0;
    return 1;
}
#endif

// As tl_fusion_desc.scratch_parts: the blocks of a node may take a quarter of a tensor on the host, else all
// of one.

static uint64_t tli_find_fusion_parts(const tl_run *run) { return run->limits.host_visible ? 4 : 1; }

// How the run fuses what says that it takes blocks.
static tl_fusion_desc tli_ask_fusion(const tl_run *run) {
    tl_fusion_desc desc;
    tli_zero(&desc, sizeof desc);
    desc.graph = run->graph;
    desc.inference = run->inference;
    desc.blocks_only = 1;
    desc.alignment_bytes = run->limits.alignment_bytes;
    desc.block_bytes = tli_find_fusion_block(run);
    desc.scratch_parts = tli_find_fusion_parts(run);
    return desc;
}

static tl_result tli_fuse_strategy(tl_run *run) {
    tl_fusion_desc desc = tli_ask_fusion(run);
    tl_result result = tl_plan_fusion(run->env, &desc, &run->own_fusion);
    if (result || !run->own_fusion.fused_count || (!run->desc.plan && !run->desc.formats)) return result;
    return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN),
                    TLI_RULE(STRATEGY_ENABLE_FUSION_AND_PLAN));
}

// Go on with the fused graph; the kernels stay those of the caller's.
static void tli_use_fusion(tl_run *run, const tl_fusion_plan *fusion) {
    run->members.graph = run->graph;
    run->members.nodes = fusion->nodes;
    run->members.first_members = fusion->first_members;
    run->members.members = fusion->members;
    run->members.recompute_counts = fusion->recompute_counts;
    run->members.fused_count = fusion->fused_count;
    run->graph = &fusion->graph;
}

static tl_result tli_take_fusion(tl_run *run) {
    const tl_fusion_plan *fusion = run->desc.fusion;
    const tl_strategy *strategy = run->desc.strategy;
    tl_result result = TL_OK;
    tli_rule why = TLI_NO_RULE;
    if (tli_has_compiled(run)) return TL_OK;
    if (!fusion && (!strategy || !strategy->enable_fusion || run->owns_layers)) return TL_OK;
    if (fusion) result = tl_check_graph(run->env, &fusion->graph);
    else result = tli_fuse_strategy(run);
    if (result) return result;
    if (!fusion) fusion = &run->own_fusion;
    else if (run->owns_layers) why = TLI_RULE(FUSION_LAYERS_HAVE_NONE);
    else if (strategy && !strategy->enable_fusion) why = TLI_RULE(FUSION_WITHOUT_STRATEGY);
    else if (!tli_is_fusion_of(run->graph, fusion)) why = TLI_RULE(FUSION_NOT_OF_THE_GRAPH);
    else if (fusion->inference && !run->inference) why = TLI_RULE(FUSION_MADE_FOR_INFERENCE);
    if (why) return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_RUN), why);
    if (fusion->fused_count && run->desc.random)
        return tli_fail(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN),
                        TLI_RULE(FUSION_RANDOM_HOOK_SEES_NODES_IN_ORDER));
    tli_use_fusion(run, fusion);
    return tli_map_members(run);
}
#else
static tl_result tli_take_fusion(tl_run *run) {
    const tl_strategy *strategy = run->desc.strategy;
    if (!run->desc.fusion && !(strategy && strategy->enable_fusion)) return TL_OK;
    return tli_fail(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN),
                    TLI_RULE(FUSION_TL_NO_PLANNERS_LEFT_IT_OUT));
}
#endif

// Why the caller's tensor has no buffer.
static tli_rule tli_why_not_whole(const tl_run *run) {
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)
    if (run->compiled && run->compiled->rank_count > 1) return TLI_RULE(TENSOR_OF_ANOTHER_RANK);
#endif
    (void)run;
    return TLI_RULE(TENSOR_INSIDE_OF_A_FUSED_NODE);
}

// As tli_find_caller_tensor, of a compiled plan, where results may be those of conversions.
static tl_result tli_find_mapped_tensor(const tl_run *run, tli_function function, tl_tensor *tensor) {
    const tl_node *node = &run->members.graph->nodes[tensor->node];
    int32_t mapped = run->members.tensors[node->first_output + tensor->output];
    if (mapped < 0)
        return tli_fail(run->env, TL_ERROR_NOT_FOUND, function, tli_why_not_whole(run));
    tensor->node = run->graph->outputs[mapped].node;
    tensor->output = run->graph->outputs[mapped].output;
    return TL_OK;
}

// The tensor of the run's graph that is one of the caller's graph. Those between members are nowhere.
static tl_result tli_find_caller_tensor(const tl_run *run, tli_function function, tl_tensor *tensor) {
    const tl_graph *graph = tli_caller_graph(run);
    int32_t id;
    if (tensor->node < 0 || tensor->node >= graph->node_count || tensor->output < 0 ||
        tensor->output >= graph->nodes[tensor->node].output_count)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, function, TLI_RULE(TENSOR_NOT_OF_THIS_GRAPH));
    if (!tli_has_members(run)) return TL_OK;
    if (run->members.tensors) return tli_find_mapped_tensor(run, function, tensor);
    id = run->members.nodes[tensor->node];
    if (tli_find_member(run, id, tli_count_members(run, id) - 1) != tensor->node)
        return tli_fail(run->env, TL_ERROR_NOT_FOUND, function, TLI_RULE(TENSOR_INSIDE_OF_A_FUSED_NODE));
    tensor->node = id;
    return TL_OK;
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
