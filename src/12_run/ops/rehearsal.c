#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

#ifndef TL_NO_PLANNERS
// -- rehearsal: passes --
//
//     load      once, before pass 1; all passes begin with what it left
//     pass 1    nothing is dropped before the end; every call is probed; what it makes is hashed
//     pass 2    everything is dropped as early as possible and made again, saved late, in place where allowed,
//               on a backend that poisons what is dead: each hash must be that of pass 1
//     passes 3  nothing is made twice, nothing probed: each step is timed from the end of the one before to its
//               own end
//     passes 4  the same under the run's own plan, if that makes something again: a forward that runs again
//               finds its operands in caches
//
// Passes from 2 on are run where no error was found before: what is named already would only show again.

// The graph that is rehearsed: the caller's.
static const tl_graph *tli_rehearsed_graph(const tli_rehearsing *r) { return tli_caller_graph(r->asked); }

// Make a run of the rehearsal: with the kernels, random hook, seed and variables of the run that is rehearsed,
// and without its load hook and budgets.
static tl_result tli_init_rehearsed(tli_rehearsing *r, const tl_plan *plan, tl_run **sub) {
    const tl_run *asked = r->asked;
    tl_run_desc desc;
    tl_result result;
    tli_zero(&desc, sizeof desc);
    desc.graph = tli_rehearsed_graph(r);
    desc.backend = &r->backend;
    desc.kernels = asked->kernels;
    desc.kernel_count = asked->desc.kernel_count;
    desc.plan = plan;
    desc.random = asked->desc.random;
    desc.random_user = asked->desc.random_user;
    desc.seed = asked->desc.seed;
    desc.first_step = asked->next_step;
    desc.loss_gradient_word = asked->desc.loss_gradient_word;
    desc.users = asked->desc.users;
    desc.user_count = asked->desc.user_count;
    desc.variables = asked->desc.variables;
    desc.variable_count = asked->desc.variable_count;
    if (!tli_has_members(asked)) {
        desc.formats = asked->desc.formats;
        desc.quantizations = asked->desc.quantizations;
        desc.kernel_precisions = asked->desc.kernel_precisions;
    }
    result = tli_init_run(r->env, &desc, asked->by_node ? TLI_RUN_OF_OPS : TLI_RUN_OF_GRAPH, NULL, 0, sub);
    if (!result && asked->precision != TL_PRECISION_MIXED) (*sub)->precision = asked->precision;
    return result;
}

// -- rehearsal: inputs --
//
// Load hooks give the next batch: called once more they would give other data, and a difference between two
// passes would prove nothing. So the hook is called before the first pass alone, and all passes begin with what
// it left, in inputs and in the registered state:
//
//     inputs of the run --> inputs of the first pass --> load --> image --> every later pass
//
// What is wrong about the hook itself is named as such, before any kernel is called.

// Find the first tensor from i on that is a graph input and has bytes: its number, tensor_count = there is
// none, and in *tensor its node and output.
static int32_t tli_next_input(const tl_graph *graph, int32_t i, tl_tensor *tensor) {
    while (i < graph->tensor_count &&
           (!graph->nodes[graph->outputs[i].node].is_input || !graph->outputs[i].bytes)) i++;
    tensor->node = i < graph->tensor_count ? graph->outputs[i].node : -1;
    tensor->output = i < graph->tensor_count ? graph->outputs[i].output : 0;
    return i;
}

static uint64_t tli_count_input_bytes(const tl_graph *graph) {
    uint64_t bytes = 0;
    tl_tensor tensor;
    int32_t i = tli_next_input(graph, 0, &tensor);
    for (; i < graph->tensor_count; i = tli_next_input(graph, i + 1, &tensor)) bytes += graph->outputs[i].bytes;
    return bytes;
}

// Give a pass the inputs of the run that is rehearsed. wanted: [tensor_count] 1 = load wrote it in that run;
// given are those of these that load did not write in the run of the pass. NULL = all inputs are given.
static tl_result tli_copy_rehearsed_inputs(tli_rehearsing *r, tl_run *sub, const uint8_t *wanted) {
    const tl_graph *graph = sub->graph;
    tl_result result = TL_OK;
    tl_tensor tensor;
    int32_t i = tli_next_input(graph, 0, &tensor);
    for (; i < graph->tensor_count && !result; i = tli_next_input(graph, i + 1, &tensor)) {
        if (wanted && (!wanted[i] || r->is_written[i])) continue;
        // fails where a run that is split or converted has another size of it
        if (tl_read_tensor(r->asked, tensor, r->inputs, graph->outputs[i].bytes)) continue;
        result = tl_write_tensor(sub, tensor, r->inputs, graph->outputs[i].bytes);
    }
    return result;
}

// Keep the inputs of the first pass, or give them to a later one.
static tl_result tli_move_rehearsed_inputs(tli_rehearsing *r, tl_run *sub, int keeps) {
    const tl_graph *graph = sub->graph;
    char *image = r->inputs;
    tl_result result = TL_OK;
    tl_tensor tensor;
    int32_t i = tli_next_input(graph, 0, &tensor);
    for (; i < graph->tensor_count && !result; i = tli_next_input(graph, i + 1, &tensor)) {
        result = keeps ? tl_read_tensor(sub, tensor, image, graph->outputs[i].bytes)
                       : tl_write_tensor(sub, tensor, image, graph->outputs[i].bytes);
        image += graph->outputs[i].bytes;
    }
    return result;
}

static char *tli_loaded_state(const tli_rehearsing *r) {
    return r->state + 2 * tli_count_variables(&r->asked->desc, NULL);
}

// A hook moves on in its data and may clear gradients; what else belongs to a node is the kernels'.
static void tli_look_for_changes(tli_rehearsing *r) {
    const tl_run_desc *desc = &r->asked->desc;
    const char *image = r->state;
    int32_t i;
    for (i = 0; i < desc->variable_count; i++) {
        const tl_variable *variable = &desc->variables[i];
        int same = tli_same_bytes(variable->host, image, variable->bytes);
        tl_finding finding;
        image += variable->bytes;
        if (same || variable->node < 0 || variable->kind == TL_VARIABLE_RANDOM) continue;
        if (variable->kind == TL_VARIABLE_GRADIENT &&
            tli_holds_word((const char *)variable->host, variable->bytes, 0)) continue;
        tli_zero(&finding, sizeof finding);
        finding.kind = TL_FINDING_LOAD_CHANGES;
        finding.node = variable->node;
        finding.operand = TL_OPERAND_VARIABLE;
        finding.index = i;
        finding.variable = variable->kind;
        tli_add_finding(r, &finding);
    }
}

static void tli_note_load(tli_rehearsing *r, tl_finding_kind kind, tl_tensor tensor, uint64_t bytes) {
    const tl_graph *graph = tli_rehearsed_graph(r);
    tl_finding finding;
    tli_zero(&finding, sizeof finding);
    finding.kind = kind;
    finding.node = tensor.node >= 0 && tensor.node < graph->node_count ? tensor.node : -1;
    finding.operand = TL_OPERAND_OUTPUT;
    finding.index = tensor.output;
    finding.byte = bytes;
    tli_add_finding(r, &finding);
}

// What the hook did with the inputs.
static void tli_note_writes(tli_rehearsing *r, const tli_write_watch *watch, const tli_write_watch *other) {
    const tl_graph *graph = tli_rehearsed_graph(r);
    tl_tensor tensor;
    int32_t i = tli_next_input(graph, 0, &tensor);
    if (watch->is_refused) tli_note_load(r, TL_FINDING_LOAD_REFUSED, watch->refused, watch->refused_bytes);
    if (other->is_refused) tli_note_load(r, TL_FINDING_LOAD_REFUSED, other->refused, other->refused_bytes);
    for (; i < graph->tensor_count; i = tli_next_input(graph, i + 1, &tensor)) {
        if (other->is_written[i] && !watch->is_written[i])
            tli_note_load(r, TL_FINDING_LOAD_OTHER_RUN, tensor, 0);
        else if (!watch->is_written[i] && !watch->is_refused && tli_dies(&graph->nodes[tensor.node]))
            tli_note_load(r, TL_FINDING_LOAD_FORGETS, tensor, 0);
        else if (!watch->is_written[i] && !watch->is_refused && !graph->nodes[tensor.node].state &&
                 !tli_was_written(r->asked, tensor))
            tli_note_load(r, TL_FINDING_LOAD_MISSING, tensor, 0);
    }
}

// Call the hook. What it writes to the run that is rehearsed counts as well: training would have it there.
static tl_result tli_call_load(tli_rehearsing *r, tl_run *sub) {
    tl_run *asked = r->asked;
    tli_write_watch watch, other;
    tl_result result, before;
    tli_zero(&watch, sizeof watch);
    watch.refused.node = -1;
    other = watch;
    watch.is_written = r->is_written;
    other.is_written = r->is_written + tli_rehearsed_graph(r)->tensor_count;
    sub->watch = &watch;
    asked->watch = &other;
    before = tli_begin_hook(r->env);
    result = (asked->desc.load)(sub, tli_first_micro_batch(asked), asked->desc.load_user);
    sub->watch = asked->watch = NULL;
    if (!result || watch.is_refused || other.is_refused) tli_note_writes(r, &watch, &other);
    if (r->out->error_count) result = TL_OK;        // the finding says more than the hook's result
    if (result) result = TL_ERROR_KERNEL;           // TL_NOT_READY, too: a rehearsal does not wait
    result = tli_end_hook(r->env, before, result, TLI_IN(REHEARSE_RUN), TLI_RULE(LOAD_HOOK_REPORTED_FAILURE));
    if (result || r->out->error_count) return result;
    return other.count ? tli_copy_rehearsed_inputs(r, sub, other.is_written) : TL_OK;
}

// Begin a pass with the state and the inputs that load left; the first time, call load. Where a write of load
// is refused, that is a finding: the result is TL_OK then, and no pass has begun.
static tl_result tli_start_rehearsed(tli_rehearsing *r, tl_run *sub) {
    const tl_run_desc *desc = &r->asked->desc;
    tl_result result;
    if (r->is_loaded) {
        result = tli_move_rehearsed_inputs(r, sub, 0);
        (void)tli_move_variables(desc, tli_loaded_state(r), TLI_VARIABLES_PUT);
        return result ? result : tl_start_pass(sub, 0);
    } else {
        tli_quiet quiet = tli_begin_quiet(r->env);
        result = tli_copy_rehearsed_inputs(r, sub, NULL);
        tli_end_quiet(&quiet, result);
    }
    if (!result && desc->load) result = tli_call_load(r, sub);
    if (result || r->out->error_count) return result;
    tli_look_for_changes(r);
    (void)tli_move_variables(desc, tli_loaded_state(r), TLI_VARIABLES_TAKE);
    result = tli_move_rehearsed_inputs(r, sub, 1);
    r->is_loaded = !result;
    return result ? result : tl_start_pass(sub, 0);
}

// -- rehearsal: hashes --

// 0 is the hash of nothing.
static tl_result tli_hash_range(tl_run *sub, tl_range range, uint64_t *hash) {
    const tl_backend *backend = &sub->backend;
    void *host = NULL;
    uint64_t i, word;
    tl_result result;
    *hash = 0;
    if (!range.bytes) return TL_OK;
    result = tli_order_range(&sub->store, &range, 0);
    if (!result) result = (backend->map)(backend->self, range, TL_MAP_READ, &host);
    if (result) return result;
    *hash = range.bytes;
    for (i = 0; i + sizeof word <= range.bytes; i += sizeof word) {
        tli_copy(&word, (const char *)host + i, sizeof word);
        *hash = tl_mix_u64(*hash, word);
    }
    for (; i < range.bytes; i++) *hash = tl_mix_u64(*hash, ((const unsigned char *)host)[i]);
    return (backend->unmap)(backend->self, range, TL_MAP_READ, host);
}

// Remember the hash of what a call made, or compare it. Only the first that differs is named: what follows may
// come from it.
static tl_result tli_note_made(tli_rehearsing *r, tl_run *sub, const tl_run_step *step, tl_operand_kind kind,
                               int32_t index, int32_t slot, tl_range range) {
    uint64_t hash;
    tl_finding finding;
    tl_result result = tli_hash_range(sub, range, &hash);
    if (result || !range.bytes) return result;
    if (!r->is_made[slot]) {
        r->is_made[slot] = 1;
        r->made[slot] = hash;
        return TL_OK;
    }
    if (r->made[slot] == hash || r->out->error_count) return TL_OK;
    tli_zero(&finding, sizeof finding);
    finding.kind = step->call.kind == TL_STEP_FORWARD_INPLACE ? TL_FINDING_INPLACE_WRONG
                                                              : TL_FINDING_MADE_OTHERWISE;
    finding.node = step->call.node;
    finding.step = step->call.kind;
    finding.operand = kind;
    finding.index = index;
    if (finding.kind == TL_FINDING_INPLACE_WRONG) {
        finding.operand = TL_OPERAND_INPUT;
        finding.index = sub->graph->nodes[finding.node].inplace;
    }
    tli_add_finding(r, &finding);
    return TL_OK;
}

// What a call made; its ranges are claimed until the next step.
static tl_result tli_note_call(tli_rehearsing *r, tl_run *sub, const tl_run_step *step) {
    const tl_graph *graph = sub->graph;
    const tl_kernel_call *call = &step->call;
    const tl_node *node = &graph->nodes[call->node];
    int backward = call->kind == TL_STEP_BACKWARD;
    tl_result result = TL_OK;
    int32_t i;
    if (sub->at.call.count < sub->at.call.total) return TL_OK;  // one of several calls for a range
    for (i = 0; i < node->output_count && !backward && !call->outputs_ready && !result; i++)
        result = tli_note_made(r, sub, step, TL_OPERAND_OUTPUT, i, node->first_output + i,
                               call->outputs[i].range);
    if (!backward && !result)
        result = tli_note_made(r, sub, step, TL_OPERAND_SAVED, 0, graph->tensor_count + call->node,
                               call->saved.range);
    for (i = 0; i < node->input_count && backward && !result; i++)
        result = tli_note_made(r, sub, step, TL_OPERAND_INPUT_GRADIENT, i,
                               graph->tensor_count + graph->node_count + node->first_input + i,
                               call->input_grads[i].range);
    return result;
}

// The state and the results after a pass: remember them, or compare.
static tl_result tli_note_end(tli_rehearsing *r, tl_run *sub, int compares) {
    const tl_run_desc *desc = &r->asked->desc;
    char *image = r->state + tli_count_variables(desc, NULL);
    tl_finding finding;
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < sub->graph->tensor_count && !result; i++) {
        const tl_node *maker = &sub->graph->nodes[sub->graph->outputs[i].node];
        uint64_t hash;
        if (!maker->state && (!sub->is_result[i] || maker->is_input)) continue;
        result = tli_hash_range(sub, sub->tensors[i].device.range, &hash);
        if (result || !compares) { r->ends[i] = hash; continue; }
        if (r->ends[i] == hash || r->out->error_count) continue;
        tli_zero(&finding, sizeof finding);
        finding.kind = TL_FINDING_END_DIFFERS;
        finding.node = sub->graph->outputs[i].node;
        finding.operand = TL_OPERAND_OUTPUT;
        finding.index = sub->graph->outputs[i].output;
        tli_add_finding(r, &finding);
    }
    if (!compares) (void)tli_move_variables(desc, image, TLI_VARIABLES_TAKE);
    for (i = 0; i < desc->variable_count && compares && !result; i++) {
        const tl_variable *variable = &desc->variables[i];
        int same = tli_same_bytes(variable->host, image, variable->bytes);
        image += variable->bytes;
        if (same || r->out->error_count) continue;
        tli_zero(&finding, sizeof finding);
        finding.kind = TL_FINDING_END_DIFFERS;
        finding.node = variable->node;
        finding.operand = TL_OPERAND_VARIABLE;
        finding.index = i;
        finding.variable = variable->kind;
        tli_add_finding(r, &finding);
    }
    return result;
}

// -- rehearsal: kinds of passes --

static int tli_can_probe(const tl_run *sub, const tl_run_step *step) {
    return sub->limits.host_visible && !sub->graph->nodes[step->call.node].dynamic &&
           sub->at.call.count == sub->at.call.total;
}

static tl_result tli_probe_pass(tli_rehearsing *r, tl_run *sub) {
    tl_run_step step;
    int32_t done = 0;
    tl_result result = tli_start_rehearsed(r, sub);
    if (!result && !r->is_loaded) return TL_OK;     // load was named
    tli_take_shared(r);
    if (!result) result = tli_take_statistics(r, sub);
    while (!result && !done) {
        result = tl_next_step(sub, &step, &done);
        if (result || done || !step.is_compute) continue;
        if (step.piece && r->out->error_count) return TL_OK;    // it may touch what is not there
        if (!tli_can_probe(sub, &step)) {
            r->out->unprobed_count += step.call.kind != TL_STEP_BACKWARD;
            r->out->call_count++;
            result = tl_run_step_kernel(sub, &step);
            tli_take_shared(r);
            if (!result) result = tli_take_statistics(r, sub);
        } else {
            result = tli_probe_call(r, sub, &step);
            if (!result) result = tl_finish_step(sub, &step);
        }
        if (!result) result = tli_note_call(r, sub, &step);
    }
    return result ? result : tli_note_end(r, sub, 0);
}

static tl_result tli_stress_pass(tli_rehearsing *r, tl_run *sub) {
    tl_run_step step;
    int32_t done = 0;
    tl_result result = tli_start_rehearsed(r, sub);
    while (!result && !done) {
        result = tl_next_step(sub, &step, &done);
        if (result || done || !step.is_compute) continue;
        r->out->calling_node = step.call.node;
        r->out->calling_kind = step.call.kind;
        r->out->call_count++;
        result = tl_run_step_kernel(sub, &step);
        if (!result) result = tli_note_call(r, sub, &step);
    }
    return result ? result : tli_note_end(r, sub, 1);
}

static uint64_t tli_rehearsal_now(const tli_rehearsing *r) {
    return (r->asked->backend.now_ns)(r->asked->backend.self);
}

// Time every step of a pass: from the end of the compute step before to its own, so the times of a pass add up
// to its length. Work that a device does later is waited for.
static tl_result tli_time_pass(tli_rehearsing *r, tl_run *sub, int32_t pass, int32_t pass_count) {
    tl_run_step step;
    uint64_t before;
    int32_t done = 0;
    tl_result result = tli_start_rehearsed(r, sub);
    before = tli_rehearsal_now(r);
    sub->by_itself = 1;
    while (!result && !done) {
        uint64_t now;
        int32_t at;
        result = tl_next_step(sub, &step, &done);
        if (result || done || !step.is_compute) continue;
        result = tl_run_step_kernel(sub, &step);
        r->out->call_count++;
        if (!result && !sub->limits.host_visible) {
            sub->store.enqueued = 1;
            result = tli_submit_store(&sub->store);
            if (!result) result = (sub->backend.wait)(sub->backend.self, sub->store.last_ticket);
        }
        now = tli_rehearsal_now(r);
        at = 2 * step.call.node + (step.call.kind == TL_STEP_BACKWARD);
        r->times[(size_t)at * (size_t)pass_count + (size_t)pass] += now - before;
        r->calls[(size_t)at * (size_t)pass_count + (size_t)pass]++;
        before = now;
    }
    sub->by_itself = 0;
    return result;
}

// The time of a call of a node in ns, at least 1: the mean over its calls in a pass, and of these means the
// lower quartile over the passes. at: 2 x node, + 1 for its backward.
static uint64_t tli_find_call_time(const tli_rehearsing *r, int32_t at, int32_t pass_count) {
    uint64_t *times = r->times + (size_t)at * (size_t)pass_count, time;
    const uint64_t *calls = r->calls + (size_t)at * (size_t)pass_count;
    int32_t k;
    for (k = 0; k < pass_count; k++) times[k] /= calls[k] ? calls[k] : 1;
    tli_sort_u64(times, (size_t)pass_count);
    time = times[(pass_count - 1) / 4];
    return time ? time : 1;
}

// Make a cost the mean over several plans; plan_count: of those before.
static void tli_take_time(uint64_t *cost, uint64_t time, int32_t plan_count) {
    *cost = plan_count ? (*cost * (uint64_t)plan_count + time) / ((uint64_t)plan_count + 1) : time;
}

static tl_result tli_take_times(tli_rehearsing *r, int32_t pass_count, int32_t plan_count) {
    const tl_graph *graph = tli_rehearsed_graph(r);
    tl_node_cost *costs = r->out->costs;
    int32_t id;
    if (!costs) costs = (tl_node_cost *)tli_alloc_array(r->env, (uint64_t)graph->node_count, sizeof *costs);
    if (!costs)
        return tli_fail(r->env, TL_ERROR_NO_MEMORY, TLI_IN(REHEARSE_RUN), TLI_RULE(REHEARSAL_NO_MEMORY));
    for (id = 0; id < graph->node_count; id++) {
        if (!graph->nodes[id].is_input)
            tli_take_time(&costs[id].fwd_ns, tli_find_call_time(r, 2 * id, pass_count), plan_count);
        if (graph->nodes[id].has_grad)
            tli_take_time(&costs[id].bwd_ns, tli_find_call_time(r, 2 * id + 1, pass_count), plan_count);
    }
    r->out->costs = costs;
    return TL_OK;
}

// -- rehearsal: plans --

// Move all drops of tensors behind all other steps of a plan.
static void tli_hold_drops(const tl_plan *plan, tl_step *steps) {
    int32_t k, count = 0, turn;
    for (turn = 0; turn < 2; turn++)
        for (k = 0; k < plan->step_count; k++) {
            tl_step step = tl_find_step(plan, k);
            if ((step.kind == TL_STEP_DROP) == turn) steps[count++] = step;
        }
}

// The step that drops a tensor, among the drops right behind a step; -1 = none of these does.
static int32_t tli_find_drop(const tl_plan *plan, int32_t step, const tl_node_output *tensor) {
    int32_t k;
    for (k = step + 1; k < plan->step_count && tl_find_step(plan, k).kind == TL_STEP_DROP; k++) {
        tl_step drop = tl_find_step(plan, k);
        if (drop.node != tensor->node) continue;
        if (drop.output == tensor->output || drop.output == TL_ALL_OUTPUTS) return k;
    }
    return -1;
}

// Take every chance to work in place: where the input is dropped right after. Returns the number of steps.
static int32_t tli_work_in_place(const tl_graph *graph, const tl_plan *plan, tl_step *steps) {
    int32_t k, count = 0, skip = -1;
    for (k = 0; k < plan->step_count; k++) {
        tl_step step = tl_find_step(plan, k);
        const tl_node *node = &graph->nodes[step.node];
        const tl_node_input *inputs = &graph->inputs[node->first_input];
        int32_t tensor, drop, i, readers = 0;
        if (k == skip) continue;
        if (step.kind == TL_STEP_FORWARD && node->inplace >= 0 && skip < k) {
            tensor = inputs[node->inplace].tensor;
            for (i = 0; i < node->input_count; i++) readers += inputs[i].tensor == tensor;
            drop = tli_find_drop(plan, k, &graph->outputs[tensor]);
            if (drop >= 0 && readers == 1 && graph->nodes[graph->outputs[tensor].node].output_count == 1) {
                step.kind = TL_STEP_FORWARD_INPLACE;
                skip = drop;
            }
        }
        steps[count++] = step;
    }
    return count;
}

typedef enum tli_rehearsed_plan {
    TLI_PLAN_HELD,       // nothing is dropped before the end
    TLI_PLAN_KEPT,       // nothing is made twice
    TLI_PLAN_OWN,        // that of the run
    TLI_PLAN_STRESSED,   // everything is dropped as early as possible, and overwritten where it may be
    TLI_PLAN_DROPPED     // the same without working in place
} tli_rehearsed_plan;

static tl_result tli_make_rehearsed_plan(tli_rehearsing *r, tli_rehearsed_plan which, tl_plan *plan) {
    const tl_graph *graph = tli_rehearsed_graph(r);
    int drops = (which == TLI_PLAN_STRESSED || which == TLI_PLAN_DROPPED) && !r->asked->inference;
    uint8_t *keep = NULL;
    if (which == TLI_PLAN_OWN) {
        tl_plan own;
        tl_find_run_plan(r->asked, &own);
        return tl_copy_plan(r->env, &own, plan);
    }
    if (!drops) return tl_plan_keep_all(r->env, graph, r->asked->inference, plan);
    keep = (uint8_t *)tli_alloc_array(r->env, (uint64_t)graph->tensor_count, 1);
    if (keep) {
        tl_result result = tl_plan_kept_set(r->env, graph, keep, plan);
        tli_release(r->env, keep);
        return result;
    }
    return tli_fail(r->env, TL_ERROR_NO_MEMORY, TLI_IN(REHEARSE_RUN), TLI_RULE(REHEARSAL_NO_MEMORY));
}

// A run of the rehearsal, and what must outlive it.
typedef struct tli_rehearsed {
    tl_plan  made, plan;   // made: as a planner made it, owned; plan: that of the run
    tl_step *steps;        // of `plan`, where they are not those of `made`
    tl_run  *run;
} tli_rehearsed;

static void tli_close_rehearsed(tli_rehearsing *r, tli_rehearsed *sub) {
    tl_free_run(sub->run);
    tl_free_plan(r->env, &sub->made);
    tli_release(r->env, sub->steps);
    tli_zero(sub, sizeof *sub);
}

static tl_result tli_open_rehearsed(tli_rehearsing *r, tli_rehearsed_plan which, tli_rehearsed *sub) {
    const tl_graph *graph = tli_rehearsed_graph(r);
    tl_result result;
    tli_zero(sub, sizeof *sub);
    result = tli_make_rehearsed_plan(r, which, &sub->made);
    if (result) return result;
    sub->steps = (tl_step *)tli_alloc_array(r->env, (uint64_t)sub->made.step_count + 1, sizeof *sub->steps);
    if (!sub->steps) {
        tli_close_rehearsed(r, sub);
        return tli_fail(r->env, TL_ERROR_NO_MEMORY, TLI_IN(REHEARSE_RUN), TLI_RULE(REHEARSAL_NO_MEMORY));
    }
    sub->plan.steps = sub->steps;
    sub->plan.step_count = sub->made.step_count;
    sub->plan.inference = sub->made.inference;
    sub->plan.repeat_count = 1;
    if (which == TLI_PLAN_HELD) tli_hold_drops(&sub->made, sub->steps);
    else if (which == TLI_PLAN_STRESSED)
        sub->plan.step_count = tli_work_in_place(graph, &sub->made, sub->steps);
    else sub->plan = sub->made;
    sub->plan.memory = NULL;
    result = tli_init_rehearsed(r, &sub->plan, &sub->run);
    if (result) tli_close_rehearsed(r, sub);
    return result;
}

// Make the run of pass 2: in place wherever that is possible, or, if that plan is invalid, nowhere.
static tl_result tli_open_stressed(tli_rehearsing *r, tli_rehearsed *sub) {
    tli_quiet quiet = tli_begin_quiet(r->env);
    tl_result result = tli_open_rehearsed(r, TLI_PLAN_STRESSED, sub);
    if (result == TL_ERROR_INVALID_PLAN) result = tli_open_rehearsed(r, TLI_PLAN_DROPPED, sub);
    tli_end_quiet(&quiet, result);
    return result;
}

// -- rehearsal: backends --

// Open the backend of the passes: in memory of the env, or that of the run where the host cannot call its
// kernels. poisons: 1 = in memory of the env what is dead is filled with a pattern.
static tl_result tli_open_rehearsal_backend(tli_rehearsing *r, int poisons) {
    tl_cpu_backend_desc desc;
    if (!r->asked->limits.host_visible) {
        r->backend = r->asked->backend;
        return TL_OK;
    }
    tli_zero(&desc, sizeof desc);
#ifndef TL_NO_CHECKS
    desc.checked = poisons;
#else
    (void)poisons;
#endif
    desc.alignment_bytes = r->asked->limits.alignment_bytes;
    r->owns_backend = 1;
    return tl_init_cpu_backend(r->env, &desc, &r->backend);
}

static void tli_close_rehearsal_backend(tli_rehearsing *r) {
    if (r->owns_backend) (void)tl_free_cpu_backend(r->env, &r->backend);
    r->owns_backend = 0;
}

// -- rehearsal: all of it --

// Compare param_bytes of each node with the bytes of its registered parameters.
static void tli_compare_parameters(tli_rehearsing *r) {
    const tl_graph *graph = tli_rehearsed_graph(r);
    const tl_run_desc *desc = &r->asked->desc;
    int32_t i, k;
    for (i = 0; i < desc->variable_count; i++) {
        const tl_variable *variable = &desc->variables[i];
        uint64_t bytes = 0;
        tl_finding finding;
        if (variable->node < 0 || variable->kind != TL_VARIABLE_PARAMETER) continue;
        for (k = 0; k < desc->variable_count; k++)
            if (desc->variables[k].node == variable->node && desc->variables[k].kind == TL_VARIABLE_PARAMETER)
                bytes += desc->variables[k].bytes;
        if (!graph->nodes[variable->node].param_bytes ||
            bytes == graph->nodes[variable->node].param_bytes) continue;
        tli_zero(&finding, sizeof finding);
        finding.kind = TL_FINDING_PARAM_BYTES_DIFFER;
        finding.node = variable->node;
        finding.byte = bytes;
        tli_add_finding(r, &finding);
    }
}

// Gradients of weights that are not registered are not put back: the rehearsal leaves its own sums in them.
// Those of kernels of another device cannot be registered.
static void tli_look_for_gradients(tli_rehearsing *r) {
    const tl_graph *graph = tli_rehearsed_graph(r);
    int32_t id;
    for (id = 0; id < graph->node_count && !r->asked->inference && r->asked->limits.host_visible; id++) {
        const tl_node *node = &graph->nodes[id];
        tl_finding finding;
        if (!node->param_bytes || !node->has_grad || tli_has_gradient_variable(&r->asked->desc, id)) continue;
        tli_zero(&finding, sizeof finding);
        finding.kind = TL_FINDING_GRADIENT_UNKNOWN;
        finding.node = id;
        finding.step = TL_STEP_BACKWARD;
        tli_add_finding(r, &finding);
    }
}

// Without a clock nothing is timed; where nobody gave costs either, plans take all ops for equally dear.
static void tli_look_for_clock(tli_rehearsing *r, const tl_rehearsal_desc *desc) {
    const tl_graph *graph = tli_rehearsed_graph(r);
    tl_finding finding;
    int32_t id;
    if ((desc && desc->pass_count < 0) || tli_rehearsal_now(r)) return;
    for (id = 0; id < graph->node_count; id++)
        if (graph->nodes[id].fwd_cost > 1 || graph->nodes[id].bwd_cost > 1) return;
    tli_zero(&finding, sizeof finding);
    finding.kind = TL_FINDING_NO_CLOCK;
    finding.node = -1;
    tli_add_finding(r, &finding);
}

// Time passes of one plan; plan_count: how many plans were timed before.
static tl_result tli_time_plan(tli_rehearsing *r, tli_rehearsed_plan which, int32_t pass_count,
                               int32_t plan_count) {
    uint64_t count = 2 * (uint64_t)tli_rehearsed_graph(r)->node_count * (uint64_t)pass_count;
    tli_rehearsed timed;
    int32_t pass;
    tl_result result = tli_open_rehearsed(r, which, &timed);
    if (result) return result;
    r->times = (uint64_t *)tli_alloc_array(r->env, 2 * count, sizeof *r->times);
    if (r->times) r->calls = r->times + count;
    else result = tli_fail(r->env, TL_ERROR_NO_MEMORY, TLI_IN(REHEARSE_RUN), TLI_RULE(REHEARSAL_NO_MEMORY));
    for (pass = 0; pass < pass_count && !result; pass++) result = tli_time_pass(r, timed.run, pass, pass_count);
    if (!result) result = tli_take_times(r, pass_count, plan_count);
    tli_release(r->env, r->times);
    r->times = NULL;
    tli_close_rehearsed(r, &timed);
    return result;
}

// Probe the calls of a pass of one plan. The hashes of a pass before it are forgotten, its findings stay.
static tl_result tli_rehearse_plan(tli_rehearsing *r, tli_rehearsed_plan which) {
    const tl_graph *graph = tli_rehearsed_graph(r);
    size_t made = (size_t)graph->tensor_count + (size_t)graph->node_count + (size_t)graph->input_count;
    tli_rehearsed sub;
    tl_result result = tli_open_rehearsal_backend(r, 0);
    tli_zero(r->is_made, made);
    r->out->unprobed_count = 0;
    if (!result) {
        result = tli_open_rehearsed(r, which, &sub);
        if (!result) result = tli_probe_pass(r, sub.run);
        if (sub.run) tli_close_rehearsed(r, &sub);
    }
    tli_close_rehearsal_backend(r);
    return result;
}

// Carry out pass 1, with which pass 2 is compared: by the plan that drops the least of those for which there is
// memory.
static tl_result tli_rehearse_kept(tli_rehearsing *r) {
    tli_quiet quiet = tli_begin_quiet(r->env);
    tl_result result = tli_rehearse_plan(r, TLI_PLAN_HELD);
    if (result == TL_ERROR_NO_MEMORY || result == TL_ERROR_INVALID_PLAN) {
        r->out->kind = TL_REHEARSAL_PLANS;
        result = tli_rehearse_plan(r, TLI_PLAN_KEPT);
    }
    if (result == TL_ERROR_NO_MEMORY && !tli_has_members(r->asked)) result = tli_rehearse_plan(r, TLI_PLAN_OWN);
    tli_end_quiet(&quiet, result);
    return result;
}

// Whether the plan of a run makes something again, with calls and drops alone.
static int tli_makes_again(const tl_run *run) {
    int32_t forwards = 0, nodes = 0, k;
    tl_plan plan;
    tl_find_run_plan(run, &plan);
    for (k = 0; k < plan.step_count; k++) {
        tl_step step = tl_find_step(&plan, k);
        if (step.kind > TL_STEP_DROP_SAVED || step.begins || step.slot) return 0;
        forwards += step.kind < TL_STEP_BACKWARD;
    }
    for (k = 0; k < run->graph->node_count; k++) nodes += !run->graph->nodes[k].is_input;
    return forwards > nodes;
}

// Time the operations under the plan that would be run if nothing limited it, not under that of pass 1, which
// holds more than it needs and is slower because of that; and under the plan of the run.
static tl_result tli_rehearse_times(tli_rehearsing *r, int32_t pass_count) {
    int has_room = r->out->kind == TL_REHEARSAL_KEPT || tli_has_members(r->asked);
    tl_result result = tli_open_rehearsal_backend(r, 0);
    if (!result) result = tli_time_plan(r, has_room ? TLI_PLAN_KEPT : TLI_PLAN_OWN, pass_count, 0);
    if (!result && has_room && !tli_has_members(r->asked) && tli_makes_again(r->asked))
        result = tli_time_plan(r, TLI_PLAN_OWN, pass_count, 1);
    tli_close_rehearsal_backend(r);
    return result;
}

static tl_result tli_rehearse_stressed(tli_rehearsing *r) {
    tli_rehearsed stressed;
    tl_result result = tli_open_rehearsal_backend(r, 1);
    if (!result) {
        result = tli_open_stressed(r, &stressed);
        if (!result) {
            result = tli_stress_pass(r, stressed.run);
            r->out->is_stressed = !result;
            tli_close_rehearsed(r, &stressed);
        }
    }
    tli_close_rehearsal_backend(r);
    return result;
}

static tl_result tli_alloc_rehearsal(tli_rehearsing *r) {
    const tl_graph *graph = tli_rehearsed_graph(r);
    uint64_t made = (uint64_t)graph->tensor_count + (uint64_t)graph->node_count + (uint64_t)graph->input_count;
    uint64_t pieces;
    r->made = (uint64_t *)tli_alloc_array(r->env, made, sizeof *r->made);
    r->is_made = (uint8_t *)tli_alloc_array(r->env, made, 1);
    r->ends = (uint64_t *)tli_alloc_array(r->env, (uint64_t)graph->tensor_count, sizeof *r->ends);
    r->state = (char *)tli_alloc_array(r->env, tli_count_variables(&r->asked->desc, &pieces) + 1, 5);
    r->is_still = (uint8_t *)tli_alloc_array(r->env, pieces + 1, 1);
    r->inputs = (char *)tli_alloc_array(r->env, tli_count_input_bytes(graph) + 1, 1);
    r->is_written = (uint8_t *)tli_alloc_array(r->env, (uint64_t)graph->tensor_count, 2);
    r->statistics = (char *)tli_alloc_array(r->env, tli_statistics_before(graph, graph->tensor_count) + 1, 2);
    r->readers = (int32_t *)tli_alloc_array(r->env, (uint64_t)graph->tensor_count, sizeof *r->readers);
    r->part_places = (uint64_t *)tli_alloc_array(r->env, (uint64_t)graph->tensor_count + 1,
                                                 sizeof *r->part_places);
    if (r->part_places) {
        tli_place_row_parts(graph, r->part_places);
        r->parts = (uint8_t *)tli_alloc_array(r->env, r->part_places[graph->tensor_count] + 1, 1);
    }
    if (r->made && r->is_made && r->ends && r->state && r->inputs && r->is_written && r->is_still &&
        r->statistics && r->readers && r->parts) {
        (void)tli_move_variables(&r->asked->desc, r->state, TLI_VARIABLES_TAKE);
        return TL_OK;
    }
    tli_release(r->env, r->state);  // there is nothing to put back from
    r->state = NULL;
    return tli_fail(r->env, TL_ERROR_NO_MEMORY, TLI_IN(REHEARSE_RUN), TLI_RULE(REHEARSAL_NO_MEMORY));
}

static tl_result tli_check_rehearsal(const tl_run *run, const tl_rehearsal_desc *desc, int32_t *pass_count) {
    int has_clock = (run->backend.now_ns)(run->backend.self) != 0;
    *pass_count = desc ? desc->pass_count : 0;
    if (run->active)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(REHEARSE_RUN), TLI_RULE(RUN_PASS_IS_UNDER_WAY));
#ifndef TL_NO_PRECISION
    if (run->compiled && run->compiled->rank_count > 1)
        return tli_fail(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(REHEARSE_RUN), TLI_RULE(RUN_IS_OF_ONE_RANK));
#endif
    if (run->has_shards)
        return tli_fail_values(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(REHEARSE_RUN),
                               TLI_RULE(SHARDS_ARE_NOT_REHEARSED), (uint64_t)tli_find_first_shard(run), 0);
    if (*pass_count < -1 || *pass_count > 1000)
        return tli_fail(run->env, TL_ERROR_INVALID_ARG, TLI_IN(REHEARSE_RUN),
                        TLI_RULE(PASS_COUNT_MUST_BE_TO_1000));
    if (*pass_count > 0 && !has_clock)
        return tli_fail(run->env, TL_ERROR_UNSUPPORTED, TLI_IN(REHEARSE_RUN), TLI_RULE(PASS_COUNT_NEEDS_CLOCK));
    if (!*pass_count) *pass_count = has_clock ? 5 : 0;
    if (*pass_count < 0) *pass_count = 0;
    return TL_OK;
}

TLI_IMPL tl_result tl_rehearse_run(tl_run *run, const tl_rehearsal_desc *desc, tl_rehearsal *rehearsal) {
    tli_rehearsing r;
    int32_t pass_count;
    tl_result result;
    TL_ASSERT(run && rehearsal);
    tli_zero(rehearsal, sizeof *rehearsal);
    result = tli_check_rehearsal(run, desc, &pass_count);
    if (result) return result;
    tli_zero(&r, sizeof r);
    r.env = run->env;
    r.asked = run;
    r.out = rehearsal;
    rehearsal->node_count = tli_rehearsed_graph(&r)->node_count;
    result = tli_alloc_rehearsal(&r);
    if (!result) {
        tli_compare_parameters(&r);
        tli_look_for_gradients(&r);
        tli_look_for_clock(&r, desc);
        result = tli_rehearse_kept(&r);
        if (!result && !rehearsal->error_count) result = tli_rehearse_stressed(&r);
        if (!result && !rehearsal->error_count && pass_count) result = tli_rehearse_times(&r, pass_count);
    }
    if (r.state) (void)tli_move_variables(&run->desc, r.state, TLI_VARIABLES_PUT);
    tli_release(r.env, r.made);
    tli_release(r.env, r.is_made);
    tli_release(r.env, r.readers);
    tli_release(r.env, r.part_places);
    tli_release(r.env, r.parts);
    tli_release(r.env, r.ends);
    tli_release(r.env, r.inputs);
    tli_release(r.env, r.is_written);
    tli_release(r.env, r.is_still);
    tli_release(r.env, r.statistics);
    tli_release(r.env, r.state);
    if (result) tl_free_rehearsal(r.env, rehearsal);
    return result;
}

TLI_IMPL void tl_free_rehearsal(tl_env *env, tl_rehearsal *rehearsal) {
    TL_ASSERT(rehearsal);
    tli_release(env, rehearsal->findings);
    tli_release(env, rehearsal->costs);
    tli_zero(rehearsal, sizeof *rehearsal);
}

#ifndef TL_NO_TEXT
// -- rehearsal: text --

#define TLI_FINDING_TEXT(id, what, remedy) { what, remedy },
#define TLI_OPERAND_NAME(id, name, help) name,
static const char *const tli_finding_texts[][2] = { TL_FINDINGS(TLI_FINDING_TEXT) };
static const char *const tli_operand_names[] = { TL_OPERANDS(TLI_OPERAND_NAME) };
#undef TLI_FINDING_TEXT
#undef TLI_OPERAND_NAME

// Put "input 0", "scratch" or "statistics variable 3".
static void tli_put_operand(tli_writer *w, const tl_finding *f) {
    int is_numbered = f->operand != TL_OPERAND_SAVED && f->operand != TL_OPERAND_SCRATCH;
    if (f->operand == TL_OPERAND_NONE) { tli_put(w, "its operands"); return; }
    if (f->operand == TL_OPERAND_VARIABLE) tli_put(w, tl_name_variable(f->variable));
    if (f->operand == TL_OPERAND_VARIABLE) tli_put(w, " ");
    tli_put(w, tli_operand_names[f->operand]);
    if (is_numbered) tli_put(w, " ");
    if (is_numbered) tli_put_i64(w, f->index);
}

// The field that gives an operand its bytes.
static const char *tli_name_bytes_field(const tl_finding *f) {
    if (f->operand == TL_OPERAND_SAVED) return "saved_bytes";
    if (f->operand == TL_OPERAND_OUTPUT) return "output_bytes";
    if (f->operand != TL_OPERAND_SCRATCH) return "of the op that makes it";
    return f->step == TL_STEP_BACKWARD ? "bwork_bytes" : f->step == TL_STEP_FORWARD_SAVE ? "swork_bytes"
                                                                                         : "fwork_bytes";
}

static int tli_is_of_outputs(tl_operand_kind kind) {
    return kind == TL_OPERAND_OUTPUT || kind == TL_OPERAND_OUTPUT_GRADIENT;
}

static void tli_put_finding_text(tli_writer *w, const char *text, const tl_finding *f) {
    for (; *text; text++) {
        if (*text != '%') { tli_put_bytes(w, text, 1); continue; }
        text++;
        if (*text == 'o') tli_put_operand(w, f);
        if (*text == 'b') tli_put_u64(w, f->byte);
        if (*text == 'w') tli_put(w, tli_name_bytes_field(f));
        if (*text == 'z') tli_put(w, f->step == TL_STEP_FORWARD_SAVE ? "TL_SCRATCH_NONE" : "0");
        if (*text == 'l') tli_put(w, tli_is_of_outputs(f->operand) ? "outputs" : "inputs");
        if (*text == 'n') {
            tli_put(w, f->operand == TL_OPERAND_OUTPUT ? "out" : "in");
            tli_put_i64(w, f->index);
        }
    }
}

TLI_IMPL size_t tl_print_finding(const tl_graph *graph, const tl_finding *finding, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    int is_load;
    TL_ASSERT(finding);
    is_load = finding->kind >= TL_FINDING_LOAD_REFUSED && finding->kind <= TL_FINDING_LOAD_CHANGES;
    tli_put(&w, finding->kind == TL_FINDING_NO_CLOCK ? "the backend"
                : finding->node < 0 && is_load ? "no tensor of the graph"
                : finding->node < 0 ? "state of several nodes"
                : graph ? tl_name_node(graph, finding->node) : finding->name);
    tli_put(&w, finding->kind == TL_FINDING_NO_CLOCK ? " " : is_load ? ": load "
                : finding->step == TL_STEP_BACKWARD ? ": backward " : ": forward ");
    if (tli_is_below((int64_t)finding->kind, TL_FINDING_COUNT) &&
        tli_is_below((int64_t)finding->operand, TL_OPERAND_COUNT)) {
        tli_put_finding_text(&w, tli_finding_texts[finding->kind][0], finding);
        tli_put(&w, ": ");
        tli_put_finding_text(&w, tli_finding_texts[finding->kind][1], finding);
    }
    return tli_finish(&w);
}
#endif
#endif

#endif  // TL_STRATEGY_IMPLEMENTATION
