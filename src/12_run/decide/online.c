#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_ONLINE

// -- online decisions: the steps of a plan, decided one goal at a time --
//
// A goal is the forward or the backward of one node. Its steps are decided on the state of a simulator
// and appended to a record, from which the executor pulls them. So the simulator is ahead of the
// executor by up to one goal:
//
//     goal -> wanted tensors -> closure (nodes to run again) -> evict, fetch, run -> record -> executor
//
// An item is a tensor or the saved bytes of a node. The eviction score is that of DTR (Kirisame et al.,
// 2021, arXiv:2006.09616, section 2), the distances at which tensors are kept those of Revolve.

static int32_t tli_item_of_saved(const tl_run *run, int32_t node) {
    return run->graph->tensor_count + node;
}

// Whether a tensor is resident to the end: a result, or of a graph input that does not die.
static int tli_online_stays(const tl_run *run, int32_t tensor) {
    const tl_node *maker = &run->graph->nodes[run->graph->outputs[tensor].node];
    return run->is_result[tensor] || (maker->is_input && !tli_dies(maker));
}

static int tli_online_has_uses(const tl_run *run, int32_t tensor) {
    const tli_online *o = &run->online;
    return o->forward_uses[tensor] > 0 || o->backward_uses[tensor] > 0;
}

static int tli_online_is_held(const tl_run *run, int32_t tensor) {
    const tli_sim_tensor *t = &run->online.sim.tensors[tensor];
    return t->state != TLI_ABSENT || t->on_host;
}

static int tli_policy_keeps(const tl_run *run, int32_t id) {
    const tl_node *node = &run->graph->nodes[id];
    if (!run->checkpoints_on) return 1;
    return tli_wants_checkpoint(&run->desc.policy, tli_checkpoint_number(run->graph, id), node->fwd_cost);
}

static int tli_online_by_spans(const tl_run *run) {
    return run->online.by_spans && run->checkpoints_on;
}

// Whether a node that runs again for a backward is of another span: what it makes stays only where another span
// reads it.
static int tli_online_in_passing(const tl_run *run, int32_t id) {
    return tli_online_by_spans(run) && run->online.spans.of_node[id] != run->online.span;
}

// Whether the backward of a node counts as a use of its input: it reads it, or what it needs of its own span is
// made from it.
static int tli_online_is_use(const tl_run *run, int32_t input) {
    const tl_node_input *read = &run->graph->inputs[input];
    return read->needed || (tli_online_by_spans(run) && run->online.spans.crosses[read->tensor]);
}

#ifdef TLI_INVARIANTS
// Between goals nothing is wanted or pinned, and no count of uses is below 0. Of large graphs that is looked at
// now and then.
static int tli_online_is_at_rest(const tl_run *run) {
    const tli_online *o = &run->online;
    int32_t i;
    if (o->clock % ((uint64_t)run->graph->tensor_count / 16 + 1)) return 1;
    for (i = 0; i < run->graph->tensor_count; i++) {
        if (o->wanted[i] != TLI_WANT_NOT || o->wanted_uses[i]) return 0;
        if (o->forward_uses[i] < 0 || o->backward_uses[i] < 0) return 0;
    }
    for (i = 0; i < run->graph->tensor_count + run->graph->node_count; i++) if (o->pins[i]) return 0;
    return o->open_count == 0;
}

// A closure ascends, so what it makes is made before it is read.
static int tli_online_closure_holds(const tli_online *o) {
    int32_t i;
    for (i = 1; i < o->closure_count; i++) if (o->closure[i - 1] >= o->closure[i]) return 0;
    return o->open_count == 0;
}
#endif

static tl_result tli_online_emit(tl_run *run, tl_step_kind kind, int32_t node, int32_t output,
                                 tl_codec codec) {
    tli_online *o = &run->online;
    tl_step step = tli_step_of(kind, node, output);
    tl_result result;
    step.codec = (uint8_t)codec;
    result = tli_sim_step(&o->sim, &step);
    if (result) return result;
    o->clock++;
    tli_add_step(&o->record, step);
    TLI_INVARIANT(o->record.failed || o->record.count == o->sim.step_count);
    TLI_INVARIANT(kind > TL_STEP_BACKWARD || o->sim.step_bytes <= o->budget);
    return o->record.failed
               ? tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(RUN_PLAN), TLI_RULE(RECORD_OF_STEPS_NO_MEMORY))
               : TL_OK;
}

static tl_result tli_online_emit_tensor(tl_run *run, tl_step_kind kind, int32_t tensor,
                                        tl_codec codec) {
    const tl_node_output *output = &run->graph->outputs[tensor];
    return tli_online_emit(run, kind, output->node, output->output, codec);
}

// Drop a tensor in both tiers.
static tl_result tli_online_drop(tl_run *run, int32_t tensor) {
    const tli_sim_tensor *t = &run->online.sim.tensors[tensor];
    tl_result result = TL_OK;
    if (t->state == TLI_RESIDENT || t->state == TLI_PACKED)
        result = tli_online_emit_tensor(run, TL_STEP_DROP, tensor, TL_CODEC_NONE);
    if (!result && t->on_host)
        result = tli_online_emit_tensor(run, TL_STEP_DROP_HOST, tensor, TL_CODEC_NONE);
    TLI_INVARIANT(result || !t->on_host);
    return result;
}

// -- online decisions: what nodes make that may run once only, and inputs that die --
//
// It is owed to the goals that can need it, directly or to make something else again: until the last of them it
// is held on either tier, or compressed.

static int tli_online_is_once(const tl_run *run, int32_t tensor) {
    const tl_node *maker = &run->graph->nodes[run->graph->outputs[tensor].node];
    return maker->once || tli_dies(maker);
}

static int tli_online_is_owed(const tl_run *run, int32_t tensor) {
    const tli_online *o = &run->online;
    return o->until && o->until[tensor] >= o->now && tli_online_is_once(run, tensor);
}

static void tli_online_find_until(tl_run *run) {
    int32_t *until = run->online.until;
    const tl_graph *graph = run->graph;
    int32_t id, i;
    for (i = 0; i < graph->tensor_count; i++) until[i] = -1;
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        int32_t backward = run->inference || !node->has_grad ? -1 : 2 * graph->node_count - 1 - id, again = id;
        if (node->saved_bytes && backward > again) again = backward;
        for (i = node->first_output; i < node->first_output + node->output_count; i++) {
            if (graph->outputs[i].needed && backward > until[i]) until[i] = backward;
            if (until[i] > again) again = until[i];
        }
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor, last = node->once ? id : again;
            if (graph->inputs[i].needed && backward > last) last = backward;
            if (last > until[tensor]) until[tensor] = last;
        }
    }
}

static void tli_online_list_ends(tl_run *run) {
    tli_online *o = &run->online;
    int32_t i;
    for (i = 0; i < 2 * run->graph->node_count; i++) o->ends[i] = -1;
    for (i = 0; i < run->graph->tensor_count; i++) {
        if (o->until[i] < 0 || !tli_online_is_once(run, i)) continue;
        o->next_end[i] = o->ends[o->until[i]];
        o->ends[o->until[i]] = i;
    }
    TLI_INVARIANT(o->until != NULL);
}

// 0 = no memory.
static int tli_online_init_until(tl_run *run) {
    tli_online *o = &run->online;
    uint64_t nodes = (uint64_t)run->graph->node_count, tensors = (uint64_t)run->graph->tensor_count;
    int32_t id, any = 0;
    for (id = 0; id < run->graph->node_count; id++)
        any |= run->graph->nodes[id].once || tli_dies(&run->graph->nodes[id]);
    if (!any) return 1;
    o->until = (int32_t *)tli_alloc_array(run->env, tensors, sizeof *o->until);
    o->next_end = (int32_t *)tli_alloc_array(run->env, tensors, sizeof *o->next_end);
    o->ends = (int32_t *)tli_alloc_array(run->env, 2 * nodes, sizeof *o->ends);
    if (!o->until || !o->next_end || !o->ends) return 0;
    tli_online_find_until(run);
    tli_online_list_ends(run);
    return 1;
}

static tl_result tli_online_let_go(tl_run *run, int32_t tensor) {
    if (tli_online_stays(run, tensor) || tli_online_is_owed(run, tensor)) return TL_OK;
    return tli_online_drop(run, tensor);
}

// Drop what was owed to the goal that is reached, and to none after it.
static tl_result tli_online_end_goal(tl_run *run) {
    tli_online *o = &run->online;
    int32_t tensor = o->until ? o->ends[o->now] : -1;
    tl_result result = TL_OK;
    TLI_INVARIANT(o->now >= 0 && o->now < 2 * run->graph->node_count);
    o->now++;
    for (; tensor >= 0 && !result; tensor = o->next_end[tensor])
        if (!tli_online_has_uses(run, tensor)) result = tli_online_let_go(run, tensor);
    TLI_INVARIANT(result || tli_online_is_at_rest(run));
    return result;
}

// -- online decisions: eviction --

// The ways in which a tensor may be evicted.
static tli_exits tli_online_find_exits(const tl_run *run, int32_t tensor) {
    const tli_online *o = &run->online;
    const tli_sim_tensor *t = &o->sim.tensors[tensor];
    int is_input = run->graph->nodes[run->graph->outputs[tensor].node].is_input;
    tli_exits exits;
    exits.codec = TL_CODEC_NONE;
    if (t->state == TLI_RESIDENT && tli_is_f32(run, tensor) && !is_input) exits.codec = run->desc.codec;
    exits.may_spill = t->state == TLI_RESIDENT && !t->on_host;
    exits.may_drop = t->on_host || !tli_online_is_owed(run, tensor);
    exits.bytes = exits.held_bytes = run->graph->outputs[tensor].bytes;
    exits.device_room = tli_room(o->budget, o->sim.live_bytes);
    exits.host_room = tli_room(run->live_budget[TL_TIER_HOST], o->sim.host_bytes);
    return exits;
}

static int tli_online_may_evict(const tl_run *run, int32_t item) {
    const tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    int32_t node = item - graph->tensor_count;
    tli_exits exits;
    if (o->pins[item] || !run->checkpoints_on) return 0;
    if (node >= 0) return o->sim.nodes[node].has_saved && !graph->nodes[node].once;
    if (!graph->outputs[item].bytes || tli_online_stays(run, item)) return 0;
    if (o->sim.tensors[item].state != TLI_RESIDENT && o->sim.tensors[item].state != TLI_PACKED) return 0;
    if (!tli_online_is_owed(run, item)) return 1;
    exits = tli_online_find_exits(run, item);
    return tli_choose_exit(&exits) != TLI_EXIT_NONE;
}

// The cost to recompute the outputs of a node: its own, and that of its ancestors along the first input
// that is not held, for at most 64 nodes (DTR's evicted neighbourhood, restricted to one path).
static uint64_t tli_online_cost(const tl_run *run, int32_t node) {
    const tl_graph *graph = run->graph;
    uint64_t cost = 0;
    int32_t next = node, hops;
    for (hops = 0; next >= 0 && hops < 64; hops++) {
        const tl_node *at = &graph->nodes[next];
        int32_t i;
        if (!tli_add_u64(cost, at->fwd_cost, &cost)) return UINT64_MAX;
        next = -1;
        for (i = at->first_input; i < at->first_input + at->input_count && next < 0; i++)
            if (!tli_online_is_held(run, graph->inputs[i].tensor))
                next = graph->outputs[graph->inputs[i].tensor].node;
    }
    return cost;
}

static tli_victim tli_online_victim(const tl_run *run, int32_t item) {
    const tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    int32_t node = item - graph->tensor_count;
    tli_victim victim;
    victim.timestamp = o->made_at[item];
    victim.last_use = o->used_at[item];
    victim.bytes = node >= 0 ? graph->nodes[node].saved_bytes
                 : o->sim.tensors[item].state == TLI_PACKED ? o->sim.tensors[item].packed_bytes
                 : graph->outputs[item].bytes;
    victim.cost = tli_online_cost(run, node >= 0 ? node : graph->outputs[item].node);
    return victim;
}

static void tli_online_describe(const tl_run *run, int32_t item, tl_checkpoint_info *info) {
    const tl_graph *graph = run->graph;
    tli_victim victim = tli_online_victim(run, item);
    int32_t node = item - graph->tensor_count;
    tli_zero(info, sizeof *info);
    tli_fill_victim(&victim, TL_TIER_DEVICE, info);
    info->key.step = run->training_step;
    info->key.micro_batch = run->micro_batch;
    info->key.node = node >= 0 ? node : graph->outputs[item].node;
    info->key.output = node >= 0 ? TL_SAVED : graph->outputs[item].output;
    info->bytes = node >= 0 ? victim.bytes : graph->outputs[item].bytes;
    if (node < 0 && run->online.sim.tensors[item].state == TLI_PACKED)
        info->codec = (tl_codec)run->online.sim.tensors[item].codec;
}

static int32_t tli_online_pick(tl_run *run) {
    int32_t item, items = run->graph->tensor_count + run->graph->node_count;
    tli_hunt hunt = tli_start_hunt(run->desc.eviction, run->online.clock);
    hunt.evict = run->desc.evict;
    hunt.user = run->desc.evict_user;
    hunt.infos = run->online.candidates;
    hunt.indices = run->online.candidate_items;
    for (item = 0; item < items; item++) {
        if (!tli_online_may_evict(run, item)) continue;
        if (run->desc.eviction == TL_EVICTION_CALLER) {
            tl_checkpoint_info info;
            tli_online_describe(run, item, &info);
            tli_describe_victim(&hunt, item, &info);
        } else {
            tli_victim victim = tli_online_victim(run, item);
            tli_offer_victim(&hunt, item, &victim);
        }
    }
    return tli_end_hunt(&hunt);
}

// Evict an item. Saved bytes are dropped; a tensor is compressed if that is allowed and both copies fit, else
// spilled if the host has room, else dropped.
static tl_result tli_online_evict(tl_run *run, int32_t item) {
    tli_exits exits;
    tli_exit way;
    tl_result result;
    run->online.eviction_count++;
    if (item >= run->graph->tensor_count)
        return tli_online_emit(run, TL_STEP_DROP_SAVED, item - run->graph->tensor_count,
                               TL_ALL_OUTPUTS, TL_CODEC_NONE);
    exits = tli_online_find_exits(run, item);
    way = tli_choose_exit(&exits);
    if (way == TLI_EXIT_COMPRESS) return tli_online_emit_tensor(run, TL_STEP_COMPRESS, item, run->desc.codec);
    if (way == TLI_EXIT_DROP) return tli_online_emit_tensor(run, TL_STEP_DROP, item, TL_CODEC_NONE);
    result = tli_online_emit_tensor(run, TL_STEP_SPILL, item, TL_CODEC_NONE);
    TLI_INVARIANT(!run->online.pins[item]);
    return result ? result : tli_online_emit_tensor(run, TL_STEP_WAIT, item, TL_CODEC_NONE);
}

// Nothing is left to evict: refuse. Only the refusal of a bare goal is final (see tli_online_reach_goal); while
// a budget that works is searched (searches), the budget grows to what the goal needs instead.
static tl_result tli_online_refuse(tl_run *run, uint64_t bytes, int32_t node) {
    tli_online *o = &run->online;
    tli_sentence s;
    if (!o->is_bare) return TL_ERROR_OVER_BUDGET;
    if (o->searches) { o->budget = o->sim.live_bytes + bytes; return TL_OK; }
    run->report.limiting_node = node;
    run->report.needed_bytes = tli_needed_bytes(run, o->sim.live_bytes + bytes);
    s = tli_begin_error(run->env, TL_ERROR_OVER_BUDGET, TLI_IN(RUN_PLAN),
                        TLI_RULE(NODE_NEEDS_BYTES_WITH_ALL_ELSE_EVICTED),
                        run->budget.allowed_bytes, run->report.needed_bytes);
    tli_put_limit(run->env, &s, run->budget.limit);
    tli_put_rule(&s);
    tli_put_named(&s.text, node, tl_name_node(run->graph, node));
    return tli_end_error(run->env, &s, TL_ERROR_OVER_BUDGET);
}

// Evict until `bytes` more fit, for the next step of the node.
static tl_result tli_online_make_room(tl_run *run, uint64_t bytes, int32_t node) {
    tli_online *o = &run->online;
    tl_result result = TL_OK;
    while (!result && (bytes > o->budget || o->sim.live_bytes > o->budget - bytes)) {
        int32_t item = tli_online_pick(run);
        result = item < 0 ? tli_online_refuse(run, bytes, node) : tli_online_evict(run, item);
    }
    TLI_INVARIANT(result || o->sim.live_bytes + bytes <= o->budget);
    return result;
}

// Make a held tensor resident.
static tl_result tli_online_bring(tl_run *run, int32_t tensor, int32_t node) {
    const tli_sim_tensor *t = &run->online.sim.tensors[tensor];
    tl_result result = TL_OK;
    run->online.used_at[tensor] = run->online.clock;
    if (t->state == TLI_RESIDENT) return TL_OK;
    result = tli_online_make_room(run, run->graph->outputs[tensor].bytes, node);
    if (result) return result;
    if (t->state == TLI_PACKED)
        return tli_online_emit_tensor(run, TL_STEP_EXPAND, tensor, TL_CODEC_NONE);
    result = tli_online_emit_tensor(run, TL_STEP_FETCH, tensor, TL_CODEC_NONE);
    TLI_INVARIANT(!run->online.pins[tensor] || run->online.wanted_uses[tensor] >= 0);
    return result ? result : tli_online_emit_tensor(run, TL_STEP_WAIT, tensor, TL_CODEC_NONE);
}

// -- online decisions: the closure of a goal --

// Add one reader of a tensor. A wanted tensor is pinned until its last read.
static void tli_online_want(tl_run *run, int32_t tensor) {
    tli_online *o = &run->online;
    o->wanted_uses[tensor]++;
    if (o->wanted[tensor] != TLI_WANT_NOT) return;
    o->wanted[tensor] = tli_online_is_held(run, tensor) ? TLI_WANT_HELD : TLI_WANT_MADE;
    o->open_count += o->wanted[tensor] == TLI_WANT_MADE;
    o->pins[tensor]++;
    TLI_INVARIANT(o->pins[tensor] > 0 && o->wanted_uses[tensor] > 0);
}

static void tli_online_want_inputs(tl_run *run, int32_t id) {
    const tl_node *node = &run->graph->nodes[id];
    int32_t i;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        tli_online_want(run, run->graph->inputs[i].tensor);
}

// Collect the closure: walk up from the goal until every wanted tensor is held or made by a node in it.
static void tli_online_collect(tl_run *run, int32_t from) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    int32_t id, i;
    o->closure_count = 0;
    for (id = from; id >= 0 && o->open_count > 0; id--) {
        const tl_node *node = &graph->nodes[id];
        int32_t made = 0;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            made += o->wanted[i] == TLI_WANT_MADE;
        if (!made) continue;
        o->open_count -= made;
        o->closure[o->closure_count++] = id;
        tli_online_want_inputs(run, id);
    }
    for (i = 0; i < o->closure_count / 2; i++) {
        int32_t other = o->closure_count - 1 - i, swapped = o->closure[i];
        o->closure[i] = o->closure[other];
        o->closure[other] = swapped;
    }
    TLI_INVARIANT(tli_online_closure_holds(o));
}

static uint64_t tli_online_forward_bytes(const tl_run *run, int32_t id, int with_saved) {
    const tl_node *node = &run->graph->nodes[id];
    uint64_t bytes = with_saved ? node->saved_bytes + node->swork_bytes : node->fwork_bytes;
    int32_t i, missing = 0;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        missing += run->online.sim.tensors[i].state == TLI_ABSENT;
    for (i = node->first_output; i < node->first_output + node->output_count && missing; i++)
        bytes += run->graph->outputs[i].bytes;  // resident ones are made twice
    return bytes;
}

static uint64_t tli_online_backward_bytes(const tl_run *run, int32_t id) {
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[id];
    const tli_sim_tensor *tensors = run->online.sim.tensors;
    uint64_t bytes = node->bwork_bytes;
    int32_t i, k;
    for (i = node->first_output; i < tli_gradient_end(node); i++)
        if (!tensors[i].has_gradient) bytes += graph->outputs[i].bytes;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        int32_t tensor = graph->inputs[i].tensor;
        for (k = node->first_input; k < i && graph->inputs[k].tensor != tensor;) k++;
        if (k == i && !tensors[tensor].has_gradient &&
            tli_gets_gradient(graph, tensor))
            bytes += graph->outputs[tensor].bytes;
    }
    return bytes;
}

// Bytes of a closure. all: of the outputs that it makes; saved: saved bytes that it could make; most: its
// peak if each tensor is dropped after its last read; least_cut: the smallest of the cuts; work: the most
// scratch. cuts[k]: bytes made by closure[0..k] that are read after closure[k].
typedef struct tli_closure_bytes { uint64_t all, saved, most, least_cut, work; } tli_closure_bytes;

static tli_closure_bytes tli_online_measure_closure(tl_run *run) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    tli_closure_bytes sum;
    uint64_t cut = 0;
    int32_t k, i;
    tli_zero(&sum, sizeof sum);
    sum.least_cut = UINT64_MAX;
    for (k = 0; k < o->closure_count; k++) {
        const tl_node *node = &graph->nodes[o->closure[k]];
        for (i = node->first_output; i < node->first_output + node->output_count; i++) {
            o->left[i] = o->wanted_uses[i];
            if (o->sim.tensors[i].state == TLI_ABSENT) sum.all += graph->outputs[i].bytes;
            if (o->wanted[i] == TLI_WANT_MADE) cut += graph->outputs[i].bytes;
        }
        if (cut + node->fwork_bytes > sum.most) sum.most = cut + node->fwork_bytes;
        sum.work = tli_larger_u64(sum.work, node->fwork_bytes);
        if (node->saved_bytes) sum.work = tli_larger_u64(sum.work, node->swork_bytes);
        if (node->has_grad && !o->sim.nodes[o->closure[k]].has_saved)
            sum.saved += node->saved_bytes;
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor;
            if (o->wanted[tensor] == TLI_WANT_MADE && --o->left[tensor] == 0)
                cut -= graph->outputs[tensor].bytes;
        }
        o->cuts[k] = cut;
        if (k + 1 < o->closure_count && cut && cut < sum.least_cut) sum.least_cut = cut;
    }
    return sum;
}

// Keep the tensors that are made up to closure[cut_after] and read after it.
static void tli_online_save_cut(tl_run *run, int32_t cut_after) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    int32_t k, i;
    for (k = 0; k <= cut_after; k++) {
        const tl_node *node = &graph->nodes[o->closure[k]];
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            o->left[i] = o->wanted_uses[i];
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            if (o->wanted[graph->inputs[i].tensor] >= TLI_WANT_MADE)
                o->left[graph->inputs[i].tensor]--;
    }
    for (k = 0; k <= cut_after; k++) {
        const tl_node *node = &graph->nodes[o->closure[k]];
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (o->wanted[i] == TLI_WANT_MADE && o->left[i] > 0) o->wanted[i] = TLI_WANT_SAVED;
    }
    TLI_INVARIANT(cut_after < o->closure_count);
}

// Choose which tensors of the closure to keep for later backwards: all if they fit, else those at the
// distances of Revolve, counted in narrow cuts (at most a quarter wider than the narrowest).
static void tli_online_choose_saves(tl_run *run, uint64_t goal_bytes) {
    tli_online *o = &run->online;
    tli_closure_bytes sum = tli_online_measure_closure(run);
    uint64_t free_bytes = o->budget - o->sim.live_bytes, reserve = sum.most, narrow, length = 1,
             slot_total;
    int32_t k, next;
    o->save_all = sum.all + sum.saved <= free_bytes &&
                  sum.work <= free_bytes - sum.all - sum.saved &&
                  goal_bytes <= free_bytes - sum.all - sum.saved;
    if (o->save_all) {
        for (k = 0; k < run->graph->tensor_count; k++)
            if (o->wanted[k] == TLI_WANT_MADE &&
                (!tli_online_in_passing(run, run->graph->outputs[k].node) || o->spans.crosses[k]))
                o->wanted[k] = TLI_WANT_SAVED;
        return;
    }
    if (o->closure_count < 2 || sum.least_cut == UINT64_MAX) return;
    if (o->cuts[o->closure_count - 1] + goal_bytes > reserve)
        reserve = o->cuts[o->closure_count - 1] + goal_bytes;
    if (reserve >= free_bytes) return;
    narrow = sum.least_cut + sum.least_cut / 4;
    slot_total = 1 + (free_bytes - reserve) / narrow;
    for (k = 0; k + 1 < o->closure_count; k++) length += o->cuts[k] && o->cuts[k] <= narrow;
    length++;  // the goal is the last step of the segment
    for (k = -1; slot_total > 1 && length > 1; slot_total--) {
        uint64_t skip = (uint64_t)tli_split_chain(
            (int32_t)length, slot_total < length ? (int32_t)slot_total : (int32_t)length);
        if (!skip || skip >= length) break;
        length -= skip;
        for (next = k + 1; next + 1 < o->closure_count; next++)
            if (o->cuts[next] && o->cuts[next] <= narrow && --skip == 0) break;
        if (next + 1 >= o->closure_count) break;
        tli_online_save_cut(run, next);
        k = next;
    }
}

// -- online decisions: running a closure --

// Remove one reader of a tensor. After the last one it is unpinned, and dropped if it is not to be kept.
static tl_result tli_online_unwant(tl_run *run, int32_t tensor) {
    tli_online *o = &run->online;
    uint8_t want = o->wanted[tensor];
    TLI_INVARIANT(o->wanted_uses[tensor] > 0 && o->pins[tensor] > 0);
    if (--o->wanted_uses[tensor]) return TL_OK;
    o->wanted[tensor] = TLI_WANT_NOT;
    o->pins[tensor]--;
    if (want == TLI_WANT_MADE && o->forward_uses[tensor] > 0) return TL_OK;
    if (want == TLI_WANT_MADE || !tli_online_has_uses(run, tensor))
        return tli_online_let_go(run, tensor);
    return TL_OK;
}

static tl_result tli_online_unwant_inputs(tl_run *run, int32_t id) {
    const tl_node *node = &run->graph->nodes[id];
    tl_result result = TL_OK;
    int32_t i;
    for (i = node->first_input; i < node->first_input + node->input_count && !result; i++)
        result = tli_online_unwant(run, run->graph->inputs[i].tensor);
    return result;
}

