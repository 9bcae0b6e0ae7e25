#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- several limits: relaxations --
//
// A limit of RAM forbids schemes of nodes, and conversions, in whose calls more would live, whatever the others
// choose. What is left are sums, and the exact choice of the part above minimises one sum within a limit of
// another. Where there are three, two of them are added with weights:
//
//     least loss:   within w (flash, cost) <= w (limits), for weights w                     (surrogate)
//     least flash:  of a flash + b cost within the loss; the bound is (value - b limit) / a (Lagrange)
//     least RAM:    the least R for which no weights prove that the loss is above its limit (bisection)
//
// Every choice that is found so is a candidate, and no choice is better than the best bound. In a chain
// without skips, of two limits, the choice of the relaxation is the best one wherever it can be placed without
// gaps. Source of surrogates: Glover, Surrogate constraints, 1968.

typedef struct tli_weights {
    uint64_t flash, cost, tensors;  // tensors: the bytes of all of them, for candidates that no bound needs
} tli_weights;

#define TLI_FIT_TURNS 24           // weights that are tried for one bound
#define TLI_FIT_CHOICE_WORK 20000000
#define TLI_FIT_SUM_BITS 56        // weighted sums stay below this
#define TLI_FIT_STEPS 8            // limits between two ends that are tried

// -- several limits: what a limit of RAM forbids --

// The least that lives while a net's tensor is converted, right before its first reader in the other format.
static uint64_t tli_bound_conversion(const tli_limits *f, int32_t index, int32_t from, int32_t to) {
    const tli_choice_net *net = &f->p.nets[index];
    int32_t tensor = f->p.net_tensors[index], k;
    uint64_t least = UINT64_MAX;
    for (k = 0; k < net->reader_count; k++) {
        int32_t reader = tli_smaller_i32(net->readers[k], f->graph->node_count);
        least = tli_smaller_u64(least, f->between[reader] - f->least[tensor]);
    }
    return least + tli_fit_bytes(f, tensor, (tl_format)from) + tli_fit_bytes(f, tensor, (tl_format)to);
}

// Set the costs of the choice to weighted sums, without what is above a limit of RAM.
static void tli_weigh_choice(tli_limits *f, const uint8_t *possible, uint64_t ram, const tli_weights *w) {
    tli_precision *p = &f->p;
    int32_t i, k, from, to;
    for (i = 0; i < f->graph->node_count; i++)
        for (k = 0; k < TL_SCHEME_COUNT; k++) {
            size_t at = tli_fit_at(i, k);
            p->costs[at] = TL_FORBIDDEN;
            if (!possible[at] || (!tli_may_be_cut(f, i) && tli_bound_call(f, i, (tl_scheme)k) > ram)) continue;
            p->costs[at] = w->flash * f->flash[at] + w->cost * p->times[at] + w->tensors * p->bytes[at];
        }
    for (i = 0; i < p->net_count; i++)
        for (from = 0; from < TL_FORMAT_COUNT; from++)
            for (to = 0; to < TL_FORMAT_COUNT; to++) {
                size_t at = ((size_t)i * TL_FORMAT_COUNT + (size_t)from) * TL_FORMAT_COUNT + (size_t)to;
                uint64_t copy = tli_fit_bytes(f, p->net_tensors[i], (tl_format)to);
                int is_whole = !tli_may_be_cut(f, p->nets[i].producer);
                if (from == to) continue;
                p->net_costs[at] = w->cost * f->net_times[at] + w->tensors * copy;
                if (is_whole && tli_bound_conversion(f, i, from, to) > ram) p->net_costs[at] = TL_FORBIDDEN;
            }
}

// Choose by weighted sums: the least of them within the loss limit, or the least loss within a limit of them.
static tl_result tli_choose_relaxed(tli_limits *f, uint64_t ram, const tli_weights *w, int least_loss,
                                    uint64_t cost_limit, tli_choice_plan *chosen) {
    tli_precision *p = &f->p;
    tl_result result;
    tli_weigh_choice(f, f->possible, ram, w);
    p->choice.work_limit = TLI_FIT_CHOICE_WORK;
    result = tli_choose(p, least_loss, p->loss_units, cost_limit, chosen);
    if (result == TL_ERROR_NO_MEMORY) tli_fit_fail(f, tli_fail_choice(p));
    return result;
}

// -- several limits: bounds --

// A loss in units of the choice as a double that is no larger than the sum of the losses behind it, which were
// rounded up node by node.
static double tli_find_loss_of_units(const tli_limits *f, uint64_t units) {
    double limit = f->desc.precision.loss_limit, loss;
    uint64_t rounded = (uint64_t)f->graph->node_count + 1;
    if (units <= rounded) return 0;
    loss = (double)(units - rounded);
    loss = tli_is_unlimited(limit) ? tli_scale_f64(loss, f->p.unit_exponent)
                                   : tli_scale_f64(loss, -TLI_LOSS_BITS) * limit;
    return loss - loss / 1e12;
}

static void tli_raise_fit_bound(tli_limits *f, uint64_t bound) { f->bound = tli_larger_u64(f->bound, bound); }

static int tli_has_limit(const tli_limits *f, tl_measure measure) {
    return f->limits.of[measure] != TL_UNLIMITED;
}

static int tli_is_over(const tli_limits *f, tl_measure measure, uint64_t amount) {
    return amount > f->limits.of[measure];
}

// share parts of 2^10 of a sum, as a factor: all weighted sums are about as large, and below 2^56.
static uint64_t tli_find_weight(uint64_t share, uint64_t sum) {
    int32_t room = TLI_FIT_SUM_BITS - 12 - tli_log2_u64(sum | 1);
    return room >= 0 ? share << room : share >> -room;
}

// Weights of flash and cost for a share of 0 .. 1024 of flash; *limit is what their sum is limited by.
static tli_weights tli_find_surrogate(const tli_limits *f, uint64_t share, uint64_t *limit) {
    uint64_t flash = f->limits.of[TL_MEASURE_FLASH], cost = f->limits.of[TL_MEASURE_COST];
    tli_weights w;
    tli_zero(&w, sizeof w);
    *limit = TL_UNLIMITED;
    if (flash == TL_UNLIMITED && cost == TL_UNLIMITED) return w;
    w.flash = cost == TL_UNLIMITED ? 1 : flash == TL_UNLIMITED ? 0 : tli_find_weight(share, f->flash_sum);
    w.cost = flash == TL_UNLIMITED ? 1 : cost == TL_UNLIMITED ? 0 : tli_find_weight(1024 - share, f->cost_sum);
    *limit = (w.flash ? w.flash * flash : 0) + (w.cost ? w.cost * cost : 0);
    return w;
}

// -- several limits: the least loss within limits of flash and cost, and a limit of RAM --
//
// Each choice is offered as a candidate. Returns 1 where the bound of the loss, *loss, is above its limit, or
// where RAM and the sums admit no choice: there is none then.
static int tli_relax_loss(tli_limits *f, uint64_t ram, double *loss) {
    int both = tli_has_limit(f, TL_MEASURE_FLASH) && tli_has_limit(f, TL_MEASURE_COST);
    uint64_t low = 0, high = 1024, limit;
    int32_t turn;
    *loss = 0;
    for (turn = 0; turn < (both ? TLI_FIT_TURNS : 1) && low < high && !f->result; turn++) {
        uint64_t share = (low + high) / 2;
        tli_weights w = tli_find_surrogate(f, share, &limit);
        tli_choice_plan chosen;
        double bound;
        tl_result result = tli_choose_relaxed(f, ram, &w, 1, limit, &chosen);
        if (result) return result == TL_ERROR_INFEASIBLE && !f->is_wide;
        bound = tli_find_loss_of_units(f, chosen.bound);
        if (bound > *loss) *loss = bound;
        tli_offer_schemes(f, chosen.schemes);
        if (tli_is_over(f, TL_MEASURE_FLASH, tli_sum_flash(f, chosen.schemes))) low = share + 1;
        else high = share;
        tli_free_choice_plan(f->env, &chosen);
        if (*loss > f->desc.precision.loss_limit) return 1;
    }
    return 0;
}

// -- several limits: the least flash, or cost, within a limit of the other one, of the loss and of RAM --

// a times what is minimised and b times the other one, where b / a = 2^(quarters / 4) of what makes both sums
// about as large; b is 0 in the first turn.
static void tli_find_multipliers(const tli_limits *f, int32_t quarters, int is_first, uint64_t *a,
                                 uint64_t *b) {
    static const uint16_t roots[4] = { 1024, 1218, 1448, 1722 };    // 2^(10 + k / 4)
    int cost = f->desc.minimized == TL_MEASURE_COST;
    uint64_t own = cost ? f->cost_sum : f->flash_sum, other = cost ? f->flash_sum : f->cost_sum;
    int32_t whole = (quarters + 64) / 4 - 16, part = (quarters + 64) % 4;
    *a = 1;
    *b = 0;
    if (is_first) return;
    *a = tli_find_weight(whole > 0 ? 1024 >> whole : 1024, own);
    *b = tli_find_weight((uint64_t)roots[part] >> (whole < 0 ? -whole : 0), other);
}

// Raise the bound by Lagrange, and offer each choice. Returns 1 where there is none.
static int tli_relax_sum(tli_limits *f, uint64_t ram) {
    tl_measure own = f->desc.minimized, other = own == TL_MEASURE_COST ? TL_MEASURE_FLASH : TL_MEASURE_COST;
    int32_t low = -40, high = 40, quarters = 0, turn;
    for (turn = 0; turn < TLI_FIT_TURNS && low < high && !f->result; turn++) {
        tli_choice_plan chosen;
        tli_weights w;
        tl_result result;
        uint64_t a, b, paid, amount;
        tli_zero(&w, sizeof w);
        tli_find_multipliers(f, quarters, !turn, &a, &b);
        w.flash = own == TL_MEASURE_FLASH ? a : b;
        w.cost = own == TL_MEASURE_FLASH ? b : a;
        if (!a) break;
        result = tli_choose_relaxed(f, ram, &w, 0, 0, &chosen);
        if (result) return result == TL_ERROR_INFEASIBLE && !f->is_wide;
        paid = b ? b * f->limits.of[other] : 0;
        if (chosen.bound > paid) tli_raise_fit_bound(f, tli_divide_up(chosen.bound - paid, a));
        tli_offer_schemes(f, chosen.schemes);
        amount = own == TL_MEASURE_FLASH ? tli_sum_time(f, chosen.schemes) : tli_sum_flash(f, chosen.schemes);
        tli_free_choice_plan(f->env, &chosen);
        if (!tli_has_limit(f, other) || (!turn && !tli_is_over(f, other, amount))) return 0;
        if (turn && tli_is_over(f, other, amount)) low = quarters + 1;
        else if (turn) high = quarters;
        quarters = low + (high - low) / 2;
    }
    return 0;
}

// -- several limits: the least RAM --

static int tli_add_amount(uint64_t *sorted, int32_t count, uint64_t amount) {
    int32_t low = 0, high = count, i;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (sorted[middle] < amount) low = middle + 1; else high = middle;
    }
    if (low < count && sorted[low] == amount) return 0;
    for (i = count; i > low; i--) sorted[i] = sorted[i - 1];
    sorted[low] = amount;
    return 1;
}

// List what any call or conversion may hold, sorted: the least RAM of the relaxation is one of these.
static int32_t tli_list_amounts(const tli_limits *f, uint64_t *sorted) {
    int32_t count = 0, i, k, from, to;
    for (i = 0; i < f->graph->node_count; i++)
        for (k = 0; k < TL_SCHEME_COUNT; k++)
            if (f->possible[tli_fit_at(i, k)] && !tli_may_be_cut(f, i))
                count += tli_add_amount(sorted, count, tli_bound_call(f, i, (tl_scheme)k));
    for (i = 0; i < f->p.net_count; i++)
        for (from = 0; from < TL_FORMAT_COUNT; from++)
            for (to = 0; to < TL_FORMAT_COUNT; to++)
                if (from != to && !tli_may_be_cut(f, f->p.nets[i].producer))
                    count += tli_add_amount(sorted, count, tli_bound_conversion(f, i, from, to));
    return count;
}

// Find the least amount that is not proven to be too small, and offer choices for it and some above it.
static int tli_relax_ram(tli_limits *f) {
    uint64_t places = (uint64_t)f->graph->node_count * TL_SCHEME_COUNT +
                      (uint64_t)f->p.net_count * TL_FORMAT_COUNT * TL_FORMAT_COUNT;
    uint64_t *sorted = (uint64_t *)tli_alloc_array(f->env, places, sizeof *sorted);
    int32_t low = 0, high, count, i;
    double loss;
    if (!sorted) { tli_fit_fail(f, tli_fail_choice(&f->p)); return 0; }
    count = tli_list_amounts(f, sorted);
    high = count;
    while (low < high && !f->result) {
        int32_t middle = (low + high) / 2;
        if (tli_relax_loss(f, sorted[middle], &loss)) low = middle + 1; else high = middle;
    }
    if (low < count) tli_raise_fit_bound(f, sorted[low]);
    for (i = low + 1; i < count && i <= low + TLI_FIT_STEPS && !f->result; i++)
        tli_relax_loss(f, sorted[i], &loss);
    tli_release(f->env, sorted);
    return count && low == count;
}

// -- several limits: all relaxations --

// Candidates of few bytes of tensors: where lines are cut, and where arenas have gaps, no relaxation knows the
// RAM.
static void tli_offer_narrow_choices(tli_limits *f) {
    tli_choice_plan chosen;
    tli_weights w;
    uint64_t most, least;
    int32_t i;
    tli_zero(&w, sizeof w);
    w.tensors = 1;
    if (tli_choose_relaxed(f, TL_UNLIMITED, &w, 0, 0, &chosen)) return;
    least = chosen.cost;
    tli_offer_schemes(f, chosen.schemes);
    tli_free_choice_plan(f->env, &chosen);
    if (tli_choose_relaxed(f, TL_UNLIMITED, &w, 1, TL_UNLIMITED, &chosen)) return;
    most = chosen.cost;
    tli_free_choice_plan(f->env, &chosen);
    for (i = 1; i < TLI_FIT_STEPS && most > least && !f->result; i++) {
        uint64_t limit = least + (most - least) / TLI_FIT_STEPS * (uint64_t)i;
        if (tli_choose_relaxed(f, TL_UNLIMITED, &w, 1, limit, &chosen)) continue;
        tli_offer_schemes(f, chosen.schemes);
        tli_free_choice_plan(f->env, &chosen);
    }
}

// Raise the bound and offer candidates for one limit of RAM. Returns 1 where there is no choice.
static int tli_relax_at(tli_limits *f, uint64_t ram) {
    uint64_t before = f->bound;
    double loss = 0;
    int none;
    if (f->desc.minimized == TL_MEASURE_FLASH || f->desc.minimized == TL_MEASURE_COST) {
        none = tli_relax_sum(f, ram);
    } else {
        none = tli_relax_loss(f, ram, &loss);
        if (f->desc.minimized == TL_MEASURE_LOSS) tli_raise_fit_bound(f, tli_bits_of_f64(loss));
    }
    if (ram < f->limits.of[TL_MEASURE_RAM]) f->bound = before;      // that of a smaller RAM is none
    return none;
}

static void tli_relax_limits(tli_limits *f) {
    uint64_t ram = f->limits.of[TL_MEASURE_RAM];
    int32_t i;
    if (f->live_floor > ram || tli_relax_at(f, ram)) f->impossible = 1;
    if (f->impossible || f->result) return;
    if (f->desc.minimized == TL_MEASURE_RAM) {
        if (tli_relax_ram(f)) f->impossible = 1;
        tli_raise_fit_bound(f, f->live_floor);
    }
    for (i = 1; i <= TLI_FIT_STEPS && ram != TL_UNLIMITED && f->excess; i++)
        tli_relax_at(f, ram - ram / (4 * TLI_FIT_STEPS) * (uint64_t)i);
    tli_offer_narrow_choices(f);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION
