#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- precision plan: the plan --
//
// Made of a choice; where there is none, the sentence says which limit is in the way.
//
// The plan has for each node its scheme, where its loss and speed are from, and the runner-up: the best choice
// in which that node has another scheme. Where the caller measures losses (evaluate), a plan that is above the
// limit is made again with a tighter one, for some rounds.

// -- precision plan: limits that cannot be met --

// The first four digits of a number > 0, rounded: value = digits x 10^(*power).
static int32_t tli_round_digits(double value, int32_t *power) {
    tli_decimal d;
    int32_t digits = 0, last = 0, i;
    tli_open_decimal(&d, value, 0);
    for (i = 0; i < 4; i++) {
        last = tli_next_digit(&d);
        digits = digits * 10 + last;
    }
    *power = d.point - 4;
    return digits + tli_rounds_up(&d, last);
}

static void tli_put_digits(tli_writer *w, int32_t digits, int32_t power) {
    char text[12];
    tli_writer all = tli_writer_of(text, sizeof text);
    int32_t count, point, whole;
    for (; digits && digits % 10 == 0; power++) digits /= 10;
    tli_put_i64(&all, digits);
    count = (int32_t)tli_finish(&all);
    point = count + power;
    if (point > 6 || point < -3) {
        tli_put_bytes(w, text, 1);
        if (count > 1) { tli_put(w, "."); tli_put_bytes(w, text + 1, (size_t)count - 1); }
        tli_put(w, "e");
        tli_put_i64(w, point - 1);
        return;
    }
    whole = point < 0 ? 0 : point < count ? point : count;
    tli_put_bytes(w, text, (size_t)whole);
    tli_put_zeros(w, point - count);
    if (whole == count) return;
    tli_put(w, whole ? "." : "0.");
    tli_put_zeros(w, -point);
    tli_put_bytes(w, text + whole, (size_t)(count - whole));
}

// Write a number for people, rounded to four digits.
static void tli_put_rounded(tli_writer *w, double value) {
    int32_t digits, power;
    if (value != value) { tli_put(w, "not known"); return; }
    if (value < 0) { tli_put(w, "-"); value = -value; }
    if (!tli_is_amount(value)) { tli_put(w, "infinite"); return; }
    if (!(value > 0)) { tli_put(w, "0"); return; }
    digits = tli_round_digits(value, &power);
    tli_put_digits(w, digits, power);
}

// Write a / b with up to four decimals, rounded down; 0 < b < 2^60.
static void tli_put_ratio_down(tli_writer *w, uint64_t a, uint64_t b) {
    uint64_t rest = a % b;
    int32_t i;
    tli_put_u64(w, a / b);
    for (i = 0; i < 4 && rest; i++) {
        if (!i) tli_put(w, ".");
        rest *= 10;
        tli_put_u64(w, rest / b);
        rest %= b;
    }
}

static double tli_find_least_loss(const tli_precision *p, int32_t id) {
    double least = tli_infinity();
    int32_t k;
    for (k = 0; k < TL_SCHEME_COUNT; k++) {
        size_t at = (size_t)id * TL_SCHEME_COUNT + (size_t)k;
        if (p->costs[at] != TL_FORBIDDEN && p->node_losses[at] < least) least = p->node_losses[at];
    }
    return least;
}

// Whether a limit can be met, with losses in units as tli_count_losses makes them. least: the sum of the least
// losses.
static int tli_is_loss_held(const tli_precision *p, double limit, double least) {
    uint64_t sum = 0, most = UINT64_C(1) << TLI_LOSS_BITS, units;
    int32_t id;
    if (least <= limit) return 1;
    for (id = 0; id < p->graph->node_count; id++) {
        units = tli_divide_f64(tli_find_least_loss(p, id), TLI_LOSS_BITS, limit, 1);
        if (units > most - sum) return 0;
        sum += units;
    }
    return 1;
}

// Write the least limit of four digits that can be met.
static void tli_put_least_loss(tli_writer *w, const tli_precision *p, double sum) {
    double value;
    int32_t digits, power;
    char text[32];
    tli_word word;
    if (!tli_is_amount(sum)) { tli_put(w, "infinite"); return; }
    for (digits = tli_round_digits(sum, &power); ; digits++) {
        tli_writer number = tli_writer_of(text, sizeof text);
        tli_put_i64(&number, digits);
        tli_put(&number, "e");
        tli_put_i64(&number, power);
        word.text = text;
        word.length = tli_finish(&number);
        if (!tli_read_f64(word, &value) || tli_is_loss_held(p, value, sum)) break;
    }
    tli_put_digits(w, digits, power);
}

