#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- results kept between passes --
//
// A node is constant where the caller knows versions of it and of all that it was made from and, in training,
// nothing of it needs a backward. What the rest reads of constant nodes, and results among them, is kept. Two
// plans of the graph lie in the same arenas, with inputs and what is kept at the same places in both:
//
//     full    x  F a  F b  F c  F d            everything; b stays
//     warm    x, b         F c  F d            b is the plan's entry: a and b do not run
//
// A pass replays the warm plan if no version differs from that of the pass before and no watched input was
// written, else the full one. Which bytes a write changed is not looked at: a written input has changed.
//
// Each plan is made as the strategy says, of a graph: the full one of a graph in which kept nodes are results,
// the warm one of a graph in which they are inputs. Where the budget does not hold all that is to be kept,
// what saves least for its bytes is given up: it runs in every pass.

// -- results kept between passes: in a pass --

// The version of a node: that of its only member as the caller gives it, or a mix of those of several members,
// 0 if one of them is 0.
static uint64_t tli_ask_version(const tl_run *run, int32_t id, int32_t micro_batch) {
    int32_t count = tli_count_members(run, id), at;
    uint64_t version = 1;
    if (run->kernel_of[id] == TLI_CONVERSION) return 1;     // it depends on its input alone
    for (at = 0; at < count; at++) {
        uint64_t of = (run->desc.version)(tli_find_member(run, id, at), micro_batch, run->desc.version_user);
        version = !of || !version ? 0 : at ? tl_mix_u64(version, of) | 1 : of;
    }
    return version;
}

// Mark what is kept as the entry of the warm plan, which a release leaves in place, or as any other tensor.
static void tli_mark_kept(tl_run *run, int is_entry) {
    const tl_plan *warm = &run->cache.plans[1];
    int32_t i;
    for (i = 0; i < warm->entry_count; i++) {
        const tl_entry *entry = &warm->entry[i];
        run->tensors[run->graph->nodes[entry->node].first_output + entry->output].is_entry = (uint8_t)is_entry;
    }
    TLI_INVARIANT(run->cache.is_on);
}

static void tli_take_cached_plan(tl_run *run, int is_warm) {
    tli_cache *cache = &run->cache;
    cache->is_warm = is_warm;
    run->plan = cache->plans[is_warm];
    run->planned = cache->planned[is_warm];
    run->input_arena_bytes = cache->start_bytes[is_warm];
    run->arenas[TL_TIER_DEVICE].offset_count = run->plan.offset_count;
    run->arenas[TL_TIER_HOST].offset_count = run->plan.host_offset_count;
    TLI_INVARIANT(run->plan.steps == cache->plans[is_warm].steps);
}

#ifdef TLI_INVARIANTS
// Where results are kept, what the warm plan begins with is there.
static int tli_cache_holds(const tl_run *run) {
    const tli_cache *cache = &run->cache;
    const tl_plan *warm = &cache->plans[1];
    int32_t i;
    if (!cache->is_on || !cache->is_kept) return 1;
    for (i = 0; i < warm->entry_count; i++) {
        int32_t tensor = run->graph->nodes[warm->entry[i].node].first_output + warm->entry[i].output;
        if (run->tensors[tensor].state != TLI_RESIDENT) return 0;
    }
    return 1;
}
#endif

// Ask for the versions of this pass, and choose its plan.
static void tli_choose_cached_plan(tl_run *run, int32_t micro_batch) {
    tli_cache *cache = &run->cache;
    int is_same = cache->is_kept;
    int32_t id;
    for (id = 0; id < run->graph->node_count; id++) {
        uint64_t version = cache->is_watched[id] ? tli_ask_version(run, id, micro_batch) : 0;
        is_same &= version == cache->versions[id] && (version || !cache->is_watched[id]);
        cache->versions[id] = version;
    }
    cache->is_kept = is_same;       // if 0, the full pass makes what is kept and sets it at its end
    tli_take_cached_plan(run, is_same);
    tli_mark_kept(run, is_same);
    TLI_INVARIANT(tli_cache_holds(run) && cache->is_warm == is_same);
}

// What was kept goes with the next release.
static void tli_forget_cache(tl_run *run) {
    run->cache.is_kept = 0;
    if (run->cache.is_on) tli_mark_kept(run, 0);
    TLI_INVARIANT(tli_cache_holds(run));
}

static void tli_free_cache(tl_run *run) {
    tli_cache *cache = &run->cache;
    tl_free_plan(run->env, &cache->plans[0]);
    tl_free_plan(run->env, &cache->plans[1]);
    tli_release(run->env, cache->versions);
    tli_release(run->env, cache->is_watched);
    tli_zero(cache, sizeof *cache);
    TLI_INVARIANT(!cache->is_on);
}

// -- results kept between passes: what is constant --

// Arrays over the nodes of the run's graph.
typedef struct tli_caching {
    tl_run   *run;
    tl_result (*make)(tl_run *run);   // makes run->plan for run->graph, as the strategy says
    uint8_t  *is_constant;
    uint8_t  *is_kept;
    uint8_t  *runs;                   // 1 = in the warm plan
    int32_t  *order;                  // [kept_count] what is to be kept, by what it saves for its bytes
    uint64_t *worth;                  // [kept_count] saved cost for a byte
    int32_t   kept_count;
} tli_caching;

static int32_t tli_input_node(const tl_graph *graph, int32_t input) {
    return graph->outputs[graph->inputs[input].tensor].node;
}

// Constant nodes, and those of them that others read, or whose outputs are results. A forward with an
// effect (once) runs in every pass.
static void tli_find_constants(tli_caching *c) {
    const tl_run *run = c->run;
    const tl_graph *graph = run->graph;
    int32_t id, i;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        int is_constant = tli_ask_version(run, id, 0) && (run->inference || !node->has_grad) && !node->once;
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            is_constant &= c->is_constant[tli_input_node(graph, i)];
        c->is_constant[id] = (uint8_t)is_constant;
        c->is_kept[id] = (uint8_t)(is_constant && !node->is_input && run->is_result[node->first_output]);
        for (i = node->first_input; i < node->first_input + node->input_count && !is_constant; i++) {
            int32_t from = tli_input_node(graph, i);
            c->is_kept[from] = (uint8_t)(c->is_constant[from] && !graph->nodes[from].is_input);
        }
    }
}

// Find the nodes of the warm plan: all that are not constant, and what these need of constant nodes that are
// not kept. Returns the forward cost of the latter.
static uint64_t tli_find_warm_nodes(tli_caching *c) {
    const tl_graph *graph = c->run->graph;
    uint64_t cost = 0;      // fits: tl_check_graph
    int32_t id, i;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        c->runs[id] = (uint8_t)(!node->is_input && !c->is_kept[id] &&
                                (!c->is_constant[id] || c->run->is_result[node->first_output]));
    }
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        if (!c->runs[id]) continue;
        if (c->is_constant[id]) cost += node->fwd_cost;
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t from = tli_input_node(graph, i);
            c->runs[from] |= !graph->nodes[from].is_input && !c->is_kept[from];
        }
    }
    TLI_INVARIANT(cost < UINT64_MAX);
    return cost;
}

static uint64_t tli_node_output_bytes(const tl_graph *graph, int32_t id) {
    const tl_node *node = &graph->nodes[id];
    uint64_t bytes = 0;     // fits: tl_check_graph
    int32_t i;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        bytes += graph->outputs[i].bytes;
    return bytes;
}

// cost / bytes in units of 2^-20; UINT64_MAX if that does not fit.
static uint64_t tli_rate_cost(uint64_t cost, uint64_t bytes) {
    uint64_t whole = bytes ? cost / bytes : UINT64_MAX, rest = bytes ? cost % bytes : 0;
    if (whole >> 43) return UINT64_MAX;
    while (bytes >> 43) { bytes >>= 1; rest >>= 1; }
    return whole << 20 | (rest << 20) / bytes;
}

// List what is to be kept; what saves least for its bytes, if it alone is given up, first. 0 = no memory.
static int tli_order_kept(tli_caching *c) {
    const tl_graph *graph = c->run->graph;
    int32_t id, *nodes, i;
    for (id = 0; id < graph->node_count; id++) c->kept_count += c->is_kept[id];
    nodes = (int32_t *)tli_alloc_array(c->run->env, (uint64_t)c->kept_count, sizeof *nodes);
    c->order = (int32_t *)tli_alloc_array(c->run->env, (uint64_t)c->kept_count, sizeof *c->order);
    c->worth = (uint64_t *)tli_alloc_array(c->run->env, (uint64_t)c->kept_count, sizeof *c->worth);
    if (nodes && c->order && c->worth) {
        for (id = i = 0; id < graph->node_count; id++) if (c->is_kept[id]) nodes[i++] = id;
        for (i = 0; i < c->kept_count; i++) {
            c->is_kept[nodes[i]] = 0;
            c->worth[i] = tli_rate_cost(tli_find_warm_nodes(c), tli_node_output_bytes(graph, nodes[i]));
            c->is_kept[nodes[i]] = 1;
        }
        tli_sort_numbers(c->order, c->kept_count, c->worth);
        TLI_INVARIANT(!c->kept_count || c->worth[c->order[0]] <= c->worth[c->order[c->kept_count - 1]]);
        for (i = 0; i < c->kept_count; i++) c->order[i] = nodes[c->order[i]];
    }
    i = nodes && c->order && c->worth;
    tli_release(c->run->env, nodes);
    return i;
}

// -- results kept between passes: graphs of the two plans --

// A graph of some nodes of the run's. It has inputs first, then what stands as an input, then what runs.
typedef struct tli_part {
    tl_graph        graph;
    tl_node        *nodes;
    tl_node_input  *inputs;
    tl_node_output *outputs;
    char           *text;
    int32_t        *order;        // [graph.node_count] nodes of the run's graph
    int32_t        *tensors;      // [tensor_count of the run's graph] in the part
    int32_t         highest_layer;  // of the run's graph: what stands as an input has it, so that configs of
                                  // checkpoints find as many layers
} tli_part;

static void tli_free_part(tl_env *env, tli_part *part) {
    tli_release(env, part->nodes);
    tli_release(env, part->inputs);
    tli_release(env, part->outputs);
    tli_release(env, part->text);
    tli_release(env, part->order);
    tli_release(env, part->tensors);
}

// 0 = no memory.
static int tli_alloc_part(tl_env *env, const tl_graph *graph, tli_part *part) {
    static const char input[] = "input";
    uint64_t nodes = (uint64_t)graph->node_count, tensors = (uint64_t)graph->tensor_count;
    tli_zero(part, sizeof *part);
    part->nodes = (tl_node *)tli_alloc_array(env, nodes, sizeof *part->nodes);
    part->inputs = (tl_node_input *)tli_alloc_array(env, (uint64_t)graph->input_count, sizeof *part->inputs);
    part->outputs = (tl_node_output *)tli_alloc_array(env, tensors, sizeof *part->outputs);
    part->text = (char *)tli_alloc_array(env, (uint64_t)graph->text_bytes + sizeof input, 1);
    part->order = (int32_t *)tli_alloc_array(env, nodes, sizeof *part->order);
    part->tensors = (int32_t *)tli_alloc_array(env, tensors, sizeof *part->tensors);
    if (!part->nodes || !part->inputs || !part->outputs || !part->text || !part->order || !part->tensors)
        return 0;
    tli_copy(part->text, graph->text, graph->text_bytes);
    tli_copy(part->text + graph->text_bytes, input, sizeof input);
    part->graph.nodes = part->nodes;
    part->graph.inputs = part->inputs;
    part->graph.outputs = part->outputs;
    part->graph.text = part->text;
    part->graph.text_bytes = graph->text_bytes + (uint32_t)sizeof input;
    part->graph.batch = graph->batch;
    return 1;
}

// Add a node of the run's graph. as_input: it is there before the first step.
static void tli_add_part(const tl_graph *from, tli_part *part, int32_t id, int as_input, int keep) {
    const tl_node *given = &from->nodes[id];
    tl_graph *graph = &part->graph;
    tl_node *node = &part->nodes[graph->node_count];
    int32_t i;
    *node = *given;
    if (as_input && !given->is_input) {
        tli_zero(node, sizeof *node);
        node->name = given->name;
        node->op = from->text_bytes;
        node->output_count = given->output_count;
        node->is_input = 1;
        node->inplace = -1;
        node->layer = part->highest_layer;
        node->origin = given->origin;
    }
    node->keep = (uint8_t)keep;
    node->first_input = graph->input_count;
    node->first_output = graph->tensor_count;
    for (i = 0; i < node->input_count; i++) {
        tl_node_input *input = &part->inputs[graph->input_count++];
        *input = from->inputs[given->first_input + i];
        input->tensor = part->tensors[input->tensor];
        if (i == node->inplace && part->nodes[part->outputs[input->tensor].node].is_input) node->inplace = -1;
    }
    for (i = 0; i < node->output_count; i++) {
        tl_node_output *output = &part->outputs[graph->tensor_count];
        *output = from->outputs[given->first_output + i];
        output->node = graph->node_count;
        output->needed &= node->has_grad;
        part->tensors[given->first_output + i] = graph->tensor_count++;
    }
    part->order[graph->node_count++] = id;
    TLI_INVARIANT(graph->node_count <= from->node_count && graph->tensor_count <= from->tensor_count);
}

// The graph of the full plan, or of the warm one.
static void tli_fill_part(const tli_caching *c, int is_warm, tli_part *part) {
    const tl_graph *graph = c->run->graph;
    int32_t id, turn;
    part->highest_layer = -1;
    for (id = 0; id < graph->node_count; id++)
        if (graph->nodes[id].layer > part->highest_layer) part->highest_layer = graph->nodes[id].layer;
    for (turn = 0; turn < 3; turn++) {
        for (id = 0; id < graph->node_count; id++) {
            const tl_node *node = &graph->nodes[id];
            int is_result = node->keep || (c->run->is_result[node->first_output] && !node->is_input);
            int kind = node->is_input ? 0 : is_warm && c->is_kept[id] ? 1 : is_warm && !c->runs[id] ? 3 : 2;
            if (node->state) kind = 2;      // where it stands in the listing says when it is updated
            if (!is_warm && c->is_kept[id]) is_result = 1;
            if (kind == turn) tli_add_part(graph, part, id, turn < 2, is_result);
        }
    }
}

// -- results kept between passes: the two plans --

static tl_result tli_fail_caching(const tli_caching *c) {
    return tli_fail(c->run->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(CACHED_NO_MEMORY));
}

// What stands as an input in the part is the entry of the plan.
static int32_t tli_list_entry(const tl_graph *graph, const tli_part *part, tl_entry *list) {
    int32_t k, i, count = 0;
    for (k = 0; k < part->graph.node_count; k++) {
        if (!part->nodes[k].is_input || graph->nodes[part->order[k]].is_input) continue;
        for (i = 0; i < part->nodes[k].output_count; i++) {
            list[count].node = part->order[k];
            list[count].output = i;
            list[count++].slot = 0;
        }
    }
    return count;
}

// Turn a plan of a part into one of the run's graph, without places.
static tl_result tli_rename_plan(const tli_caching *c, const tli_part *part, const tl_plan *found,
                                 tl_plan *plan) {
    tl_env *env = c->run->env;
    tl_plan apart = *found;
    tl_step *steps = (tl_step *)tli_alloc_array(env, (uint64_t)found->step_count, sizeof *steps);
    tl_entry *list = (tl_entry *)tli_alloc_array(env, (uint64_t)part->graph.tensor_count, sizeof *list);
    tl_result result = TL_OK;
    int32_t k;
    if (!steps || !list) result = tli_fail_caching(c);
    for (k = 0; k < found->step_count && !result; k++) {
        steps[k] = tl_find_step(found, k);
        steps[k].node = part->order[steps[k].node];
    }
    if (!result) {
        apart.steps = steps;
        apart.entry = list;
        apart.entry_count = tli_list_entry(c->run->graph, part, list);
        apart.offset_count = apart.host_offset_count = apart.block_count = 0;
        apart.in_flight = c->run->in_flight;
        result = tli_join_plan(env, TLI_IN(INIT_RUN), &apart, plan);
    }
    tli_release(env, steps);
    tli_release(env, list);
    return result;
}

// Make one of the two plans, without places.
static tl_result tli_make_cached_plan(tli_caching *c, int is_warm) {
    tl_run *run = c->run;
    const tl_graph *graph = run->graph;
    tl_plan found;
    tli_part part;
    tl_result result = TL_OK;
    tli_zero(&run->plan, sizeof run->plan);
    if (!tli_alloc_part(run->env, graph, &part)) result = tli_fail_caching(c);
    if (!result) {
        tli_fill_part(c, is_warm, &part);
        run->graph = &part.graph;
        result = (c->make)(run);
        run->graph = graph;
    }
    found = run->plan;
    tli_zero(&run->plan, sizeof run->plan);
    if (!result) result = tli_rename_plan(c, &part, &found, &run->cache.plans[is_warm]);
    tl_free_plan(run->env, &found);
    tli_free_part(run->env, &part);
    return result;
}

// The highest end, in its block, of what lies there before the first step of a plan: graph inputs and entry.
static uint64_t tli_find_start_bytes(const tl_run *run, const tl_plan *plan) {
    uint64_t highest = 0, alignment = tli_larger_u64(1, run->limits.alignment_bytes);
    const tl_graph *graph = run->graph;
    int32_t device = 0, i, number = 0, inputs = graph->tensor_count;
    while (device < plan->block_count && !plan->blocks[device].tier) device++;
    for (i = 0; i < inputs + plan->entry_count; i++) {
        const tl_entry *entry = i < inputs ? NULL : &plan->entry[i - inputs];
        int32_t tensor = entry ? graph->nodes[entry->node].first_output + entry->output : i;
        uint64_t bytes = graph->outputs[tensor].bytes, at;
        int32_t block;
        if ((!entry && !graph->nodes[graph->outputs[tensor].node].is_input) || !bytes) continue;
        at = tl_find_offset(plan, number++, 0);
        block = device ? tli_find_plan_block(plan->blocks, device, at) : -1;
        if (block >= 0) at -= plan->blocks[block].offset;
        highest = tli_larger_u64(highest, tli_align_up(at + bytes, alignment));
    }
    return highest;
}

// Replay one of the two plans with its places.
static tl_result tli_measure_cached_plan(tl_run *run, int is_warm) {
    tli_cache *cache = &run->cache;
    const tl_plan *plan = &cache->plans[is_warm];
    tl_device device = tli_run_device(run);
    tl_simulate_desc simulate;
    tl_result result;
    int32_t k;
    tli_zero(&simulate, sizeof simulate);
    simulate.graph = run->graph;
    simulate.plan = plan;
    simulate.device = &device;
    simulate.block_bytes = (uint64_t *)tli_alloc_array(run->env, (uint64_t)plan->block_count,
                                                       sizeof *simulate.block_bytes);
    if (!simulate.block_bytes)
        return tli_fail(run->env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_RUN), TLI_RULE(CACHED_NO_MEMORY));
    result = tl_simulate_plan(run->env, &simulate, &cache->planned[is_warm]);
    cache->high_bytes[is_warm] = 0;
    for (k = 0; k < plan->block_count; k++)
        if (!plan->blocks[k].tier)
            cache->high_bytes[is_warm] = tli_larger_u64(cache->high_bytes[is_warm], simulate.block_bytes[k]);
    if (!plan->block_count || plan->blocks[0].tier)
        cache->high_bytes[is_warm] = cache->planned[is_warm].arena_bytes;
    cache->start_bytes[is_warm] = result ? 0 : tli_find_start_bytes(run, plan);
    tli_release(run->env, simulate.block_bytes);
    return result;
}

#define TLI_CACHED_PLACE_WORK 1000000   // elementary steps of the layout

// Place both plans in the same arenas, of which run->plan tells the bytes then.
static tl_result tli_place_cached_plans(tl_run *run) {
    tli_cache *cache = &run->cache;
    tl_device device = tli_run_device(run);
    tl_places_desc desc;
    tl_result result;
    tli_zero(&desc, sizeof desc);
    desc.graph = run->graph;
    desc.device = &device;
    desc.work_limit = TLI_CACHED_PLACE_WORK;
    desc.block_bytes = tli_run_cut(run);
    result = tli_plan_shared_places(run->env, TLI_IN(INIT_RUN), &desc, &cache->plans[0], &cache->plans[1]);
    if (!result) result = tli_measure_cached_plan(run, 0);
    if (!result) result = tli_measure_cached_plan(run, 1);
    if (result) return result;
    cache->plans[0].arena_bytes = cache->plans[1].arena_bytes =
        tli_larger_u64(cache->plans[0].arena_bytes, cache->plans[1].arena_bytes);
    cache->plans[0].host_arena_bytes = cache->plans[1].host_arena_bytes =
        tli_larger_u64(cache->plans[0].host_arena_bytes, cache->plans[1].host_arena_bytes);
    TLI_INVARIANT(cache->high_bytes[0] <= cache->plans[0].arena_bytes);
    TLI_INVARIANT(cache->high_bytes[1] <= cache->plans[1].arena_bytes);
    tli_take_cached_plan(run, 0);
    return TL_OK;
}

// Make both plans within a budget. TL_ERROR_INFEASIBLE: at least one is not.
static tl_result tli_make_cached_plans(tli_caching *c, const tli_budget *budget) {
    tl_run *run = c->run;
    tli_budget before = run->budget;
    tl_result result;
    tl_free_plan(run->env, &run->cache.plans[0]);
    tl_free_plan(run->env, &run->cache.plans[1]);
    run->budget = *budget;
    result = tli_make_cached_plan(c, 0);
    if (!result) result = tli_make_cached_plan(c, 1);
    run->budget = before;
    if (result) return result;
    if (run->cache.plans[0].peak_bytes > before.bytes || run->cache.plans[1].peak_bytes > before.bytes)
        return TL_ERROR_INFEASIBLE;
    return tli_place_cached_plans(run);
}

#define TLI_CACHED_TURNS 4      // times that plans are made at most to make their arenas fit

// Keep all but the first `given_up` of the order. TL_ERROR_INFEASIBLE: the budget does not hold that.
static tl_result tli_try_to_keep(tli_caching *c, int32_t given_up) {
    tl_run *run = c->run;
    tli_budget budget = run->budget;
    uint64_t last[TL_TIER_COUNT] = { 0, 0 };
    int32_t i, turn;
    for (i = 0; i < c->kept_count; i++) c->is_kept[c->order[i]] = i >= given_up;
    (void)tli_find_warm_nodes(c);
    for (turn = 0; turn < TLI_CACHED_TURNS && !run->budget.is_over; turn++) {
        tl_result result = tli_make_cached_plans(c, &budget);
        uint64_t device, host;
        if (result) return result == TL_ERROR_NO_MEMORY ? result : TL_ERROR_INFEASIBLE;
        device = tli_arena_excess(run, TL_TIER_DEVICE);
        host = tli_arena_excess(run, TL_TIER_HOST);
        if (!device && !host) return TL_OK;
        if (turn && device == last[0] && host == last[1]) break;    // the plans do not go by the budget
        last[0] = device;
        last[1] = host;
        budget.bytes -= device < budget.bytes ? device : budget.bytes;
        budget.host_bytes -= host < budget.host_bytes ? host : budget.host_bytes;
    }
    return TL_ERROR_INFEASIBLE;
}

// Keep as much as the budget holds, by bisection of what is given up. *given_up: all = nothing is kept.
static tl_result tli_keep_most(tli_caching *c, int32_t *given_up) {
    int32_t fails = -1, fits = c->kept_count, at = 0, last = -1;
    tl_result result = TL_OK;
    while (fits - fails > 1) {
        result = tli_try_to_keep(c, at);
        last = at;
        if (result == TL_ERROR_NO_MEMORY) return result;
        if (!result) fits = at;
        else fails = at;
        at = fails + (fits - fails) / 2;
    }
    *given_up = fits;
    TLI_INVARIANT(fits > fails && fits <= c->kept_count);
    return fits < c->kept_count && fits != last ? tli_try_to_keep(c, fits) : TL_OK;
}

// -- results kept between passes: preparing a run --

// The nodes that only the full plan runs.
static void tli_count_skipped(tli_caching *c) {
    tli_cache *cache = &c->run->cache;
    int32_t k, id;
    tli_zero(c->runs, (size_t)c->run->graph->node_count);
    for (k = 0; k < cache->plans[0].step_count; k++) {
        tl_step step = tl_find_step(&cache->plans[0], k);
        if (step.kind < TL_STEP_BACKWARD) c->runs[step.node] = 1;
    }
    for (k = 0; k < cache->plans[1].step_count; k++) c->runs[tl_find_step(&cache->plans[1], k).node] = 0;
    for (id = 0; id < c->run->graph->node_count; id++) cache->skipped_count += c->runs[id];
    TLI_INVARIANT(cache->skipped_count >= 0);
}

// Watch all that something kept was made from.
static void tli_watch_kept(tli_caching *c) {
    const tl_graph *graph = c->run->graph;
    tli_cache *cache = &c->run->cache;
    int32_t id, i;
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        if (c->is_kept[id]) cache->kept_bytes += tli_node_output_bytes(graph, id);
        cache->is_watched[id] |= c->is_kept[id];
        for (i = node->first_input; i < node->first_input + node->input_count && cache->is_watched[id]; i++)
            cache->is_watched[tli_input_node(graph, i)] = 1;
    }
    TLI_INVARIANT(cache->kept_bytes > 0 || c->kept_count > 0);
}

static tl_result tli_fill_cache(tli_caching *c) {
    tl_run *run = c->run;
    int32_t given_up = 0;
    tl_result result;
    tli_find_constants(c);
    if (!tli_order_kept(c)) return tli_fail_caching(c);
    if (!c->kept_count) return TL_OK;
    result = tli_keep_most(c, &given_up);
    if (result || given_up == c->kept_count) return result;
    tli_watch_kept(c);
    tli_count_skipped(c);
    run->cache.is_on = 1;
    run->is_online = 0;
    run->owns_plan = 0;     // the cache does
    TLI_INVARIANT(run->cache.is_on && !run->is_online);
    return TL_OK;
}

// Find what can be kept between passes, and make the plans for that. make: makes run->plan for run->graph.
// Where nothing can be kept, the run goes on as one whose memory is pooled.
static tl_result tli_open_cache(tl_run *run, tl_result (*make)(tl_run *run)) {
    uint64_t nodes = (uint64_t)run->graph->node_count;
    const tl_strategy *strategy = run->desc.strategy;
    tli_quiet quiet;
    tli_caching c;
    tl_result result;
    int32_t id;
    if (!strategy || strategy->memory != TL_MEMORY_CACHED || !run->desc.version) return TL_OK;
    for (id = 0; id < run->graph->node_count; id++)
        if (tli_dies(&run->graph->nodes[id]))
            return tli_fail(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(INIT_RUN),
                            TLI_RULE(INPUTS_DIE_AND_RESULTS_ARE_KEPT));
    quiet = tli_begin_quiet(run->env);
    tli_zero(&c, sizeof c);
    c.run = run;
    c.make = make;
    c.is_constant = (uint8_t *)tli_alloc_array(run->env, nodes, 1);
    c.is_kept = (uint8_t *)tli_alloc_array(run->env, nodes, 1);
    c.runs = (uint8_t *)tli_alloc_array(run->env, nodes, 1);
    run->cache.versions = (uint64_t *)tli_alloc_array(run->env, nodes, sizeof *run->cache.versions);
    run->cache.is_watched = (uint8_t *)tli_alloc_array(run->env, nodes, 1);
    result = c.is_constant && c.is_kept && c.runs && run->cache.versions && run->cache.is_watched
                 ? tli_fill_cache(&c) : tli_fail_caching(&c);
    tli_end_quiet(&quiet, result);
    if (!run->cache.is_on) {
        tli_free_cache(run);
        tli_zero(&run->plan, sizeof run->plan);
        tli_zero(&run->planned, sizeof run->planned);
        tli_zero(run->arenas, sizeof run->arenas);
    }
    tli_release(run->env, c.is_constant);
    tli_release(run->env, c.is_kept);
    tli_release(run->env, c.runs);
    tli_release(run->env, c.order);
    tli_release(run->env, c.worth);
    return result;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
