#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- data parallel --

static tl_result tli_replicas_check(tl_env *env, tli_function in, const tl_replicas_desc *desc, int32_t count) {
    if (count < 1) return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(REPLICA_COUNT_MUST_BE_POSITIVE));
    if (!tli_is_below(desc->zero_stage, 3))
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(ZERO_STAGE_MUST_BE_0_TO_2));
    if (desc->sample_count < 0 || (desc->sample_count && desc->sample_count < count))
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(SAMPLE_COUNT_OF_REPLICAS));
    if (!tli_is_below(desc->is_weak, 2))
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(WEAK_MUST_BE_0_OR_1));
    if (desc->link && !desc->link->bytes_per_second)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(LINK_RATE_MUST_BE_POSITIVE));
    return TL_OK;
}

// What the replica with the largest share has of an amount that the whole batch takes. 0 = overflow.
static int tli_replica_share(const tl_replicas_desc *desc, uint64_t count, uint64_t amount, uint64_t *share) {
    uint64_t samples = (uint64_t)desc->sample_count, most, product;
    *share = amount;
    if (desc->is_weak) return 1;
    *share = tli_divide_up(amount, count);
    if (!samples) return 1;
    most = tli_divide_up(samples, count);
    if (!tli_mul_u64(amount, most, &product)) return 0;
    *share = tli_divide_up(product, samples);
    return 1;
}

// What replicas exchange in a step: the time, and the bytes that each sends. 0 = overflow.
static int tli_find_exchange(const tl_link *link, int32_t zero_stage, uint64_t gradients, uint64_t parameters,
                             uint64_t count, uint64_t *ns, uint64_t *sent) {
    uint64_t add = tli_divide_up(gradients, count), hand = zero_stage ? tli_divide_up(parameters, count) : add;
    uint64_t second, bytes;
    return tli_find_link_time(link, add, count - 1, ns) && tli_find_link_time(link, hand, count - 1, &second) &&
           tli_add_u64(*ns, second, ns) && tli_add_u64(add, hand, &bytes) &&
           tli_mul_u64(bytes, count - 1, sent);
}

// Find what `count` replicas take. 0 = bytes or time do not fit 62 bits.
static int tli_replicas_fill(const tl_replicas_desc *desc, uint64_t count, tl_replicas *r) {
    uint64_t optimizer = desc->optimizer_bytes, gradients = desc->gradient_bytes, most = UINT64_C(1) << 62;
    r->replica_count = (int32_t)count;
    if (desc->zero_stage > 0) optimizer = tli_divide_up(optimizer, count);
    if (desc->zero_stage > 1) gradients = tli_divide_up(gradients, count);
    if (!tli_replica_share(desc, count, desc->activation_bytes, &r->bytes) ||
        !tli_add_u64(r->bytes, desc->rank_bytes, &r->bytes) ||
        !tli_add_u64(r->bytes, desc->parameter_bytes, &r->bytes) ||
        !tli_add_u64(r->bytes, gradients, &r->bytes) || !tli_add_u64(r->bytes, optimizer, &r->bytes)) return 0;
    if (!tli_replica_share(desc, count, desc->compute_ns, &r->compute_ns) ||
        !tli_find_exchange(desc->link, desc->zero_stage, desc->gradient_bytes, desc->parameter_bytes, count,
                           &r->exchange_ns, &r->sent_bytes) ||
        !tli_add_u64(r->compute_ns, r->exchange_ns, &r->time_ns)) return 0;
    r->fits = !desc->budget_bytes || r->bytes <= desc->budget_bytes;
    return r->bytes <= most && r->time_ns <= most;
}

static tl_result tli_replicas_overflow(tl_env *env, tli_function in, tl_replicas *replicas) {
    tli_zero(replicas, sizeof *replicas);
    return tli_fail(env, TL_ERROR_OVERFLOW, in, TLI_RULE(REPLICA_SUMS_MUST_FIT_62_BITS));
}

TLI_IMPL tl_result tl_estimate_replicas(tl_env *env, const tl_replicas_desc *desc, int32_t replica_count,
                                        tl_replicas *replicas) {
    tl_result result;
    TL_ASSERT(desc && replicas);
    tli_zero(replicas, sizeof *replicas);
    result = tli_replicas_check(env, TLI_IN(ESTIMATE_REPLICAS), desc, replica_count);
    if (result) return result;
    if (tli_replicas_fill(desc, (uint64_t)replica_count, replicas)) return TL_OK;
    return tli_replicas_overflow(env, TLI_IN(ESTIMATE_REPLICAS), replicas);
}

// Whether a takes less time for a batch than b.
static int tli_is_faster(const tl_replicas_desc *desc, const tl_replicas *a, const tl_replicas *b) {
    uint64_t p = (uint64_t)a->replica_count, q = (uint64_t)b->replica_count;
    if (!desc->is_weak) return a->time_ns < b->time_ns;
    if (a->time_ns / p != b->time_ns / q) return a->time_ns / p < b->time_ns / q;
    return (a->time_ns % p) * q < (b->time_ns % q) * p;
}

TLI_IMPL tl_result tl_choose_replicas(tl_env *env, const tl_replicas_desc *desc, tl_replicas *replicas) {
    tli_function in = TLI_IN(CHOOSE_REPLICAS);
    tl_replicas one, least;
    tl_result result;
    tli_sentence s;
    int32_t count, most = desc->replica_limit;
    TL_ASSERT(replicas);
    tli_zero(replicas, sizeof *replicas);
    tli_zero(&least, sizeof least);
    result = tli_replicas_check(env, in, desc, most > 0 ? 1 : 0);
    if (result) return result;
    if (desc->sample_count && desc->sample_count < most) most = desc->sample_count;
    for (count = 1; count <= most; count++) {
        tli_zero(&one, sizeof one);
        if (!tli_replicas_fill(desc, (uint64_t)count, &one)) return tli_replicas_overflow(env, in, replicas);
        if (!least.replica_count || one.bytes < least.bytes) least = one;
        if (one.fits && (!replicas->replica_count || tli_is_faster(desc, &one, replicas))) *replicas = one;
    }
    if (replicas->replica_count) return TL_OK;
    s = tli_begin_error(env, TL_ERROR_INFEASIBLE, in, TLI_RULE(NO_REPLICAS_FIT), desc->budget_bytes,
                        least.bytes);
    tli_put_limit(env, &s, TL_LIMIT_BUDGET);
    tli_put_rule(&s);
    tli_put_i64(&s.text, least.replica_count);
    return tli_end_error(env, &s, TL_ERROR_INFEASIBLE);
}

// -- placement: the clock of a pass --
//
// Nodes are placed in the order of the listing, each on a rank. When a node ends depends on what was placed
// before it alone, so the placement of the first nodes can be priced, and undone, step by step.

typedef struct tli_undo { uint64_t *where, value; } tli_undo;

typedef struct tli_assign {
    tl_env *env;
    const tl_placement_desc *desc;
    int32_t   node_count, rank_count, tensor_count;
    int32_t  *first_in, *in_edges;      // [node_count + 1], [edge_count] edges into each node, in order
    int32_t  *first_out, *out_edges;    // the same, out of each node
    int32_t  *tensor_of;                // [edge_count]
    uint64_t *transfer, *tensor_bytes;  // [tensor_count]
    uint64_t *cost;                     // [node_count * rank_count]
    uint64_t *fastest, *tail;           // [node_count] least cost; longest path of least costs after the node
    uint64_t *rest;                     // [node_count + 1] sum of fastest from a node on
    uint64_t *budget;                   // [rank_count] UINT64_MAX = no limit
    int32_t  *class_of;                 // [rank_count] the first rank with the same figures
    uint64_t *end;                      // [node_count]
    uint64_t *free_at, *load, *placed;  // [rank_count] when it is free; bytes and number of its nodes
    uint64_t *channel;                  // [rank_count * rank_count] from, to: when it is free
    uint64_t *arrival;                  // [tensor_count * rank_count] UINT64_MAX = not sent there
    tli_undo *undo;      int32_t undo_count;
    int32_t  *rank_of, *trial, *best;   // [node_count]
    uint64_t  best_ns, bound_ns;        // UINT64_MAX = none yet; what is proven
    uint64_t  work, work_limit;
    tl_result result;
} tli_assign;

static void tli_place_set(tli_assign *p, uint64_t *where, uint64_t value) {
    p->undo[p->undo_count].where = where;
    p->undo[p->undo_count++].value = *where;
    *where = value;
}

static void tli_place_undo(tli_assign *p, int32_t count) {
    while (p->undo_count > count) {
        p->undo_count--;
        *p->undo[p->undo_count].where = p->undo[p->undo_count].value;
    }
}

// Put the next node on a rank.
static void tli_place_node(tli_assign *p, int32_t node, int32_t rank) {
    uint64_t start = p->free_at[rank];
    int32_t i;
    for (i = p->first_in[node]; i < p->first_in[node + 1]; i++) {
        int32_t edge = p->in_edges[i], from = p->desc->edges[edge].from, source = p->rank_of[from];
        uint64_t at = p->end[from];
        if (source != rank) {
            uint64_t *arrival = &p->arrival[(size_t)p->tensor_of[edge] * (size_t)p->rank_count + (size_t)rank];
            uint64_t *channel = &p->channel[(size_t)source * (size_t)p->rank_count + (size_t)rank];
            if (*arrival == UINT64_MAX) {
                at = tli_larger_u64(at, *channel) + p->transfer[p->tensor_of[edge]];
                tli_place_set(p, channel, at);
                tli_place_set(p, arrival, at);
            }
            at = *arrival;
        }
        start = tli_larger_u64(start, at);
    }
    p->rank_of[node] = rank;
    p->end[node] = start + p->cost[(size_t)node * (size_t)p->rank_count + (size_t)rank];
    tli_place_set(p, &p->free_at[rank], p->end[node]);
    tli_place_set(p, &p->load[rank], p->load[rank] + p->desc->nodes[node].bytes);
    tli_place_set(p, &p->placed[rank], p->placed[rank] + 1);
    p->work++;
}

static int tli_place_fits(const tli_assign *p, int32_t node, int32_t rank) {
    return p->desc->nodes[node].bytes <= p->budget[rank] - p->load[rank];
}

// The end of a pass of a whole placement; UINT64_MAX = it exceeds a budget, or is no better than the best.
static uint64_t tli_place_price(tli_assign *p, const int32_t *rank_of) {
    uint64_t total = 0;
    int32_t node, mark = p->undo_count;
    for (node = 0; node < p->node_count && total != UINT64_MAX; node++) {
        if (!tli_place_fits(p, node, rank_of[node])) { total = UINT64_MAX; break; }
        tli_place_node(p, node, rank_of[node]);
        total = tli_larger_u64(total, p->end[node]);
        if (p->end[node] + p->tail[node] >= p->best_ns) total = UINT64_MAX;
    }
    tli_place_undo(p, mark);
    return total;
}

static int tli_place_offer(tli_assign *p, const int32_t *rank_of) {
    uint64_t total = tli_place_price(p, rank_of);
    if (total >= p->best_ns) return 0;
    p->best_ns = total;
    if (p->best != rank_of) tli_copy(p->best, rank_of, (size_t)p->node_count * sizeof *rank_of);
    return 1;
}

// -- placement: first ones --

// All nodes on one rank, for each kind of rank.
static void tli_place_together(tli_assign *p) {
    int32_t rank, node;
    for (rank = 0; rank < p->rank_count; rank++) {
        if (p->class_of[rank] != rank) continue;
        for (node = 0; node < p->node_count; node++) p->trial[node] = rank;
        tli_place_offer(p, p->trial);
    }
}

// Each node where it ends first, of the ranks that have room.
static void tli_place_greedily(tli_assign *p) {
    int32_t node, rank, mark = p->undo_count;
    for (node = 0; node < p->node_count; node++) {
        int32_t best = -1;
        uint64_t best_end = UINT64_MAX;
        for (rank = 0; rank < p->rank_count; rank++) {
            int32_t before = p->undo_count;
            if (!tli_place_fits(p, node, rank)) continue;
            tli_place_node(p, node, rank);
            if (p->end[node] < best_end) { best_end = p->end[node]; best = rank; }
            tli_place_undo(p, before);
        }
        if (best < 0) break;
        p->trial[node] = best;
        tli_place_node(p, node, best);
    }
    tli_place_undo(p, mark);
    if (node == p->node_count) tli_place_offer(p, p->trial);
}

// The largest nodes first, each to the rank with most room: below its budget in the first round; in the second,
// as if there were no budgets, to the rank with the fewest bytes. Returns the bytes of the fullest rank of the
// second.
static uint64_t tli_place_by_bytes(tli_assign *p, int32_t *order, uint64_t *bytes) {
    uint64_t largest = 0;
    int32_t round, i, rank;
    for (i = 0; i < p->node_count; i++) bytes[i] = p->desc->nodes[i].bytes;
    tli_sort_numbers(order, p->node_count, bytes);
    for (round = 0; round < 2; round++) {
        for (i = p->node_count; i-- > 0;) {
            int32_t best = 0;
            for (rank = 1; rank < p->rank_count; rank++) {
                uint64_t here = round ? UINT64_MAX - p->load[rank] : p->budget[rank] - p->load[rank];
                uint64_t there = round ? UINT64_MAX - p->load[best] : p->budget[best] - p->load[best];
                if (here > there) best = rank;
            }
            p->trial[order[i]] = best;
            if (!round && !tli_place_fits(p, order[i], best)) break;
            p->load[best] += bytes[order[i]];
            largest = round ? tli_larger_u64(largest, p->load[best]) : 0;
        }
        tli_zero(p->load, (size_t)p->rank_count * sizeof *p->load);
        if (i < 0) tli_place_offer(p, p->trial);
    }
    return largest;
}

// List the nodes so that each comes right after the last of its inputs, where possible: the deepest first.
static void tli_place_dive(const tli_assign *p, int32_t *order, int32_t *waiting, int32_t *stack) {
    int32_t depth = 0, count = 0, node, i;
    for (node = p->node_count; node-- > 0;) {
        waiting[node] = p->first_in[node + 1] - p->first_in[node];
        if (!waiting[node]) stack[depth++] = node;
    }
    while (depth) {
        node = stack[--depth];
        order[count++] = node;
        for (i = p->first_out[node + 1]; i-- > p->first_out[node];) {
            int32_t to = p->desc->edges[p->out_edges[i]].to;
            if (!--waiting[to]) stack[depth++] = to;
        }
    }
}

// What crosses each place between two nodes of an order, if both sides are on ranks of their own; halved, since
// a partition counts it there and back.
static void tli_place_cross(const tli_assign *p, const int32_t *order, int32_t *place, tl_unit *units) {
    int32_t i, k;
    for (i = 0; i < p->node_count; i++) place[order[i]] = i;
    for (i = 0; i < p->node_count; i++) {
        int32_t node = order[i];
        for (k = p->first_out[node]; k < p->first_out[node + 1]; k++) {
            const tl_placement_edge *edge = &p->desc->edges[p->out_edges[k]];
            units[i].output_bytes += edge->bytes / 2;
            units[place[edge->to]].forward_ns += edge->bytes / 2;
        }
    }
    for (i = 1; i < p->node_count; i++)         // forward_ns holds what ends there, until all is counted
        units[i].output_bytes += units[i - 1].output_bytes - units[i].forward_ns;
}

// Contiguous parts of an order, balanced by cost, with and without what crosses the cuts.
static void tli_place_parts(tli_assign *p, const int32_t *order, int32_t *place, tl_unit *units) {
    tl_partition_desc desc;
    tl_partition parts;
    int32_t round, i, s;
    tli_zero(&desc, sizeof desc);
    desc.units = units;
    desc.unit_count = p->node_count;
    desc.rank_count = p->rank_count < p->node_count ? p->rank_count : p->node_count;
    desc.ranks = p->desc->ranks;
    desc.budget_bytes = p->desc->budget_bytes;
    desc.micro_batch_count = 1;
    desc.work_limit = p->work_limit / 8 + 1;
    tli_zero(units, (size_t)p->node_count * sizeof *units);
    tli_place_cross(p, order, place, units);
    for (i = 0; i < p->node_count; i++) {
        units[i].forward_ns = p->desc->nodes[order[i]].cost_ns;
        units[i].parameter_bytes = p->desc->nodes[order[i]].bytes;
    }
    for (round = 0; round < (p->desc->link ? 2 : 1); round++) {
        tli_quiet quiet = tli_begin_quiet(p->env);
        tl_result result;
        desc.link = round ? p->desc->link : NULL;
        result = tl_plan_partition(p->env, &desc, &parts);
        tli_end_quiet(&quiet, TL_OK);
        if (result == TL_ERROR_NO_MEMORY) p->result = result;
        if (result) continue;
        for (s = 0; s < parts.stage_count; s++)
            for (i = parts.stages[s].first_unit; i < parts.stages[s].end_unit; i++)
                p->trial[order[i]] = parts.stages[s].first_rank;
        p->work += parts.work / 8;
        tl_free_partition(p->env, &parts);
        tli_place_offer(p, p->trial);
    }
}

// -- placement: search --

// Whether a rank is worth a try: 0 = a rank before it has the same figures and no node yet.
static int tli_place_is_new(const tli_assign *p, int32_t rank) {
    int32_t i;
    for (i = p->class_of[rank]; i < rank; i++)
        if (p->class_of[i] == p->class_of[rank] && !p->placed[i]) return 0;
    return 1;
}

// No way to place the rest after `node` ends before this.
static uint64_t tli_place_bound(const tli_assign *p, int32_t node, uint64_t path) {
    uint64_t sum = p->rest[node + 1];
    int32_t rank;
    for (rank = 0; rank < p->rank_count; rank++) sum += p->free_at[rank];
    return tli_larger_u64(path, tli_divide_up(sum, (uint64_t)p->rank_count));
}

// Branch and bound over all placements, the nodes in the order of the listing. 1 = the best is proven.
static int tli_place_search(tli_assign *p, int32_t *next, int32_t *marks, uint64_t *paths) {
    int32_t node = 0, mark = p->undo_count;
    uint64_t end = p->work + p->work_limit;
    next[0] = 0;
    marks[0] = mark;
    while (node >= 0 && p->work < end && p->best_ns > p->bound_ns) {
        int32_t rank = next[node]++;
        uint64_t bound;
        tli_place_undo(p, marks[node]);
        if (rank == p->rank_count) { node--; continue; }
        if (!tli_place_fits(p, node, rank) || !tli_place_is_new(p, rank)) continue;
        tli_place_node(p, node, rank);
        paths[node] = tli_larger_u64(node ? paths[node - 1] : 0, p->end[node] + p->tail[node]);
        bound = tli_place_bound(p, node, paths[node]);
        if (bound >= p->best_ns) continue;
        if (node + 1 < p->node_count) {
            next[++node] = 0;
            marks[node] = p->undo_count;
            continue;
        }
        p->best_ns = paths[node];
        tli_copy(p->best, p->rank_of, (size_t)p->node_count * sizeof *p->best);
    }
    tli_place_undo(p, mark);
    return node < 0 || p->best_ns <= p->bound_ns;
}

// Move single nodes to other ranks while that helps.
static void tli_place_improve(tli_assign *p) {
    uint64_t end = p->work + p->work_limit;
    int32_t node, rank, moves = p->best_ns != UINT64_MAX;
    while (moves && p->work < end)
        for (moves = 0, node = 0; node < p->node_count && p->work < end; node++)
            for (rank = 0; rank < p->rank_count && p->work < end; rank++) {
                int32_t from = p->best[node];
                if (rank == from) continue;
                p->best[node] = rank;
                if (tli_place_offer(p, p->best)) moves = 1;
                else p->best[node] = from;
            }
}

// -- placement: what it takes --

static tl_result tli_placement_check(tl_env *env, const tl_placement_desc *desc) {
    tli_function in = TLI_IN(PLAN_PLACEMENT);
    int32_t i;
    if (!desc->nodes || desc->node_count < 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(PLACEMENT_NODES_MISSING));
    if (desc->rank_count < 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(RANK_COUNT_MUST_BE_POSITIVE));
    if (desc->link && !desc->link->bytes_per_second)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(LINK_RATE_MUST_BE_POSITIVE));
    if (desc->edge_count < 0 || (desc->edge_count && !desc->edges))
        return tli_fail_values(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(PLACEMENT_EDGE_IS_WRONG), 0, 0);
    for (i = 0; i < desc->edge_count; i++) {
        const tl_placement_edge *edge = &desc->edges[i];
        if (edge->from < 0 || edge->to <= edge->from || edge->to >= desc->node_count)
            return tli_fail_values(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(PLACEMENT_EDGE_IS_WRONG),
                                   (uint64_t)i, 0);
    }
    return TL_OK;
}

// List the edges of each node, in their order: by `to` or by `from`.
static void tli_place_list_edges(const tl_placement_desc *desc, int by_to, int32_t *first, int32_t *list) {
    int32_t i, node;
    for (i = 0; i < desc->edge_count; i++) first[by_to ? desc->edges[i].to : desc->edges[i].from]++;
    for (node = 1; node <= desc->node_count; node++) first[node] += first[node - 1];
    for (i = desc->edge_count; i-- > 0;) list[--first[by_to ? desc->edges[i].to : desc->edges[i].from]] = i;
}

// Number the tensors. -1 = none is wrong; else an edge whose bytes are not those of its tensor.
static int32_t tli_place_number_tensors(tli_assign *p) {
    const tl_placement_edge *edges = p->desc->edges;
    int32_t node, i, k;
    for (node = 0; node < p->node_count; node++)
        for (i = p->first_out[node]; i < p->first_out[node + 1]; i++) {
            int32_t edge = p->out_edges[i];
            for (k = p->first_out[node]; k < i && edges[p->out_edges[k]].output != edges[edge].output;) k++;
            p->tensor_of[edge] = k < i ? p->tensor_of[p->out_edges[k]] : p->tensor_count++;
            if (k == i) p->tensor_bytes[p->tensor_of[edge]] = edges[edge].bytes;
            if (p->tensor_bytes[p->tensor_of[edge]] != edges[edge].bytes) return edge;
        }
    return -1;
}

// Find the times of transfers. 0 = a sum of costs, transfers or bytes does not fit 62 bits.
static int tli_place_sum(tli_assign *p) {
    const tl_placement_desc *desc = p->desc;
    uint64_t most = UINT64_C(1) << 62, bytes = 0, sent = 0, time = 0, cost = 0, part;
    int32_t i, rank;
    for (i = 0; i < p->tensor_count; i++) {
        if (!tli_find_link_time(desc->link, p->tensor_bytes[i], 1, &p->transfer[i]) ||
            !tli_add_u64(time, p->transfer[i], &time) ||
            !tli_add_u64(sent, p->tensor_bytes[i], &sent)) return 0;
    }
    for (i = 0; i < p->node_count; i++)
        if (!tli_add_u64(cost, desc->nodes[i].cost_ns, &cost) ||
            !tli_add_u64(bytes, desc->nodes[i].bytes, &bytes)) return 0;
    for (rank = 0; rank < (desc->ranks ? p->rank_count : 1); rank++) {
        uint64_t over = desc->ranks ? tli_rank_numerator(&desc->ranks[rank]) : 1;
        if (!tli_mul_u64(cost, over, &part) || part > most / (uint64_t)p->rank_count / 2) return 0;
    }
    return tli_mul_u64(time, (uint64_t)p->rank_count, &time) && time <= most / (uint64_t)p->rank_count / 2 &&
           tli_mul_u64(sent, (uint64_t)p->rank_count, &sent) && sent <= most && bytes <= most;
}

static void tli_place_fill(tli_assign *p) {
    const tl_placement_desc *desc = p->desc;
    size_t ranks = (size_t)p->rank_count, i;
    int32_t node, rank, k;
    for (rank = 0; rank < p->rank_count; rank++) {
        const tl_rank *r = desc->ranks ? &desc->ranks[rank] : NULL;
        uint64_t over = r ? tli_rank_numerator(r) : 1, under = r ? tli_rank_denominator(r) : 1;
        uint64_t budget = r ? r->budget_bytes : desc->budget_bytes;
        p->budget[rank] = budget ? budget : UINT64_MAX;
        for (k = 0; k < rank && r; k++)
            if (tli_rank_numerator(&desc->ranks[k]) == over && tli_rank_denominator(&desc->ranks[k]) == under &&
                desc->ranks[k].budget_bytes == r->budget_bytes) break;
        p->class_of[rank] = r ? k : 0;
        for (node = 0; node < p->node_count; node++) {
            i = (size_t)node * ranks + (size_t)rank;
            p->cost[i] = tli_scale_cost(desc->nodes[node].cost_ns, over, under);
        }
    }
    for (i = 0; i < (size_t)p->tensor_count * ranks; i++) p->arrival[i] = UINT64_MAX;
    for (node = p->node_count; node-- > 0;) {
        p->fastest[node] = p->cost[(size_t)node * ranks];
        for (rank = 1; rank < p->rank_count; rank++)
            if (p->cost[(size_t)node * ranks + (size_t)rank] < p->fastest[node])
                p->fastest[node] = p->cost[(size_t)node * ranks + (size_t)rank];
        p->rest[node] = p->rest[node + 1] + p->fastest[node];
        for (k = p->first_out[node]; k < p->first_out[node + 1]; k++) {
            int32_t to = desc->edges[p->out_edges[k]].to;
            p->tail[node] = tli_larger_u64(p->tail[node], p->fastest[to] + p->tail[to]);
        }
        p->bound_ns = tli_larger_u64(p->bound_ns, p->fastest[node] + p->tail[node]);
    }
    p->bound_ns = tli_larger_u64(p->bound_ns, tli_divide_up(p->rest[0], (uint64_t)p->rank_count));
}

// Get all arrays, as three blocks: words of 8 bytes, words of 4, the record of changes. 0 = no memory.
static int tli_place_alloc(tli_assign *p, uint64_t **words, int32_t **numbers) {
    uint64_t n = (uint64_t)p->node_count, ranks = (uint64_t)p->rank_count;
    uint64_t edges = (uint64_t)p->desc->edge_count;
    uint64_t word_count;
    uint64_t *w;
    int32_t *m;
    if (!tli_mul_u64(edges + n + ranks + 1, ranks + 4, &word_count)) return 0;
    *words = w = (uint64_t *)tli_alloc_array(p->env, word_count, sizeof **words);
    *numbers = m = (int32_t *)tli_alloc_array(p->env, 5 * n + 2 + 3 * edges + ranks, sizeof **numbers);
    p->undo = (tli_undo *)tli_alloc_array(p->env, 3 * n + 2 * edges + 3, sizeof *p->undo);
    if (!w || !m || !p->undo) return 0;
    p->transfer = w;        w += edges;
    p->tensor_bytes = w;    w += edges;
    p->arrival = w;         w += edges * ranks;
    p->cost = w;            w += n * ranks;
    p->fastest = w;         w += n;
    p->tail = w;            w += n;
    p->end = w;             w += n;
    p->rest = w;            w += n + 1;
    p->budget = w;          w += ranks;
    p->free_at = w;         w += ranks;
    p->load = w;            w += ranks;
    p->placed = w;          w += ranks;
    p->channel = w;
    p->first_in = m;        m += n + 1;
    p->first_out = m;       m += n + 1;
    p->in_edges = m;        m += edges;
    p->out_edges = m;       m += edges;
    p->tensor_of = m;       m += edges;
    p->class_of = m;        m += ranks;
    p->rank_of = m;         m += n;
    p->trial = m;           m += n;
    p->best = m;
    return 1;
}

// Fill the answer from the best placement.
static int tli_place_finish(tli_assign *p, tl_placement *placement) {
    size_t n = (size_t)p->node_count, ranks = (size_t)p->rank_count, i;
    int32_t node;
    placement->rank_of = (int32_t *)tli_alloc_array(p->env, n, sizeof(int32_t));
    placement->rank_bytes = (uint64_t *)tli_alloc_array(p->env, ranks, sizeof(uint64_t));
    placement->busy_ns = (uint64_t *)tli_alloc_array(p->env, ranks, sizeof(uint64_t));
    if (!placement->rank_of || !placement->rank_bytes || !placement->busy_ns) return 0;
    tli_copy(placement->rank_of, p->best, n * sizeof(int32_t));
    for (node = 0; node < p->node_count; node++) {
        int32_t rank = p->best[node];
        tli_place_node(p, node, rank);
        placement->rank_bytes[rank] += p->desc->nodes[node].bytes;
        placement->busy_ns[rank] += p->cost[(size_t)node * ranks + (size_t)rank];
    }
    for (i = 0; i < (size_t)p->tensor_count * ranks; i++)
        if (p->arrival[i] != UINT64_MAX) placement->sent_bytes += p->tensor_bytes[i / ranks];
    placement->total_ns = p->best_ns;
    placement->bound_ns = p->bound_ns;
    placement->is_proven = p->bound_ns == p->best_ns;
    placement->work = p->work;
    return 1;
}

#define TLI_PLACEMENT_WORK 20000000     // nodes placed, where the desc has no limit
#define TLI_PLACEMENT_EXACT 24          // nodes up to which all placements are searched

static tl_result tli_place_fail(tli_assign *p, tl_result code, tli_rule rule) {
    return tli_fail(p->env, code, TLI_IN(PLAN_PLACEMENT), rule);
}

// Scratch of tli_place_run, arrays of [node_count].
typedef struct tli_place_scratch { int32_t *a, *b, *c; uint64_t *words; tl_unit *units; } tli_place_scratch;

// Try everything. Returns bytes that would do on every rank.
static uint64_t tli_place_run(tli_assign *p, const tli_place_scratch *scratch) {
    uint64_t least = tli_place_by_bytes(p, scratch->a, scratch->words);
    int32_t i;
    int is_proven = 0;
    tli_place_together(p);
    tli_place_greedily(p);
    for (i = 0; i < p->node_count; i++) scratch->a[i] = i;
    tli_place_parts(p, scratch->a, scratch->b, scratch->units);
    tli_place_dive(p, scratch->a, scratch->b, scratch->c);
    if (!p->result) tli_place_parts(p, scratch->a, scratch->b, scratch->units);
    if (p->result) return least;
    p->work = 0;
    if (p->node_count <= TLI_PLACEMENT_EXACT)
        is_proven = tli_place_search(p, scratch->a, scratch->b, scratch->words);
    if (!is_proven) tli_place_improve(p);
    if (is_proven) p->bound_ns = p->best_ns;
    return least;
}

static tl_result tli_place_plan(tli_assign *p, const tli_place_scratch *scratch, tl_placement *placement) {
    uint64_t least, budget;
    tli_sentence s;
    int32_t edge, i;
    if (!scratch->a || !scratch->b || !scratch->c || !scratch->words || !scratch->units)
        return tli_place_fail(p, TL_ERROR_NO_MEMORY, TLI_RULE(NO_MEMORY_FOR_PLACEMENT));
    tli_place_list_edges(p->desc, 1, p->first_in, p->in_edges);
    tli_place_list_edges(p->desc, 0, p->first_out, p->out_edges);
    edge = tli_place_number_tensors(p);
    if (edge >= 0)
        return tli_fail_values(p->env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_PLACEMENT),
                               TLI_RULE(PLACEMENT_EDGES_DIFFER), (uint64_t)edge, 0);
    if (!tli_place_sum(p))
        return tli_place_fail(p, TL_ERROR_OVERFLOW, TLI_RULE(PLACEMENT_SUMS_MUST_FIT_62_BITS));
    tli_place_fill(p);
    least = tli_place_run(p, scratch);
    if (p->result || (p->best_ns != UINT64_MAX && !tli_place_finish(p, placement)))
        return tli_place_fail(p, TL_ERROR_NO_MEMORY, TLI_RULE(NO_MEMORY_FOR_PLACEMENT));
    if (p->best_ns != UINT64_MAX) return TL_OK;
    for (i = 0, budget = UINT64_MAX; i < p->rank_count; i++)
        if (p->budget[i] < budget) budget = p->budget[i];
    s = tli_begin_error(p->env, TL_ERROR_INFEASIBLE, TLI_IN(PLAN_PLACEMENT), TLI_RULE(NO_PLACEMENT_FITS),
                        budget, least);
    tli_put_limit(p->env, &s, TL_LIMIT_BUDGET);
    return tli_end_error(p->env, &s, TL_ERROR_INFEASIBLE);
}

TLI_IMPL tl_result tl_plan_placement(tl_env *env, const tl_placement_desc *desc, tl_placement *placement) {
    tli_assign p;
    tli_place_scratch scratch;
    uint64_t *words = NULL;
    int32_t *numbers = NULL;
    tl_result result;
    TL_ASSERT(desc && placement);
    tli_zero(placement, sizeof *placement);
    result = tli_placement_check(env, desc);
    if (result) return result;
    tli_zero(&p, sizeof p);
    tli_zero(&scratch, sizeof scratch);
    p.env = env;
    p.desc = desc;
    p.node_count = desc->node_count;
    p.rank_count = desc->rank_count;
    p.best_ns = UINT64_MAX;
    p.work_limit = desc->work_limit ? desc->work_limit : TLI_PLACEMENT_WORK;
    if (tli_place_alloc(&p, &words, &numbers)) {
        scratch.a = (int32_t *)tli_alloc_array(env, (uint64_t)p.node_count, sizeof(int32_t));
        scratch.b = (int32_t *)tli_alloc_array(env, (uint64_t)p.node_count, sizeof(int32_t));
        scratch.c = (int32_t *)tli_alloc_array(env, (uint64_t)p.node_count, sizeof(int32_t));
        scratch.words = (uint64_t *)tli_alloc_array(env, (uint64_t)p.node_count, sizeof(uint64_t));
        scratch.units = (tl_unit *)tli_alloc_array(env, (uint64_t)p.node_count, sizeof(tl_unit));
    }
    result = tli_place_plan(&p, &scratch, placement);
    if (result) tl_free_placement(env, placement);
    tli_release(env, scratch.a);
    tli_release(env, scratch.b);
    tli_release(env, scratch.c);
    tli_release(env, scratch.words);
    tli_release(env, scratch.units);
    tli_release(env, words);
    tli_release(env, numbers);
    tli_release(env, p.undo);
    return result;
}

TLI_IMPL void tl_free_placement(tl_env *env, tl_placement *placement) {
    TL_ASSERT(placement);
    tli_release(env, placement->rank_of);
    tli_release(env, placement->rank_bytes);
    tli_release(env, placement->busy_ns);
    tli_zero(placement, sizeof *placement);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
