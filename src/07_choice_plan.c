#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- choice: one limit --
//
// This part puts the methods of the two parts above together: one choice within a limit, and the front of all
// choices. A choice tries the Lagrangian bound over the decomposition first, then lists, and the search for
// graphs that are too wide for lists.

// Solve over a decomposition.
static tl_result tli_choice_solve_decomposed(tli_choice *x) {
    tli_choice_point a, b;
    uint64_t least;
    x->method = TL_CHOICE_BOUND;
    if (x->value_hint | x->limited_hint) {
        tli_choice_find_point(x, x->value_hint, x->limited_hint, &least);
        x->bound = tli_choice_find_bound(x, least);
        if (x->found && x->bound >= x->best_value) return TL_OK;
    }
    tli_choice_weigh_limited(x);
    least = tli_choice_fill_inside(x, &x->limited);
    x->nearest = least >= TLI_CHOICE_INFINITE ? TL_UNLIMITED : least;
    if (least >= TLI_CHOICE_INFINITE || least > x->limit) return TL_ERROR_INFEASIBLE;
    tli_choice_read_picks(x, &x->limited);
    tli_choice_read_schemes(x, 1);
    b = tli_choice_keep(x);
    a = tli_choice_find_point(x, 1, 0, &least);
    if (tli_choice_find_bound(x, least) > x->bound) x->bound = tli_choice_find_bound(x, least);
    if (a.limited <= x->limit) return TL_OK;
    tli_choice_narrow(x, a, b);
    if (x->bound >= x->best_value) return TL_OK;
    x->method = TL_CHOICE_ELIMINATION;
    return tli_choice_improve(x) ? TL_OK : TL_ERROR_NO_MEMORY;
}

static tl_result tli_choice_solve_built(tli_choice *x);

// Build the model again and solve it: with tables of at most two variables, for the search, or with all
// schemes, to find the nearest limit.
static tl_result tli_choice_solve_again(tli_choice *x, int pairwise) {
    tl_result result = TL_ERROR_NO_MEMORY;
    tli_choice y;
    tli_choice_init(&y, x->env, x->desc, x->allowed, x->best, x->watch);
    y.pairwise = pairwise;
    y.complete = !pairwise;
    y.work = x->work;
    y.work_limit = x->work_limit;
    if (tli_choice_build(&y)) {
        if (pairwise) result = tli_choice_search(&y);
        else result = tli_choice_solve_built(&y);
    }
    x->work = y.work;
    x->found = y.found;
    x->best_value = y.best_value;
    x->best_limited = y.best_limited;
    x->bound = y.bound;
    x->method = y.method;
    x->nearest = y.nearest;
    tli_choice_free(&y);
    return result;
}

static tl_result tli_choice_solve_built(tli_choice *x) {
    int decomposed = tli_choice_decompose(x);
    if (!decomposed) return TL_ERROR_NO_MEMORY;
    if (decomposed > 0) return tli_choice_solve_decomposed(x);
    return x->inner ? TL_ERROR_UNSUPPORTED : tli_choice_solve_again(x, 1);
}

static tl_result tli_choice_solve(tli_choice *x) {
    tl_result result = tli_choice_build(x) ? tli_choice_solve_built(x) : TL_ERROR_NO_MEMORY;
    if (result != TL_ERROR_INFEASIBLE || !x->pruned || x->inner || x->method == TL_CHOICE_SEARCH) return result;
    return tli_choice_solve_again(x, 0);
}

// -- choice: plan --

// Allow all schemes that are not forbidden; *node = the first node that has none, -1 = none.
static uint16_t *tli_choice_allow_all(tl_env *env, const tl_choice_desc *desc, int32_t *node) {
    uint16_t *allowed = (uint16_t *)tli_alloc_array(env, (uint64_t)desc->node_count, sizeof *allowed);
    size_t at = 0;
    int32_t i, k;
    *node = -1;
    for (i = 0; allowed && i < desc->node_count; i++) {
        for (k = 0; k < desc->scheme_count; k++, at++)
            if (desc->costs[at] != TL_FORBIDDEN) allowed[i] = (uint16_t)(allowed[i] | 1u << k);
        if (!allowed[i] && *node < 0) *node = i;
    }
    return allowed;
}

static tl_result tli_choice_refuse_node(tl_env *env, const char *function, int32_t node) {
    tli_writer w = tli_begin_error(env, TL_ERROR_INFEASIBLE, function);
    tli_put(&w, "costs: node ");
    tli_put_i64(&w, node);
    tli_put(&w, ": every scheme is forbidden");
    return tli_end_error(env, &w, TL_ERROR_INFEASIBLE);
}

static tl_result tli_choice_explain(tl_env *env, const tli_choice *x, const char *function, tl_result result) {
    tli_writer w;
    if (result == TL_ERROR_NO_MEMORY) return tli_fail(env, result, function, "no memory to plan");
    if (result != TL_ERROR_INFEASIBLE) return result;
    if (x->nearest == TL_UNLIMITED)
        return tli_fail(env, result, function, x->method == TL_CHOICE_SEARCH
            ? "nets: no choice without a forbidden conversion was found"
            : "nets: every choice needs a forbidden conversion");
    w = tli_begin_error(env, result, function);
    tli_put(&w, x->swap ? "cost_limit: " : "loss_limit: ");
    tli_put_u64(&w, x->limit);
    tli_put(&w, x->method == TL_CHOICE_SEARCH ? " is too little: a choice was found that needs "
                                              : " is too little: the least that can be had is ");
    tli_put_u64(&w, x->nearest);
    return tli_end_error(env, &w, result);
}

static double tli_choice_gap(uint64_t value, uint64_t bound) {
    if (value <= bound) return 0;
    return bound ? (double)(value - bound) / (double)bound : (double)value;
}

TLI_IMPL tl_result tl_plan_choice(tl_env *env, const tl_choice_desc *desc, tl_choice_plan *plan) {
    tl_env quiet;
    tli_choice_watch watch;
    tl_result result;
    uint16_t *allowed;
    uint8_t *best;
    int32_t node;
    tli_choice x;
    TL_ASSERT(desc && plan);
    tli_zero(plan, sizeof *plan);
    result = tl_check_choice(env, desc);
    if (result) return result;
    tli_zero(&quiet, sizeof quiet);
    if (env) { quiet = *env; quiet.log = NULL; }
    tli_zero(&watch, sizeof watch);
    allowed = tli_choice_allow_all(&quiet, desc, &node);
    best = (uint8_t *)tli_alloc_array(&quiet, (uint64_t)desc->node_count, 1);
    watch.desc = desc;
    watch.next = TLI_CHOICE_ASK;
    watch.now.value = UINT64_MAX;
    tli_choice_init(&x, &quiet, desc, allowed, best, &watch);
    watch.now.work_limit = x.work_limit;
    result = !allowed || !best ? TL_ERROR_NO_MEMORY : node >= 0 ? TL_ERROR_INFEASIBLE : tli_choice_solve(&x);
    tli_choice_free(&x);
    tli_release(&quiet, allowed);
    if (!result) {
        tl_simulate_choice(&quiet, desc, best, plan);
        plan->bound = x.bound < x.best_value ? x.bound : x.best_value;
        plan->proven = x.bound >= x.best_value;
        plan->gap_ratio = tli_choice_gap(x.best_value, plan->bound);
        plan->method = x.method;
        plan->work = x.work;
        plan->memory = best;
        return TL_OK;
    }
    tli_release(&quiet, best);
    if (result == TL_ERROR_INFEASIBLE) plan->nearest_limit = node >= 0 ? TL_UNLIMITED : x.nearest;
    return node >= 0 && result == TL_ERROR_INFEASIBLE ? tli_choice_refuse_node(env, "tl_plan_choice", node)
                                                      : tli_choice_explain(env, &x, "tl_plan_choice", result);
}

TLI_IMPL void tl_free_choice_plan(tl_env *env, tl_choice_plan *plan) {
    if (!plan) return;
    tli_release(env, plan->memory);
    tli_zero(plan, sizeof *plan);
}

// -- choice: the front --

// The points found so far, by rising loss; the schemes of point i are row rows[i].
typedef struct tli_choice_front {
    tli_choice         *x;
    tl_front_point *points;           // [limit]
    uint8_t        *schemes;          // [limit x node_count]
    int32_t        *rows;             // [limit]
    uint8_t        *closed;           // [limit] 1 = no more points between this one and the next
    int32_t         count, limit;
    uint64_t        least_loss;       // the least loss of any choice that was found
} tli_choice_front;

// Insert the schemes at hand as a point. Returns 0 = no room, or dominated by a neighbour.
static int tli_choice_add_point(tli_choice_front *f, tli_choice_point point, uint64_t bound) {
    int32_t at = 0, i;
    while (at < f->count && f->points[at].loss < point.limited) at++;
    if (f->count == f->limit || (at && f->points[at - 1].cost <= point.value)) return 0;
    if (at < f->count && (f->points[at].loss == point.limited || f->points[at].cost >= point.value)) return 0;
    for (i = f->count++; i > at; i--) {
        f->points[i] = f->points[i - 1];
        f->rows[i] = f->rows[i - 1];
        f->closed[i] = f->closed[i - 1];
    }
    f->points[at].loss = point.limited;
    f->points[at].cost = point.value;
    f->points[at].bound_cost = bound < point.value ? bound : point.value;
    f->rows[at] = f->count - 1;
    f->closed[at] = 0;
    if (at) f->closed[at - 1] = 0;
    tli_copy(f->schemes + (size_t)f->rows[at] * (size_t)f->x->desc->node_count, f->x->schemes,
             (size_t)f->x->desc->node_count);
    return 1;
}

// Add the points of the pool, sorted by rising loss; if there are too many, both ends and points at about equal
// distances in cost. Returns 0 = no memory.
static int tli_choice_pick_points(tli_choice_front *f) {
    tli_choice *x = f->x;
    int32_t count = x->pool_count, i;
    uint64_t high = x->pool[0].value, step = 0, next = 0;
    if (f->limit > 1) step = (high - x->pool[count - 1].value) / (uint64_t)(f->limit - 1);
    for (i = 0; i < count; i++) {
        tli_choice_point point;
        point.limited = x->pool[i].limited;
        point.value = x->pool[i].value;
        if (count > f->limit && i + 1 < count) {
            if (high - point.value < next || f->count + 1 >= f->limit) continue;
        }
        if (!tli_choice_read_label(x, x->pool[i].left)) return 0;
        tli_choice_add_point(f, point, point.value);
        while (step && next <= high - point.value) next += step;
    }
    return 1;
}

// Find every point, by lists without a limit. Returns 1 = done, 0 = no memory, -1 = too many points.
static int tli_choice_list_front(tli_choice_front *f) {
    tli_choice *x = f->x;
    int32_t root = (int32_t)x->row_count - 1, i, count;
    uint64_t work_limit = x->work_limit;
    tli_choice_weigh(x, x->limited_sum + 1, x->value_sum + 1);
    tli_choice_fill_inside(x, &x->mixed);
    tli_choice_fill_outside(x, &x->mixed);
    tli_choice_fill_outside(x, &x->limited);
    x->most_mixed = TLI_CHOICE_INFINITE - 1;
    x->most_labels = INT32_MAX;
    x->longest = 8 * (uint64_t)f->limit + 1024;
    x->work_limit = x->work + (work_limit > x->work ? (work_limit - x->work) / 8 : 0);
    i = tli_choice_fill_lists(x);
    x->work_limit = work_limit;
    x->longest = UINT64_MAX;
    if (!i || x->over) return i ? -1 : 0;
    count = x->row_labels[root];
    if (!tli_grow(x->env, (void **)&x->pool, &x->pool_capacity, 0, count, sizeof *x->pool)) return 0;
    tli_copy(x->pool, x->labels + x->first_label[root], (size_t)count * sizeof *x->pool);
    for (i = 0; i < count; i++) x->pool[i].left = (uint32_t)(x->first_label[root] + i);
    x->pool_count = count;
    return tli_choice_sort(x, 0, 0) && tli_choice_pick_points(f);
}

// Add corners of the hull, each where the cost falls most between two points.
static void tli_choice_walk_hull(tli_choice_front *f) {
    tli_choice *x = f->x;
    while (f->count < f->limit && !tli_choice_is_over(x)) {
        uint64_t most = 0, least;
        int32_t widest = -1, i;
        tli_choice_point point;
        for (i = 0; i + 1 < f->count; i++) {
            uint64_t fall = f->points[i].cost - f->points[i + 1].cost;
            if (f->closed[i] || fall <= most) continue;
            most = fall;
            widest = i;
        }
        if (widest < 0) return;
        point = tli_choice_find_point(x, f->points[widest + 1].loss - f->points[widest].loss, most, &least);
        x->limit = point.limited;
        if (point.limited <= f->points[widest].loss || point.limited >= f->points[widest + 1].loss ||
            !tli_choice_add_point(f, point, tli_choice_find_bound(x, least))) f->closed[widest] = 1;
        x->limit = TL_UNLIMITED;
    }
}

