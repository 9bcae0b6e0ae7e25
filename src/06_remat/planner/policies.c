#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- policies: candidates, cut nodes --
//
// A policy makes one or several candidate plans by its rule and offers them to a pool. tl_plan_policy answers
// with the best of a pool of its own; tl_plan_remat lets all policies fill the pool of its other parts. A
// candidate is left out before its plan is made where its cost or its bytes alone show that it is of no use.
// p is the policy, s the stages of revolve.

#define TLI_POLICY_NODES UINT64_C(1048576)  // about so many nodes in all candidates of one walk together
#define TLI_POLICY_STEP_WORK UINT64_C(64)      // of making and simulating one step of a candidate

// What candidates are wanted.
typedef enum tli_wanted {
    TLI_WANT_ANY,     // the cheapest that fits; if none does, the one of the least peak
    TLI_WANT_FITTING, // the cheapest that fits
    TLI_WANT_LEAST    // the one of the least peak
} tli_wanted;

typedef struct tli_policy {
    tl_env          quiet;       // allocator of the caller's env, without its log: candidates may fail
    const tl_policy_desc *desc;
    const tl_graph *graph;
    tli_budget      budget;
    tl_remat_pool  *pool;        // gets the candidates
    tli_wanted      wanted;
    int32_t         overflowed;  // 1 = a candidate was left out because its cost does not fit 64 bits
    int32_t         fits;        // 1 = the last candidate fits
    tli_remat_watch *watch;      // NULL = none, and no limit of the work
    uint64_t        work, work_limit;
    uint64_t        call_count;  // nodes that are not graph inputs
    uint64_t        highest_number;  // of these, as tli_checkpoint_number
    uint64_t        fineness;    // values are tried in steps of value / fineness, at least 1
    uint8_t        *keep;        // [tensor_count] 1 = the candidate keeps it
    uint8_t        *read;        // [tensor_count] 1 = a backward reads it
    uint64_t       *gradients;   // [node_count] of gradients and scratch, live during its backward
    uint64_t       *change;      // [node_count + 1] scratch of tli_policy_price, as the next two
    int32_t        *again;       // [node_count]
    int32_t        *until;       // [tensor_count]
    int32_t        *cuts;        // [cut_count] ascending
    int32_t        *last;        // [node_count] the last node that reads it
    int32_t         cut_count;
} tli_policy;

static int tli_policy_fits(const tli_policy *p, const tl_plan *plan) {
    return !p->budget.is_over && plan->peak_bytes <= p->budget.bytes;
}

// The cheapest plan that fits; NULL = none is known.
static const tl_plan *tli_policy_best(const tli_policy *p) {
    return p->budget.is_over ? NULL : tli_pool_find(p->pool, p->budget.bytes);
}

// Offer a candidate; `made` is the result of making it. Returns a failure that ends the policy.
static tl_result tli_policy_offer(tli_policy *p, tl_result made, tl_plan *plan) {
    if (made == TL_ERROR_OVERFLOW) {
        p->overflowed = 1;
        return TL_OK;
    }
    if (made) return made;
    p->fits = tli_policy_fits(p, plan);
    p->work += TLI_POLICY_STEP_WORK * (uint64_t)plan->step_count;
    return tli_pool_offer(p->pool, &p->quiet, plan);
}

// Whether a plan of at least so many bytes and this cost may be of use.
static int tli_policy_may_help(const tli_policy *p, uint64_t bytes, uint64_t cost) {
    const tl_plan *best = tli_policy_best(p), *least = tli_pool_least(p->pool);
    int may_be_least = !least || bytes <= least->peak_bytes;
    if (p->wanted == TLI_WANT_LEAST) return may_be_least;
    if (p->budget.is_over || bytes > p->budget.bytes) return p->wanted == TLI_WANT_ANY && may_be_least;
    return !best || cost <= best->cost;
}

// Whether no later candidate can be better, because the best one recomputes nothing, or the work is used up.
static int tli_policy_is_done(const tli_policy *p) {
    const tl_plan *best = tli_policy_best(p);
    if (p->watch && (p->work >= p->work_limit || tli_remat_stops(p->watch, p->work))) return 1;
    return p->wanted != TLI_WANT_LEAST && best && best->cost <= best->base_cost;
}

static uint64_t tli_policy_step(const tli_policy *p, uint64_t value) {
    return value / p->fineness ? value / p->fineness : 1;
}

static void tli_policy_keep(tli_policy *p, int32_t id, int kept) {
    const tl_node *node = &p->graph->nodes[id];
    int32_t i;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        p->keep[i] = (uint8_t)kept;
}

// Count a tensor or saved bytes as live during the backwards of the nodes low to high.
static void tli_policy_hold(tli_policy *p, int32_t low, int32_t high, uint64_t bytes) {
    if (low > high) return;
    p->change[low] += bytes;
    p->change[high + 1] -= bytes;  // sums wrap around to what is meant
}

// Note that the forward that makes a tensor is run again before the backward of node `when`, at the latest.
static void tli_policy_run_again(tli_policy *p, int32_t maker, int32_t when) {
    if (p->again[maker] < when) p->again[maker] = when;
}

// Add what the outputs and the saved bytes of a node hold; what reads them has been looked at.
static void tli_policy_hold_node(tli_policy *p, int32_t id, int all) {
    const tl_graph *graph = p->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i, last = graph->node_count - 1;
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        if (node->keep || node->is_input) tli_policy_hold(p, 0, last, graph->outputs[i].bytes);
        else if (p->keep[i] || p->again[id] >= 0)
            tli_policy_hold(p, p->until[i], p->keep[i] ? last : p->again[id], graph->outputs[i].bytes);
    }
    if (node->has_grad) tli_policy_hold(p, id, all ? last : p->again[id], node->saved_bytes);
}

// Find what a kept set costs (UINT64_MAX where that does not fit), and a lower bound of its peak: what is live
// during backwards. again[]: the backward before which a forward runs again, -1 = it does not; until[]: the
// last backward across which a tensor is held.
static uint64_t tli_policy_price(tli_policy *p, uint64_t *bytes) {
    const tl_graph *graph = p->graph;
    uint64_t cost = 0, live = 0;
    int32_t id, i;
    int fits = 1;
    for (id = 0; id < graph->node_count; id++) { p->again[id] = -1; p->change[id] = 0; }
    for (i = 0; i < graph->tensor_count; i++) p->until[i] = INT32_MAX;
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        int all = 1;
        for (i = node->first_output; i < node->first_output + node->output_count; i++) {
            int stays = p->keep[i] || node->keep || node->is_input;
            all &= stays;
            if (!node->has_grad || !graph->outputs[i].needed) continue;
            p->until[i] = id;
            if (!stays) tli_policy_run_again(p, id, id);
        }
        if (node->has_grad && node->saved_bytes && !all) tli_policy_run_again(p, id, id);
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor, maker = graph->outputs[tensor].node, at = p->again[id];
            int reads = node->has_grad && graph->inputs[i].needed;
            if (at >= 0 && at + 1 < p->until[tensor]) p->until[tensor] = at + 1;
            if (reads && id < p->until[tensor]) p->until[tensor] = id;
            if (p->keep[tensor] || graph->nodes[maker].keep || graph->nodes[maker].is_input) continue;
            tli_policy_run_again(p, maker, reads && id > at ? id : at);
        }
        tli_policy_hold_node(p, id, all);
        if (!node->is_input) fits = fits && tli_add_u64(cost, node->fwd_cost, &cost);
        if (p->again[id] >= 0) fits = fits && tli_add_u64(cost, node->fwd_cost, &cost);
        if (node->has_grad) fits = fits && tli_add_u64(cost, node->bwd_cost, &cost);
    }
    for (id = 0, *bytes = 0; id < graph->node_count; id++) {
        live += p->change[id];
        if (graph->nodes[id].has_grad && live + p->gradients[id] > *bytes) *bytes = live + p->gradients[id];
    }
    p->work += 3 * ((uint64_t)graph->node_count + (uint64_t)graph->input_count);
    return fits ? cost : UINT64_MAX;
}

static tl_result tli_policy_try(tli_policy *p) {
    uint64_t bytes, cost;
    tl_plan plan;
    tl_result made;
    int32_t id;
    for (id = 0; id < p->graph->node_count; id++)
        if (p->graph->nodes[id].once) tli_policy_keep(p, id, 1);
    cost = tli_policy_price(p, &bytes);
    if (cost != UINT64_MAX && !tli_policy_may_help(p, bytes, cost)) return TL_OK;
    made = tl_plan_kept_set(&p->quiet, p->graph, p->keep, &plan);
    return tli_policy_offer(p, made, &plan);
}

static uint64_t tli_find_root(uint64_t value) {  // rounded down
    uint64_t root = 0;
    while ((root + 1) * (root + 1) <= value) root++;
    return root;
}

// List the cut nodes: later nodes read nothing that was made before them. Mark what backwards read.
static void tli_find_cuts(tli_policy *p) {
    const tl_graph *graph = p->graph;
    int32_t id, i, reach = -1;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        p->last[id] = -1;
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            p->last[graph->outputs[graph->inputs[i].tensor].node] = id;
            p->read[graph->inputs[i].tensor] |= (uint8_t)(node->has_grad && graph->inputs[i].needed);
        }
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            p->read[i] |= (uint8_t)(node->has_grad && graph->outputs[i].needed);
    }
    for (id = 0; id < graph->node_count; id++) {
        if (graph->nodes[id].is_input) continue;
        if (reach <= id) p->cuts[p->cut_count++] = id;
        if (p->last[id] > reach) reach = p->last[id];
    }
}

// Sum up the gradients that are live during each backward, which depend on the order of backwards alone.
static void tli_policy_count_gradients(tli_policy *p) {
    const tl_graph *graph = p->graph;
    uint64_t live = 0;
    int32_t id, i;
    tli_zero(p->keep, (size_t)graph->tensor_count);  // 1 = its gradient is live
    for (id = graph->node_count; id-- > 0;) {
        const tl_node *node = &graph->nodes[id];
        if (!node->has_grad) continue;
        for (i = node->first_output; i < tli_gradient_end(node); i++) {
            if (!p->keep[i]) live += graph->outputs[i].bytes;
            p->keep[i] = 1;
        }
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t tensor = graph->inputs[i].tensor;
            if (p->keep[tensor] || !tli_gets_gradient(graph, tensor)) continue;
            p->keep[tensor] = 1;
            live += graph->outputs[tensor].bytes;
        }
        p->gradients[id] = live + node->bwork_bytes;
        for (i = node->first_output; i < tli_gradient_end(node); i++)
            live -= graph->outputs[i].bytes;
    }
    tli_zero(p->keep, (size_t)graph->tensor_count);
}

// -- policies: the rules --

static tl_result tli_policy_keep_all(tli_policy *p) {
    tl_plan plan;
    tl_result made = tl_plan_keep_all(&p->quiet, p->graph, p->desc->inference, &plan);
    return tli_policy_offer(p, made, &plan);
}

static tl_result tli_policy_try_interval(tli_policy *p, uint64_t interval) {
    int32_t id;
    for (id = 0; id < p->graph->node_count; id++)
        tli_policy_keep(p, id, tli_is_checkpoint(p->graph, id, interval));
    return tli_policy_try(p);
}

// A longer interval than the highest number keeps number 0 alone, as every longer one.
static tl_result tli_policy_every_n(tli_policy *p) {
    uint64_t interval = p->desc->policy.as.every_n.interval, root;
    uint64_t count = p->highest_number < p->call_count ? p->highest_number + 1 : p->call_count;
    tl_result result = TL_OK;
    root = tli_find_root(count);
    if (!p->budget.is_limited && !interval) interval = root + (root * root < count);
    if (interval) return tli_policy_try_interval(p, interval);
    for (interval = 1; !result && !tli_policy_is_done(p); interval += tli_policy_step(p, interval)) {
        result = tli_policy_try_interval(p, interval);
        if (interval > p->highest_number) break;
    }
    return result;
}

static tl_result tli_policy_chen_sqrt(tli_policy *p) {
    uint64_t interval = p->desc->policy.as.chen_sqrt.interval;
    uint64_t count = (uint64_t)p->cut_count, root = tli_find_root(count);
    int32_t k;
    if (!interval) interval = root + (count - root * root > root);
    tli_zero(p->keep, (size_t)p->graph->tensor_count);
    for (k = 0; k < p->cut_count; k++)
        if (((uint64_t)k + 1) % interval == 0) tli_policy_keep(p, p->cuts[k], 1);
    return tli_policy_try(p);
}

// Chen's Algorithm 3. Returns the least number of bytes for which some cut node kept here would not be kept,
// which is the next number that gives another set; 0 = none is kept.
static uint64_t tli_policy_cut_greedily(tli_policy *p, uint64_t bytes) {
    const tl_graph *graph = p->graph;
    uint64_t since = 0, next = 0;
    int32_t id, i, at = 0;
    tli_zero(p->keep, (size_t)graph->tensor_count);
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        if (node->is_input) continue;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            since += graph->outputs[i].bytes;
        if (at == p->cut_count || p->cuts[at] != id) continue;
        at++;
        if (since <= bytes) continue;
        tli_policy_keep(p, id, 1);
        if (!next || since < next) next = since;
        since = 0;
    }
    return next;
}

static tl_result tli_policy_chen_greedy(tli_policy *p) {
    uint64_t bytes = 0, next = 1;
    tl_result result = TL_OK;
    if (!p->budget.is_limited) p->wanted = TLI_WANT_LEAST;
    while (next && !result && !tli_policy_is_done(p)) {
        next = tli_policy_cut_greedily(p, bytes);
        result = tli_policy_try(p);
        bytes = next - bytes > tli_policy_step(p, bytes) ? next : bytes + tli_policy_step(p, bytes);
    }
    return result;
}

// The cost of a forward, or its cost per MiB of outputs and saved bytes.
static uint64_t tli_policy_find_worth(const tl_graph *graph, int32_t id, int per_byte) {
    const tl_node *node = &graph->nodes[id];
    uint64_t bytes = node->saved_bytes, scaled;
    int32_t i;
    if (!per_byte) return node->fwd_cost;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        bytes += graph->outputs[i].bytes;
    return bytes && tli_mul_u64(node->fwd_cost, 1048576, &scaled) ? scaled / bytes : UINT64_MAX;
}

static tl_result tli_policy_try_threshold(tli_policy *p, uint64_t threshold, int per_byte) {
    int32_t id;
    for (id = 0; id < p->graph->node_count; id++)
        if (!p->graph->nodes[id].is_input)
            tli_policy_keep(p, id, tli_policy_find_worth(p->graph, id, per_byte) >= threshold);
    return tli_policy_try(p);
}

// Try the values that occur as thresholds, in large graphs some of them; the lowest keeps everything.
// worths: [call_count] scratch.
static tl_result tli_policy_try_thresholds(tli_policy *p, uint64_t *worths, int per_byte) {
    uint64_t at = 0, last;
    int32_t id;
    tl_result result = TL_OK;
    for (id = 0; id < p->graph->node_count; id++)
        if (!p->graph->nodes[id].is_input) worths[at++] = tli_policy_find_worth(p->graph, id, per_byte);
    tli_sort_u64(worths, (size_t)at);
    for (at = 0; at < p->call_count && !result && !tli_policy_is_done(p);) {
        last = worths[at];
        result = tli_policy_try_threshold(p, last, per_byte);
        at += tli_policy_step(p, at);
        while (at < p->call_count && worths[at] == last) at++;
    }
    if (!result && !tli_policy_is_done(p)) result = tli_policy_try_threshold(p, UINT64_MAX, per_byte);
    return result;
}

static tl_result tli_policy_selective(tli_policy *p) {
    uint64_t threshold = p->desc->policy.as.selective.cost_threshold, *worths;
    tl_result result;
    if (threshold) return tli_policy_try_threshold(p, threshold, 0);
    worths = (uint64_t *)tli_alloc_array(&p->quiet, p->call_count + 1, sizeof *worths);
    if (!worths) return TL_ERROR_NO_MEMORY;
    result = tli_policy_try_thresholds(p, worths, 0);
    if (!result) result = tli_policy_try_thresholds(p, worths, 1);
    tli_release(&p->quiet, worths);
    return result;
}

// -- policies: revolve over the stages between cut nodes --
//
// Only the calls are listed here; tli_plan_calls adds the drops. A tensor lives from a call that makes it to
// its last reader before the next such call, so a slot holds the last output of an advance.

typedef struct tli_stages {
    const tli_policy *policy;
    tli_steps         calls;
    uint8_t *carries;   // [node_count] 1 = the end of its stage needs it
    uint8_t *ran;       // [node_count]
    uint8_t *wanted;    // [node_count] in the stage that is being reversed: runs again
    int32_t *all_slots; // [cut_count + 1] stages whose ends are checkpoints, ascending
} tli_stages;

// The last node of a stage. Stage 0 is the graph inputs, stage k the nodes after cut node k-1 up to and
// including cut node k, counted from 1; the last one ends with the graph, behind states that nobody reads.
static int32_t tli_find_stage_end(const tli_stages *s, int32_t stage) {
    if (stage && stage == s->policy->cut_count) return s->policy->graph->node_count - 1;
    return stage ? s->policy->cuts[stage - 1] : -1;
}

static void tli_stage_want(const tli_stages *s, int32_t id, int32_t first, int by_backward, uint8_t *wanted) {
    const tl_graph *graph = s->policy->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        int32_t maker = graph->outputs[graph->inputs[i].tensor].node;
        if (maker >= first && (!by_backward || graph->inputs[i].needed)) wanted[maker] = 1;
    }
}

static void tli_find_carriers(tli_stages *s) {
    int32_t stage, id;
    for (stage = s->policy->cut_count; stage > 0; stage--) {
        int32_t first = tli_find_stage_end(s, stage - 1) + 1, end = tli_find_stage_end(s, stage);
        s->carries[end] = 1;
        for (id = end; id >= first; id--)
            if (s->carries[id]) tli_stage_want(s, id, first, 0, s->carries);
    }
}

static void tli_stage_forward(tli_stages *s, int32_t id, int saves) {
    const tl_node *node = &s->policy->graph->nodes[id];
    if (node->is_input || (node->once && s->ran[id])) return;  // what runs once only stays to its last use
    s->ran[id] = 1;
    tli_add_step(&s->calls, tli_step_of(tli_forward_kind(node, saves || node->once), id, TL_ALL_OUTPUTS));
}

static void tli_stages_advance(tli_stages *s, int32_t from, int32_t to) {
    int32_t id;
    for (id = tli_find_stage_end(s, from) + 1; id <= tli_find_stage_end(s, to); id++)
        if (s->carries[id]) tli_stage_forward(s, id, 0);
}

// Reverse a stage: recompute what its backwards read, run the nodes that never ran, then run the backwards. The
// end of the stage is resident already: the next stage was reversed from it.
static void tli_stage_reverse(tli_stages *s, int32_t stage) {
    const tl_graph *graph = s->policy->graph;
    int32_t first = tli_find_stage_end(s, stage - 1) + 1, end = tli_find_stage_end(s, stage), id, i;
    tli_zero(s->wanted + first, (size_t)end + 1 - (size_t)first);
    for (id = end; id >= first; id--) {
        const tl_node *node = &graph->nodes[id];
        if (!s->ran[id] && (node->has_grad || node->keep)) s->wanted[id] = 1;
        if (node->saved_bytes) s->wanted[id] = 1;
        for (i = node->first_output; i < node->first_output + node->output_count && id < end; i++)
            s->wanted[id] |= graph->outputs[i].needed;
        if (node->has_grad) tli_stage_want(s, id, first, 1, s->wanted);
        if (s->wanted[id]) tli_stage_want(s, id, first, 0, s->wanted);
    }
    for (id = first; id <= end; id++)
        if (s->wanted[id]) tli_stage_forward(s, id, 1);
    for (id = end; id >= first; id--)
        if (graph->nodes[id].has_grad)
            tli_add_step(&s->calls, tli_step_of(TL_STEP_BACKWARD, id, TL_ALL_OUTPUTS));
}

// Make the binomial schedule with an explicit stack of checkpoints, as in tl_plan_revolve.
static void tli_stages_reverse(tli_stages *s, int32_t slot_count) {
    int32_t right = s->policy->cut_count, depth = 1;
    tli_zero(s->ran, (size_t)s->policy->graph->node_count);
    s->all_slots[0] = 0;
    while (right > 0 && !s->calls.failed) {
        int32_t left = s->all_slots[depth - 1], count = right - left;
        if (count == 1) {
            tli_stage_reverse(s, right--);
            if (depth > 1) depth--;
        } else if (depth == slot_count) {
            tli_stages_advance(s, left, right - 1);
            tli_stage_reverse(s, right--);
        } else {
            s->all_slots[depth] = left + tli_split_chain(count, slot_count - depth + 1);
            tli_stages_advance(s, left, s->all_slots[depth]);
            depth++;
        }
    }
}

// The bytes of the checkpoints that the schedule holds when it turns back at the end of the last stage.
static uint64_t tli_stages_weigh(const tli_stages *s, int32_t slot_count) {
    const tl_graph *graph = s->policy->graph;
    int32_t left = 0, right = s->policy->cut_count, slot_total = slot_count, i;
    uint64_t bytes = 0;
    for (; slot_total > 1 && right - left > 1; slot_total--) {
        const tl_node *node;
        left += tli_split_chain(right - left, slot_total);
        node = &graph->nodes[tli_find_stage_end(s, left)];
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (s->policy->read[i]) bytes += graph->outputs[i].bytes;
    }
    return bytes;
}

static tl_result tli_policy_try_slots(tli_policy *p, tli_stages *s, uint64_t slot_total) {
    uint64_t most = (uint64_t)p->cut_count + 1;
    tl_plan plan;
    tl_result made;
    slot_total = slot_total < most ? slot_total : most;
    p->fits = 0;
    p->work += slot_total;
    if (!tli_policy_may_help(p, tli_stages_weigh(s, (int32_t)slot_total), 0)) return TL_OK;
    tli_zero(&plan, sizeof plan);
    s->calls = tli_steps_of(&p->quiet);
    tli_stages_reverse(s, (int32_t)slot_total);
    made = tli_plan_calls(&s->calls, s->calls.count, NULL, TLI_IN(PLAN_POLICY), p->graph, 0, &plan);
    return tli_policy_offer(p, made, &plan);
}

// Whether the schedule of so many checkpoints takes more work than is left.
static int tli_policy_is_too_long(tli_policy *p, uint64_t slot_total) {
    uint64_t advances, left = p->work < p->work_limit ? p->work_limit - p->work : 0;
    uint64_t nodes = p->call_count / ((uint64_t)p->cut_count + 1) + 1;  // of a stage
    uint64_t most = (uint64_t)tli_divide_most_calls(p->graph) / nodes;
    if (tli_find_revolve_advances(&p->quiet, (uint64_t)p->cut_count, slot_total, &advances)) return 1;
    return p->watch && (advances > left / TLI_POLICY_STEP_WORK || advances > most);
}

// For the least peak: the least number of checkpoints with a schedule that is not too long, and its doubles.
static tl_result tli_policy_double_slots(tli_policy *p, tli_stages *s) {
    uint64_t low = 0, high = (uint64_t)p->cut_count;
    tl_result result = TL_OK;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (tli_policy_is_too_long(p, middle)) low = middle; else high = middle;
    }
    for (; high && high <= (uint64_t)p->cut_count && !result && !tli_policy_is_done(p); high *= 2)
        result = tli_policy_try_slots(p, s, high);
    return result;
}

// Try slot counts from the largest down in growing steps until a plan fits, then those between it and the last
// one that did not, by bisection. For equal layers the largest that fits is known.
static tl_result tli_policy_walk_slots(tli_policy *p, tli_stages *s) {
    uint64_t slot_total = p->cut_count ? (uint64_t)p->cut_count : 1, high = slot_total;
    tl_result result;
    int found;
    if (tli_is_revolve_chain(p->graph)) {
        slot_total = tli_find_slots(p->graph, p->budget.bytes).slot_count;
        return slot_total ? tli_policy_try_slots(p, s, slot_total) : TL_OK;
    }
    result = tli_policy_try_slots(p, s, slot_total);
    while (!result && slot_total > 1 && !p->fits && !tli_policy_is_done(p)) {
        high = slot_total;
        slot_total -= tli_policy_step(p, slot_total);
        if (tli_policy_is_too_long(p, slot_total)) break;
        result = tli_policy_try_slots(p, s, slot_total);
    }
    for (found = p->fits; !result && found && high - slot_total > 1 && !tli_policy_is_done(p);) {
        uint64_t middle = slot_total + (high - slot_total) / 2;
        result = tli_policy_try_slots(p, s, middle);
        if (p->fits) slot_total = middle; else high = middle;
    }
    return result;
}

static tl_result tli_policy_revolve(tli_policy *p) {
    uint64_t count = (uint64_t)p->graph->node_count, slot_total = p->desc->policy.as.revolve.slot_count;
    tli_stages s;
    tl_result result = TL_ERROR_NO_MEMORY;
    tli_zero(&s, sizeof s);
    s.policy = p;
    s.carries = (uint8_t *)tli_alloc_array(&p->quiet, count, 3);
    s.all_slots = (int32_t *)tli_alloc_array(&p->quiet, (uint64_t)p->cut_count + 1, sizeof *s.all_slots);
    if (s.carries && s.all_slots) {
        s.ran = s.carries + count;
        s.wanted = s.ran + count;
        tli_find_carriers(&s);
        result = slot_total ? tli_policy_try_slots(p, &s, slot_total)
                 : p->wanted == TLI_WANT_LEAST ? tli_policy_double_slots(p, &s)
                                               : tli_policy_walk_slots(p, &s);
    }
    tli_release(&p->quiet, s.carries);
    tli_release(&p->quiet, s.all_slots);
    return result;
}

// If nothing fits, the candidate is the plan of the least budget, for the error text.
static tl_result tli_policy_chain(tli_policy *p) {
    tl_chain_plan_desc desc;
    tli_budget budget = p->budget;
    tl_remat_report report;
    tl_plan plan;
    tl_result made;
    tli_zero(&desc, sizeof desc);
    desc.graph = p->graph;
    budget.base_bytes = 0;  // then the least budget, too, is that of the plan alone
    budget.is_over = 0;
    made = tli_plan_chain(&p->quiet, &desc, &budget, &plan, &report);
    if (made == TL_ERROR_INFEASIBLE) {
        budget.bytes = report.least_budget_bytes;
        made = tli_plan_chain(&p->quiet, &desc, &budget, &plan, &report);
    }
    return tli_policy_offer(p, made, &plan);
}

// -- policies: tl_plan_policy --

static tl_result tli_policy_run(tli_policy *p) {
    switch (p->desc->policy.kind) {
    case TL_POLICY_KEEP_ALL: return tli_policy_keep_all(p);
    case TL_POLICY_EVERY_N: return tli_policy_every_n(p);
    case TL_POLICY_CHEN_SQRT: return tli_policy_chen_sqrt(p);
    case TL_POLICY_CHEN_GREEDY: return tli_policy_chen_greedy(p);
    case TL_POLICY_SELECTIVE: return tli_policy_selective(p);
    case TL_POLICY_REVOLVE: return tli_policy_revolve(p);
    case TL_POLICY_CHAIN: return tli_policy_chain(p);
    case TL_POLICY_NONE: case TL_POLICY_LAYERS: case TL_POLICY_FRACTION: case TL_POLICY_COUNT: break;
    }
    return TL_OK;
}

// "budget_bytes: chen-sqrt needs 340 bytes, at node 3 (conv1)"
static tl_result tli_policy_refuse(tl_env *env, const tl_graph *graph, tl_policy_kind policy,
                                   const tli_budget *budget, tl_remat_report *report) {
    tli_sentence s;
    if (report->least_budget_bytes == UINT64_MAX) return tli_refuse_base(env, report, TLI_IN(PLAN_POLICY));
    s = tli_begin_error(env, TL_ERROR_INFEASIBLE, TLI_IN(PLAN_POLICY), TLI_RULE(POLICY_NEEDS_BYTES),
                        budget->allowed_bytes, report->least_budget_bytes);
    tli_put_limit(env, &s, budget->limit);
    tli_put_text(&s, tl_name_policy(policy));
    tli_put_rule(&s);
    if (TLI_ERROR_TEXT && report->limiting_node >= 0) {
        tli_put(&s.text, ", at node ");
        tli_put_named(&s.text, report->limiting_node, tl_name_node(graph, report->limiting_node));
    }
    return tli_end_error(env, &s, TL_ERROR_INFEASIBLE);
}

// What the least of the plans tried takes, and where.
static tl_result tli_policy_report_least(tl_env *env, tli_policy *p, tl_remat_report *report) {
    tl_simulate_desc desc;
    tl_report simulated;
    tl_result result;
    tli_zero(&desc, sizeof desc);
    desc.graph = p->graph;
    desc.plan = tli_pool_least(p->pool);
    result = tli_simulate(&p->quiet, TLI_IN(PLAN_POLICY), &desc, NULL, &simulated);
    if (result) return tli_fail(env, result, TLI_IN(PLAN_POLICY), TLI_RULE(NO_MEMORY_TO_PLAN));
    report->least_budget_bytes = tli_add_base(&p->budget, desc.plan->peak_bytes);
    report->limiting_node = simulated.peak_step < 0 ? -1 : desc.plan->steps[simulated.peak_step].node;
    return tli_policy_refuse(env, p->graph, p->desc->policy.kind, &p->budget, report);
}

// Equal layers: whether the budget is below the least of revolve or chain, a closed form whose plan, long as it
// may be, is not made for the sentence. The report is filled in then.
static int tli_policy_is_below_least(const tl_policy_desc *desc, const tli_budget *budget,
                                     tl_remat_report *report) {
    tli_revolve_bytes found;
    if (desc->policy.kind != TL_POLICY_CHAIN &&
        (desc->policy.kind != TL_POLICY_REVOLVE || desc->policy.as.revolve.slot_count)) return 0;
    if (!tli_is_revolve_chain(desc->graph)) return 0;
    found = tli_find_slots(desc->graph, budget->bytes);
    if (found.slot_count && !budget->is_over) return 0;
    report->least_budget_bytes = tli_add_base(budget, found.least);
    report->limiting_node = desc->graph->node_count - 1;
    return 1;
}

// The policies that tl_plan_policy makes plans of.
#define TLI_POLICIES_PLANNED (TLI_POLICY(KEEP_ALL) | TLI_POLICY(EVERY_N) | TLI_POLICY(CHEN_SQRT) | \
                              TLI_POLICY(CHEN_GREEDY) | TLI_POLICY(SELECTIVE) | TLI_POLICY(REVOLVE) | \
                              TLI_POLICY(CHAIN))

static tl_result tli_check_policy_desc(tl_env *env, const tl_policy_desc *desc) {
    const tli_function function = TLI_IN(PLAN_POLICY);
    tl_result result = tli_check_policy(env, function, &desc->policy, TLI_POLICIES_PLANNED,
                                        TLI_RULE(POLICY_MUST_BE_OF_PLANS), 0);
    if (result) return result;
    if (desc->inference != 0 && desc->inference != 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(INFERENCE_MUST_BE_0_OR_1));
    result = tli_check_live(env, function, desc->live);
    if (result) return result;
    if (desc->inference && desc->policy.kind != TL_POLICY_KEEP_ALL)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function,
                        TLI_RULE(POLICY_MUST_BE_KEEP_ALL_FOR_INFERENCE));
    result = tl_check_graph(env, desc->graph);
    return !result && desc->device ? tl_check_device(env, desc->device) : result;
}

static tl_result tli_policy_init(tl_env *env, const tl_policy_desc *desc, const tli_budget *budget,
                                 tl_remat_pool *pool, tli_policy *p) {
    uint64_t nodes = (uint64_t)desc->graph->node_count, tensors = (uint64_t)desc->graph->tensor_count;
    int32_t id;
    tli_zero(p, sizeof *p);
    if (env) p->quiet = *env;
    p->quiet.log = NULL;
    p->desc = desc;
    p->graph = desc->graph;
    p->pool = pool;
    p->budget = *budget;
    for (id = 0; id < p->graph->node_count; id++) {
        uint64_t number = (uint64_t)tli_checkpoint_number(p->graph, id);
        if (p->graph->nodes[id].is_input) continue;
        p->call_count++;
        if (number > p->highest_number) p->highest_number = number;
    }
    p->fineness = TLI_POLICY_NODES / (uint64_t)p->graph->node_count;
    if (p->fineness < 32) p->fineness = 32;
    p->keep = (uint8_t *)tli_alloc_array(&p->quiet, tensors, 2);
    p->gradients = (uint64_t *)tli_alloc_array(&p->quiet, 2 * nodes + 1, sizeof *p->gradients);
    p->cuts = (int32_t *)tli_alloc_array(&p->quiet, 3 * nodes + tensors, sizeof *p->cuts);
    if (!p->keep || !p->gradients || !p->cuts) return TL_ERROR_NO_MEMORY;
    p->read = p->keep + tensors;
    p->change = p->gradients + nodes;
    p->last = p->cuts + nodes;
    p->again = p->last + nodes;
    p->until = p->again + nodes;
    tli_find_cuts(p);
    tli_policy_count_gradients(p);
    return TL_OK;
}

static void tli_policy_free(tli_policy *p) {
    tli_release(&p->quiet, p->keep);
    tli_release(&p->quiet, p->gradients);
    tli_release(&p->quiet, p->cuts);
}

// result: of the search.
static tl_result tli_policy_answer(tl_env *env, tli_policy *p, tl_result result, tl_plan *plan,
                                   tl_remat_report *report) {
    const tl_plan *best = p->wanted == TLI_WANT_LEAST ? tli_pool_least(p->pool) : tli_policy_best(p);
    if (result == TL_ERROR_OVERFLOW || (!result && !p->pool->plan_count))
        return tli_fail(env, TL_ERROR_OVERFLOW, TLI_IN(PLAN_POLICY),
                        TLI_RULE(GRAPH_COST_OF_PLAN_DOES_NOT_FIT_64));
    if (!result && (!best || !tli_policy_fits(p, best))) return tli_policy_report_least(env, p, report);
    if (!result) result = tl_copy_plan(&p->quiet, best, plan);
    if (result) return tli_fail(env, result, TLI_IN(PLAN_POLICY), TLI_RULE(NO_MEMORY_TO_PLAN));
    plan->base_bytes = p->budget.base_bytes;
    return TL_OK;
}

// As tl_plan_policy, of live bytes, within a budget that was found before. Of the report nothing but the least
// budget and its node is filled in.
static tl_result tli_plan_policy(tl_env *env, const tl_policy_desc *desc, const tli_budget *budget,
                                 tl_plan *plan, tl_remat_report *report) {
    tl_remat_pool pool;
    tl_remat_report local;
    tli_policy p;
    tl_result result;
    if (!report) report = &local;
    tli_zero(plan, sizeof *plan);
    tli_zero(report, sizeof *report);
    result = tli_check_policy_desc(env, desc);
    if (result) return result;
    if (tli_policy_is_below_least(desc, budget, report))
        return tli_policy_refuse(env, desc->graph, desc->policy.kind, budget, report);
    tli_pool_init(&pool, env, 0);
    result = tli_policy_init(env, desc, budget, &pool, &p);
    if (!result) result = tli_pool_ask(&pool, p.budget.bytes);
    if (!result) result = tli_policy_run(&p);
    result = tli_policy_answer(env, &p, result, plan, report);
    tli_policy_free(&p);
    tli_pool_clear(&pool);
    return result;
}

// -- policies: all of them, for the pool of tl_plan_remat --

// Let every policy but keep-all and chain offer its candidates, with default parameters.
//
//   budget      of the plans; nothing that is sure to exceed it is tried
//   wants_least 1 = the least peak is wanted, within any budget
//   work        elementary steps are added to it
static tl_result tli_remat_policies(tl_env *env, const tl_graph *graph, uint64_t budget, int wants_least,
                                    tl_remat_pool *pool, tli_remat_watch *watch, uint64_t work_limit,
                                    uint64_t *work) {
    static const uint8_t order[] = { TL_POLICY_SELECTIVE, TL_POLICY_EVERY_N, TL_POLICY_CHEN_SQRT,
                                     TL_POLICY_CHEN_GREEDY, TL_POLICY_REVOLVE };    // the longest last
    const uint32_t count = sizeof order / sizeof order[0];
    tl_policy_desc desc;
    tli_budget within;
    tli_policy p;
    tl_result result;
    uint32_t i;
    tli_zero(&desc, sizeof desc);
    desc.graph = graph;
    within = tli_find_budget(0, 0, 0, NULL, NULL, 0);
    within.bytes = wants_least ? 0 : budget;
    within.is_limited = within.bytes != UINT64_MAX;
    result = tli_policy_init(env, &desc, &within, pool, &p);
    p.wanted = wants_least ? TLI_WANT_LEAST : TLI_WANT_FITTING;
    p.watch = watch;
    for (i = 0; i < count && !result; i++) {
        p.work_limit = p.work + (p.work < work_limit ? work_limit - p.work : 0) / (count - i);
        if (tli_policy_is_done(&p)) continue;
        desc.policy.kind = (tl_policy_kind)order[i];
        result = tli_policy_run(&p);
    }
    *work += p.work;
    tli_policy_free(&p);
    return result;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