// Run a node: make its inputs resident, make room, run, and drop those outputs that have no use.
static tl_result tli_online_run_node(tl_run *run, int32_t id, int with_saved) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i, saved = tli_item_of_saved(run, id);
    tl_result result = TL_OK;
    for (i = node->first_input; i < node->first_input + node->input_count && !result; i++)
        result = tli_online_bring(run, graph->inputs[i].tensor, id);
    for (i = node->first_output; i < node->first_output + node->output_count; i++) o->pins[i]++;
    for (i = node->first_output; i < node->first_output + node->output_count && !result; i++)
        if (o->sim.tensors[i].state == TLI_PACKED) result = tli_online_bring(run, i, id);
    if (!result)
        result = tli_online_make_room(run, tli_online_forward_bytes(run, id, with_saved), id);
    if (!result)
        result = tli_online_emit(run, with_saved ? TL_STEP_FORWARD_SAVE : TL_STEP_FORWARD, id,
                                 TL_ALL_OUTPUTS, TL_CODEC_NONE);
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        o->pins[i]--;
        o->made_at[i] = o->used_at[i] = o->clock;
    }
    if (with_saved) o->made_at[saved] = o->used_at[saved] = o->clock;
    for (i = node->first_output; i < node->first_output + node->output_count && !result; i++)
        if (o->wanted[i] == TLI_WANT_NOT && !tli_online_has_uses(run, i))
            result = tli_online_let_go(run, i);
    TLI_INVARIANT(result || !with_saved || o->sim.nodes[id].has_saved);
    return result;
}

// Make all tensors that the goal wants resident or held, by running its closure.
static tl_result tli_online_reach(tl_run *run, int32_t goal, uint64_t goal_bytes) {
    tli_online *o = &run->online;
    int in_backward = o->next_forward == run->graph->node_count;
    tl_result result = TL_OK;
    int32_t k;
    o->save_all = 0;
    tli_online_collect(run, goal);
    if (o->closure_count && in_backward && !o->is_bare) tli_online_choose_saves(run, goal_bytes);
    for (k = 0; k < o->closure_count && !result; k++) {
        int32_t id = o->closure[k];
        const tl_node *node = &run->graph->nodes[id];
        int with_saved = o->save_all && node->saved_bytes && node->has_grad &&
                         !o->sim.nodes[id].has_saved && !tli_online_in_passing(run, id);
        result = tli_online_run_node(run, id, with_saved);
        if (!result) result = tli_online_unwant_inputs(run, id);
    }
    TLI_INVARIANT(result || tli_online_closure_holds(o));
    return result;
}

// -- online decisions: the two kinds of goal --

static tl_result tli_online_forward(tl_run *run, int32_t id) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[id];
    int keeps = tli_policy_keeps(run, id);
    int with_saved = !run->inference && node->has_grad && node->saved_bytes && (keeps || node->once);
    tl_result result;
    int32_t i;
    tli_online_want_inputs(run, id);
    result = tli_online_reach(run, id, 0);
    if (!result) result = tli_online_run_node(run, id, with_saved);
    for (i = node->first_input; i < node->first_input + node->input_count && !result; i++) {
        int32_t tensor = graph->inputs[i].tensor;
        TLI_INVARIANT(o->forward_uses[tensor] > 0);
        o->forward_uses[tensor]--;
        if (!o->forward_uses[tensor] && !tli_policy_keeps(run, graph->outputs[tensor].node) &&
            o->wanted_uses[tensor] == 1)
            result = tli_online_let_go(run, tensor);
        if (!result) result = tli_online_unwant(run, tensor);
    }
    for (i = node->first_output; i < node->first_output + node->output_count && !result; i++)
        if (!o->forward_uses[i] && !keeps) result = tli_online_let_go(run, i);
    return result;
}

// Want the tensors that a backward reads, and those that its forward reads if its saved bytes are gone.
static void tli_online_want_reads(tl_run *run, int32_t id, int remake) {
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        if (graph->inputs[i].needed) tli_online_want(run, graph->inputs[i].tensor);
    if (remake) tli_online_want_inputs(run, id);
    for (i = node->first_output; i < node->first_output + node->output_count && !remake; i++)
        if (graph->outputs[i].needed) tli_online_want(run, i);
}

// Make the saved bytes again. The same forward makes the outputs that the backward reads.
static tl_result tli_online_remake_saved(tl_run *run, int32_t id) {
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[id];
    tl_result result;
    int32_t i;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (graph->outputs[i].needed) tli_online_want(run, i);
    run->online.open_count = 0;
    result = tli_online_run_node(run, id, 1);
    return result ? result : tli_online_unwant_inputs(run, id);
}

static tl_result tli_online_backward(tl_run *run, int32_t id) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    const tl_node *node = &graph->nodes[id];
    int remake = node->saved_bytes && !o->sim.nodes[id].has_saved;
    int32_t i, saved = tli_item_of_saved(run, id);
    tl_result result;
    o->pins[saved]++;
    if (o->spans.of_node) o->span = o->spans.of_node[id];
    tli_online_want_reads(run, id, remake);
    result = tli_online_reach(
        run, id, tli_online_backward_bytes(run, id) + (remake ? node->saved_bytes : 0));
    if (!result && remake) result = tli_online_remake_saved(run, id);
    for (i = node->first_input; i < node->first_input + node->input_count && !result; i++)
        if (graph->inputs[i].needed) result = tli_online_bring(run, graph->inputs[i].tensor, id);
    for (i = node->first_output; i < node->first_output + node->output_count && !result; i++)
        if (graph->outputs[i].needed) result = tli_online_bring(run, i, id);
    if (!result) result = tli_online_make_room(run, tli_online_backward_bytes(run, id), id);
    if (!result) result = tli_online_emit(run, TL_STEP_BACKWARD, id, TL_ALL_OUTPUTS, TL_CODEC_NONE);
    TLI_INVARIANT(o->pins[saved] > 0);
    o->pins[saved]--;
    for (i = node->first_input; i < node->first_input + node->input_count && !result; i++) {
        int32_t tensor = graph->inputs[i].tensor;
        if (!tli_online_is_use(run, i)) continue;
        TLI_INVARIANT(o->backward_uses[tensor] > 0);
        o->backward_uses[tensor]--;
        if (graph->inputs[i].needed) result = tli_online_unwant(run, tensor);
        else if (!o->wanted_uses[tensor] && !tli_online_has_uses(run, tensor))
            result = tli_online_let_go(run, tensor);
    }
    for (i = node->first_output; i < node->first_output + node->output_count && !result; i++) {
        if (!graph->outputs[i].needed) continue;
        TLI_INVARIANT(o->backward_uses[i] > 0);
        o->backward_uses[i]--;
        result = tli_online_unwant(run, i);
    }
    return result;
}

// Reset what a goal wanted, and drop everything that may be dropped.
static tl_result tli_online_clear(tl_run *run) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++) {
        o->wanted[i] = TLI_WANT_NOT;
        o->wanted_uses[i] = 0;
        o->pins[i] = 0;
    }
    o->open_count = 0;
    for (i = 0; i < graph->tensor_count && !result && run->checkpoints_on; i++)
        result = tli_online_let_go(run, i);
    for (i = 0; i < graph->node_count && !result; i++) {
        o->pins[tli_item_of_saved(run, i)] = 0;
        if (o->sim.nodes[i].has_saved && run->checkpoints_on && !graph->nodes[i].once)
            result = tli_online_emit(run, TL_STEP_DROP_SAVED, i, TL_ALL_OUTPUTS, TL_CODEC_NONE);
    }
    TLI_INVARIANT(result || tli_online_is_at_rest(run));
    return result;
}

// Decide the steps of one goal. Tensors that are held for a later step of the goal take memory until then.
// If that is too much, the goal is restarted with nothing held, as a bare goal. The bytes that a bare
// goal needs do not depend on the budget: so if a budget works with bare goals alone, every larger one
// works, too, and the least budget can be found by bisection.
static tl_result tli_online_reach_goal(tl_run *run, int32_t id, int backward) {
    tl_result result;
    run->online.now = backward ? 2 * run->graph->node_count - 1 - id : id;
    result = backward ? tli_online_backward(run, id) : tli_online_forward(run, id);
    if (result == TL_ERROR_OVER_BUDGET) {
        result = tli_online_clear(run);
        run->online.is_bare = 1;
        if (!result) result = backward ? tli_online_backward(run, id) : tli_online_forward(run, id);
        run->online.is_bare = 0;
    }
    return result ? result : tli_online_end_goal(run);
}

// Drop what is left at the end: tensors that no backward read, host copies, saved bytes.
static tl_result tli_online_close(tl_run *run) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    tl_result result = TL_OK;
    int32_t i;
    o->now = 2 * graph->node_count;
    for (i = 0; i < graph->tensor_count && !result; i++) result = tli_online_let_go(run, i);
    for (i = 0; i < graph->node_count && !result; i++)
        if (o->sim.nodes[i].has_saved)
            result = tli_online_emit(run, TL_STEP_DROP_SAVED, i, TL_ALL_OUTPUTS, TL_CODEC_NONE);
    o->closed = 1;
    TLI_INVARIANT(result || tli_online_is_at_rest(run));
    return result;
}

// Decide the steps of the next goal. *done = 1: there is none, and no step was added.
static tl_result tli_online_next_goal(tl_run *run, int32_t *done) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    *done = 0;
    while (o->next_forward < graph->node_count) {
        int32_t id = o->next_forward++;
        if (!graph->nodes[id].is_input) return tli_online_reach_goal(run, id, 0);
    }
    while (!run->inference && o->next_backward >= 0) {
        int32_t id = o->next_backward--;
        if (graph->nodes[id].has_grad) return tli_online_reach_goal(run, id, 1);
    }
    if (!o->closed) return tli_online_close(run);
    *done = 1;
    TLI_INVARIANT(o->next_forward == graph->node_count && o->closed);
    return TL_OK;
}

// -- online decisions: the state of a pass --

static void tli_free_online(tl_run *run) {
    tli_online *o = &run->online;
    tl_env *env = run->env;
    tli_free_sim(&o->sim);
    tli_free_spans(env, &o->spans);
    tli_release(env, o->record.steps);
    tli_release(env, o->forward_uses);
    tli_release(env, o->backward_uses);
    tli_release(env, o->pins);
    tli_release(env, o->until);
    tli_release(env, o->ends);
    tli_release(env, o->next_end);
    tli_release(env, o->made_at);
    tli_release(env, o->used_at);
    tli_release(env, o->closure);
    tli_release(env, o->wanted);
    tli_release(env, o->wanted_uses);
    tli_release(env, o->left);
    tli_release(env, o->cuts);
    tli_release(env, o->candidates);
    tli_release(env, o->candidate_items);
    tli_zero(o, sizeof *o);
}

static tl_result tli_init_online(tl_run *run) {
    tli_online *o = &run->online;
    tl_env *env = run->env;
    uint64_t tensors = (uint64_t)run->graph->tensor_count, nodes = (uint64_t)run->graph->node_count;
    uint64_t items = tensors + nodes;
    int asks = run->desc.eviction == TL_EVICTION_CALLER;
    tl_plan flags;
    int has_spans = run->desc.policy.kind != TL_POLICY_EVERY_N ||
                    tli_init_spans(env, run->graph, run->desc.policy.as.every_n.interval, &o->spans);
    o->record = tli_steps_of(env);
    o->forward_uses = (int32_t *)tli_alloc_array(env, tensors, sizeof *o->forward_uses);
    o->backward_uses = (int32_t *)tli_alloc_array(env, tensors, sizeof *o->backward_uses);
    o->pins = (int32_t *)tli_alloc_array(env, items, sizeof *o->pins);
    o->made_at = (uint64_t *)tli_alloc_array(env, items, sizeof *o->made_at);
    o->used_at = (uint64_t *)tli_alloc_array(env, items, sizeof *o->used_at);
    o->closure = (int32_t *)tli_alloc_array(env, nodes, sizeof *o->closure);
    o->wanted = (uint8_t *)tli_alloc_array(env, tensors, sizeof *o->wanted);
    o->wanted_uses = (int32_t *)tli_alloc_array(env, tensors, sizeof *o->wanted_uses);
    o->left = (int32_t *)tli_alloc_array(env, tensors, sizeof *o->left);
    o->cuts = (uint64_t *)tli_alloc_array(env, nodes, sizeof *o->cuts);
    o->candidates =
        asks ? (tl_checkpoint_info *)tli_alloc_array(env, items, sizeof *o->candidates) : NULL;
    o->candidate_items =
        asks ? (int32_t *)tli_alloc_array(env, items, sizeof *o->candidate_items) : NULL;
    if (!o->forward_uses || !o->backward_uses || !o->pins || !o->made_at || !o->used_at ||
        !o->closure || !o->wanted || !o->wanted_uses || !o->left || !o->cuts || !has_spans ||
        !tli_online_init_until(run) || (asks && (!o->candidates || !o->candidate_items)))
        return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(ONLINE_STATE_NO_MEMORY));
    tli_zero(&flags, sizeof flags);
    flags.inference = run->inference;
    return tli_init_sim(env, &o->sim, TLI_IN(RUN_PLAN), run->graph, run->desc.device, &flags, NULL);
}

static void tli_online_count_uses(tl_run *run) {
    tli_online *o = &run->online;
    const tl_graph *graph = run->graph;
    int32_t id, i;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        int reads = !run->inference && node->has_grad;
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            o->forward_uses[graph->inputs[i].tensor]++;
            o->backward_uses[graph->inputs[i].tensor] += reads && tli_online_is_use(run, i);
        }
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            o->backward_uses[i] += reads && graph->outputs[i].needed;
    }
    TLI_INVARIANT(o->next_forward == 0);
}

// Start a pass: nothing but the graph's inputs is held.
static tl_result tli_start_online(tl_run *run, uint64_t budget) {
    tli_online *o = &run->online;
    size_t tensors = (size_t)run->graph->tensor_count,
           items = tensors + (size_t)run->graph->node_count;
    tli_zero(o->forward_uses, tensors * sizeof *o->forward_uses);
    tli_zero(o->backward_uses, tensors * sizeof *o->backward_uses);
    tli_zero(o->wanted, tensors * sizeof *o->wanted);
    tli_zero(o->wanted_uses, tensors * sizeof *o->wanted_uses);
    tli_zero(o->pins, items * sizeof *o->pins);
    tli_zero(o->made_at, items * sizeof *o->made_at);
    tli_zero(o->used_at, items * sizeof *o->used_at);
    o->record.count = 0;
    o->record.failed = 0;
    o->next_forward = o->now = 0;
    o->next_backward = run->graph->node_count - 1;
    o->closed = 0;
    o->clock = 0;
    o->eviction_count = 0;
    o->open_count = 0;
    o->is_bare = 0;
    o->budget = budget;
    tli_online_count_uses(run);
    TLI_INVARIANT(!o->record.count && tli_online_is_at_rest(run));
    return tli_reset_sim(&o->sim);
}

// Inputs that die are all there at the start, whatever is freed before the first step that needs room. While a
// budget that works is searched, it grows to them.
static tl_result tli_check_arrivals(tl_run *run) {
    tli_online *o = &run->online;
    int32_t id = 0;
    while (id < run->graph->node_count && !tli_dies(&run->graph->nodes[id])) id++;
    if (id == run->graph->node_count || o->sim.live_bytes <= o->budget) return TL_OK;
    if (o->searches) { o->budget = o->sim.live_bytes; return TL_OK; }
    run->report.limiting_node = id;
    return TL_ERROR_OVER_BUDGET;
}

// Make the decisions of a whole pass without running it. The record is valid until the first pass.
static tl_result tli_rehearse(tl_run *run, uint64_t budget) {
    int32_t done = 0;
    tl_result result = tli_start_online(run, budget);
    if (!result) result = tli_check_arrivals(run);
    while (!result && !done) result = tli_online_next_goal(run, &done);
    return result ? result : tli_sim_end(&run->online.sim);
}
#endif  // TL_NO_ONLINE
#endif  // TL_STRATEGY_IMPLEMENTATION