static tl_result tli_fail_loss_limit(const tli_precision *p) {
    double sum = 0;
    int32_t id;
    tli_sentence s;
    for (id = 0; id < p->graph->node_count; id++) sum += tli_find_least_loss(p, id);
    s = tli_begin_error(p->env, TL_ERROR_INFEASIBLE, p->function,
                        TLI_RULE(LOSS_LIMIT_CANNOT_BE_HELD_LEAST_LOSS),
                        tli_bits_of_f64(p->desc.loss_limit), tli_bits_of_f64(sum));
    if (!TLI_ERROR_TEXT) return TL_ERROR_INFEASIBLE;
    tli_put_rule(&s);
    tli_put_f64(&s.text, p->desc.loss_limit);
    tli_put_rule(&s);
    tli_put_least_loss(&s.text, p, sum);
    return tli_end_error(p->env, &s, TL_ERROR_INFEASIBLE);
}

static tl_result tli_fail_limit(const tli_precision *p) {
    tli_sentence s;
    if (!p->nearest_cost) return tli_fail_loss_limit(p);
    s = tli_begin_error(p->env, TL_ERROR_INFEASIBLE, p->function, p->nearest_proven
        ? TLI_RULE(LEAST_SPEEDUP_CANNOT_BE_HELD_AT_MOST)
        : TLI_RULE(LEAST_SPEEDUP_WAS_NOT_FOUND_AT_MOST),
        p->base_cost, p->nearest_cost);
    if (!TLI_ERROR_TEXT) return TL_ERROR_INFEASIBLE;
    tli_put_rule(&s);
    tli_put_f64(&s.text, p->desc.least_speedup);
    tli_put_rule(&s);
    tli_put_ratio_down(&s.text, p->base_cost, p->nearest_cost);
    tli_put_rule(&s);
    if (p->desc.criterion == TL_CRITERION_CUSTOM) tli_put(&s.text, " within loss_limit");
    return tli_end_error(p->env, &s, TL_ERROR_INFEASIBLE);
}

// -- precision plan: from a choice to a plan --

// The limit of the cost; TL_UNLIMITED for criteria that have none.
static uint64_t tli_find_most_cost(const tli_precision *p) {
    return tli_is_accuracy(p) || p->desc.criterion == TL_CRITERION_CUSTOM ? p->cost_limit : TL_UNLIMITED;
}

// The bytes of all weights and tensors, with converted copies.
static uint64_t tli_sum_bytes(const tli_precision *p, const uint8_t *schemes) {
    uint64_t sum = 0;
    int32_t i, k;
    for (i = 0; i < p->graph->node_count; i++) sum += p->bytes[(size_t)i * TL_SCHEME_COUNT + schemes[i]];
    for (i = 0; i < p->net_count; i++) {
        uint32_t wanted = tli_find_wanted(&p->nets[i], schemes);
        for (k = 0; k < TL_FORMAT_COUNT; k++)
            if (wanted >> k & 1)
                sum += tl_find_format_bytes((tl_format)k, p->graph->outputs[p->net_tensors[i]].bytes);
    }
    return sum;
}

static void tli_fill_chosen(const tli_precision *p, int32_t id, tl_precision_node *node) {
    size_t row = (size_t)id * TL_SCHEME_COUNT, at = row + p->schemes[id];
    int32_t i, k;
    tli_zero(node, sizeof *node);
    node->scheme = (tl_scheme)p->schemes[id];
    node->format = tl_find_scheme_format(node->scheme);
    node->source = (tl_loss_source)p->sources[at];
    node->speed_source = (tl_speed_source)p->speed_sources[at];
    node->loss = p->node_losses[at];
    node->speedup = tli_find_speedup(p->times[row + TL_SCHEME_F32], p->times[at]);
    node->runner_up = TL_SCHEME_COUNT;
    for (i = p->first_nets[id]; i < p->first_nets[id + 1]; i++) {
        const tli_choice_net *net = &p->nets[p->node_nets[i]];
        uint32_t wanted = net->producer == id ? tli_find_wanted(net, p->schemes) : 0;
        if (wanted) node->conversion_cost += tli_sum_net(net, p->schemes);
        for (k = 0; k < TL_FORMAT_COUNT; k++) node->conversion_count += (int32_t)(wanted >> k & 1);
    }
}

static void tli_fill_precision_plan(const tli_precision *p, const tli_pick *pick, double limit,
                                    tl_precision_plan *plan) {
    tl_precision_node *nodes = (tl_precision_node *)plan->memory;
    int32_t id;
    tli_zero(plan->scheme_counts, sizeof plan->scheme_counts);
    plan->nodes = nodes;
    plan->node_count = p->graph->node_count;
    plan->criterion = p->desc.criterion;
    plan->objective = p->desc.objective;
    plan->speeds = p->speeds;
    plan->conversion_cost = 0;
    plan->conversion_count = 0;
    for (id = 0; id < plan->node_count; id++) {
        tli_fill_chosen(p, id, &nodes[id]);
        plan->conversion_cost += nodes[id].conversion_cost;
        plan->conversion_count += nodes[id].conversion_count;
        if (!p->graph->nodes[id].is_input) plan->scheme_counts[nodes[id].scheme]++;
    }
    plan->loss = tli_sum_losses(p, p->schemes);
    plan->loss_limit = limit;
    if (plan->loss > limit) plan->loss = limit;  // the exact sum is within it, the sum of doubles may not be
    plan->measured_loss = tli_not_a_number();
    plan->cost = pick->cost;
    plan->base_cost = p->base_cost;
    plan->bound_cost = pick->bound;
    plan->bound_loss = 0;
    if (p->desc.criterion == TL_CRITERION_ACCURACY) {
        plan->bound_loss = tli_scale_f64((double)pick->bound_loss, p->unit_exponent);
        if (pick->proven || plan->bound_loss > plan->loss) plan->bound_loss = plan->loss;
    }
    plan->proven = pick->proven;
    plan->gap_ratio = pick->gap_ratio;
    plan->speedup = tli_find_speedup(plan->base_cost, plan->cost);
    if (tli_find_most_cost(p) != TL_UNLIMITED && plan->speedup < p->desc.least_speedup)
        plan->speedup = p->desc.least_speedup;  // it is met: the quotient of doubles may be rounded down
    plan->bytes = tli_sum_bytes(p, p->schemes);
    plan->base_bytes = p->base_bytes;
}

// -- precision plan: runners-up --

typedef struct tli_runner_up {
    uint64_t cost, loss;     // of the whole graph
    double   loss_sum;
    int32_t  scheme;         // of the node; TL_SCHEME_COUNT = none
    int32_t  proven;
} tli_runner_up;

// The runner-up of a node when all other nodes keep their schemes.
static tli_runner_up tli_find_local(tli_precision *p, const tli_pick *pick, int32_t id) {
    size_t row = (size_t)id * TL_SCHEME_COUNT;
    uint64_t before = tli_sum_around(p, id), cost, loss;
    size_t now = p->schemes[id], k;
    tli_runner_up best;
    tli_zero(&best, sizeof best);
    best.scheme = TL_SCHEME_COUNT;
    for (k = 0; k < TL_SCHEME_COUNT; k++) {
        if (k == now || p->costs[row + k] == TL_FORBIDDEN) continue;
        p->schemes[id] = (uint8_t)k;
        cost = pick->cost - before + tli_sum_around(p, id);
        loss = pick->loss - p->losses[row + now] + p->losses[row + k];
        if (cost <= tli_find_most_cost(p) &&
            (tli_is_accuracy(p) || (loss <= p->most_loss && !tli_is_over_limit(p, p->schemes))) &&
            (best.scheme == TL_SCHEME_COUNT ||
             (tli_is_accuracy(p) ? loss < best.loss || (loss == best.loss && cost < best.cost)
                                 : cost < best.cost || (cost == best.cost && loss < best.loss)))) {
            best.cost = cost;
            best.loss = loss;
            best.scheme = (uint8_t)k;
            best.loss_sum = tli_sum_losses(p, p->schemes);
        }
    }
    p->schemes[id] = (uint8_t)now;
    return best;
}

// The runner-up of a node by choosing for the whole graph without the node's scheme. Reduces the remaining
// *work.
static tl_result tli_find_exact(tli_precision *p, int32_t id, uint64_t *work, tli_runner_up *found) {
    size_t at = (size_t)id * TL_SCHEME_COUNT + p->schemes[id];
    uint64_t kept = p->costs[at], limit = p->choice.work_limit;
    tli_choice_plan chosen;
    tl_result result;
    tli_zero(found, sizeof *found);
    found->scheme = TL_SCHEME_COUNT;
    p->costs[at] = TL_FORBIDDEN;
    p->choice.work_limit = *work;
    result = tli_choose(p, tli_is_accuracy(p), p->most_loss, p->cost_limit, &chosen);
    if (!result && tli_is_over_limit(p, chosen.schemes)) {
        tli_free_choice_plan(p->env, &chosen);
        result = tli_choose(p, 0, tli_find_strict_units(p), p->cost_limit, &chosen);
    }
    p->choice.work_limit = limit;
    p->costs[at] = kept;
    if (result == TL_ERROR_NO_MEMORY) return tli_fail_choice(p);
    if (result == TL_ERROR_INFEASIBLE) { found->proven = 1; return TL_OK; }
    *work -= chosen.work < *work ? chosen.work : *work;
    found->proven = chosen.proven;
    if (chosen.cost <= tli_find_most_cost(p)) {
        found->cost = chosen.cost;
        found->loss = chosen.loss;
        found->loss_sum = tli_sum_losses(p, chosen.schemes);
        found->scheme = chosen.schemes[id];
    }
    tli_free_choice_plan(p->env, &chosen);
    return TL_OK;
}

static double tli_find_margin(const tli_precision *p, const tl_precision_plan *plan, int32_t id) {
    const tl_precision_node *node = &plan->nodes[id];
    size_t row = (size_t)id * TL_SCHEME_COUNT;
    double more, all;
    if (node->runner_up == TL_SCHEME_COUNT) return 1;
    if (tli_is_accuracy(p)) {
        more = node->runner_up_loss - plan->loss;
        all = p->node_losses[row + (size_t)node->runner_up];
    } else {
        more = node->runner_up_cost > plan->cost ? (double)(node->runner_up_cost - plan->cost) : 0;
        all = (double)(p->desc.objective == TL_OBJECTIVE_TIME ? p->times : p->bytes)[row + TL_SCHEME_F32];
    }
    return !(more > 0) ? 0 : more < all ? more / all : 1;
}

static double tli_find_confidence(const tli_precision *p, const tl_precision_plan *plan, int32_t id) {
    double trust = 1;
    switch (plan->nodes[id].source) {
    case TL_LOSS_FROM_PROFILE: trust = p->graph->nodes[id].is_input ? 1 : 0.5; break;
    case TL_LOSS_FROM_DATA: trust = 0.75; break;
    case TL_LOSS_FROM_MEASURED:
    case TL_LOSS_SOURCE_COUNT: break;
    }
    return trust * (1 + tli_find_margin(p, plan, id)) / 2;
}

static tl_result tli_find_runners_up(tli_precision *p, const tli_pick *pick, tl_precision_plan *plan) {
    tl_precision_node *nodes = (tl_precision_node *)plan->memory;
    uint64_t work = p->graph->node_count > TLI_EXACT_NODES ? 0 : TLI_EXTRA_WORK;
    int32_t id;
    for (id = 0; id < p->graph->node_count; id++) {
        tli_runner_up best = tli_find_local(p, pick, id), exact;
        int worse = 0;
        if (work && !tli_is_fixed_input(&p->desc, id)) {
            tl_result result = tli_find_exact(p, id, &work, &exact);
            if (result) return result;
            worse = !exact.proven && best.scheme != TL_SCHEME_COUNT &&
                    (exact.scheme == TL_SCHEME_COUNT ||
                     (tli_is_accuracy(p) ? best.loss < exact.loss : best.cost < exact.cost));
            if (!worse) best = exact;
        } else if (tli_is_fixed_input(&p->desc, id)) {
            best.proven = 1;
        }
        nodes[id].runner_up = (tl_scheme)best.scheme;
        nodes[id].runner_up_proven = best.proven;
        nodes[id].runner_up_cost = best.cost;
        nodes[id].runner_up_loss = best.loss_sum;
        nodes[id].confidence = tli_find_confidence(p, plan, id);
    }
    return TL_OK;
}

// -- precision plan: rounds --

static tl_result tli_measure_plan(const tli_precision *p, tl_precision_plan *plan) {
    double loss = tli_not_a_number();
    tl_result result = (p->desc.evaluate)(plan, &loss, p->desc.user);
    tli_sentence s;
    if (result) {
        s = tli_begin_error(p->env, TL_ERROR_KERNEL, p->function, TLI_RULE(EVALUATE_FAILED),
                            (uint64_t)result, 0);
        tli_put_text(&s, tl_name_result(result));
        return tli_end_error(p->env, &s, TL_ERROR_KERNEL);
    }
    if (loss != loss)
        return tli_fail(p->env, TL_ERROR_KERNEL, p->function, TLI_RULE(EVALUATE_LOSS_IS_NOT_NUMBER));
    plan->measured_loss = loss;
    return TL_OK;
}

static int tli_has_loss_limit(const tl_precision_desc *desc) {
    return (desc->criterion == TL_CRITERION_PERFORMANCE || desc->criterion == TL_CRITERION_CUSTOM) &&
           !tli_is_unlimited(desc->loss_limit);
}

// Tighten the limit by loss_limit / measured, in units of 2^-20, and by a sixteenth at least.
static uint64_t tli_cut_limit(const tli_precision *p, uint64_t limit, double measured) {
    uint64_t share = tli_is_amount(measured) ? tli_divide_f64(p->desc.loss_limit, 20, measured, 0) : 0;
    uint64_t strict = tli_find_strict_units(p), from = limit < strict ? limit : strict;
    uint64_t cut = from * share >> 20, most = from - from / 16;
    return cut < most ? cut : most;
}

static tl_result tli_fail_measured(const tli_precision *p, double measured) {
    tli_sentence s = tli_begin_error(p->env, TL_ERROR_INFEASIBLE, p->function,
        TLI_RULE(LOSS_LIMIT_CANNOT_BE_HELD_EVALUATE),
        tli_bits_of_f64(p->desc.loss_limit), tli_bits_of_f64(measured));
    if (!TLI_ERROR_TEXT) return TL_ERROR_INFEASIBLE;
    tli_put_rule(&s);
    tli_put_f64(&s.text, p->desc.loss_limit);
    tli_put_rule(&s);
    tli_put_rounded(&s.text, measured);
    return tli_end_error(p->env, &s, TL_ERROR_INFEASIBLE);
}

// The last round: the choice of least loss, when no tighter limit brought the measured loss within the limit.
static tl_result tli_try_least_loss(tli_precision *p, tli_pick *pick, tl_precision_plan *plan) {
    uint64_t nearest;
    tl_result result = tli_pick_loss(p, tli_find_most_cost(p), pick, &nearest);
    if (result == TL_ERROR_INFEASIBLE) return tli_fail_measured(p, plan->measured_loss);
    if (result) return result;
    p->most_loss = pick->loss;
    pick->bound_loss = 0;
    plan->round_count++;
    tli_fill_precision_plan(p, pick, p->desc.loss_limit, plan);
    result = tli_measure_plan(p, plan);
    if (result) return result;
    plan->loss_limit = plan->loss;
    return plan->measured_loss <= p->desc.loss_limit ? TL_OK : tli_fail_measured(p, plan->measured_loss);
}

// The choice at hand is within loss_units but loses more than the limit: choose again below its loss, for
// TLI_STRICT_TURNS turns, and then within the limit in whole units.
static tl_result tli_pick_strictly(tli_precision *p, tli_pick *pick) {
    uint64_t strict = tli_find_strict_units(p);
    int turns = TLI_STRICT_TURNS;
    tl_result result = TL_OK;
    while (!result && tli_is_over_limit(p, p->schemes))
        result = tli_pick_criterion(p, turns-- > 0 && pick->loss > strict ? pick->loss - 1 : strict, pick);
    return result;
}

static tl_result tli_run_rounds(tli_precision *p, tli_pick *pick, tl_precision_plan *plan) {
    uint64_t units = p->loss_units;
    int limited = tli_has_loss_limit(&p->desc);
    tl_result result;
    for (;;) {
        result = tli_pick_criterion(p, units, pick);
        if (!result && limited && tli_is_over_limit(p, p->schemes)) result = tli_pick_strictly(p, pick);
        if (result == TL_ERROR_INFEASIBLE && plan->round_count) break;
        if (result) return result == TL_ERROR_INFEASIBLE ? tli_fail_limit(p) : result;
        plan->round_count++;
        tli_fill_precision_plan(p, pick, limited ? (units == p->loss_units ? p->desc.loss_limit :
                                    tli_scale_f64((double)units, -TLI_LOSS_BITS) * p->desc.loss_limit)
                                    : tli_infinity(), plan);
        if (!p->desc.evaluate) return TL_OK;
        result = tli_measure_plan(p, plan);
        if (result || !limited || plan->measured_loss <= p->desc.loss_limit) return result;
        if (plan->round_count >= p->desc.round_limit || !units) break;
        units = tli_cut_limit(p, units, plan->measured_loss);
    }
    return tli_try_least_loss(p, pick, plan);
}

TLI_IMPL tl_result tl_plan_precision(tl_env *env, const tl_precision_desc *desc, tl_precision_plan *plan) {
    const tli_function function = TLI_IN(PLAN_PRECISION);
    tli_precision p;
    tli_pick pick;
    tl_result result;
    TL_ASSERT(desc && desc->graph && plan);
    tli_zero(plan, sizeof *plan);
    result = tli_check_precision_of(env, function, desc);
    if (result) return result;
    tli_zero(&pick, sizeof pick);
    result = tli_open_precision(env, function, desc, tli_has_loss_limit(desc), &p);
    if (!result) {
        plan->memory = tli_alloc_array(env, (uint64_t)desc->graph->node_count, sizeof *plan->nodes);
        result = plan->memory ? tli_run_rounds(&p, &pick, plan)
                              : tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_PLAN));
    }
    if (!result) result = tli_find_runners_up(&p, &pick, plan);
    tli_close_precision(&p);
    if (result) tl_free_precision_plan(env, plan);
    return result;
}

TLI_IMPL void tl_free_precision_plan(tl_env *env, tl_precision_plan *plan) {
    if (!plan) return;
    tli_release(env, plan->memory);
    tli_zero(plan, sizeof *plan);
}

// -- precision plan: the front --

static tl_result tli_fill_front(tli_precision *p, const tli_choice_front *chosen, tl_precision_front *front) {
    uint64_t points = (uint64_t)chosen->point_count, nodes = (uint64_t)p->graph->node_count;
    tl_precision_point *point;
    uint8_t *schemes;
    int32_t i;
    point = (tl_precision_point *)tli_alloc_array(p->env, points, sizeof *point + (size_t)nodes);
    if (!point) return tli_fail(p->env, TL_ERROR_NO_MEMORY, p->function, TLI_RULE(NO_MEMORY_FOR_POINTS));
    schemes = (uint8_t *)(point + points);
    front->memory = point;
    front->points = point;
    front->point_count = chosen->point_count;
    front->complete = chosen->complete;
    front->knee = tli_find_knee(p, chosen);
    front->base_cost = p->base_cost;
    front->base_bytes = p->base_bytes;
    front->speeds = p->speeds;
    for (i = 0; i < chosen->point_count; i++, point++, schemes += nodes) {
        const tli_front_point *from = &chosen->points[i];
        tli_copy(schemes, from->schemes, (size_t)nodes);
        point->schemes = schemes;
        point->loss = tli_sum_losses(p, schemes);
        point->cost = from->cost;
        point->bound_cost = from->bound_cost;
        point->speedup = tli_find_speedup(p->base_cost, from->cost);
        point->bytes = tli_sum_bytes(p, from->schemes);  // the front's schemes include the readers of results
    }
    return TL_OK;
}

TLI_IMPL tl_result tl_plan_precision_front(tl_env *env, const tl_precision_desc *desc, int32_t point_limit,
                                           tl_precision_front *front) {
    const tli_function function = TLI_IN(PLAN_PRECISION_FRONT);
    tli_choice_front chosen;
    tli_precision p;
    tl_result result;
    TL_ASSERT(desc && desc->graph && front);
    tli_zero(front, sizeof *front);
    if (point_limit < 0 || point_limit == 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(POINT_LIMIT_MUST_BE_0_OR_2_AND_MORE));
    result = tli_check_precision_of(env, function, desc);
    if (result) return result;
    result = tli_open_precision(env, function, desc, 0, &p);
    if (!result) {
        result = tli_plan_choice_front(env, &p.choice, point_limit, &chosen);
        if (result) {
            result = tli_fail_choice(&p);
        } else {
            result = tli_fill_front(&p, &chosen, front);
            tli_free_choice_front(env, &chosen);
        }
    }
    tli_close_precision(&p);
    return result;
}

TLI_IMPL void tl_free_precision_front(tl_env *env, tl_precision_front *front) {
    if (!front) return;
    tli_release(env, front->memory);
    tli_zero(front, sizeof *front);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION
