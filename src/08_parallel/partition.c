#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// ============================================================================
// [8] PARALLEL (implementation)
// ============================================================================

#ifndef TL_NO_PLANNERS
// -- partition: stages, counted from the end --
//
//     place    0      1      2      3      4        a place is where a cut is allowed: before a unit, or
//     units    |  a   |  b   |  c   |  d   |        the end. A stage is what stands between two places
//                            [ 1 after  ][ 0 after ]
//
// states[k, d, i] is the best that k stages on the last d ranks make of all units from place i on. Its first
// stage begins at i, ends at some place j, and has k - 1 stages after it, so it is known how many micro-batches
// it keeps. Where ranks are equal and stages are on one rank each, d is always k, and the states have no d.

typedef struct tli_cut_state {
    uint64_t value;                 // UINT64_MAX = there is no way
    int32_t  end;                   // place where the first stage ends
    int32_t  replicas;              // its ranks; 0 = the first of the d ranks stays idle
} tli_cut_state;

// What is the same for all stages that have as many stages after them and the same ranks.
typedef struct tli_cut_level {
    int32_t  stages_after, first_rank, replicas, in_flight;
    int32_t  slowest;               // of its ranks
    uint64_t numerator, denominator, budget;    // of the slowest; the least of its ranks, UINT64_MAX = no limit
    int32_t  memo;                  // of tli_partition.memos; -1 = none
} tli_cut_level;

typedef struct tli_cut_cell { uint64_t time, arrive, leave, bytes; } tli_cut_cell;

typedef struct tli_cut_memo {
    int32_t  stages_after, replicas;
    uint64_t numerator, denominator, budget;
    tl_stage_cell *cells;           // [pairs of units]
    uint8_t *known;                 // [pairs of units]
} tli_cut_memo;

typedef enum tli_cut_goal { TLI_CUT_BOTTLENECK, TLI_CUT_SUM, TLI_CUT_BYTES } tli_cut_goal;

typedef struct tli_partition {
    tl_env *env;
    const tl_partition_desc *desc;
    int32_t  rank_count, stage_limit, replica_limit;
    int32_t  is_wide;               // 1 = states have a d
    int32_t  place_count;           // places are 0 .. place_count; places[place_count] is unit_count
    int32_t *places;                // [place_count + 1] first unit after each
    int32_t  ranks_differ, slowest, fastest;    // 1 = in speed or budget; indices in desc->ranks, or 0
    uint64_t multiplier;
    uint64_t *cost, *activation, *parameters;   // [unit_count + 1] sums of the units before
    uint64_t *transfer;             // [unit_count + 1] ns of what crosses a cut before a unit, both ways
    tli_cut_state *states;
    tli_cut_memo *memos;            // grown
    int32_t  memo_count, memo_capacity;
    uint64_t time_limit;            // no time of measure is above: sums then fit 64 bits
    uint64_t work, work_end;        // stages looked at; where that is too much
    int      is_over;               // 1 = work has passed work_end
    tl_result result;               // not TL_OK = planning has ended with this error
} tli_partition;

static size_t tli_cut_index(const tli_partition *p, int32_t k, int32_t d, int32_t place) {
    size_t row = p->is_wide ? (size_t)k * ((size_t)p->rank_count + 1) + (size_t)d : (size_t)k;
    return row * ((size_t)p->place_count + 1) + (size_t)place;
}

static int tli_cut_has_ended(const tli_partition *p) { return p->result || p->is_over; }

// ceil(cost * numerator / denominator). That the product fits is up to tli_partition_fits and tli_place_sum.
static uint64_t tli_scale_cost(uint64_t cost, uint64_t numerator, uint64_t denominator) {
    return numerator == denominator ? cost : (cost * numerator + denominator - 1) / denominator;
}

static uint64_t tli_rank_numerator(const tl_rank *rank) {
    return rank->cost_numerator ? rank->cost_numerator : 1;
}

static uint64_t tli_rank_denominator(const tl_rank *rank) {
    return rank->cost_denominator ? rank->cost_denominator : 1;
}

// Whether costs are higher on rank a than on b.
static int tli_is_slower(const tl_rank *a, const tl_rank *b) {
    return tli_rank_numerator(a) * tli_rank_denominator(b) > tli_rank_numerator(b) * tli_rank_denominator(a);
}

// -- partition: one stage --

static tl_result tli_cut_fail(tli_partition *p, tl_result code, tli_rule rule) {
    if (!p->result) p->result = tli_fail(p->env, code, TLI_IN(PLAN_PARTITION), rule);
    return p->result;
}

// The memo of a level; all levels of which measure is asked the same share one. -1 = no memory.
static int32_t tli_cut_find_memo(tli_partition *p, const tli_cut_level *level) {
    uint64_t units = (uint64_t)p->desc->unit_count + 1, pairs = units * units;
    tli_cut_memo *memo;
    int32_t i;
    for (i = 0; i < p->memo_count; i++) {
        memo = &p->memos[i];
        if (memo->stages_after == level->stages_after && memo->replicas == level->replicas &&
            memo->numerator == level->numerator && memo->denominator == level->denominator &&
            memo->budget == level->budget) return i;
    }
    if (!tli_grow(p->env, (void **)&p->memos, &p->memo_capacity, p->memo_count, p->memo_count + (int64_t)1,
                  sizeof *p->memos)) return -1;
    memo = &p->memos[p->memo_count++];
    memo->stages_after = level->stages_after;
    memo->replicas = level->replicas;
    memo->numerator = level->numerator;
    memo->denominator = level->denominator;
    memo->budget = level->budget;
    memo->cells = (tl_stage_cell *)tli_alloc_array(p->env, pairs, sizeof *memo->cells);
    memo->known = (uint8_t *)tli_alloc_array(p->env, pairs, 1);
    return memo->cells && memo->known ? p->memo_count - 1 : -1;
}

// The level of a stage of r ranks, with k - 1 stages after it, that begins at the first of the last d ranks.
static tli_cut_level tli_cut_level_of(tli_partition *p, int32_t k, int32_t d, int32_t r) {
    const tl_partition_desc *desc = p->desc;
    tli_cut_level level;
    int32_t i;
    level.stages_after = k - 1;
    level.first_rank = level.slowest = p->rank_count - d;
    level.replicas = r;
    level.in_flight = desc->micro_batch_count;
    if (desc->pipeline == TL_PIPELINE_1F1B && k < level.in_flight) level.in_flight = k;
    level.numerator = level.denominator = 1;
    level.budget = desc->budget_bytes ? desc->budget_bytes : UINT64_MAX;
    for (i = level.first_rank; desc->ranks && i < level.first_rank + r; i++) {
        const tl_rank *rank = &desc->ranks[i];
        uint64_t budget = rank->budget_bytes ? rank->budget_bytes : UINT64_MAX;
        if (i == level.first_rank || budget < level.budget) level.budget = budget;
        if (i > level.first_rank && !tli_is_slower(rank, &desc->ranks[level.slowest])) continue;
        level.slowest = i;
        level.numerator = tli_rank_numerator(rank);
        level.denominator = tli_rank_denominator(rank);
    }
    level.memo = desc->measure ? tli_cut_find_memo(p, &level) : -1;
    if (desc->measure && level.memo < 0) tli_cut_fail(p, TL_ERROR_NO_MEMORY, TLI_RULE(NO_MEMORY_TO_PARTITION));
    return level;
}

// Ask the caller for time and bytes of a stage.
static void tli_cut_measure(tli_partition *p, const tli_cut_level *level, int32_t i, int32_t j,
                            tl_stage_cell *cell) {
    tl_stage_query query;
    tl_result result;
    query.first_unit = p->places[i];
    query.end_unit = p->places[j];
    query.stages_after = level->stages_after;
    query.in_flight_count = level->in_flight;
    query.replica_count = level->replicas;
    query.rank = level->slowest;
    query.budget_bytes = level->budget == UINT64_MAX ? 0 : level->budget;
    result = (p->desc->measure)(&query, cell, p->desc->user);
    if (result && !p->result) {
        tli_sentence s = tli_begin_error(p->env, result, TLI_IN(PLAN_PARTITION), TLI_RULE(MEASURE_FAILED),
                                         (uint64_t)query.first_unit, (uint64_t)query.end_unit);
        tli_put_text(&s, tl_name_result(result));
        p->result = tli_end_error(p->env, &s, result);
    }
    if (cell->time_ns > p->time_limit)
        tli_cut_fail(p, TL_ERROR_OVERFLOW, TLI_RULE(UNITS_SUMS_MUST_FIT_62_BITS));
}

// Time on one rank and bytes of each. 0 = they exceed the budget.
static int tli_cut_load(tli_partition *p, const tli_cut_level *level, int32_t i, int32_t j,
                        tli_cut_cell *cell) {
    int32_t first = p->places[i], end = p->places[j];
    if (level->memo >= 0) {
        tli_cut_memo *memo = &p->memos[level->memo];
        size_t pair = (size_t)first * ((size_t)p->desc->unit_count + 1) + (size_t)end;
        if (!memo->known[pair]) tli_cut_measure(p, level, i, j, &memo->cells[pair]);
        memo->known[pair] = 1;
        cell->time = memo->cells[pair].time_ns;
        cell->bytes = memo->cells[pair].bytes;
        return memo->cells[pair].fits;
    }
    cell->time = tli_scale_cost(p->cost[end] - p->cost[first], level->numerator, level->denominator);
    cell->bytes = p->desc->rank_bytes + p->multiplier * (p->parameters[end] - p->parameters[first]) +
                  tli_divide_up((uint64_t)level->in_flight * (p->activation[end] - p->activation[first]),
                                (uint64_t)level->replicas);
    return cell->bytes <= level->budget;
}

// What tl_replication says that a stage takes on its ranks. The time of all weights fits, which
// tli_partition_fits saw to; most products need no long division.
static void tli_cut_replicate(const tli_partition *p, const tli_cut_level *level, int32_t i, int32_t j,
                              tli_cut_cell *cell) {
    uint64_t r = (uint64_t)level->replicas, latency = 2 * (r - 1) * p->desc->link->latency_ns;
    uint64_t rate = p->desc->link->bytes_per_second, exchange = 0;
    uint64_t bytes = 2 * (p->parameters[p->places[j]] - p->parameters[p->places[i]]);
    if (bytes <= UINT64_MAX / 1000000000) exchange = tli_divide_up(bytes * 1000000000, rate);
    else tli_find_time(bytes, rate, &exchange);
    exchange = tli_divide_up(exchange * (r - 1), r);
    if (p->desc->replication == TL_REPLICATION_PIPEDREAM)
        cell->time = tli_divide_up(cell->time + 2 * exchange, r);
    else
        cell->time = tli_divide_up(cell->time, r) + exchange + latency;
}

// The stage from place i to j. 0 = it exceeds the budget.
static int tli_cut_cell_of(tli_partition *p, const tli_cut_level *level, int32_t i, int32_t j,
                           tli_cut_cell *cell) {
    uint64_t r = (uint64_t)level->replicas;
    int fits = tli_cut_load(p, level, i, j, cell);
    if (++p->work > p->work_end) p->is_over = 1;
    if (r > 1) tli_cut_replicate(p, level, i, j, cell);
    cell->arrive = p->transfer[p->places[i]];
    cell->leave = p->transfer[p->places[j]];
    if (r > 1) {
        cell->arrive = tli_divide_up(cell->arrive, r);
        cell->leave = tli_divide_up(cell->leave, r);
    }
    return fits;
}

// -- partition: all stages --

// The value that the goal minimises, of a partition whose first stage is this one; rest: that of its other
// stages. UINT64_MAX = a time or transfer of the stage is above the limit of the goal sum.
static uint64_t tli_cut_value(tli_cut_goal goal, const tli_cut_cell *cell, uint64_t rest, uint64_t limit) {
    uint64_t largest = tli_larger_u64(cell->time, tli_larger_u64(cell->arrive, cell->leave));
    if (goal == TLI_CUT_BYTES) return tli_larger_u64(cell->bytes, rest);
    if (goal == TLI_CUT_BOTTLENECK) return tli_larger_u64(largest, rest);
    return largest > limit ? UINT64_MAX : cell->time + cell->leave + rest;
}

// Find the best end of a first stage on the ranks of a level. Sums over units grow with the end, so no end
// beyond one that is too large needs a look. What measure says need not grow, so there all ends are looked at.
static void tli_cut_first_stage(tli_partition *p, const tli_cut_level *level, tli_cut_goal goal, uint64_t limit,
                                int32_t i, const tli_cut_state *rests, tli_cut_state *best) {
    int32_t j;
    for (j = i + 1; j <= p->place_count && !tli_cut_has_ended(p); j++) {
        tli_cut_cell cell;
        uint64_t value, own;
        int fits = tli_cut_cell_of(p, level, i, j, &cell);
        own = goal == TLI_CUT_BYTES ? cell.bytes : cell.time;
        if (!p->desc->measure && (own >= best->value || (goal == TLI_CUT_SUM && own > limit))) return;
        if (!fits && goal != TLI_CUT_BYTES) {
            if (!p->desc->measure) return;
            continue;
        }
        if (rests[j].value == UINT64_MAX) continue;
        value = tli_cut_value(goal, &cell, rests[j].value, limit);
        if (value >= best->value) continue;
        best->value = value;
        best->end = j;
        best->replicas = level->replicas;
    }
}

// Fill the states of k stages on the last d ranks.
static void tli_cut_fill(tli_partition *p, tli_cut_goal goal, uint64_t limit, int32_t k, int32_t d) {
    int32_t most = p->is_wide ? d - k + 1 : 1, r, i;
    tli_cut_state *states = &p->states[tli_cut_index(p, k, d, 0)];
    for (i = 0; i <= p->place_count; i++) {
        states[i].value = UINT64_MAX;
        if (!p->is_wide || d <= k) continue;
        states[i] = p->states[tli_cut_index(p, k, d - 1, i)];
        states[i].replicas = 0;
    }
    if (most > p->replica_limit) most = p->replica_limit;
    for (r = 1; r <= most && !tli_cut_has_ended(p); r++) {
        tli_cut_level level = tli_cut_level_of(p, k, d, r);
        const tli_cut_state *rests = &p->states[tli_cut_index(p, k - 1, d - r, 0)];
        for (i = 0; i < p->place_count && !tli_cut_has_ended(p); i++)
            tli_cut_first_stage(p, &level, goal, limit, i, rests, &states[i]);
    }
}

// Find the least value of a goal, and the number of stages that has it. limit: the largest time and transfer
// that the goal sum allows. UINT64_MAX = there is no way, or planning or the work has ended.
static uint64_t tli_cut_solve(tli_partition *p, tli_cut_goal goal, uint64_t limit, int32_t *best_k) {
    int32_t k, d, i;
    uint64_t best = UINT64_MAX, value;
    for (d = 0; d <= (p->is_wide ? p->rank_count : 0); d++)
        for (i = 0; i <= p->place_count; i++)
            p->states[tli_cut_index(p, 0, d, i)].value = i == p->place_count ? 0 : UINT64_MAX;
    for (k = 1; k <= p->stage_limit && k <= p->place_count && !tli_cut_has_ended(p); k++) {
        if (!p->is_wide) tli_cut_fill(p, goal, limit, k, k);
        for (d = k; p->is_wide && d <= p->rank_count; d++) tli_cut_fill(p, goal, limit, k, d);
        value = p->states[tli_cut_index(p, k, p->rank_count, 0)].value;
        if (value >= best || (p->desc->stage_count && k < p->desc->stage_count)) continue;
        best = value;
        *best_k = k;
    }
    return tli_cut_has_ended(p) ? UINT64_MAX : best;
}

// -- partition: the answer --

// Write the stages of a solution.
static void tli_cut_trace(tli_partition *p, int32_t k, tl_partition *partition) {
    int32_t d = p->is_wide ? p->rank_count : k, i = 0, n = 0, next_rank = 0;
    partition->stage_count = k;
    partition->bottleneck_ns = partition->sum_ns = partition->peak_bytes = 0;
    while (k > 0) {
        const tli_cut_state *state = &p->states[tli_cut_index(p, k, d, i)];
        tl_stage *stage = &partition->stages[n];
        tli_cut_level level;
        tli_cut_cell cell;
        if (!state->replicas) { d--; continue; }
        level = tli_cut_level_of(p, k, d, state->replicas);
        tli_cut_cell_of(p, &level, i, state->end, &cell);
        stage->first_unit = p->places[i];
        stage->end_unit = p->places[state->end];
        stage->first_rank = p->ranks_differ ? level.first_rank : next_rank;
        stage->replica_count = level.replicas;
        stage->in_flight_count = level.in_flight;
        stage->time_ns = cell.time;
        stage->transfer_ns = cell.leave;
        stage->bytes = cell.bytes;
        partition->sum_ns += cell.time + cell.leave;
        if (n) partition->stages[n - 1].transfer_ns =
            tli_larger_u64(partition->stages[n - 1].transfer_ns, cell.arrive);
        partition->bottleneck_ns = tli_larger_u64(tli_larger_u64(partition->bottleneck_ns, cell.time),
                                                  tli_larger_u64(cell.arrive, cell.leave));
        partition->peak_bytes = tli_larger_u64(partition->peak_bytes, cell.bytes);
        next_rank += level.replicas;
        d -= level.replicas;
        i = state->end;
        k--;
        n++;
    }
}

// No cut keeps the budgets: find the least bytes, and the stage that takes them.
static tl_result tli_cut_refuse(tli_partition *p, tl_partition *partition) {
    uint64_t least, budget = p->desc->ranks ? 0 : p->desc->budget_bytes;
    int32_t k = 0, i;
    tli_sentence s;
    for (i = 0; p->desc->ranks && i < p->rank_count; i++)
        if (!budget || (p->desc->ranks[i].budget_bytes && p->desc->ranks[i].budget_bytes < budget))
            budget = p->desc->ranks[i].budget_bytes;
    least = tli_cut_solve(p, TLI_CUT_BYTES, 0, &k);
    if (tli_cut_has_ended(p)) return p->result;
    if (least == UINT64_MAX)
        return tli_cut_fail(p, TL_ERROR_INFEASIBLE, TLI_RULE(NO_CUT_FITS_AT_ALL));
    tli_cut_trace(p, k, partition);
    for (i = 0; partition->stages[i].bytes < least; i++) {}
    s = tli_begin_error(p->env, TL_ERROR_INFEASIBLE, TLI_IN(PLAN_PARTITION), TLI_RULE(NO_CUT_FITS), budget,
                        least);
    tli_put_limit(p->env, &s, TL_LIMIT_BUDGET);
    tli_put_rule(&s);
    tli_put_i64(&s.text, partition->stages[i].first_unit);
    tli_put(&s.text, " to ");
    tli_put_i64(&s.text, partition->stages[i].end_unit - 1);
    return p->result = tli_end_error(p->env, &s, TL_ERROR_INFEASIBLE);
}

static uint64_t tli_cut_total_of(const tli_partition *p, const tl_partition *partition) {
    return partition->sum_ns + (uint64_t)(p->desc->micro_batch_count - 1) * partition->bottleneck_ns;
}

// Keep the last solution if its total is less than that of the best one.
static void tli_cut_offer(const tli_partition *p, tl_partition *found, tl_partition *best) {
    tl_partition swap;
    if (tli_cut_total_of(p, found) >= tli_cut_total_of(p, best)) return;
    swap = *best;
    *best = *found;
    *found = swap;
}

// Find the least sum + (m - 1) * largest. At first best has the least bottleneck. Least sums are found for
// lower and lower limits of the largest time or transfer. Each is the least of all partitions within its limit,
// so once it is too large even with the least bottleneck, no further partition is better: bound is this total.
// It begins with the least bottleneck / replica_limit as the sum, not with the whole: a bottleneck may be what
// arrives on one rank from a stage with replicas, and sums divide that by the replicas of the sender.
static void tli_cut_find_total(tli_partition *p, tl_partition *found, tl_partition *best) {
    uint64_t limit = best->bottleneck_ns, rest = (uint64_t)(p->desc->micro_batch_count - 1) * limit;
    uint64_t sum, bound = tli_divide_up(limit, (uint64_t)p->replica_limit) + rest;
    int32_t k = 0;
    tli_cut_solve(p, TLI_CUT_SUM, limit, &k);
    if (tli_cut_has_ended(p)) k = 0;
    if (k) tli_cut_trace(p, k, found);
    if (k) tli_cut_offer(p, found, best);
    limit = UINT64_MAX;
    while (!tli_cut_has_ended(p) && bound < tli_cut_total_of(p, best)) {
        sum = tli_cut_solve(p, TLI_CUT_SUM, limit, &k);
        if (tli_cut_has_ended(p)) break;
        tli_cut_trace(p, k, found);
        limit = found->bottleneck_ns - 1;   // unused after the least bottleneck: bound is its total then
        bound = sum + rest;
        tli_cut_offer(p, found, best);
    }
    p->is_over = 0;                         // the best so far is an answer
    best->value_ns = tli_cut_total_of(p, best);
    best->bound_ns = bound < best->value_ns ? bound : best->value_ns;
}

// Set bound_ns to one that holds for cuts at every unit; 0 with measure, of which no bound is known.
static void tli_cut_relax(const tli_partition *p, tl_partition *partition) {
    const tl_partition_desc *desc = p->desc;
    const tl_rank *fastest = desc->ranks ? &desc->ranks[p->fastest] : NULL;
    uint64_t numerator = fastest ? tli_rank_numerator(fastest) : 1;
    uint64_t denominator = fastest ? tli_rank_denominator(fastest) : 1;
    uint64_t replicas = (uint64_t)p->replica_limit, heaviest = 0, all;
    int32_t i;
    partition->bound_ns = 0;
    if (desc->measure) return;
    for (i = 0; i < desc->unit_count; i++) heaviest = tli_larger_u64(heaviest, p->cost[i + 1] - p->cost[i]);
    heaviest = tli_scale_cost(heaviest, numerator, denominator) / replicas;
    all = tli_scale_cost(p->cost[desc->unit_count], numerator, denominator);
    heaviest = tli_larger_u64(heaviest, all / (uint64_t)p->rank_count);
    partition->bound_ns = heaviest;
    if (desc->objective == TL_PARTITION_TOTAL)
        partition->bound_ns = all / replicas + (uint64_t)(desc->micro_batch_count - 1) * heaviest;
}

// Plan with the places that there are. is_over = the work was too much to find anything.
static tl_result tli_cut_run(tli_partition *p, tl_partition *found, tl_partition *best) {
    int32_t k = 0;
    uint64_t bottleneck = tli_cut_solve(p, TLI_CUT_BOTTLENECK, 0, &k);
    if (tli_cut_has_ended(p)) return p->result;
    if (bottleneck == UINT64_MAX) return tli_cut_refuse(p, best);
    tli_cut_trace(p, k, best);
    best->value_ns = best->bound_ns = bottleneck;
    if (p->desc->objective == TL_PARTITION_TOTAL) tli_cut_find_total(p, found, best);
    if (p->place_count < p->desc->unit_count) tli_cut_relax(p, best);
    best->is_proven = best->bound_ns == best->value_ns;
    best->work = p->work;
    return p->result;
}

// -- partition: what it takes --

static tl_result tli_partition_check(tl_env *env, const tl_partition_desc *desc) {
    tli_function in = TLI_IN(PLAN_PARTITION);
    int32_t most = desc->rank_count < desc->unit_count ? desc->rank_count : desc->unit_count;
    if (!desc->units || desc->unit_count < 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(UNIT_COUNT_MUST_BE_POSITIVE));
    if (desc->rank_count < 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(RANK_COUNT_MUST_BE_POSITIVE));
    if (!tli_is_below((int64_t)desc->replication, TL_REPLICATION_COUNT))
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(REPLICATION_UNKNOWN));
    if (!desc->replication && desc->rank_count > desc->unit_count)
        return tli_fail_values(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(RANK_COUNT_EXCEEDS_UNITS),
                               (uint64_t)desc->rank_count, (uint64_t)desc->unit_count);
    if (desc->stage_count < 0 || desc->stage_count > most)
        return tli_fail_values(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(STAGE_COUNT_NOT_UP_TO_RANKS),
                               (uint64_t)most, 0);
    if (desc->micro_batch_count < 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(MICRO_BATCH_COUNT_MUST_BE_POSITIVE));
    if (desc->pipeline != TL_PIPELINE_1F1B && desc->pipeline != TL_PIPELINE_GPIPE)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(PIPELINE_KIND_OF_PARTITION));
    if (!tli_is_below((int64_t)desc->objective, TL_PARTITION_COUNT))
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(PARTITION_OBJECTIVE_UNKNOWN));
    if (desc->replication && !desc->link)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(REPLICATION_NEEDS_LINK));
    if (desc->replica_limit < 0)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(REPLICA_LIMIT_MUST_BE_NOT_NEGATIVE));
    if (desc->link && !desc->link->bytes_per_second)
        return tli_fail(env, TL_ERROR_INVALID_ARG, in, TLI_RULE(LINK_RATE_MUST_BE_POSITIVE));
    return TL_OK;
}

// The time in which bytes pass a link `times` times, each with its latency. 0 = it does not fit 64 bits.
static int tli_find_link_time(const tl_link *link, uint64_t bytes, uint64_t times, uint64_t *ns) {
    uint64_t latency, all;
    *ns = 0;
    if (!link) return 1;
    return tli_mul_u64(bytes, times, &all) && tli_find_time(all, link->bytes_per_second, ns) &&
           tli_mul_u64(link->latency_ns, times, &latency) && tli_add_u64(*ns, latency, ns);
}

// Fill the sums over units. 0 = one does not fit 64 bits.
static int tli_partition_sum(tli_partition *p) {
    int32_t i;
    for (i = 0; i < p->desc->unit_count; i++) {
        const tl_unit *unit = &p->desc->units[i];
        uint64_t cost;
        if (!tli_add_u64(unit->forward_ns, unit->backward_ns, &cost) ||
            !tli_add_u64(p->cost[i], cost, &p->cost[i + 1]) ||
            !tli_add_u64(p->activation[i], unit->activation_bytes, &p->activation[i + 1]) ||
            !tli_add_u64(p->parameters[i], unit->parameter_bytes, &p->parameters[i + 1])) return 0;
        if (i + 1 < p->desc->unit_count &&
            !tli_find_link_time(p->desc->link, unit->output_bytes, 2, &p->transfer[i + 1])) return 0;
    }
    return 1;
}

// Whether whatever is added up later fits 62 bits: bytes of one stage, times of all.
static int tli_partition_fits(tli_partition *p) {
    const tl_partition_desc *desc = p->desc;
    uint64_t most = UINT64_C(1) << 62, n = (uint64_t)desc->unit_count, count, sum, part, ring, i;
    if (!tli_mul_u64(p->parameters[n], p->multiplier, &sum) || !tli_add_u64(sum, desc->rank_bytes, &sum) ||
        !tli_mul_u64(p->activation[n], (uint64_t)desc->micro_batch_count, &part) ||
        !tli_add_u64(sum, part, &sum) || sum > most) return 0;
    for (sum = i = 0; i < (uint64_t)(desc->ranks ? p->rank_count : 1); i++) {
        if (!tli_mul_u64(p->cost[n], desc->ranks ? tli_rank_numerator(&desc->ranks[i]) : 1, &part) ||
            part > most) return 0;
        sum = tli_larger_u64(sum, part);
    }
    count = (uint64_t)desc->micro_batch_count + 2 * (uint64_t)p->rank_count;
    p->time_limit = most / count / 4;
    if (desc->replication && (!tli_find_link_time(desc->link, p->parameters[n], 2, &ring) ||
                              !tli_mul_u64(ring, 2 * (uint64_t)p->rank_count, &ring) ||
                              ring > p->time_limit)) return 0;
    for (i = 1; i < n; i++) if (p->transfer[i] > p->time_limit) return 0;
    return sum <= p->time_limit || desc->measure;
}

// Choose the places of cuts: all, or fewer of them, evenly spaced by cost.
static void tli_partition_choose_places(tli_partition *p) {
    int32_t n = p->desc->unit_count, count = p->place_count, taken = 0, i;
    uint64_t total = p->cost[n], each = total / (uint64_t)count, rest = total % (uint64_t)count, next;
    p->places[0] = 0;
    for (i = 1; i < n; i++) {
        if (taken + 1 == count) break;
        next = each * ((uint64_t)taken + 1) + rest * ((uint64_t)taken + 1) / (uint64_t)count;
        if (p->cost[i] >= next || n - i == count - 1 - taken) p->places[++taken] = i;
    }
    p->places[count] = n;
}

static void tli_partition_find_ranks(tli_partition *p) {
    const tl_partition_desc *desc = p->desc;
    int32_t i;
    p->rank_count = desc->rank_count;
    p->stage_limit = desc->stage_count ? desc->stage_count : desc->rank_count;
    if (p->stage_limit > desc->unit_count) p->stage_limit = desc->unit_count;
    p->replica_limit = desc->replica_limit && desc->replica_limit < desc->rank_count ? desc->replica_limit
                                                                                       : desc->rank_count;
    if (!desc->replication) p->replica_limit = 1;
    for (i = 1; desc->ranks && i < desc->rank_count; i++) {
        const tl_rank *rank = &desc->ranks[i], *first = &desc->ranks[0];
        if (tli_is_slower(rank, &desc->ranks[p->slowest])) p->slowest = i;
        if (tli_is_slower(&desc->ranks[p->fastest], rank)) p->fastest = i;
        p->ranks_differ |= rank->budget_bytes != first->budget_bytes;
    }
    p->ranks_differ |= p->slowest != p->fastest;
    p->is_wide = p->ranks_differ || p->replica_limit > 1;
}

#define TLI_PARTITION_WORK 1000000000   // stages looked at, where the desc has no limit

// Get all arrays. 0 = no memory.
static int tli_partition_alloc(tli_partition *p) {
    tl_env *env = p->env;
    uint64_t units = (uint64_t)p->desc->unit_count + 1, rows = (uint64_t)p->stage_limit + 1, count;
    if (p->is_wide) rows *= (uint64_t)p->rank_count + 1;
    if (!tli_mul_u64(rows, units, &count)) return 0;
    p->places = (int32_t *)tli_alloc_array(env, units, sizeof *p->places);
    p->cost = (uint64_t *)tli_alloc_array(env, units, sizeof *p->cost);
    p->activation = (uint64_t *)tli_alloc_array(env, units, sizeof *p->activation);
    p->parameters = (uint64_t *)tli_alloc_array(env, units, sizeof *p->parameters);
    p->transfer = (uint64_t *)tli_alloc_array(env, units, sizeof *p->transfer);
    p->states = (tli_cut_state *)tli_alloc_array(env, count, sizeof *p->states);
    return p->places && p->cost && p->activation && p->parameters && p->transfer && p->states;
}

static void tli_partition_release(tli_partition *p) {
    int32_t i;
    for (i = 0; i < p->memo_count; i++) {
        tli_release(p->env, p->memos[i].cells);
        tli_release(p->env, p->memos[i].known);
    }
    tli_release(p->env, p->memos);
    tli_release(p->env, p->places);
    tli_release(p->env, p->cost);
    tli_release(p->env, p->activation);
    tli_release(p->env, p->parameters);
    tli_release(p->env, p->transfer);
    tli_release(p->env, p->states);
}

// Plan with all places; with half of them wherever that takes too much work.
static tl_result tli_partition_plan(tli_partition *p, tl_partition *found, tl_partition *best) {
    uint64_t limit = p->desc->work_limit ? p->desc->work_limit : TLI_PARTITION_WORK;
    int32_t fewest = p->desc->stage_count ? p->desc->stage_count : 1;
    if (!tli_partition_alloc(p)) return tli_cut_fail(p, TL_ERROR_NO_MEMORY, TLI_RULE(NO_MEMORY_TO_PARTITION));
    if (!tli_partition_sum(p) || !tli_partition_fits(p))
        return tli_cut_fail(p, TL_ERROR_OVERFLOW, TLI_RULE(UNITS_SUMS_MUST_FIT_62_BITS));
    found->stages = (tl_stage *)tli_alloc_array(p->env, (uint64_t)p->stage_limit, sizeof(tl_stage));
    best->stages = (tl_stage *)tli_alloc_array(p->env, (uint64_t)p->stage_limit, sizeof(tl_stage));
    if (!found->stages || !best->stages)
        return tli_cut_fail(p, TL_ERROR_NO_MEMORY, TLI_RULE(NO_MEMORY_TO_PARTITION));
    for (p->place_count = p->desc->unit_count; ; p->place_count /= 2) {
        if (p->place_count < fewest) p->place_count = fewest;
        p->is_over = 0;
        p->work_end = limit < UINT64_MAX - p->work ? p->work + limit : UINT64_MAX;
        tli_partition_choose_places(p);
        tli_cut_run(p, found, best);
        if (!p->is_over || p->result) return p->result;
        if (p->place_count == fewest)
            return tli_cut_fail(p, TL_ERROR_UNSUPPORTED, TLI_RULE(WORK_LIMIT_IS_TOO_LOW_FOR_STAGES));
    }
}

TLI_IMPL tl_result tl_plan_partition(tl_env *env, const tl_partition_desc *desc, tl_partition *partition) {
    tli_partition p;
    tl_partition found;
    tl_result result;
    TL_ASSERT(desc && partition);
    tli_zero(&found, sizeof found);
    tli_zero(partition, sizeof *partition);
    tli_zero(&p, sizeof p);
    result = tli_partition_check(env, desc);
    if (result) return result;
    p.env = env;
    p.desc = desc;
    p.multiplier = desc->parameter_multiplier ? desc->parameter_multiplier : 1;
    tli_partition_find_ranks(&p);
    result = tli_partition_plan(&p, &found, partition);
    tl_free_partition(env, &found);
    if (result) tl_free_partition(env, partition);
    tli_partition_release(&p);
    return result;
}

TLI_IMPL void tl_free_partition(tl_env *env, tl_partition *partition) {
    TL_ASSERT(partition);
    tli_release(env, partition->stages);
    tli_zero(partition, sizeof *partition);
}

static const char *const tli_partition_objective_names[] = { TL_PARTITION_OBJECTIVES(TLI_NAME) };
static const char *const tli_replication_names[] = { TL_REPLICATIONS(TLI_NAME) };

TLI_IMPL const char *tl_name_partition_objective(tl_partition_objective objective) {
    return tli_name(tli_partition_objective_names, TL_PARTITION_COUNT, (int64_t)objective);
}

TLI_IMPL const char *tl_name_replication(tl_replication replication) {
    return tli_name(tli_replication_names, TL_REPLICATION_COUNT, (int64_t)replication);
}

#ifndef TL_NO_TEXT
TLI_IMPL int tl_parse_partition_objective(const char *text, tl_partition_objective *objective) {
    int32_t value;
    int known = tli_parse_word(tli_partition_objective_names, TL_PARTITION_COUNT, text, &value);
    TL_ASSERT(objective);
    *objective = (tl_partition_objective)value;
    return known;
}

TLI_IMPL int tl_parse_replication(const char *text, tl_replication *replication) {
    int32_t value;
    int known = tli_parse_word(tli_replication_names, TL_REPLICATION_COUNT, text, &value);
    TL_ASSERT(replication);
    *replication = (tl_replication)value;
    return known;
}
#endif
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