// Find a point of a graph that is too wide for lists: the least cost within a loss, or the least loss.
static tl_result tli_choice_search_point(tli_choice_front *f, int least_loss, uint64_t limit, uint64_t work) {
    tli_choice *x = f->x;
    tl_choice_desc desc = *x->desc;
    tli_choice_point point;
    tl_result result;
    tli_choice y;
    desc.least_loss = least_loss;
    desc.cost_limit = TL_UNLIMITED;
    desc.loss_limit = limit;
    tli_choice_init(&y, x->env, &desc, x->allowed, x->best, x->watch);
    y.work = x->work;
    y.work_limit = x->work + work;
    result = tli_choice_solve_again(&y, 1);
    x->work = y.work;
    x->method = y.method;
    x->nearest = y.nearest;
    if (!result) {
        tli_copy(x->schemes, x->best, (size_t)x->desc->node_count);
        point.limited = y.best_limited;
        point.value = y.best_value;
        if (least_loss) f->least_loss = y.best_value;
        else tli_choice_add_point(f, point, y.bound);
    }
    tli_choice_free(&y);
    return result;
}

// Find both ends of the front of a graph that is too wide for lists, then points at the middle of the
// interval of loss over which the cost falls most.
static tl_result tli_choice_search_front(tli_choice_front *f) {
    tli_choice *x = f->x;
    uint64_t share = x->work_limit / 16;
    tl_result result = tli_choice_search_point(f, 0, TL_UNLIMITED, share);
    if (!result && f->count < f->limit) {
        result = tli_choice_search_point(f, 1, TL_UNLIMITED, share);
        if (!result) result = tli_choice_search_point(f, 0, f->least_loss, share);
    }
    x->found = 1;
    while (!result && f->count < f->limit && !tli_choice_is_over(x)) {
        uint64_t most = 0;
        int32_t widest = -1, before = f->count, i;
        for (i = 0; i + 1 < f->count; i++) {
            uint64_t fall = f->points[i].cost - f->points[i + 1].cost;
            if (f->closed[i] || fall <= most) continue;
            most = fall;
            widest = i;
        }
        if (widest < 0) break;
        most = f->points[widest].loss;
        result = tli_choice_search_point(f, 0, most + (f->points[widest + 1].loss - most) / 2, share);
        if (f->count == before) f->closed[widest] = 1;
    }
    return result;
}

static tl_result tli_choice_fill_front(tli_choice_front *f, int32_t *complete) {
    tli_choice *x = f->x;
    tli_choice_point point;
    tl_result solved;
    uint64_t least;
    int decomposed;
    if (!tli_choice_build(x)) return TL_ERROR_NO_MEMORY;
    decomposed = tli_choice_decompose(x);
    if (!decomposed) return TL_ERROR_NO_MEMORY;
    if (decomposed < 0) return tli_choice_search_front(f);
    x->found = 1;
    tli_choice_weigh_limited(x);
    x->nearest = tli_choice_fill_inside(x, &x->limited);
    if (x->nearest >= TLI_CHOICE_INFINITE) {
        x->nearest = TL_UNLIMITED;
        return TL_ERROR_INFEASIBLE;
    }
    decomposed = tli_choice_list_front(f);
    if (!decomposed) return TL_ERROR_NO_MEMORY;
    if (decomposed > 0) {
        *complete = f->count == x->row_labels[x->row_count - 1];
        return TL_OK;
    }
    // The end of least loss is solved like any choice, because no pair of weights is certain to find it.
    x->limit = x->nearest;
    x->found = 0;
    solved = tli_choice_solve_decomposed(x);
    if (solved) return solved;
    x->limit = TL_UNLIMITED;
    point.limited = x->best_limited;
    point.value = x->best_value;
    tli_copy(x->schemes, x->best, (size_t)x->desc->node_count);
    tli_choice_add_point(f, point, x->bound);
    point = tli_choice_find_point(x, x->limited_sum + 1, 1, &least);
    tli_choice_add_point(f, point, tli_choice_find_bound(x, least));
    tli_choice_walk_hull(f);
    return TL_OK;
}

// Copy the points and their schemes into the one block of the result.
static tl_result tli_choice_pack_front(tl_env *env, const tli_choice_front *f, int32_t complete,
                                       tl_choice_front *front) {
    size_t nodes = (size_t)f->x->desc->node_count, i;
    char *block = (char *)tli_alloc_array(env, (uint64_t)f->count, sizeof *f->points + nodes);
    tl_front_point *points = (tl_front_point *)(void *)block;
    uint8_t *schemes;
    if (!block) return TL_ERROR_NO_MEMORY;
    schemes = (uint8_t *)(points + f->count);
    for (i = 0; i < (size_t)f->count; i++) {
        points[i] = f->points[i];
        points[i].schemes = schemes + i * nodes;
        tli_copy(schemes + i * nodes, f->schemes + (size_t)f->rows[i] * nodes, nodes);
    }
    front->points = points;
    front->point_count = f->count;
    front->complete = complete;
    front->memory = block;
    return TL_OK;
}

static tl_result tli_choice_find_front(tl_env *env, const tl_choice_desc *desc, int32_t point_limit,
                                       tli_choice *x, tl_choice_front *front) {
    uint64_t limit = (uint64_t)point_limit;
    int32_t complete = 0;
    tl_result result = TL_ERROR_NO_MEMORY;
    tli_choice_front f;
    tli_zero(&f, sizeof f);
    f.x = x;
    f.limit = point_limit;
    f.points = (tl_front_point *)tli_alloc_array(env, limit, sizeof *f.points);
    f.schemes = (uint8_t *)tli_alloc_array(env, limit * (uint64_t)desc->node_count, 1);
    f.rows = (int32_t *)tli_alloc_array(env, limit, sizeof *f.rows);
    f.closed = (uint8_t *)tli_alloc_array(env, limit, 1);
    if (f.points && f.schemes && f.rows && f.closed && x->allowed && x->best)
        result = tli_choice_fill_front(&f, &complete);
    if (!result) result = tli_choice_pack_front(env, &f, complete, front);
    tli_release(env, f.points);
    tli_release(env, f.schemes);
    tli_release(env, f.rows);
    tli_release(env, f.closed);
    return result;
}

TLI_IMPL tl_result tl_plan_choice_front(tl_env *env, const tl_choice_desc *desc, int32_t point_limit,
                                        tl_choice_front *front) {
    tl_env quiet;
    tl_choice_desc unlimited;
    tli_choice_watch watch;
    tl_result result;
    uint16_t *allowed;
    uint8_t *best;
    int32_t node;
    tli_choice x;
    TL_ASSERT(desc && front);
    tli_zero(front, sizeof *front);
    result = tl_check_choice(env, desc);
    if (result) return result;
    if (point_limit < 0)
        return tli_fail(env, TL_ERROR_INVALID_ARG, "tl_plan_choice_front", "point_limit: must be >= 0");
    unlimited = *desc;
    unlimited.least_loss = 0;
    unlimited.loss_limit = TL_UNLIMITED;
    tli_zero(&quiet, sizeof quiet);
    if (env) { quiet = *env; quiet.log = NULL; }
    tli_zero(&watch, sizeof watch);
    allowed = tli_choice_allow_all(&quiet, desc, &node);
    best = (uint8_t *)tli_alloc_array(&quiet, (uint64_t)desc->node_count, 1);
    watch.desc = desc;
    watch.next = TLI_CHOICE_ASK;
    watch.now.value = UINT64_MAX;
    tli_choice_init(&x, &quiet, &unlimited, allowed, best, &watch);
    watch.now.work_limit = x.work_limit;
    result = node >= 0 ? TL_ERROR_INFEASIBLE
                       : tli_choice_find_front(&quiet, &unlimited, point_limit ? point_limit : 256, &x, front);
    tli_choice_free(&x);
    tli_release(&quiet, allowed);
    tli_release(&quiet, best);
    return node >= 0 ? tli_choice_refuse_node(env, "tl_plan_choice_front", node)
                     : tli_choice_explain(env, &x, "tl_plan_choice_front", result);
}

TLI_IMPL void tl_free_choice_front(tl_env *env, tl_choice_front *front) {
    if (!front) return;
    tli_release(env, front->memory);
    tli_zero(front, sizeof *front);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

