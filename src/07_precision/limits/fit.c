#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- several limits: the search --
//
//     relaxations --candidates--> improved: one node, a run, two nodes --> all that is left, depth first
//
// The search in depth runs through all choices that the sums and the calls of the nodes allow; where it ends,
// the best one is proven.

#define TLI_FIT_DEPTH_WORK 4000000   // nodes of the search in depth
#define TLI_FIT_PAIRS 96             // most nodes of a graph in which two are changed at once
#define TLI_FIT_ARENAS 4000          // placed at most, unless the caller says how many

// -- several limits: improving candidates --

// Set the nodes first .. last to a scheme, as far as they may have it, and keep that if it is better.
static int tli_try_nodes(tli_limits *f, int32_t first, int32_t last, int32_t scheme, uint64_t *excess,
                       tli_amounts *amounts) {
    int32_t i, changed = 0;
    tli_copy(f->kept + first, f->trial + first, (size_t)(last - first) + 1);
    for (i = first; i <= last; i++) {
        if (!f->possible[tli_fit_at(i, scheme)] || f->trial[i] == scheme) continue;
        f->trial[i] = (uint8_t)scheme;
        changed = 1;
    }
    if (changed && tli_beats(f, f->trial, excess, amounts)) return 1;
    tli_copy(f->trial + first, f->kept + first, (size_t)(last - first) + 1);
    return 0;
}

// Change runs of 1, 2, 4 .. nodes.
static int tli_change_runs(tli_limits *f, uint64_t *excess, tli_amounts *amounts) {
    int32_t nodes = f->graph->node_count, length, first, k;
    int changed = 0;
    for (length = 1; length <= nodes; length *= 2)
        for (first = 0; first + length <= nodes && tli_may_go_on(f); first++)
            for (k = 0; k < TL_SCHEME_COUNT; k++)
                changed |= tli_try_nodes(f, first, first + length - 1, k, excess, amounts);
    return changed;
}

// Give one node a scheme, and another node another one.
static int tli_change_pair(tli_limits *f, int32_t i, int32_t scheme, uint64_t *excess, tli_amounts *amounts) {
    uint8_t before = f->trial[i];
    int32_t j, k;
    f->trial[i] = (uint8_t)scheme;
    for (j = 0; j < f->graph->node_count && tli_may_go_on(f); j++)
        for (k = 0; k < TL_SCHEME_COUNT && j != i; k++)
            if (tli_try_nodes(f, j, j, k, excess, amounts)) return 1;
    f->trial[i] = before;
    return 0;
}

static int tli_change_pairs(tli_limits *f, uint64_t *excess, tli_amounts *amounts) {
    int32_t i, k;
    if (f->graph->node_count > TLI_FIT_PAIRS) return 0;
    for (i = 0; i < f->graph->node_count && tli_may_go_on(f); i++)
        for (k = 0; k < TL_SCHEME_COUNT; k++)
            if (k != f->trial[i] && f->possible[tli_fit_at(i, k)] &&
                tli_change_pair(f, i, k, excess, amounts)) return 1;
    return 0;
}

// Improve a candidate until no such change does.
static void tli_improve_choice(tli_limits *f, const uint8_t *schemes) {
    uint64_t excess = UINT64_MAX;
    tli_amounts amounts;
    tli_copy(f->trial, schemes, (size_t)f->p.node_count);
    tli_zero(&amounts, sizeof amounts);
    if (!tli_beats(f, f->trial, &excess, &amounts)) return;
    while (tli_may_go_on(f) &&
           (tli_change_runs(f, &excess, &amounts) || tli_change_pairs(f, &excess, &amounts))) continue;
    tli_try_choice(f, f->trial);
}

// -- several limits: all that is left --

struct tli_prefix {
    uint64_t flash, cost;
    double   loss;
    int32_t  next;              // scheme of the node to try next
};

// Fill in the least sums of each node and those behind it.
static void tli_find_suffixes(tli_limits *f) {
    int32_t nodes = f->graph->node_count, i, k;
    for (i = nodes - 1; i >= 0; i--) {
        uint64_t flash = UINT64_MAX, cost = UINT64_MAX;
        double loss = tli_infinity();
        for (k = 0; k < TL_SCHEME_COUNT; k++) {
            size_t at = tli_fit_at(i, k);
            if (!f->possible[at]) continue;
            flash = tli_smaller_u64(flash, f->flash[at]);
            cost = tli_smaller_u64(cost, f->p.times[at]);
            if (f->p.node_losses[at] < loss) loss = f->p.node_losses[at];
        }
        f->suffix_flash[i] = f->suffix_flash[i + 1] + flash;
        f->suffix_cost[i] = f->suffix_cost[i + 1] + cost;
        f->suffix_losses[i] = f->suffix_losses[i + 1] + loss;
    }
}

// What a choice must stay within to be of use: its limit and, of what is minimised, less than the best one has.
static uint64_t tli_find_most(const tli_limits *f, tl_measure measure) {
    uint64_t limit = f->limits.of[measure];
    if (f->desc.minimized != measure || !f->found || f->excess || !f->amounts.of[measure]) return limit;
    return tli_smaller_u64(limit, f->amounts.of[measure] - 1);
}

// Whether a choice that begins so, with a node in a scheme, can still be of use.
static int tli_may_extend(const tli_limits *f, int32_t id, int32_t scheme, const tli_prefix *before,
                          tli_prefix *with) {
    size_t at = tli_fit_at(id, scheme);
    double most = tli_f64_of(tli_find_most(f, TL_MEASURE_LOSS)), loss;
    if (!f->possible[at]) return 0;
    with->flash = before->flash + f->flash[at];
    with->cost = before->cost + f->p.times[at];
    with->loss = before->loss + f->p.node_losses[at];
    with->next = 0;
    loss = with->loss + f->suffix_losses[id + 1];
    return with->flash + f->suffix_flash[id + 1] <= tli_find_most(f, TL_MEASURE_FLASH) &&
           with->cost + f->suffix_cost[id + 1] <= tli_find_most(f, TL_MEASURE_COST) &&
           !(loss - loss / 1e9 > most) &&
           (tli_may_be_cut(f, id) ||
            tli_bound_call(f, id, (tl_scheme)scheme) <= tli_find_most(f, TL_MEASURE_RAM));
}

// Search through all choices. Returns 1 if that came to its end.
static int tli_search_in_depth(tli_limits *f) {
    int32_t nodes = f->graph->node_count, id = 0;
    int64_t work = TLI_FIT_DEPTH_WORK;
    tli_prefix *stack = f->stack;
    tli_find_suffixes(f);
    tli_zero(&stack[0], sizeof stack[0]);
    while (id >= 0 && work-- > 0 && tli_may_go_on(f)) {
        tli_prefix *top = &stack[id];
        if (id == nodes) { tli_try_choice(f, f->trial); id--; continue; }
        while (top->next < TL_SCHEME_COUNT && !tli_may_extend(f, id, top->next, top, top + 1)) top->next++;
        if (top->next == TL_SCHEME_COUNT) { id--; continue; }
        f->trial[id++] = (uint8_t)top->next++;
    }
    return id < 0 && !f->stopped && !f->result;
}

// -- several limits: set up --

static tli_rule tli_find_fit_rule(const tl_fit_desc *desc) {
    const tl_precision_desc *precision = &desc->precision;
    int32_t k, other = precision->training || precision->criterion || precision->objective ||
                       precision->evaluate || precision->round_limit || precision->allow_f16 ||
                       precision->f16_nodes;
    for (k = 0; k < TL_SCHEME_COUNT; k++) other |= precision->priorities[k] < 0 || precision->priorities[k] > 0;
    if (other || precision->least_speedup < 0 || precision->least_speedup > 0)
        return TLI_RULE(PRECISION_HAS_WHAT_LIMITS_REPLACE);
    if (!tli_is_below((int64_t)desc->minimized, TL_MEASURE_COUNT)) return TLI_RULE(MINIMIZED_UNKNOWN);
    if (desc->may_cut_rows & ~1) return TLI_RULE(MAY_CUT_ROWS_MUST_BE_0_OR_1);
    if (desc->alignment_bytes & (desc->alignment_bytes - 1))
        return TLI_RULE(ALIGNMENT_BYTES_MUST_BE_0_OR_POWER);
    if (desc->arena_limit < 0) return TLI_RULE(ARENA_LIMIT_MUST_NOT_BE_NEGATIVE);
    return TLI_NO_RULE;
}

static int tli_add_fit_arrays(tli_limits *f) {
    uint64_t nodes = (uint64_t)f->graph->node_count, tensors = (uint64_t)f->graph->tensor_count;
    uint64_t nets = (uint64_t)f->p.net_count * TL_FORMAT_COUNT * TL_FORMAT_COUNT;
    uint64_t all = (uint64_t)f->p.node_count, rows = nodes * TL_SCHEME_COUNT;
    uint64_t slot_count = nodes + tensors * TL_FORMAT_COUNT;
    f->numbers = (uint64_t *)tli_alloc_array(f->env, rows + nets + tensors + 5 * (nodes + 1),
                                             sizeof *f->numbers);
    f->suffix_losses = (double *)tli_alloc_array(f->env, nodes + 1, sizeof *f->suffix_losses);
    f->lasts = (int32_t *)tli_alloc_array(f->env, tensors, sizeof *f->lasts);
    f->marks = (uint8_t *)tli_alloc_array(f->env, rows + (3 + TLI_FIT_POOL) * all + slot_count, 1);
    f->made = (tl_precision_node *)tli_alloc_array(f->env, nodes, sizeof *f->made);
    f->stack = (tli_prefix *)tli_alloc_array(f->env, nodes + 1, sizeof *f->stack);
    if (!f->numbers || !f->suffix_losses || !f->lasts || !f->marks || !f->made || !f->stack) return 0;
    f->flash = f->numbers;
    f->net_times = f->flash + rows;
    f->least = f->net_times + nets;
    f->between = f->least + tensors;
    f->across = f->between + nodes + 1;
    f->widened = f->across + nodes + 1;
    f->suffix_flash = f->widened + nodes + 1;
    f->suffix_cost = f->suffix_flash + nodes + 1;
    f->possible = f->marks;
    f->best = f->possible + rows;
    f->trial = f->best + all;
    f->kept = f->trial + all;
    f->slot_marks = f->kept + all;
    f->pool = f->slot_marks + slot_count;
    return 1;
}

static void tli_close_fit(tli_limits *f) {
    tli_close_precision(&f->p);
    tli_release(f->env, f->numbers);
    tli_release(f->env, f->suffix_losses);
    tli_release(f->env, f->lasts);
    tli_release(f->env, f->marks);
    tli_release(f->env, f->made);
    tli_release(f->env, f->stack);
}

// Sum up the most that a choice can take, and drop limits above that.
static void tli_find_most_sums(tli_limits *f) {
    int32_t i, k;
    for (i = 0; i < f->graph->node_count; i++) {
        uint64_t flash = 0, cost = 0;
        for (k = 0; k < TL_SCHEME_COUNT; k++) {
            if (!f->possible[tli_fit_at(i, k)]) continue;
            flash = tli_larger_u64(flash, f->flash[tli_fit_at(i, k)]);
            cost = tli_larger_u64(cost, f->p.times[tli_fit_at(i, k)]);
        }
        f->flash_sum += flash;
        f->cost_sum += cost;
    }
    for (i = 0; i < f->p.net_count; i++)
        for (k = 0; k < TL_FORMAT_COUNT * TL_FORMAT_COUNT; k++)
            f->cost_sum += f->net_times[(size_t)i * TL_FORMAT_COUNT * TL_FORMAT_COUNT + (size_t)k];
    f->flash_sum = tli_larger_u64(f->flash_sum, 1);
    f->cost_sum = tli_larger_u64(f->cost_sum, 1);
    if (f->limits.of[TL_MEASURE_FLASH] >= f->flash_sum) f->limits.of[TL_MEASURE_FLASH] = TL_UNLIMITED;
    if (f->limits.of[TL_MEASURE_COST] >= f->cost_sum) f->limits.of[TL_MEASURE_COST] = TL_UNLIMITED;
}

// Where rows may be cut: the arena of the graph whose tensors are all as narrow as they may be.
static tl_result tli_find_rows_floor(tli_limits *f) {
    tl_graph narrow;
    tl_rows_desc desc;
    tl_rows_plan rows;
    tl_result result;
    int32_t i;
    if (!tli_copy_graph(f->env, f->graph, &narrow)) return tli_fail_choice(&f->p);
    for (i = 0; i < narrow.tensor_count; i++) ((tl_node_output *)narrow.outputs)[i].bytes = f->least[i];
    tli_zero(&desc, sizeof desc);
    desc.graph = &narrow;
    desc.in_slots = f->desc.in_slots;
    desc.work_limit = f->desc.rows_work_limit;
    result = tl_plan_rows(f->env, &desc, &rows);
    if (!result) f->live_floor = rows.peak_bytes;
    tl_free_rows_plan(f->env, &rows);
    tl_free_graph(f->env, &narrow);
    return result;
}

static void tli_fill_fit(tli_limits *f) {
    size_t nets = (size_t)f->p.net_count * TL_FORMAT_COUNT * TL_FORMAT_COUNT;
    int32_t i, k;
    for (i = 0; i < f->graph->node_count; i++)
        for (k = 0; k < TL_SCHEME_COUNT; k++) {
            size_t at = tli_fit_at(i, k);
            f->possible[at] = f->p.costs[at] != TL_FORBIDDEN;
            f->flash[at] = tli_find_weight_bytes((tl_scheme)k, f->graph->nodes[i].param_bytes) +
                           tli_find_scheme_constants(f->graph, i, (tl_scheme)k, NULL).bytes;
        }
    tli_copy(f->net_times, f->p.net_costs, nets * sizeof *f->net_times);
    for (i = 0; i < f->p.node_count; i++) f->trial[i] = f->best[i] = f->kept[i] = TL_SCHEME_F32;
    tli_find_narrowest_bytes(f);
    tli_find_most_sums(f);
}

static uint64_t tli_limit_of(uint64_t given) { return given ? given : TL_UNLIMITED; }

static tl_result tli_open_fit(tl_env *env, tli_function function, const tl_fit_desc *desc, tli_limits *f) {
    tl_result result;
    double loss = desc->precision.loss_limit;
    tli_zero(f, sizeof *f);
    f->env = env;
    f->desc = *desc;
    f->graph = desc->precision.graph;
    if (!f->desc.arena_limit) f->desc.arena_limit = TLI_FIT_ARENAS;
    if (!f->desc.alignment_bytes) f->desc.alignment_bytes = 1;
    f->limits.of[TL_MEASURE_RAM] = tli_limit_of(desc->ram_bytes);
    f->limits.of[TL_MEASURE_FLASH] = tli_limit_of(desc->flash_bytes);
    f->limits.of[TL_MEASURE_COST] = tli_limit_of(desc->cost_limit);
    f->limits.of[TL_MEASURE_LOSS] = tli_bits_of_f64(loss);
    f->excess = UINT64_MAX;
    result = tli_open_precision(env, function, &desc->precision, !tli_is_unlimited(loss), &f->p);
    if (result) return result;
    if (!tli_add_fit_arrays(f)) return tli_fail_choice(&f->p);
    tli_fill_fit(f);
    return desc->may_cut_rows ? tli_find_rows_floor(f) : TL_OK;
}

// Whether lists reach through the graph: where they do not, a choice that was not found may exist.
static void tli_find_width(tli_limits *f) {
    tli_choice_plan chosen;
    tli_weights w;
    tli_zero(&w, sizeof w);
    if (tli_choose_relaxed(f, TL_UNLIMITED, &w, 1, TL_UNLIMITED, &chosen)) return;
    f->is_wide = chosen.method == TLI_CHOICE_SEARCH;
    tli_free_choice_plan(f->env, &chosen);
}

// Whether the best choice meets the bound: of the loss, whose bound is rounded down, to one part in 10^9.
static int tli_is_fit_proven(const tli_limits *f) {
    uint64_t value = f->amounts.of[f->desc.minimized];
    double loss = tli_f64_of(value);
    if (!f->found || f->excess) return 0;
    if (f->desc.minimized == TL_MEASURE_LOSS) return loss - loss / 1e9 <= tli_f64_of(f->bound);
    return value <= f->bound;
}

static void tli_search_fit(tli_limits *f) {
    int32_t i;
    tli_find_width(f);
    tli_relax_limits(f);
    for (i = 0; i < f->pool_count && !f->impossible && tli_may_go_on(f); i++)
        tli_improve_choice(f, f->pool + (size_t)i * (size_t)f->p.node_count);
    if (tli_is_fit_proven(f) || f->impossible || f->result || !tli_search_in_depth(f)) return;
    if (f->found && !f->excess) f->bound = f->amounts.of[f->desc.minimized];
    else f->impossible = 1;
}

// -- several limits: what cannot be held --

// The least of one amount, within the limits of the others; TL_UNLIMITED where nothing was found.
static uint64_t tli_find_least_amount(tl_env *env, tli_function function, const tl_fit_desc *desc,
                                      tl_measure measure) {
    tl_fit_desc other = *desc;
    uint64_t amount = TL_UNLIMITED;
    tli_limits f;
    tl_result result;
    other.minimized = measure;
    if (measure == TL_MEASURE_RAM) other.ram_bytes = 0;
    if (measure == TL_MEASURE_FLASH) other.flash_bytes = 0;
    if (measure == TL_MEASURE_COST) other.cost_limit = 0;
    if (measure == TL_MEASURE_LOSS) other.precision.loss_limit = tli_infinity();
    result = tli_open_fit(env, function, &other, &f);
    if (!result) tli_search_fit(&f);
    if (!result && !f.result && f.found && !f.excess) amount = f.amounts.of[measure];
    tli_close_fit(&f);
    return amount;
}

static void tli_put_least_amount(tli_sentence *s, tl_measure measure, uint64_t amount) {
    if (!TLI_ERROR_TEXT) return;
    tli_put_rule(s);
    if (amount == TL_UNLIMITED) tli_put(&s->text, "none");
    else if (measure == TL_MEASURE_LOSS) tli_put_rounded(&s->text, tli_f64_of(amount));
    else tli_put_u64(&s->text, amount);
}

// Name the least of each amount that has a limit.
static tl_result tli_fail_fit(tl_env *env, tli_function function, const tl_fit_desc *desc) {
    uint64_t least[TL_MEASURE_COUNT];
    tli_quiet quiet = tli_begin_quiet(env);
    tli_sentence s;
    int32_t k;
    for (k = 0; k < TL_MEASURE_COUNT; k++) least[k] = tli_find_least_amount(env, function, desc, (tl_measure)k);
    tli_end_quiet(&quiet, TL_OK);
    s = tli_begin_error(env, TL_ERROR_INFEASIBLE, function, TLI_RULE(LIMITS_CANNOT_BE_HELD_TOGETHER),
                        desc->ram_bytes, least[TL_MEASURE_RAM]);
    for (k = 0; k < TL_MEASURE_COUNT; k++) tli_put_least_amount(&s, (tl_measure)k, least[k]);
    return tli_end_error(env, &s, TL_ERROR_INFEASIBLE);
}

// -- several limits: the plan --

static void tli_fill_fit_plan(tli_limits *f, tl_precision_fit *fit) {
    tl_precision_plan *plan = &fit->plan;
    uint64_t value = f->amounts.of[f->desc.minimized], bound = tli_smaller_u64(f->bound, value);
    double loss = tli_f64_of(value), loss_bound = tli_f64_of(bound);
    tli_pick pick;
    int32_t i;
    tli_zero(&pick, sizeof pick);
    tli_copy(f->p.net_costs, f->net_times, (size_t)f->p.net_count * TL_FORMAT_COUNT * TL_FORMAT_COUNT *
             sizeof *f->net_times);
    tli_copy(f->p.schemes, f->best, (size_t)f->p.node_count);
    pick.cost = f->amounts.of[TL_MEASURE_COST];
    tli_fill_precision_plan(&f->p, &pick, f->desc.precision.loss_limit, plan);
    plan->criterion = TL_CRITERION_CUSTOM;
    for (i = 0; i < plan->node_count; i++)
        ((tl_precision_node *)plan->memory)[i].confidence = tli_find_confidence(&f->p, plan, i);
    plan->round_count = 1;
    fit->minimized = f->desc.minimized;
    fit->ram_bytes = f->amounts.of[TL_MEASURE_RAM];
    fit->flash_bytes = f->amounts.of[TL_MEASURE_FLASH];
    fit->cost = f->amounts.of[TL_MEASURE_COST];
    fit->loss = tli_f64_of(f->amounts.of[TL_MEASURE_LOSS]);
    fit->arena_count = f->arena_count;
    fit->proven = tli_is_fit_proven(f);
    if (f->desc.minimized == TL_MEASURE_LOSS) {
        fit->bound_loss = fit->proven ? loss : loss_bound;
        fit->gap_ratio = fit->proven ? 0 : loss_bound > 0 ? (loss - loss_bound) / loss_bound : loss;
    } else {
        fit->bound = bound;
        fit->gap_ratio = fit->proven ? 0 : tli_find_gap(value, bound);
    }
    plan->proven = fit->proven;
    plan->gap_ratio = fit->gap_ratio;
}

TLI_IMPL tl_result tl_fit_precision(tl_env *env, const tl_fit_desc *desc, tl_precision_fit *fit) {
    const tli_function function = TLI_IN(FIT_PRECISION);
    tli_rule rule;
    tl_result result;
    tli_limits f;
    int none;
    TL_ASSERT(desc && desc->precision.graph && fit);
    tli_zero(fit, sizeof *fit);
    rule = tli_find_fit_rule(desc);
    if (rule) return tli_fail(env, TL_ERROR_INVALID_ARG, function, rule);
    result = tli_check_precision_of(env, function, &desc->precision);
    if (result) return result;
    result = tli_open_fit(env, function, desc, &f);
    if (!result) tli_search_fit(&f);
    if (!result) result = f.result;
    none = !result && (!f.found || f.excess);
    if (!result && !none) {
        fit->plan.memory = tli_alloc_array(env, (uint64_t)f.graph->node_count, sizeof *fit->plan.nodes);
        if (fit->plan.memory) tli_fill_fit_plan(&f, fit);
        else result = tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_PLAN));
    }
    tli_close_fit(&f);
    return none ? tli_fail_fit(env, function, desc) : result;
}

TLI_IMPL void tl_free_precision_fit(tl_env *env, tl_precision_fit *fit) {
    if (!fit) return;
    tl_free_precision_plan(env, &fit->plan);
    tli_zero(fit, sizeof *fit);
}

#define TLI_NAME_MEASURE(id, name, help) name,
static const char *const tli_measure_names[] = { TL_MEASURES(TLI_NAME_MEASURE) };
#undef TLI_NAME_MEASURE

TLI_IMPL const char *tl_name_measure(tl_measure measure) {
    return tli_is_below((int64_t)measure, TL_MEASURE_COUNT) ? tli_measure_names[measure] : "?";
}

#ifndef TL_NO_TEXT
TLI_IMPL int tl_parse_measure(const char *text, tl_measure *measure) {
    int32_t value;
    int known = tli_parse_word(tli_measure_names, TL_MEASURE_COUNT, text, &value);
    TL_ASSERT(measure);
    *measure = (tl_measure)value;
    return known;
}
#endif
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION
