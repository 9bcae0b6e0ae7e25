#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- precision plan: the criteria and ties --
//
// Which choice is wanted: that of least cost within the loss limit, of least loss within the cost limit, or
// the knee of the front between both. Several may be equal then, and the one that is taken must not depend on
// how it was found: it is preferred over the whole graph where the prices leave room for that, else node by
// node.

// -- precision plan: amounts of a choice --

// Formats to which a net's tensor is converted, as bits 1 << tl_format.
static uint32_t tli_find_wanted(const tli_choice_net *net, const uint8_t *schemes) {
    uint32_t wanted = 0;
    int32_t k;
    for (k = 0; k < net->reader_count; k++) wanted |= TLI_BIT(tli_scheme_formats[schemes[net->readers[k]]]);
    return wanted & ~TLI_BIT(tli_scheme_formats[schemes[net->producer]]);
}

static int32_t tli_count_wanted(const tli_choice_net *net, const uint8_t *schemes) {
    uint32_t wanted = tli_find_wanted(net, schemes);
    int32_t count = 0;
    for (; wanted; wanted &= wanted - 1) count++;
    return count;
}

static uint64_t tli_sum_net(const tli_choice_net *net, const uint8_t *schemes) {
    const uint64_t *costs = net->costs + tli_scheme_formats[schemes[net->producer]] * TL_FORMAT_COUNT;
    uint32_t wanted = tli_find_wanted(net, schemes);
    uint64_t sum = 0;
    int32_t k;
    for (k = 0; k < TL_FORMAT_COUNT; k++)
        if (wanted >> k & 1) sum += costs[k];
    return sum;
}

// The cost of a node and of all nets that it makes or reads, in the present choice.
static uint64_t tli_sum_around(const tli_precision *p, int32_t id) {
    uint64_t sum = p->costs[(size_t)id * TL_SCHEME_COUNT + p->schemes[id]];
    int32_t i;
    for (i = p->first_nets[id]; i < p->first_nets[id + 1]; i++)
        sum += tli_sum_net(&p->nets[p->node_nets[i]], p->schemes);
    return sum;
}

// The conversions of all nets that a node makes or reads.
static int32_t tli_count_around(const tli_precision *p, int32_t id) {
    int32_t i, count = 0;
    for (i = p->first_nets[id]; i < p->first_nets[id + 1]; i++)
        count += tli_count_wanted(&p->nets[p->node_nets[i]], p->schemes);
    return count;
}

// -- precision plan: ties --

// Change one node to the preferred scheme, if neither the cost with its nets nor its conversions and their cost
// grow and the limit is kept. Each change improves the node's preference, so repeating this ends.
static int tli_prefer_scheme(tli_precision *p, uint64_t most_loss, tli_pick *pick, int32_t id) {
    size_t row = (size_t)id * TL_SCHEME_COUNT;
    uint64_t before = tli_sum_around(p, id), after, loss;
    int32_t conversions = tli_count_around(p, id), grown;
    size_t now = p->schemes[id], best = now, k;
    for (k = 0; k < TL_SCHEME_COUNT; k++) {
        if (k == best || p->costs[row + k] == TL_FORBIDDEN || p->ranks[row + k] > p->ranks[row + best])
            continue;
        if (p->ranks[row + k] == p->ranks[row + best] &&
            (p->losses[row + k] > p->losses[row + best] ||
             (p->losses[row + k] == p->losses[row + best] && k > best))) continue;
        p->schemes[id] = (uint8_t)k;
        after = tli_sum_around(p, id);
        grown = tli_count_around(p, id) > conversions;
        p->schemes[id] = (uint8_t)now;
        loss = pick->loss - p->losses[row + now] + p->losses[row + k];
        if (loss > most_loss || after > before || grown ||
            after - p->costs[row + k] > before - p->costs[row + now]) continue;
        best = k;
    }
    if (best == now) return 0;
    p->schemes[id] = (uint8_t)best;
    pick->cost = pick->cost - before + tli_sum_around(p, id);
    pick->loss = pick->loss - p->losses[row + now] + p->losses[row + best];
    return 1;
}

static void tli_break_ties(tli_precision *p, uint64_t most_loss, tli_pick *pick) {
    int32_t id, changed = 1;
    while (changed)
        for (changed = 0, id = 0; id < p->graph->node_count; id++)
            changed |= tli_prefer_scheme(p, most_loss, pick, id);
}

// -- precision plan: the criteria --

static int tli_is_accuracy(const tli_precision *p) { return p->desc.criterion == TL_CRITERION_ACCURACY; }

// The work limit of choices that only refine the plan.
static uint64_t tli_least_work(uint64_t limit) {
    return limit && limit < TLI_EXTRA_WORK ? limit : TLI_EXTRA_WORK;
}

static void tli_take_schemes(tli_precision *p, const uint8_t *schemes) {
    tli_copy(p->schemes, schemes, (size_t)p->node_count);
}

static tl_result tli_choose(tli_precision *p, int least_loss, uint64_t loss_limit, uint64_t cost_limit,
                            tli_choice_plan *chosen) {
    p->choice.least_loss = least_loss;
    p->choice.loss_limit = loss_limit;
    p->choice.cost_limit = cost_limit;
    return tli_plan_choice(p->env, &p->choice, chosen);
}

static tl_result tli_fail_choice(const tli_precision *p) {
    return tli_fail(p->env, TL_ERROR_NO_MEMORY, p->function, TLI_RULE(NO_MEMORY_FOR_CHOICE));
}

static tli_pick tli_take_choice(tli_precision *p, const tli_choice_plan *chosen) {
    tli_pick pick;
    pick.cost = chosen->cost;
    pick.loss = chosen->loss;
    pick.bound = chosen->bound;
    pick.proven = chosen->proven;
    pick.gap_ratio = chosen->gap_ratio;
    pick.bound_loss = 0;
    tli_take_schemes(p, chosen->schemes);
    return pick;
}

// Choose the least cost within a loss. No error text is set for TL_ERROR_INFEASIBLE.
static tl_result tli_pick_cost(tli_precision *p, uint64_t loss_limit, tli_pick *pick) {
    tli_choice_plan chosen;
    tl_result result = tli_choose(p, 0, loss_limit, 0, &chosen);
    if (result == TL_ERROR_INFEASIBLE) return result;
    if (result) return tli_fail_choice(p);
    *pick = tli_take_choice(p, &chosen);
    tli_free_choice_plan(p->env, &chosen);
    return TL_OK;
}

// Choose the least loss within a cost, and the least cost among those. *nearest = the nearest cost that can be
// met, after TL_ERROR_INFEASIBLE.
static tl_result tli_pick_loss(tli_precision *p, uint64_t cost_limit, tli_pick *pick, uint64_t *nearest) {
    tli_choice_plan chosen, second;
    tl_result result = tli_choose(p, 1, 0, cost_limit, &chosen);
    *nearest = chosen.nearest_limit;
    if (result == TL_ERROR_INFEASIBLE) return result;
    if (result) return tli_fail_choice(p);
    *pick = tli_take_choice(p, &chosen);
    pick->bound_loss = pick->bound;
    pick->bound = 0;
    tli_free_choice_plan(p->env, &chosen);
    result = tli_choose(p, 0, pick->loss, 0, &second);  // the choice found above is within this limit
    if (result == TL_ERROR_NO_MEMORY) return tli_fail_choice(p);
    if (result) return TL_OK;
    pick->bound = second.bound;
    if (second.cost < pick->cost) {
        pick->cost = second.cost;
        pick->loss = second.loss;
        tli_take_schemes(p, second.schemes);
    }
    tli_free_choice_plan(p->env, &second);
    return TL_OK;
}

// Multiply a big number by 64 bits, as two factors of 32 bits.
static void tli_big_multiply(tli_big *a, uint64_t factor) {
    tli_big high = *a;
    tli_big_scale(a, (uint32_t)factor, 0);
    while (a->count && !a->limb[a->count - 1]) a->count--;
    tli_big_scale(&high, (uint32_t)(factor >> 32), 0);
    while (high.count && !high.limb[high.count - 1]) high.count--;
    tli_big_shift(&high, 32);
    tli_big_add(a, &high);
}

// weight / most, rounded down to units of 2^-32, x distance x axis, without overflow. Comparing distance /
// length of its own axis is the same as comparing distance x length of the other axis.
static tli_big tli_weigh(double weight, double most, uint64_t distance, uint64_t axis) {
    tli_big value;
    tli_big_set(&value, tli_divide_f64(weight, 32, most, 0));
    tli_big_multiply(&value, distance);
    tli_big_multiply(&value, axis);
    return value;
}

// The sum of the preferences of a choice; lower is better.
static uint64_t tli_sum_ranks(const tli_precision *p, const uint8_t *schemes) {
    uint64_t sum = 0;
    int32_t id;
    for (id = 0; id < p->graph->node_count; id++) sum += p->ranks[(size_t)id * TL_SCHEME_COUNT + schemes[id]];
    return sum;
}

// The point with the least weighted sum of loss and cost, each scaled to 0 .. 1; among equal ones that of the
// best preferences, then of less loss.
static int32_t tli_find_knee(const tli_precision *p, const tli_choice_front *front) {
    const tl_precision_desc *desc = &p->desc;
    const tli_front_point *first = &front->points[0], *last = &front->points[front->point_count - 1];
    double most = desc->performance_weight > desc->accuracy_weight ? desc->performance_weight
                                                                   : desc->accuracy_weight;
    tli_big least, sum, other;
    int32_t knee = 0, i;
    tli_big_set(&least, 0);
    for (i = 0; i < front->point_count; i++) {
        const tli_front_point *point = &front->points[i];
        int order;
        sum = tli_weigh(desc->accuracy_weight, most, point->loss - first->loss, first->cost - last->cost);
        other = tli_weigh(desc->performance_weight, most, point->cost - last->cost, last->loss - first->loss);
        tli_big_add(&sum, &other);
        order = i ? tli_big_compare(&sum, &least) : -1;
        if (order > 0 || (!order && tli_sum_ranks(p, point->schemes) >=
                                        tli_sum_ranks(p, front->points[knee].schemes))) continue;
        least = sum;
        knee = i;
    }
    return knee;
}

static tl_result tli_pick_knee(tli_precision *p, tli_pick *pick) {
    tli_choice_front front;
    const tli_front_point *point;
    tl_result result = tli_plan_choice_front(p->env, &p->choice, 0, &front);
    if (result) return tli_fail_choice(p);
    point = &front.points[tli_find_knee(p, &front)];
    tli_take_schemes(p, point->schemes);
    pick->cost = point->cost;
    pick->loss = point->loss;
    pick->bound = point->bound_cost;
    pick->bound_loss = 0;
    pick->proven = point->bound_cost == point->cost;
    pick->gap_ratio = pick->proven ? 0 : tli_find_gap(point->cost, point->bound_cost);
    tli_free_choice_front(p->env, &front);
    return TL_OK;
}

// Among choices of the same cost take the one of least loss.
static tl_result tli_lower_loss(tli_precision *p, tli_pick *pick) {
    tli_choice_plan chosen;
    tl_result result;
    if (!pick->loss || tli_is_accuracy(p)) return TL_OK;
    result = tli_choose(p, 1, 0, pick->cost, &chosen);
    if (result == TL_ERROR_NO_MEMORY) return tli_fail_choice(p);
    if (result) return TL_OK;
    if (chosen.cost <= pick->cost && chosen.loss < pick->loss) {
        pick->cost = chosen.cost;
        pick->loss = chosen.loss;
        tli_take_schemes(p, chosen.schemes);
    }
    tli_free_choice_plan(p->env, &chosen);
    return TL_OK;
}

// -- precision plan: preferences over the whole graph --
//
// Among choices of equal cost the first is the one of fewest conversions, then the one with most nodes in a
// scheme of the first rank, then of the second, and so on. For that, costs are multiplied, and conversions and
// nodes pay in the units below:
//
//     cost' = cost x W + conversions x B^m + B^(m-1) x nodes above rank 0 + B^(m-2) x nodes above rank 1 + ...
//
// where B is larger than the number of nodes, and W exceeds all that follows it. As many of the ranks count as
// there is room for; none where all priorities are equal: then the choice of least loss is taken, and changed
// node by node.

typedef struct tli_ladder {
    uint64_t weight, conversion;          // W; what a conversion pays
    uint64_t prices[TL_SCHEME_COUNT + 1]; // [rank] what a node pays
} tli_ladder;

// The ranks among which nodes have a choice, as bits.
static uint32_t tli_find_ranks(const tli_precision *p) {
    uint32_t all = 0;
    int32_t id, k;
    for (id = 0; id < p->graph->node_count; id++) {
        size_t row = (size_t)id * TL_SCHEME_COUNT;
        uint32_t own = 0;
        for (k = 0; k < TL_SCHEME_COUNT; k++)
            if (p->costs[row + (size_t)k] != TL_FORBIDDEN) own |= TLI_BIT(p->ranks[row + (size_t)k]);
        if (own & (own - 1)) all |= own;
    }
    return all;
}

// Find the prices of the ranks; weight 1 = there is nothing to prefer, or no room.
static tli_ladder tli_find_ladder(const tli_precision *p) {
    tli_ladder ladder;
    uint64_t base = (uint64_t)p->graph->node_count + 1, room, cost, loss;
    uint64_t conversions = (uint64_t)p->net_count * (TL_FORMAT_COUNT - 1) + 1;
    uint32_t ranks = tli_find_ranks(p), ranks_by_priority;
    int32_t rank, last = -1, k;
    tli_zero(&ladder, sizeof ladder);
    ladder.weight = 1;
    if (!tli_choice_add_all_most(&p->choice, &cost, &loss)) return ladder;
    room = TLI_CHOICE_MOST_SUM / (cost + 1);
    ranks_by_priority = ranks & ~TLI_BIT(0);    // rank 0 is the recommended scheme
    if (!(ranks_by_priority & (ranks_by_priority - 1)) || conversions > room / base) return ladder;
    ladder.weight = conversions;
    ladder.conversion = 1;
    for (rank = 0; rank <= TL_SCHEME_COUNT; rank++) {
        if (!(ranks >> rank & 1)) continue;
        if (last >= 0) {
            if (ladder.weight > room / base) break;
            ladder.weight *= base;
            ladder.conversion *= base;
            for (k = 0; k < rank; k++) ladder.prices[k] *= base;
            for (k = rank; k <= TL_SCHEME_COUNT; k++) ladder.prices[k] = ladder.prices[last] + 1;
        }
        last = rank;
    }
    return ladder;
}

// Multiply the costs and add the prices, or undo that.
static void tli_climb(tli_precision *p, const tli_ladder *ladder, int undo) {
    uint64_t places = (uint64_t)p->node_count * TL_SCHEME_COUNT, real, i;
    uint64_t prices = (uint64_t)p->net_count * TL_FORMAT_COUNT * TL_FORMAT_COUNT;
    real = (uint64_t)p->graph->node_count * TL_SCHEME_COUNT;
    for (i = 0; i < places; i++) {
        if (p->costs[i] == TL_FORBIDDEN) continue;
        if (undo) p->costs[i] /= ladder->weight;
        else p->costs[i] = p->costs[i] * ladder->weight + (i < real ? ladder->prices[p->ranks[i]] : 0);
    }
    for (i = 0; i < prices; i++)        // the price of no conversion is not read
        p->net_costs[i] = undo ? p->net_costs[i] / ladder->weight
                               : p->net_costs[i] * ladder->weight + ladder->conversion;
}

// Take the choice that is preferred among those of the least cost; all costs are with the prices.
static tl_result tli_take_preferred(tli_precision *p, tli_pick *pick) {
    tli_choice_plan chosen;
    tl_result result = tli_choose(p, 0, p->most_loss, 0, &chosen);
    if (result == TL_ERROR_NO_MEMORY) return tli_fail_choice(p);
    if (result) return TL_OK;
    if (chosen.cost < pick->cost) {
        pick->cost = chosen.cost;
        pick->loss = chosen.loss;
        tli_take_schemes(p, chosen.schemes);
    }
    tli_free_choice_plan(p->env, &chosen);
    return TL_OK;
}

// Of choices of equal cost take the preferred one, of these the one of least loss, within limits of work.
static tl_result tli_settle_ties(tli_precision *p, tli_pick *pick) {
    tli_ladder ladder = tli_find_ladder(p);
    uint64_t limit = p->choice.work_limit;
    tl_result result = TL_OK;
    int32_t id;
    p->choice.work_limit = tli_least_work(limit);
    tli_climb(p, &ladder, 0);
    pick->cost *= ladder.weight;
    for (id = 0; id < p->net_count; id++)
        pick->cost += ladder.conversion * (uint64_t)tli_count_wanted(&p->nets[id], p->schemes);
    for (id = 0; id < p->graph->node_count; id++)
        pick->cost += ladder.prices[p->ranks[(size_t)id * TL_SCHEME_COUNT + p->schemes[id]]];
    if (ladder.weight > 1) result = tli_take_preferred(p, pick);
    if (!result) result = tli_lower_loss(p, pick);
    tli_climb(p, &ladder, 1);
    pick->cost /= ladder.weight;
    p->choice.work_limit = limit;
    return result;
}

// Choose by the criterion. No error text is set for TL_ERROR_INFEASIBLE: tli_fail_limit does that.
static tl_result tli_pick_criterion(tli_precision *p, uint64_t loss_limit, tli_pick *pick) {
    uint64_t nearest = 0, bound;
    tl_result result = TL_OK;
    p->most_loss = loss_limit;
    p->nearest_cost = 0;
    switch (p->desc.criterion) {
    case TL_CRITERION_PERFORMANCE:
    case TL_CRITERION_CUSTOM:
        result = tli_pick_cost(p, loss_limit, pick);
        break;
    case TL_CRITERION_BALANCED:
        result = tli_pick_knee(p, pick);
        p->most_loss = pick->loss;
        break;
    case TL_CRITERION_ACCURACY:
        result = tli_pick_loss(p, p->cost_limit, pick, &nearest);
        p->most_loss = pick->loss;
        p->nearest_cost = nearest;
        p->nearest_proven = 1;
        break;
    case TL_CRITERION_COUNT: break;
    }
    if (result) return result;
    if (p->desc.criterion == TL_CRITERION_CUSTOM && pick->cost > p->cost_limit) {
        p->nearest_cost = pick->cost;
        p->nearest_proven = pick->proven;
        if (pick->proven) return TL_ERROR_INFEASIBLE;
        bound = pick->bound;  // not proven: minimising the loss may find a choice within both limits
        result = tli_pick_loss(p, p->cost_limit, pick, &nearest);
        if (!result && pick->loss > loss_limit) return TL_ERROR_INFEASIBLE;
        pick->bound = bound;
        pick->bound_loss = 0;
        pick->proven = 0;
        pick->gap_ratio = tli_find_gap(pick->cost, bound);
        if (result) return result;
    }
    result = tli_settle_ties(p, pick);
    if (result) return result;
    tli_break_ties(p, p->most_loss, pick);
    if (tli_is_accuracy(p)) return TL_OK;
    if (pick->cost <= pick->bound) pick->proven = 1;  // breaking ties may have lowered the cost
    pick->gap_ratio = pick->proven ? 0 : tli_find_gap(pick->cost, pick->bound);
    return TL_OK;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION
