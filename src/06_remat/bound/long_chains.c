#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- bound: long chains in few bytes --
//
// Where few items of a long graph are held at a time, forwards run more often than a few instants show. Take
// nodes m_1 .. m_n, the pivots; m_k reads, directly or through others, what m_(k-1) makes. For each there is a
// backward that reads something m_k makes: its moment; moments come in the order n .. 1. Region k is what m_k
// depends on and no pivot before it does. An item is large if it takes at least b bytes and may be made again.
// If nothing large of region k is resident, making something of m_k runs what of region k it reaches through
// large items, at a cost of f_k, and needs something of m_(k-1). At moment k at most
//     s = room / b + regions before k of which that backward itself reads something large
// regions before k have something large resident. So regions run as often as steps of a chain with s
// checkpoints, of which at most C(s + t + 1, s + 1) - 1 run t times or less, however long it is (Griewank and
// Walther, 2000, section 2; steps that run more often can be taken out of it). The bound gives the largest f
// the fewest runs.

#define TLI_RUNS_WORK 20000000          // elementary steps, at most
#define TLI_RUNS_MANY (UINT64_MAX / 4)  // slots: more than regions

typedef struct tli_runs {
    tli_bound *model;
    uint64_t   least;         // b
    int32_t   *path;          // [count] nodes that may be pivots, the last first
    int32_t   *moment;        // [count] position of the backward; -1 = none
    uint64_t  *all_slots;     // [count] s of the moment
    int32_t   *region;        // [node_count] 1 = that of the first pivot; 0 = none
    int32_t   *index;         // [node_count] scratch: of a node in path, from 1 on
    uint64_t  *costs;         // [count] f of the pivots taken
    int32_t    count, taken;
    uint64_t   work, extra;   // extra: the most that forwards cost beyond the first run of each
} tli_runs;

static int tli_runs_is_large(const tli_runs *r, int32_t item) {
    const tli_bound *model = r->model;
    return item >= 0 && model->exact[item] >= r->least && !model->graph->nodes[model->maker[item]].once;
}

// The items that the backward of a node reads, one by one: k from 0 on. -2 = no more; -1 = none here.
static int32_t tli_runs_find_read(const tli_bound *model, int32_t id, int32_t k) {
    const tl_graph *graph = model->graph;
    const tl_node *node = &graph->nodes[id];
    if (k < node->input_count) {
        const tl_node_input *input = &graph->inputs[node->first_input + k];
        return input->needed ? model->item_of[input->tensor] : -1;
    }
    k -= node->input_count;
    if (k < node->output_count)
        return graph->outputs[node->first_output + k].needed ? model->item_of[node->first_output + k] : -1;
    return k == node->output_count ? model->item_of[graph->tensor_count + id] : -2;
}

// The maker of a large input that comes last in the listing; -1 = none.
static int32_t tli_runs_step_back(const tli_runs *r, int32_t id) {
    const tl_graph *graph = r->model->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i, last = -1;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        int32_t item = r->model->item_of[graph->inputs[i].tensor];
        if (tli_runs_is_large(r, item) && r->model->maker[item] > last) last = r->model->maker[item];
    }
    return last;
}

// Find path[]: back over large items, from what the first backward reads that reads a large one.
static void tli_runs_find_path(tli_runs *r) {
    const tli_bound *model = r->model;
    int32_t p, k, item, node = -1;
    r->count = 0;
    for (p = 0; p < model->order_count && node < 0; p++)
        for (k = 0; (item = tli_runs_find_read(model, model->order[p], k)) != -2; k++)
            if (tli_runs_is_large(r, item) && model->maker[item] > node) node = model->maker[item];
    for (; node >= 0; node = tli_runs_step_back(r, node)) r->path[r->count++] = node;
    r->work += (uint64_t)p + 4 * (uint64_t)r->count;
}

// Find moment[]: of the backwards that read something large of a node the one with the least room; -1 where it
// does not come after those of the nodes before it in path[].
static void tli_runs_find_moments(tli_runs *r) {
    const tli_bound *model = r->model;
    int32_t i, p, k, item, last = -1;
    tli_zero(r->index, (size_t)model->graph->node_count * sizeof *r->index);
    for (i = 0; i < r->count; i++) { r->index[r->path[i]] = i + 1; r->moment[i] = -1; }
    for (p = 0; p < model->order_count; p++)
        for (k = 0; (item = tli_runs_find_read(model, model->order[p], k)) != -2; k++) {
            int32_t at = tli_runs_is_large(r, item) ? r->index[model->maker[item]] - 1 : -1;
            if (at < 0) continue;
            if (r->moment[at] < 0 || model->room[p] < model->room[r->moment[at]]) r->moment[at] = p;
        }
    for (i = 0; i < r->count; i++)
        if (r->moment[i] > last) last = r->moment[i];
        else r->moment[i] = -1;
    r->work += 4 * ((uint64_t)model->order_count + (uint64_t)model->graph->node_count);
}

// Give a region to a pivot, and to everything it depends on that has none.
static void tli_runs_mark_region(tli_runs *r, int32_t pivot, int32_t region) {
    const tl_graph *graph = r->model->graph;
    int32_t *stack = r->model->stack, count = 0, i;
    stack[count++] = pivot;
    r->region[pivot] = region;
    while (count > 0) {
        const tl_node *node = &graph->nodes[stack[--count]];
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t maker = graph->outputs[graph->inputs[i].tensor].node;
            if (graph->nodes[maker].is_input || r->region[maker]) continue;
            r->region[maker] = region;
            stack[count++] = maker;
        }
        r->work += (uint64_t)node->input_count + 1;
    }
}

// f of a pivot: the forwards of its region that it reaches through large items. index[]: region of what was
// reached.
static uint64_t tli_runs_find_cost(tli_runs *r, int32_t pivot) {
    const tl_graph *graph = r->model->graph;
    int32_t *stack = r->model->stack, count = 0, region = r->region[pivot], i;
    uint64_t cost = 0;
    stack[count++] = pivot;
    r->index[pivot] = region;
    while (count > 0) {
        const tl_node *node = &graph->nodes[stack[--count]];
        cost += node->fwd_cost;     // of all nodes together they fit: tl_check_graph
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            int32_t item = r->model->item_of[graph->inputs[i].tensor];
            int32_t maker = tli_runs_is_large(r, item) ? r->model->maker[item] : -1;
            if (maker < 0 || r->region[maker] != region || r->index[maker] == region) continue;
            r->index[maker] = region;
            stack[count++] = maker;
        }
        r->work += (uint64_t)node->input_count + 1;
    }
    return cost;
}

// Regions before that of a pivot of which its backward reads something large.
static uint64_t tli_runs_count_read(const tli_runs *r, int32_t at) {
    int32_t seen[8], count = 0, k, i, item, id = r->model->order[r->moment[at]];
    for (k = 0; (item = tli_runs_find_read(r->model, id, k)) != -2; k++) {
        int32_t region = tli_runs_is_large(r, item) ? r->region[r->model->maker[item]] : 0;
        if (!region || region >= r->region[r->path[at]]) continue;
        for (i = 0; i < count && seen[i] != region; i++) { }
        if (i < count) continue;
        if (count == 8) return TLI_RUNS_MANY;       // too many to tell
        seen[count++] = region;
    }
    return (uint64_t)count;
}

// Number the regions of those pivots whose moments have at most `most` slots, and find all f.
static void tli_runs_take(tli_runs *r, uint64_t most) {
    int32_t i, region = 0;
    tli_zero(r->region, (size_t)r->model->graph->node_count * sizeof *r->region);
    tli_zero(r->index, (size_t)r->model->graph->node_count * sizeof *r->index);
    for (i = r->count; i-- > 0;)
        if (r->moment[i] >= 0 && r->all_slots[i] <= most) tli_runs_mark_region(r, r->path[i], ++region);
    r->taken = 0;
    for (i = r->count; i-- > 0;)
        if (r->moment[i] >= 0 && r->all_slots[i] <= most)
            r->costs[r->taken++] = tli_runs_find_cost(r, r->path[i]);
    r->work += (uint64_t)r->model->graph->node_count;
}

// Sort costs[], the largest first.
static void tli_runs_sort(tli_runs *r) {
    int32_t gap, k, at;
    for (gap = r->taken / 2; gap; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (k = gap; k < r->taken; k++) {
            uint64_t cost = r->costs[k];
            for (at = k; at >= gap && r->costs[at - gap] < cost; at -= gap) r->costs[at] = r->costs[at - gap];
            r->costs[at] = cost;
            r->work++;
        }
}

// What the pivots taken cost beyond their first runs with so many slots: C(s + t, s) of them run t times.
static uint64_t tli_runs_sum(const tli_runs *r, uint64_t slot_total) {
    uint64_t group = slot_total + 1, left = group, times = 1, sum = 0, part;
    int32_t i;
    for (i = 0; i < r->taken; i++) {
        if (!left) {
            times++;
            if (!tli_mul_u64(group, slot_total + times, &group)) return sum;  // C(s + t, s)
            left = group /= times;
        }
        left--;
        if (!tli_mul_u64(r->costs[i], times - 1, &part) || !tli_add_u64(sum, part, &sum)) return UINT64_MAX;
    }
    return sum;
}

// Find all_slots[]; then raise `extra` by the pivots of at most so many slots, for each number from the fewest.
static void tli_runs_try(tli_runs *r) {
    uint64_t most = 0, next;
    int32_t i;
    for (i = 0; i < r->count; i++)
        r->all_slots[i] = r->moment[i] < 0 ? TLI_RUNS_MANY : r->model->room[r->moment[i]] / r->least;
    for (i = 0; i < r->count; i++) if (r->all_slots[i] > TLI_RUNS_MANY) r->all_slots[i] = TLI_RUNS_MANY;
    tli_runs_take(r, TLI_RUNS_MANY);
    for (i = 0; i < r->count; i++) if (r->moment[i] >= 0) r->all_slots[i] += tli_runs_count_read(r, i);
    for (; r->work < TLI_RUNS_WORK; most = next + 1) {
        next = UINT64_MAX;
        for (i = 0; i < r->count; i++)
            if (r->all_slots[i] >= most && r->all_slots[i] < next) next = r->all_slots[i];
        if (next >= (uint64_t)r->count) break;      // no pivot has so few slots, or none runs twice
        tli_runs_take(r, next);
        tli_runs_sort(r);
        r->extra = tli_larger_u64(r->extra, tli_runs_sum(r, next));
    }
}

// The next larger size of an item, at least a quarter above the last one; UINT64_MAX = none.
static uint64_t tli_runs_next_size(const tli_runs *r) {
    uint64_t next = UINT64_MAX, from = r->least > UINT64_MAX / 2 ? UINT64_MAX : r->least + r->least / 4;
    int32_t t;
    for (t = 0; t < r->model->item_count; t++)
        if (r->model->exact[t] > from && r->model->exact[t] < next) next = r->model->exact[t];
    return next;
}

// Find what forwards cost at least beyond the first run of each, from the rooms of all backwards.
static tl_result tli_bound_runs(tli_bound *model, uint64_t *extra) {
    int64_t nodes = model->graph->node_count;
    tli_runs r;
    tli_zero(&r, sizeof r);
    r.model = model;
    *extra = 0;
    r.path = (int32_t *)tli_alloc_array(model->env, 4 * (uint64_t)nodes, sizeof *r.path);
    r.all_slots = (uint64_t *)tli_alloc_array(model->env, 2 * (uint64_t)nodes, sizeof *r.all_slots);
    if (r.path && r.all_slots) {
        r.moment = r.path + nodes;
        r.region = r.moment + nodes;
        r.index = r.region + nodes;
        r.costs = r.all_slots + nodes;
        for (r.least = tli_runs_next_size(&r); r.least != UINT64_MAX && r.work < TLI_RUNS_WORK;
             r.least = tli_runs_next_size(&r)) {
            tli_runs_find_path(&r);
            tli_runs_find_moments(&r);
            if (r.count) tli_runs_try(&r);
            r.work += (uint64_t)model->item_count;
        }
    }
    *extra = r.extra;
    *model->work += r.work;
    tli_release(model->env, r.path);
    tli_release(model->env, r.all_slots);
    return r.path && r.all_slots ? TL_OK : TL_ERROR_NO_MEMORY;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
