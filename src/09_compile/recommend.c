#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- curves --
//
// The curve is compiled from both ends: without a budget, where nothing is cheaper; with one of a byte, whose
// refusal names the fewest bytes found; then at budgets evenly spaced between.

#define TLI_FRONT_POINTS 16
#define TLI_FRONT_MOST_POINTS 1000

// Compile within a budget, quietly, with so much work, and note what was chosen. least: after
// TL_ERROR_INFEASIBLE the budget that would do, 0 = not known, UINT64_MAX = none because of a loss.
static tl_result tli_compile_point(tl_env *env, const tl_compile_desc *desc, uint64_t budget_bytes,
                                   uint64_t work_limit, tl_compile_point *point, uint64_t *least,
                                   uint64_t *work) {
    tl_compile_desc one = *desc;
    tl_compiled_plan compiled;
    tli_quiet quiet = tli_begin_quiet(env);
    tl_env own;
    tl_result result;
    tli_zero(&own, sizeof own);
    if (env) own = *env;
    own.log = NULL;
    one.budget_bytes = budget_bytes;
    one.work_limit = work_limit;
    tli_zero(point, sizeof *point);
    result = tl_compile(&own, &one, &compiled);
    *work += compiled.work;
    point->budget_bytes = budget_bytes;
    point->choice = compiled.choice;
    point->bound_cost = compiled.bound_cost;
    *least = result == TL_ERROR_INFEASIBLE ? tl_find_least_budget(&own.error) : 0;
    if (*least == UINT64_MAX && (own.error.site & 0xFFFF) != TLI_RULE_LOSS_LIMIT_NO_CHOICE_OF_FORMATS)
        *least = 0;
    tl_free_compiled_plan(&own, &compiled);
    if (env) env->error = own.error;
    tli_end_quiet(&quiet, result == TL_ERROR_INFEASIBLE ? TL_OK : result);
    return result;
}

// Insert a point by its bytes, and take out what it, or what takes fewer bytes, makes useless.
static int32_t tli_add_point(tl_compile_point *points, int32_t count, const tl_compile_point *point) {
    int32_t at = 0, k, kept;
    while (at < count && points[at].choice.arena_bytes < point->choice.arena_bytes) at++;
    for (k = count; k > at; k--) points[k] = points[k - 1];
    points[at] = *point;
    for (k = kept = 0; k <= count; k++) {
        int useless = kept && points[k].choice.cost >= points[kept - 1].choice.cost;
        while (!useless && kept && points[kept - 1].choice.arena_bytes >= points[k].choice.arena_bytes) kept--;
        if (!useless) points[kept++] = points[k];
    }
    return kept;
}

// The point farthest from the line between the ends, both axes scaled to 1.
static int32_t tli_find_farthest(const tl_compile_point *points, int32_t count) {
    const tl_compile_choice *low = &points[0].choice, *high = &points[count - 1].choice;
    double best = 0;
    int32_t knee = 0, k;
    for (k = 1; k + 1 < count; k++) {
        double right = (double)(points[k].choice.arena_bytes - low->arena_bytes) /
                       (double)(high->arena_bytes - low->arena_bytes);
        double down = (double)(low->cost - points[k].choice.cost) / (double)(low->cost - high->cost);
        if (down - right > best) { best = down - right; knee = k; }
    }
    return knee;
}

// The two ends of the curve. The lower one: the budget that a refusal of one byte names. least: as above, where
// nothing is chosen without a budget.
static tl_result tli_compile_ends(tl_env *env, const tl_compile_desc *desc, uint64_t work_limit,
                                  tl_compile_point *ends, uint64_t *least, uint64_t *work) {
    uint64_t lowest = 0, none;
    tl_result result = tli_compile_point(env, desc, 0, work_limit, &ends[1], least, work);
    if (result) return result;
    result = tli_compile_point(env, desc, 1, work_limit, &ends[0], &lowest, work);
    if (result != TL_ERROR_INFEASIBLE) return result;
    if (lowest && lowest != UINT64_MAX)
        result = tli_compile_point(env, desc, lowest, work_limit, &ends[0], &none, work);
    if (result == TL_ERROR_INFEASIBLE) { ends[0] = ends[1]; result = TL_OK; }
    return result;
}

// points: room for limit + 1.
static tl_result tli_compile_curve(tl_env *env, const tl_compile_desc *desc, int32_t limit,
                                   tl_compile_point *points, int32_t *count, uint64_t *least,
                                   uint64_t *work) {
    uint64_t each = tli_or_default(desc->work_limit, TLI_COMPILE_WORK) / (uint64_t)limit + 1, low, high, none;
    tl_compile_point ends[2], point;
    tl_result result = tli_compile_ends(env, desc, each, ends, least, work);
    int32_t k;
    *count = 0;
    if (result) return result;
    *count = tli_add_point(points, 0, &ends[0]);
    *count = tli_add_point(points, *count, &ends[1]);
    low = ends[0].choice.arena_bytes + desc->base_bytes;
    high = ends[1].choice.arena_bytes + desc->base_bytes;
    for (k = 1; k + 1 < limit && high > low && !result; k++) {
        uint64_t budget = low + tli_multiply_ratio(high - low, (uint64_t)k, (uint64_t)limit - 1, 0);
        result = tli_compile_point(env, desc, budget, each, &point, &none, work);
        if (!result) *count = tli_add_point(points, *count, &point);
        else if (result == TL_ERROR_INFEASIBLE) result = TL_OK;
    }
    return result;
}

TLI_IMPL tl_result tl_plan_compile_front(tl_env *env, const tl_compile_desc *desc, int32_t point_limit,
                                         tl_compile_front *front) {
    int32_t limit = point_limit ? point_limit : TLI_FRONT_POINTS, count = 0;
    tl_compile_point *points;
    uint64_t least;
    tl_result result;
    TL_ASSERT(desc && desc->graph && desc->strategy && front);
    tli_zero(front, sizeof *front);
    if (limit < 2 || limit > TLI_FRONT_MOST_POINTS)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_COMPILE_FRONT),
                        TLI_RULE(POINT_LIMIT_AT_LEAST_2));
    points = (tl_compile_point *)tli_alloc_array(env, (uint64_t)limit + 1, sizeof *points);
    result = points ? tli_compile_curve(env, desc, limit, points, &count, &least, &front->work)
                    : tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(PLAN_COMPILE_FRONT),
                               TLI_RULE(NO_MEMORY_TO_COMPILE));
    front->points = points;
    front->point_count = count;
    front->memory = points;
    if (count > 2) front->knee = tli_find_farthest(points, count);
    if (result) tl_free_compile_front(env, front);
    return result;
}

TLI_IMPL void tl_free_compile_front(tl_env *env, tl_compile_front *front) {
    if (!front) return;
    tli_release(env, front->memory);
    tli_zero(front, sizeof *front);
}

// -- recommend --
//
// Each candidate gives points of bytes and cost, one or several by the wish; the best point of all is compiled
// once more with all of the work.

static const char *const tli_wish_names[] = { TL_WISHES(TLI_NAME) };
static const char *const tli_outcome_names[] = { TL_OUTCOMES(TLI_NAME) };

TLI_IMPL const char *tl_name_wish(tl_wish wish) {
    return tli_name(tli_wish_names, TL_WISH_COUNT, (int64_t)wish);
}

TLI_IMPL const char *tl_name_outcome(tl_outcome outcome) {
    return tli_name(tli_outcome_names, TL_OUTCOME_COUNT, (int64_t)outcome);
}

#define TLI_WISH_POINTS 8       // of the curve of a candidate, or turns of a bisection
#define TLI_MOST_CANDIDATES 16

typedef struct tli_recommend {
    tl_env *env;
    const tl_recommend_desc *desc;
    tl_compile_desc compile;        // with the strategy at hand
    tl_recommend_row *rows;         // [TLI_MOST_CANDIDATES]
    uint64_t *budgets;              // [TLI_MOST_CANDIDATES] at which the row's choice was compiled
    uint64_t *work;                 // [TLI_MOST_CANDIDATES] with which, as a limit
    int32_t   count;
    uint64_t  each;                 // work of one compilation
    uint64_t  least;                // of the budgets with which a candidate would do; UINT64_MAX = not known
    uint64_t  least_cost;           // for least-bytes: of any candidate; UINT64_MAX = not known
} tli_recommend;

// The candidates, from those that ask for less to those that ask for more.
static int32_t tli_list_candidates(const tl_recommend_desc *desc, tl_recommend_row *rows) {
    int mixes = (desc->compile.kernel_precisions >> TL_PRECISION_MIXED & 1) != 0;
    int mixed, fused, fewest, again;
    int32_t count = 0;
    for (mixed = 0; mixed <= mixes; mixed++)
        for (fused = 0; fused < 2; fused++)
            for (fewest = 0; fewest < 2; fewest++)
                for (again = 0; again < (desc->inference ? 1 : 2); again++) {
                    tl_strategy *strategy = &rows[count++].strategy;
                    strategy->mode = TL_MODE_LAZY;
                    strategy->precision = mixed ? TL_PRECISION_MIXED : TL_PRECISION_FULL;
                    strategy->memory = fewest ? TL_MEMORY_MINIMAL_PEAK : TL_MEMORY_POOLED;
                    strategy->enable_fusion = fused;
                    if (!desc->inference)
                        strategy->gradient = again ? tl_gradient_checkpointed(0) : tl_gradient_full();
                }
    return count;
}

// Ask for a candidate; how formats are chosen is for those that choose them.
static void tli_set_candidate(tli_recommend *r, int32_t index) {
    r->compile.strategy = &r->rows[index].strategy;
    r->compile.precision = NULL;
    if (r->compile.strategy->precision == TL_PRECISION_MIXED) r->compile.precision = r->desc->compile.precision;
}

// The fewest bytes at a cost within the limit, by bisection between the ends of the curve.
static tl_result tli_bisect_bytes(tli_recommend *r, tl_compile_point *best, uint64_t *least, uint64_t *work) {
    uint64_t limit = r->desc->cost_limit, low, high, none;
    tl_compile_point ends[2], point;
    tl_result result = tli_compile_ends(r->env, &r->compile, r->each, ends, least, work);
    int turn;
    if (result) return result;
    *best = ends[1];
    if (ends[1].choice.cost < r->least_cost) r->least_cost = ends[1].choice.cost;
    if (ends[1].choice.cost > limit) return TL_ERROR_INFEASIBLE;
    if (ends[0].choice.cost <= limit) { *best = ends[0]; return TL_OK; }
    low = ends[0].choice.arena_bytes + r->compile.base_bytes;
    high = ends[1].choice.arena_bytes + r->compile.base_bytes;
    for (turn = 0; turn < TLI_WISH_POINTS && high - low > 1 && high > low; turn++) {
        uint64_t middle = low + (high - low) / 2;
        result = tli_compile_point(r->env, &r->compile, middle, r->each, &point, &none, work);
        if (result && result != TL_ERROR_INFEASIBLE) return result;
        if (result || point.choice.cost > limit) { low = middle; continue; }
        if (point.choice.arena_bytes < best->choice.arena_bytes) *best = point;
        high = point.choice.arena_bytes + r->compile.base_bytes;
    }
    return TL_OK;
}

// The knee of the candidate's own curve.
static tl_result tli_find_knee_point(tli_recommend *r, tl_compile_point *best, uint64_t *least,
                                     uint64_t *work) {
    tl_compile_point points[TLI_WISH_POINTS + 1];
    tl_compile_desc desc = r->compile;
    int32_t count;
    tl_result result;
    desc.work_limit = r->each * TLI_WISH_POINTS;
    result = tli_compile_curve(r->env, &desc, TLI_WISH_POINTS, points, &count, least, work);
    if (!result) *best = points[count > 2 ? tli_find_farthest(points, count) : 0];
    return result;
}

// Compile a candidate by the wish; for the least time with a limit of the work.
static tl_result tli_try_candidate(tli_recommend *r, int32_t index, uint64_t limit) {
    tl_recommend_row *row = &r->rows[index];
    tl_compile_point point;
    uint64_t least = 0, work = 0;
    tl_result result = TL_OK;
    tli_zero(&point, sizeof point);
    tli_set_candidate(r, index);
    switch (r->desc->wish) {
    case TL_WISH_LEAST_TIME:
        result = tli_compile_point(r->env, &r->compile, r->desc->compile.budget_bytes, limit, &point, &least,
                                   &work);
        break;
    case TL_WISH_LEAST_BYTES: result = tli_bisect_bytes(r, &point, &least, &work); break;
    case TL_WISH_KNEE: result = tli_find_knee_point(r, &point, &least, &work); break;
    case TL_WISH_COUNT: break;
    }
    row->choice = point.choice;
    row->outcome = TL_OUTCOME_SLOWER;
    r->work[index] = r->desc->wish == TL_WISH_KNEE ? r->each + 1 : limit;
    row->least_bytes = 0;
    r->budgets[index] = point.budget_bytes;
    if (r->desc->wish == TL_WISH_LEAST_TIME) r->budgets[index] = r->desc->compile.budget_bytes;
    if (result != TL_ERROR_INFEASIBLE) return result;
    row->outcome = least == UINT64_MAX ? TL_OUTCOME_LOSS : TL_OUTCOME_OVER;
    row->least_bytes = least == UINT64_MAX ? 0 : least;
    if (least && least < r->least) r->least = least;
    return TL_OK;
}

static int tli_is_candidate(const tl_recommend_row *row) {
    return row->outcome != TL_OUTCOME_OVER && row->outcome != TL_OUTCOME_LOSS;
}

// Whether a is better than b by the wish. Of the knees of several curves that with the least product of bytes
// and cost is the best.
static int tli_is_row_better(tl_wish wish, const tl_compile_choice *a, const tl_compile_choice *b) {
    if (wish == TL_WISH_KNEE)
        return (double)a->arena_bytes * (double)a->cost < (double)b->arena_bytes * (double)b->cost;
    if (wish == TL_WISH_LEAST_BYTES && a->arena_bytes != b->arena_bytes) return a->arena_bytes < b->arena_bytes;
    return a->cost < b->cost || (a->cost == b->cost && wish == TL_WISH_LEAST_TIME &&
                                 a->arena_bytes < b->arena_bytes);
}

// The best row; -1 = nothing fits.
static int32_t tli_choose_row(const tli_recommend *r) {
    int32_t best = -1, k;
    for (k = 0; k < r->count; k++) {
        if (!tli_is_candidate(&r->rows[k])) continue;
        if (best < 0 || tli_is_row_better(r->desc->wish, &r->rows[k].choice, &r->rows[best].choice)) best = k;
    }
    return best;
}

static void tli_judge_rows(tli_recommend *r, int32_t chosen) {
    int32_t k;
    for (k = 0; k < r->count; k++)
        if (tli_is_candidate(&r->rows[k]))
            r->rows[k].outcome = r->rows[k].choice.cost >= r->rows[chosen].choice.cost ? TL_OUTCOME_SLOWER
                                                                                      : TL_OUTCOME_LARGER;
    r->rows[chosen].outcome = TL_OUTCOME_CHOSEN;
}

// What limits all strategies, but a budget or a cost of the caller's, is said by compiling one once more.
static tl_result tli_refuse_wish(tli_recommend *r) {
    const tl_compile_desc *desc = &r->desc->compile;
    tli_budget budget = tli_find_budget(desc->budget_bytes, desc->host_budget_bytes, desc->base_bytes,
                                        desc->device, NULL, 0);
    tli_sentence s;
    int is_named = r->desc->wish == TL_WISH_LEAST_TIME && budget.is_limited && budget.limit == TL_LIMIT_BUDGET;
    if (r->desc->wish == TL_WISH_LEAST_BYTES && r->least_cost != UINT64_MAX) is_named = 1;
    if (!is_named || (r->desc->wish == TL_WISH_LEAST_TIME && r->least == UINT64_MAX)) {
        tl_compiled_plan none;
        tl_result result;
        tli_set_candidate(r, r->count - 1);
        r->compile.budget_bytes = r->desc->wish == TL_WISH_LEAST_TIME ? desc->budget_bytes : 0;
        r->compile.work_limit = r->each;
        result = tl_compile(r->env, &r->compile, &none);
        tl_free_compiled_plan(r->env, &none);
        if (result) return result;
    }
    if (r->desc->wish == TL_WISH_LEAST_BYTES)
        return tli_fail_values(r->env, TL_ERROR_INFEASIBLE, TLI_IN(RECOMMEND), TLI_RULE(NO_STRATEGY_IS_SO_FAST),
                               r->desc->cost_limit, r->least_cost);
    s = tli_begin_error(r->env, TL_ERROR_INFEASIBLE, TLI_IN(RECOMMEND), TLI_RULE(NO_STRATEGY_FITS),
                        r->desc->compile.budget_bytes, r->least);
    tli_put_limit(r->env, &s, TL_LIMIT_BUDGET);
    return tli_end_error(r->env, &s, TL_ERROR_INFEASIBLE);
}

// Compile the chosen one with all of the work; where that finds worse, as it was found.
static tl_result tli_compile_chosen(tli_recommend *r, int32_t chosen, tl_compiled_plan *compiled) {
    tl_recommend_row *row = &r->rows[chosen];
    tl_result result;
    tli_set_candidate(r, chosen);
    r->compile.budget_bytes = r->budgets[chosen];
    r->compile.work_limit = r->desc->compile.work_limit;
    result = tl_compile(r->env, &r->compile, compiled);
    if (!result && !tli_is_row_better(r->desc->wish, &row->choice, &compiled->choice)) return TL_OK;
    tl_free_compiled_plan(r->env, compiled);
    r->compile.work_limit = r->work[chosen];
    return tl_compile(r->env, &r->compile, compiled);
}

static tli_rule tli_find_recommend_rule(const tl_recommend_desc *desc) {
    if (desc->compile.strategy) return TLI_RULE(RECOMMEND_STRATEGY_MUST_BE_0);
    if ((uint32_t)desc->wish >= TL_WISH_COUNT) return TLI_RULE(WISH_UNKNOWN);
    if (desc->inference & ~1) return TLI_RULE(INFERENCE_MUST_BE_0_OR_1);
    if (desc->wish == TL_WISH_LEAST_BYTES && !desc->cost_limit) return TLI_RULE(COST_LIMIT_MUST_BE_POSITIVE);
    return TLI_NO_RULE;
}

// The row that would fit with the fewest bytes, of those that do not; -1 = none.
static int32_t tli_find_nearest_row(const tli_recommend *r) {
    int32_t nearest = -1, k;
    for (k = 0; k < r->count; k++) {
        const tl_recommend_row *row = &r->rows[k];
        if (row->outcome != TL_OUTCOME_OVER || !row->least_bytes) continue;
        if (nearest < 0 || row->least_bytes < r->rows[nearest].least_bytes) nearest = k;
    }
    return nearest;
}

// What was not found to fit gets all of the work before the table says so. Where nothing fits, the nearest
// first.
static tl_result tli_try_again(tli_recommend *r) {
    int32_t nearest = tli_find_nearest_row(r), k;
    tl_result result = TL_OK;
    if (r->desc->wish != TL_WISH_LEAST_TIME || nearest < 0) return TL_OK;
    if (tli_choose_row(r) < 0) result = tli_try_candidate(r, nearest, r->desc->compile.work_limit);
    for (k = 0; k < r->count && !result && tli_choose_row(r) >= 0; k++)
        if (r->rows[k].outcome == TL_OUTCOME_OVER)
            result = tli_try_candidate(r, k, r->desc->compile.work_limit);
    return result;
}

static tl_result tli_run_recommend(tli_recommend *r, tl_recommendation *recommendation) {
    int32_t chosen, k;
    tl_result result = TL_OK;
    r->count = tli_list_candidates(r->desc, r->rows);
    for (k = 0; k < r->count && !result; k++) result = tli_try_candidate(r, k, r->each);
    if (!result) result = tli_try_again(r);
    if (result) return result;
    chosen = tli_choose_row(r);
    if (chosen < 0) return tli_refuse_wish(r);
    result = tli_compile_chosen(r, chosen, &recommendation->compiled);
    if (result) return result;
    r->rows[chosen].choice = recommendation->compiled.choice;
    tli_judge_rows(r, chosen);
    recommendation->strategy = r->rows[chosen].strategy;
    return TL_OK;
}

TLI_IMPL tl_result tl_recommend(tl_env *env, const tl_recommend_desc *desc, tl_recommendation *recommendation) {
    tli_recommend r;
    tli_rule rule;
    tl_result result;
    TL_ASSERT(desc && desc->compile.graph && recommendation);
    tli_zero(recommendation, sizeof *recommendation);
    rule = tli_find_recommend_rule(desc);
    if (rule) return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(RECOMMEND), rule);
    tli_zero(&r, sizeof r);
    r.env = env;
    r.desc = desc;
    r.compile = desc->compile;
    r.each = tli_or_default(desc->compile.work_limit, TLI_COMPILE_WORK) / 8 + 1;
    r.least = r.least_cost = UINT64_MAX;
    r.rows = (tl_recommend_row *)tli_alloc_array(env, TLI_MOST_CANDIDATES,
                                                 sizeof *r.rows + 2 * sizeof *r.budgets);
    if (!r.rows) return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(RECOMMEND), TLI_RULE(NO_MEMORY_TO_COMPILE));
    r.budgets = (uint64_t *)(void *)(r.rows + TLI_MOST_CANDIDATES);
    r.work = r.budgets + TLI_MOST_CANDIDATES;
    result = tli_run_recommend(&r, recommendation);
    recommendation->rows = r.rows;
    recommendation->row_count = r.count;
    recommendation->memory = r.rows;
    if (result) tl_free_recommendation(env, recommendation);
    return result;
}

TLI_IMPL void tl_free_recommendation(tl_env *env, tl_recommendation *recommendation) {
    if (!recommendation) return;
    tl_free_compiled_plan(env, &recommendation->compiled);
    tli_release(env, recommendation->memory);
    tli_zero(recommendation, sizeof *recommendation);
}

#ifndef TL_NO_TEXT
TLI_IMPL int tl_parse_wish(const char *text, tl_wish *wish) {
    int32_t value;
    int known = tli_parse_word(tli_wish_names, TL_WISH_COUNT, text, &value);
    TL_ASSERT(wish);
    *wish = (tl_wish)value;
    return known;
}

// -- compiled plans as text --

// By how much one number is above another, in percent: two digits after the point, or "less than 0.01".
static void tli_put_above(tli_writer *w, uint64_t value, uint64_t of) {
    double more = of && value > of ? (double)(value - of) * 100.0 / (double)of : 0;
    if (more > 0 && more < 0.01) tli_put(w, "less than 0.01");
    else tli_put_fixed(w, more, 2);
    tli_put(w, " %");
}

// word: "slower", "larger".
static void tli_put_worse(tli_writer *w, const char *word, uint64_t value, uint64_t of) {
    if (value <= of) {
        tli_put(w, "no better: ");
        return;
    }
    tli_put(w, word);
    tli_put(w, " by ");
    tli_put_above(w, value, of);
    tli_put(w, ": ");
}

static void tli_put_choice(tli_writer *w, const tl_compile_choice *choice) {
    int32_t k, formats = 0;
    tli_put(w, "cost ");
    tli_put_u64(w, choice->cost);
    tli_put(w, ", ");
    tli_put_u64(w, choice->arena_bytes);
    tli_put(w, " bytes");
    if (choice->part_count > 1) {
        tli_put(w, ", the batch in ");
        tli_put_i64(w, choice->part_count);
        tli_put(w, " parts");
    }
    if (choice->fused_count) {
        tli_put(w, ", fused nodes: ");
        tli_put_i64(w, choice->fused_count);
    }
    for (k = 0; k < TL_FORMAT_COUNT; k++) formats += choice->format_counts[k] > 0;
    for (k = 0; k < TL_FORMAT_COUNT && formats > 1; k++) {
        if (!choice->format_counts[k]) continue;
        tli_put(w, ", ");
        tli_put_i64(w, choice->format_counts[k]);
        tli_put(w, " nodes in ");
        tli_put(w, tl_name_format((tl_format)k));
    }
    if (choice->conversion_count) {
        tli_put(w, ", conversions: ");
        tli_put_i64(w, choice->conversion_count);
    }
    if (choice->copy_count) {
        tli_put(w, ", copies to and from the host: ");
        tli_put_i64(w, choice->copy_count);
    }
    if (choice->compressed_count) {
        tli_put(w, ", tensors compressed: ");
        tli_put_i64(w, choice->compressed_count);
    }
}

static void tli_put_candidate(tli_writer *w, const tl_strategy *strategy) {
    tli_put(w, !strategy->gradient.computes ? "forward     " : strategy->gradient.checkpointed ? "checkpointed"
                                                                                              : "full        ");
    tli_put(w, strategy->memory == TL_MEMORY_MINIMAL_PEAK ? "  minimal-peak" : "  pooled      ");
    tli_put(w, strategy->precision == TL_PRECISION_MIXED ? "  mixed" : "  full ");
    tli_put(w, strategy->enable_fusion ? "  fused  " : "  as it is");
}

static void tli_put_row(tli_writer *w, const tl_recommendation *recommendation, const tl_recommend_row *row) {
    const tl_compile_choice *chosen = &recommendation->compiled.choice;
    tli_put_candidate(w, &row->strategy);
    tli_put(w, "  ");
    switch (row->outcome) {
    case TL_OUTCOME_CHOSEN: tli_put(w, "chosen: "); break;
    case TL_OUTCOME_SLOWER: tli_put_worse(w, "slower", row->choice.cost, chosen->cost); break;
    case TL_OUTCOME_LARGER:
        tli_put_worse(w, "larger", row->choice.arena_bytes, chosen->arena_bytes);
        break;
    case TL_OUTCOME_OVER:
        tli_put(w, "no plan found that fits");
        if (!row->least_bytes) break;
        tli_put(w, ", one takes ");
        tli_put_u64(w, row->least_bytes);
        tli_put(w, " bytes");
        break;
    case TL_OUTCOME_LOSS: tli_put(w, "loses more than its limit"); break;
    case TL_OUTCOME_COUNT: break;
    }
    if (tli_is_candidate(row)) tli_put_choice(w, &row->choice);
    tli_put(w, "\n");
}

TLI_IMPL size_t tl_print_recommendation(const tl_recommendation *recommendation, char *buf, size_t size) {
    tli_writer w = tli_writer_of(buf, size);
    int32_t k;
    TL_ASSERT(recommendation);
    for (k = 0; k < recommendation->row_count; k++) tli_put_row(&w, recommendation, &recommendation->rows[k]);
    return tli_finish(&w);
}

static void tli_send_choice(tli_stream *s, const char *before, const tl_compile_choice *choice) {
    char text[400];
    tli_writer w = tli_writer_of(text, sizeof text);
    tli_put_choice(&w, choice);
    tli_finish(&w);
    tli_send(s, before);
    tli_send(s, text);
    tli_send(s, "\n");
}

static void tli_send_above(tli_stream *s, uint64_t value, uint64_t of) {
    char text[80];
    tli_writer w = tli_writer_of(text, sizeof text);
    tli_put_above(&w, value, of);
    tli_finish(&w);
    tli_send(s, text);
}

// What the same budget and a MiB would give.
static tl_result tli_explain_next(tl_env *env, const tl_compile_desc *desc, const tl_compiled_plan *compiled,
                                  tli_stream *s) {
    uint64_t budget = desc->budget_bytes, none, work = 0;
    tl_compile_desc more = *desc;
    tl_compile_point point;
    tl_result result;
    if (!budget || budget > UINT64_MAX - 1048576) return TL_OK;
    if (desc->strategy->precision != TL_PRECISION_MIXED) more.precision = NULL;     // as of tl_recommend
    result = tli_compile_point(env, &more, budget + 1048576, desc->work_limit, &point, &none, &work);
    if (result) return result == TL_ERROR_INFEASIBLE ? TL_OK : result;
    if (point.choice.cost >= compiled->choice.cost) {
        tli_send(s, "one more MiB buys nothing\n");
        return TL_OK;
    }
    tli_send_choice(s, "one more MiB: ", &point.choice);
    return TL_OK;
}

TLI_IMPL tl_result tl_explain_compiled(tl_env *env, const tl_compile_desc *desc,
                                       const tl_compiled_plan *compiled, tl_sink sink) {
    tli_stream stream;
    tl_result result;
    TL_ASSERT(desc && desc->graph && desc->strategy && compiled && sink.write);
    tli_open_stream(&stream, sink);
    tli_send_choice(&stream, "chosen: ", &compiled->choice);
    tli_send(&stream, "no combination costs less than ");
    tli_send_u64(&stream, compiled->bound_cost);
    if (compiled->proven) tli_send(&stream, ": proven\n");
    else {
        tli_send(&stream, compiled->gap_ratio > 0 && compiled->gap_ratio < 0.0001 ? ": " : ": at most ");
        tli_send_above(&stream, compiled->choice.cost, compiled->bound_cost);
        tli_send(&stream, " above\n");
    }
    if (compiled->runner_up.cost) {
        tli_send_choice(&stream, "runner-up: ", &compiled->runner_up);
        if (compiled->runner_up.cost > compiled->choice.cost) {
            tli_send(&stream, "    above the chosen one by ");
            tli_send_above(&stream, compiled->runner_up.cost, compiled->choice.cost);
            tli_send(&stream, "\n");
        } else {
            tli_send(&stream, compiled->runner_up.cost < compiled->choice.cost
                                  ? "    costs less, but takes more bytes\n"
                                  : "    costs the same, and takes no fewer bytes\n");
        }
    }
    result = tli_explain_next(env, desc, compiled, &stream);
    if (result) return result;
    return tli_close_stream(&stream, env, TLI_IN(EXPLAIN_COMPILED));
}
#endif
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
