#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- bound: what planners ask for --
//
// From the relaxation, three bounds: the least budget under which a schedule can exist, the least cost of one
// that has no host tier, and the least cost of one that has.

// -- bound: the least budget --

// Steps of tli_bound_open and of the walks after it.
static uint64_t tli_bound_set_up_work(const tli_bound *model) {
    const tl_graph *graph = model->graph;
    uint64_t size = (uint64_t)graph->node_count + (uint64_t)graph->input_count + (uint64_t)graph->tensor_count;
    return 10 * size + 2 * (uint64_t)(TLI_BOUND_WALK - model->steps_left);
}

// The bytes of the smallest forward call of a node: each input once, outputs and scratch, in place where that
// is allowed. Graph inputs do not count. saves: 1 = it makes the saved bytes, which lie beside all outputs; 0 =
// it makes them only where that takes fewer bytes.
static uint64_t tli_bound_call_bytes(const tli_bound *model, int32_t id, int saves) {
    const tl_node *node = &model->graph->nodes[id];
    uint64_t saving = model->calls[id] + node->saved_bytes + node->swork_bytes;
    uint64_t bytes = model->calls[id] - model->reused[id] + node->fwork_bytes;
    return saves || (node->saved_bytes && saving < bytes) ? saving : bytes;
}

// Push the maker of an item, once, if the item is marked `mark` and does not fit the room, and if a call
// that is made then may need more than `most` bytes.
static void tli_bound_push_maker(tli_bound *model, int32_t item, uint8_t mark, uint64_t room, uint64_t most,
                                 int32_t p, int32_t *count) {
    int32_t maker = item < 0 ? 0 : model->maker[item];
    if (item < 0 || model->reads_mark[item] != mark || model->exact[item] <= room) return;
    if (model->stamps[maker] == p || model->calls_above[maker] <= most) return;
    model->stamps[maker] = p;
    model->stack[(*count)++] = maker;
}

// Whether every schedule within the budget makes a call between the backwards at positions p - 1 and p that
// exceeds the budget; the largest one is at *node. An item that backward p reads is made there if it does not
// fit beside the working set of backward p - 1; the same holds for the inputs of the call that makes it. In
// very large graphs the walk over these ends early: it finds less then, and what it finds is true.
static int tli_bound_exceeds_in_gap(tli_bound *model, uint64_t budget, int32_t p, int32_t *node) {
    enum { READ = 1, HELD = 2 };
    const tl_graph *graph = model->graph;
    const tl_node *last = &graph->nodes[model->order[p]];
    uint64_t room = budget - model->sets[p - 1], most, bytes;
    int32_t saved = model->item_of[graph->tensor_count + model->order[p]], count = 0, found = 0, i;
    most = budget - model->between[p - 1];
    tli_bound_mark_reads(model, model->order[p], model->reads_mark, READ);
    tli_bound_mark_reads(model, model->order[p - 1], model->reads_mark, HELD);
    for (i = last->first_input; i < last->first_input + last->input_count; i++)
        tli_bound_push_maker(model, model->item_of[graph->inputs[i].tensor], READ, room, most, p, &count);
    for (i = last->first_output; i < last->first_output + last->output_count; i++)
        tli_bound_push_maker(model, model->item_of[i], READ, room, most, p, &count);
    tli_bound_push_maker(model, saved, READ, room, most, p, &count);
    tli_bound_mark_reads(model, model->order[p], model->reads_mark, 0);
    tli_bound_mark_reads(model, model->order[p - 1], model->reads_mark, HELD);
    while (count > 0) {
        int32_t id = model->stack[--count];
        const tl_node *maker = &graph->nodes[id];
        int saves = id == model->order[p] && saved >= 0 && model->exact[saved] > room;
        bytes = tli_bound_call_bytes(model, id, saves);
        if (bytes > most) { most = bytes; *node = id; found = 1; }
        model->steps_left -= maker->input_count;
        for (i = maker->first_input; i < maker->first_input + maker->input_count && model->steps_left > 0; i++)
            tli_bound_push_maker(model, model->item_of[graph->inputs[i].tensor], 0, room, most, p, &count);
    }
    tli_bound_mark_reads(model, model->order[p - 1], model->reads_mark, 0);
    return found;
}

// Whether no such call exceeds the budget, which must be at least the largest working set; if one does, *node
// is its node.
static int tli_bound_fits_gaps(tli_bound *model, uint64_t budget, int32_t *node) {
    int32_t p;
    tli_zero(model->stamps, (size_t)model->graph->node_count * sizeof *model->stamps);
    model->steps_left -= model->order_count;
    for (p = 1; p < model->order_count; p++) if (tli_bound_exceeds_in_gap(model, budget, p, node)) return 0;
    return 1;
}

// -- bound: the events --

#define TLI_BOUND_GAP_CALLS 4   // of one gap, at most

// Whether an item must be made between the backwards at positions p - 1 and p before it is read there.
// reads_mark[]: 1 = the first of these reads it.
static int tli_bound_is_made(const tli_bound *model, int32_t item, int32_t p) {
    return item >= 0 && !model->reads_mark[item] && model->exact[item] > model->room[p - 1] &&
           !tli_bound_is_held(model, item, p - 1);
}

static void tli_bound_push_made(tli_bound *model, int32_t item, int32_t p, int32_t stamp, int32_t *count) {
    if (!tli_bound_is_made(model, item, p) || model->stamps[model->maker[item]] == stamp) return;
    model->stamps[model->maker[item]] = stamp;
    model->stack[(*count)++] = model->maker[item];
}

// Of the calls on the stack, and of those that must be made for them in the same gap, the one that leaves the
// least room; call = -1: there is none.
static tli_bound_event tli_bound_find_tightest(tli_bound *model, uint64_t budget, int32_t p, int32_t stamp,
                                               int32_t count) {
    const tl_graph *graph = model->graph;
    tli_bound_event event;
    int32_t i;
    event.position = p;
    event.call = -1;
    event.room = UINT64_MAX;
    while (count > 0) {
        int32_t id = model->stack[--count];
        const tl_node *node = &graph->nodes[id];
        uint64_t taken = model->between[p - 1] + tli_bound_call_bytes(model, id, 0);
        uint64_t room = budget > taken ? budget - taken : 0;
        if (room < event.room || (room == event.room && id > event.call)) {
            event.room = room;
            event.call = id;
        }
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            tli_bound_push_made(model, model->item_of[graph->inputs[i].tensor], p, stamp, &count);
        model->steps_left -= node->input_count + 1;
    }
    return event;
}

// Add the calls of the gap before position p that every schedule makes and that leave less room than the
// backward does: each is made for the next one, so their order is known.
static void tli_bound_add_calls(tli_bound *model, uint64_t budget, int32_t p, int32_t *stamp) {
    const tl_graph *graph = model->graph;
    const tl_node *node = &graph->nodes[model->order[p]];
    tli_bound_event calls[TLI_BOUND_GAP_CALLS];
    int32_t count = 0, found = 0, i;
    tli_bound_mark_reads(model, model->order[p - 1], model->reads_mark, 1);
    ++*stamp;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        if (graph->inputs[i].needed)
            tli_bound_push_made(model, model->item_of[graph->inputs[i].tensor], p, *stamp, &count);
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (graph->outputs[i].needed) tli_bound_push_made(model, model->item_of[i], p, *stamp, &count);
    tli_bound_push_made(model, model->item_of[graph->tensor_count + model->order[p]], p, *stamp, &count);
    while (count > 0 && found < TLI_BOUND_GAP_CALLS && model->steps_left > 0) {
        tli_bound_event event = tli_bound_find_tightest(model, budget, p, *stamp, count);
        if (event.room >= model->room[p]) break;
        calls[found++] = event;
        node = &graph->nodes[event.call];
        ++*stamp;
        for (i = node->first_input, count = 0; i < node->first_input + node->input_count; i++)
            tli_bound_push_made(model, model->item_of[graph->inputs[i].tensor], p, *stamp, &count);
    }
    tli_bound_mark_reads(model, model->order[p - 1], model->reads_mark, 0);
    while (found > 0) model->events[model->event_count++] = calls[--found];
}

// List the events. Without a host tier, calls that every schedule makes are among them.
static void tli_bound_list_events(tli_bound *model, uint64_t budget, int has_host) {
    int32_t p, stamp = 0;
    tli_zero(model->stamps, (size_t)model->graph->node_count * sizeof *model->stamps);
    for (p = 0; p < model->order_count; p++) {
        tli_bound_event *event;
        int32_t calls = model->event_count - p;
        if (p && !has_host && calls + TLI_BOUND_GAP_CALLS <= TLI_BOUND_CALLS && model->steps_left > 0)
            tli_bound_add_calls(model, budget, p, &stamp);
        event = &model->events[model->event_count++];
        event->position = p;
        event->call = -1;
        event->room = model->room[p];
    }
}

// -- bound: the least budget --

// The largest working set of the calls that every schedule makes, and its node; -1 = graph inputs and results
// together are larger than any of them. has_host: what is held may be on the host.
static uint64_t tli_bound_find_floor(tli_bound *model, int32_t inference, int32_t has_host, int32_t *node) {
    const tl_graph *graph = model->graph;
    uint64_t inputs = tli_bound_input_bytes(graph), most = inputs;
    int32_t i;
    *node = -1;
    for (i = 0; i < model->item_count; i++) if (model->at_end[i]) most += model->exact[i];
    for (i = 0; i < graph->node_count; i++) {
        int saves = graph->nodes[i].has_grad && !inference && graph->nodes[i].saved_bytes;
        uint64_t call;
        if (graph->nodes[i].is_input || model->runs_by[i] == INT32_MAX) continue;
        call = inputs + tli_bound_call_bytes(model, i, saves);
        if (call > most) { most = call; *node = i; }
    }
    for (i = 0; i < model->order_count; i++) {
        uint64_t set = model->sets[i] + (has_host ? 0 : model->held[i]);
        if (set > most) { most = set; *node = model->order[i]; }
    }
    return most;
}

// Find a number of bytes below which no schedule fits, and the node that sets it: the largest working set
// of a call that every schedule makes, or, without a host tier, of a call that the budget itself makes
// necessary (tli_bound_exceeds_in_gap). Linear in nodes and inputs, but for the walks, which are limited.
static tl_result tli_remat_floor(tl_env *env, const tl_graph *graph, int32_t inference, int32_t has_host,
                                 uint64_t *bound_budget, int32_t *node, uint64_t *work) {
    tli_bound model;
    uint64_t low, high;
    tl_result result;
    tli_zero(&model, sizeof model);
    model.env = env; model.graph = graph;
    *bound_budget = 0;
    *node = -1;
    result = tli_bound_open(&model, inference);
    if (!result) {
        low = high = tli_bound_find_floor(&model, inference, has_host, node);
        while (!has_host && !tli_bound_fits_gaps(&model, high, node)) {  // double, then bisect low to high
            low = high + 1;
            high = high > UINT64_MAX / 2 ? UINT64_MAX : 2 * high + 1;
        }
        while (low < high) {
            uint64_t middle = low + (high - low) / 2;
            if (tli_bound_fits_gaps(&model, middle, node)) high = middle; else low = middle + 1;
        }
        *bound_budget = high;
    }
    *work += tli_bound_set_up_work(&model);
    tli_bound_free(&model);
    return result;
}

// -- bound: with a host tier --
//
// Take a schedule S with spills and fetches on a device budget M and a host budget H, over a link of bw bytes
// per unit of time, that ends at time T. From it make a schedule S' without a host: each tensor stays on the
// device during every gap that ends with a fetch that is waited for, from its D, W or I (which becomes an F)
// to its L; then remove all O, L, W and DH. S' is valid: whatever a call reads was resident in S and is
// resident in S'; no forward makes the tensor within such a gap, because the gap would end there; and a spill
// that is never fetched becomes a drop. S' makes the same calls, so it costs at most T. Consider a call that
// begins at t and takes c, and let X be the bytes of the tensors that are in such a gap at that time, that is,
// the bytes that S' holds in addition. All of these tensors
//   - are on the host: X <= H;
//   - were spilled, each by a copy of its own that ended by t: X <= bw t;
//   - are fetched after the call, by copies that end by T: X <= bw (T - t - c).
// A copy takes its latency and ceil(bytes / bw), copies run one after the other, and X is an integer, so
// X <= floor(bw t) and X <= floor(bw (T - t - c)), and one of t and T - t - c is at most floor(T / 2). If the
// call is B v: the backwards from v on come after t, so t <= T - after; each forward that some backward up to
// v depends on, and all backwards before v, come before it, so T - t - c <= T - before. At each backward S'
// therefore keeps the budget M + min(H, floor(bw min(T / 2, T - after, T - before))), and the relaxation with
// these rooms bounds T: T >= g(T). Rooms grow with T, so g falls: for any T0, T > T0 or T >= g(T0).

typedef struct tli_bound_host {
    uint64_t bytes, rate, time;  // H; bytes per second of the link, 0 = no limit; T
    int32_t  is_even;            // 1 = use T / 2 alone: larger rooms, but closer to each other, which makes it
                                 // easier to find good instants
} tli_bound_host;

#ifndef TL_NO_OFFLOAD
// floor(rate time / 10^9); UINT64_MAX where it does not fit.
static uint64_t tli_bound_find_copied(uint64_t rate, uint64_t time) {
    uint64_t second = UINT64_C(1000000000), rest = rate % second, whole, part, sum;
    if (!tli_mul_u64(rate / second, time, &whole) || !tli_mul_u64(rest, time / second, &part) ||
        !tli_add_u64(whole, part, &sum) || !tli_add_u64(sum, rest * (time % second) / second, &sum))
        return UINT64_MAX;
    return sum;
}

// Add to the room at each backward the bytes that can be on the host at that time.
static void tli_bound_add_host(tli_bound *model, const tli_bound_host *host) {
    const tl_graph *graph = model->graph;
    uint64_t before = 0, after = 0, most, bytes;
    int32_t p, id;
    for (p = 0; p < model->order_count; p++) after += graph->nodes[model->order[p]].bwd_cost;
    for (p = 0; p < model->order_count; p++) {
        uint64_t cost = graph->nodes[model->order[p]].bwd_cost;
        for (id = 0; id < graph->node_count; id++)
            if (model->runs_by[id] == p && !graph->nodes[id].is_input) before += graph->nodes[id].fwd_cost;
        before += cost;  // c: the cost of this backward itself
        most = after > before ? after : before;
        most = host->time > most ? host->time - most : 0;
        if (most > host->time / 2 || host->is_even) most = host->time / 2;
        after -= cost;
        bytes = host->rate ? tli_bound_find_copied(host->rate, most) : UINT64_MAX;
        if (bytes > host->bytes) bytes = host->bytes;
        if (!tli_add_u64(model->room[p], bytes, &model->room[p])) model->room[p] = UINT64_MAX;
    }
}
#endif

// Find a lower bound of the cost of every valid schedule within the budget with backwards in reverse listing
// order and no compression. With host NULL: without host copies. Else: of the end of schedules that end by
// host->time. Anytime: a larger work_limit (arcs visited, about 3 ns each) mostly raises it, but other instants
// may be chosen then, and the bound may be lower.
// TL_ERROR_INFEASIBLE, without a sentence: no schedule fits; *bound_cost is UINT64_MAX.
static tl_result tli_remat_bound_host(tl_env *env, const tl_graph *graph, uint64_t budget,
                                      const tli_bound_host *host, int32_t inference, tli_remat_watch *watch,
                                      uint64_t work_limit, uint64_t *bound_cost, uint64_t *work) {
    tli_bound model;
    int64_t value = 0;
    uint64_t runs = 0;
    int32_t p, node;
    tl_result result;
    tli_zero(&model, sizeof model);
    model.env = env; model.graph = graph; model.watch = watch; model.work = work; model.work_limit = work_limit;
    *bound_cost = 0;
    result = tli_bound_open(&model, inference);
    if (!result && (budget < tli_bound_find_floor(&model, inference, host != NULL, &node) ||
                    (!host && !tli_bound_fits_gaps(&model, budget, &node))))
        value = TLI_BOUND_INFINITE;
    *work += tli_bound_set_up_work(&model);
    for (p = 0; p < model.order_count && !result && !value; p++) model.room[p] = budget - model.sets[p];
#ifndef TL_NO_OFFLOAD
    if (!result && !value && host) tli_bound_add_host(&model, host);
#endif
    for (p = 0; p < model.order_count && !result && !value; p++) {
        if (model.room[p] < model.held[p]) value = TLI_BOUND_INFINITE;
        else model.room[p] -= model.held[p];
    }
    if (!result && !value && model.order_count) {
        result = tli_bound_runs(&model, &runs);
        tli_bound_list_events(&model, budget, host != NULL);
        if (!result) result = tli_bound_search_bound(&model, &value);
    }
    if (!result && value >= TLI_BOUND_INFINITE) { result = TL_ERROR_INFEASIBLE; *bound_cost = UINT64_MAX; }
    else if (!result) {
        if (!tli_add_u64(model.base_cost, runs, &runs)) runs = UINT64_MAX;
        *bound_cost = tli_larger_u64(tli_bound_round_up(&model, value), runs);
    }
    tli_bound_free(&model);
    return result;
}

static tl_result tli_remat_bound(tl_env *env, const tl_graph *graph, uint64_t budget, int32_t inference,
                                 tli_remat_watch *watch, uint64_t work_limit,
                                 uint64_t *bound_cost, uint64_t *work) {
    return tli_remat_bound_host(env, graph, budget, NULL, inference, watch, work_limit, bound_cost, work);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
