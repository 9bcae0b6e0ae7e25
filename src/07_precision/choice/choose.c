#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- choice: one limit --
//
// This part puts the methods of the two parts above together: one choice within a limit, and the front of all
// choices. A choice tries the Lagrangian bound over the decomposition first, then lists, and the search for
// graphs that are too wide for lists.

// Take over the result of the same choice in another model.
static void tli_choice_take_result(tli_choice *x, const tli_choice *y) {
    x->work = y->work;
    x->found = y->found;
    x->best_value = y->best_value;
    x->best_limited = y->best_limited;
    x->bound = y->bound;
    x->method = y->method;
    x->nearest = y->nearest;
}

// Build the model again, with tables of at most two variables, and search.
static tl_result tli_choice_solve_wide(tli_choice *x) {
    tl_result result;
    tli_choice y;
    tli_choice_init(&y, x->env, x->desc, x->allowed, x->best);
    y.pairwise = 1;
    y.work = x->work;
    y.work_limit = x->work_limit;
    result = tli_choice_build(&y) ? tli_choice_search(&y) : TL_ERROR_NO_MEMORY;
    tli_choice_take_result(x, &y);
    tli_choice_free(&y);
    return result;
}

// Build the model again with the schemes that were left out for the limit: the nearest limit may need them.
static tl_result tli_choice_find_nearest(tli_choice *x) {
    tl_result result;
    tli_choice y;
    tli_choice_init(&y, x->env, x->desc, x->allowed, x->best);
    y.complete = 1;
    y.work = x->work;
    y.work_limit = x->work_limit;
    result = tli_choice_solve_lists(&y);
    if (result == TL_ERROR_UNSUPPORTED) result = tli_choice_solve_wide(&y);
    tli_choice_take_result(x, &y);
    tli_choice_free(&y);
    return result;
}

static tl_result tli_choice_solve(tli_choice *x) {
    tl_result result = tli_choice_solve_lists(x);
    if (result == TL_ERROR_UNSUPPORTED) return tli_choice_solve_wide(x);
    return result == TL_ERROR_INFEASIBLE && x->pruned ? tli_choice_find_nearest(x) : result;
}

// -- choice: plan --

// Allow all schemes that are not forbidden. Returns 0 if a node has none.
static int tli_choice_allow_all(const tli_choice_desc *desc, uint16_t *allowed) {
    size_t at = 0;
    int32_t i, k;
    for (i = 0; i < desc->node_count; i++) {
        for (k = 0; k < desc->scheme_count; k++, at++)
            if (desc->costs[at] != TL_FORBIDDEN) allowed[i] = (uint16_t)(allowed[i] | 1u << k);
        if (!allowed[i]) return 0;
    }
    return 1;
}

static double tli_choice_gap(uint64_t value, uint64_t bound) {
    if (value <= bound) return 0;
    return bound ? (double)(value - bound) / (double)bound : (double)value;
}

static void tli_choice_fill_plan(const tli_choice *x, tli_choice_plan *plan) {
    tli_choice_sums sums;
    int32_t node, net;
    tli_choice_measure(x->desc, x->best, &sums, &node, &net);
    plan->schemes = x->best;
    plan->cost = sums.cost;
    plan->conversion_cost = sums.conversion_cost;
    plan->conversion_count = sums.conversion_count;
    plan->loss = sums.loss;
    plan->bound = x->bound < x->best_value ? x->bound : x->best_value;
    plan->proven = x->bound >= x->best_value;
    plan->gap_ratio = tli_choice_gap(x->best_value, plan->bound);
    plan->method = x->method;
    plan->work = x->work;
}

// Choose a scheme for each node. *plan is overwritten; release it with tli_free_choice_plan.
//
// Errors:  TL_ERROR_INFEASIBLE: plan->nearest_limit is the least limit that can be met (in a graph too wide for
//          lists one that was met), or TL_UNLIMITED: a node without schemes, or forbidden conversions. In a
//          graph too wide for lists it means that no choice was found. TL_ERROR_NO_MEMORY. Neither sets a text.
// Cost:    work_limit, exceeded only to find a first choice.
static tl_result tli_plan_choice(tl_env *env, const tli_choice_desc *desc, tli_choice_plan *plan) {
    tl_result result = TL_ERROR_NO_MEMORY;
    uint64_t nodes = (uint64_t)desc->node_count;
    uint16_t *allowed = (uint16_t *)tli_alloc_array(env, nodes, sizeof *allowed);
    uint8_t *best = (uint8_t *)tli_alloc_array(env, nodes, 1);
    tli_choice x;
    tli_zero(plan, sizeof *plan);
    tli_choice_init(&x, env, desc, allowed, best);
    x.nearest = TL_UNLIMITED;
    if (allowed && best)
        result = tli_choice_allow_all(desc, allowed) ? tli_choice_solve(&x) : TL_ERROR_INFEASIBLE;
    if (!result) {
        tli_choice_fill_plan(&x, plan);
        plan->memory = best;
    } else {
        tli_release(env, best);
        if (result == TL_ERROR_INFEASIBLE) plan->nearest_limit = x.nearest;
    }
    tli_choice_free(&x);
    tli_release(env, allowed);
    return result;
}

static void tli_free_choice_plan(tl_env *env, tli_choice_plan *plan) {
    tli_release(env, plan->memory);
    tli_zero(plan, sizeof *plan);
}

// -- choice: the front --

// The points found so far, by rising loss; the schemes of point i are row rows[i].
typedef struct tli_choice_points {
    tli_choice         *x;
    tli_front_point *points;           // [limit]
    uint8_t        *schemes;          // [limit x node_count]
    int32_t        *rows;             // [limit]
    uint8_t        *closed;           // [limit] 1 = no more points between this one and the next
    int32_t         count, limit;
    uint64_t        least_loss;       // the least loss of any choice that was found
} tli_choice_points;

// Take a point out. The rows that are left stay 0 .. count - 1.
static void tli_choice_drop_point(tli_choice_points *f, int32_t at) {
    size_t bytes = (size_t)f->x->desc->node_count;
    int32_t row = f->rows[at], i;
    f->count--;
    for (i = at; i < f->count; i++) {
        f->points[i] = f->points[i + 1];
        f->rows[i] = f->rows[i + 1];
        f->closed[i] = f->closed[i + 1];
    }
    for (i = 0; i < f->count; i++) {
        if (f->rows[i] != f->count) continue;
        tli_copy(f->schemes + (size_t)row * bytes, f->schemes + (size_t)f->count * bytes, bytes);
        f->rows[i] = row;
    }
}

// Insert the schemes at hand as a point, in the place of those that are no better in loss and in cost. Returns
// 0 = no room, or another point is no worse.
static int tli_choice_add_point(tli_choice_points *f, tli_choice_point point, uint64_t bound) {
    int32_t at = 0, i;
    while (at < f->count && f->points[at].loss < point.limited) at++;
    if (at && f->points[at - 1].cost <= point.value) return 0;
    if (at < f->count && f->points[at].loss == point.limited && f->points[at].cost <= point.value) return 0;
    while (at < f->count && f->points[at].cost >= point.value) tli_choice_drop_point(f, at);
    if (f->count == f->limit) return 0;
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
static int tli_choice_pick_points(tli_choice_points *f) {
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

// Find every point, by lists without a limit. Returns 1 = done, 0 = no memory, -1 = too many points or too much
// work.
static int tli_choice_list_front(tli_choice_points *f) {
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
static void tli_choice_walk_hull(tli_choice_points *f) {
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
static tl_result tli_choice_search_point(tli_choice_points *f, int least_loss, uint64_t limit, uint64_t work) {
    tli_choice *x = f->x;
    tli_choice_desc desc = *x->desc;
    tli_choice_point point;
    tl_result result;
    tli_choice y;
    desc.least_loss = least_loss;
    desc.cost_limit = TL_UNLIMITED;
    desc.loss_limit = limit;
    tli_choice_init(&y, x->env, &desc, x->allowed, x->best);
    y.work = x->work;
    y.work_limit = x->work + work;
    result = tli_choice_solve_wide(&y);
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
static tl_result tli_choice_search_front(tli_choice_points *f) {
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
        if (f->count <= before && widest < f->count) f->closed[widest] = 1;
    }
    return result;
}

static tl_result tli_choice_fill_front(tli_choice_points *f, int32_t *complete) {
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
static tl_result tli_choice_pack_front(tl_env *env, const tli_choice_points *f, int32_t complete,
                                       tli_choice_front *front) {
    size_t nodes = (size_t)f->x->desc->node_count, i;
    char *block = (char *)tli_alloc_array(env, (uint64_t)f->count, sizeof *f->points + nodes);
    tli_front_point *points = (tli_front_point *)(void *)block;
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

static tl_result tli_choice_find_front(tli_choice *x, int32_t point_limit, tli_choice_front *front) {
    tl_env *env = x->env;
    uint64_t limit = (uint64_t)point_limit;
    int32_t complete = 0;
    tl_result result = TL_ERROR_NO_MEMORY;
    tli_choice_points f;
    tli_zero(&f, sizeof f);
    f.x = x;
    f.limit = point_limit;
    f.points = (tli_front_point *)tli_alloc_array(env, limit, sizeof *f.points);
    f.schemes = (uint8_t *)tli_alloc_array(env, limit * (uint64_t)x->desc->node_count, 1);
    f.rows = (int32_t *)tli_alloc_array(env, limit, sizeof *f.rows);
    f.closed = (uint8_t *)tli_alloc_array(env, limit, 1);
    if (f.points && f.schemes && f.rows && f.closed)
        result = tli_choice_fill_front(&f, &complete);
    if (!result) result = tli_choice_pack_front(env, &f, complete, front);
    tli_release(env, f.points);
    tli_release(env, f.schemes);
    tli_release(env, f.rows);
    tli_release(env, f.closed);
    return result;
}

// Find the Pareto front of loss and cost; limits and least_loss of the desc are not read. *front is
// overwritten; release it with tli_free_choice_front. If the front has more than point_limit points (0 =
// 256), or the work does not suffice for all, at most this many are selected, including the least loss and
// the least cost: points at equal distances in cost, or corners of the convex hull where the cost falls most.
// Where lists can solve the graph, their bounds equal their costs but for rounding, unless the work ends first.
//
// Errors:  those of tli_plan_choice. *front is all zero then.
static tl_result tli_plan_choice_front(tl_env *env, const tli_choice_desc *desc, int32_t point_limit,
                                      tli_choice_front *front) {
    tli_choice_desc unlimited = *desc;
    uint64_t nodes = (uint64_t)desc->node_count;
    uint16_t *allowed = (uint16_t *)tli_alloc_array(env, nodes, sizeof *allowed);
    uint8_t *best = (uint8_t *)tli_alloc_array(env, nodes, 1);
    tl_result result = TL_ERROR_NO_MEMORY;
    tli_choice x;
    tli_zero(front, sizeof *front);
    unlimited.least_loss = 0;
    unlimited.loss_limit = TL_UNLIMITED;
    tli_choice_init(&x, env, &unlimited, allowed, best);
    if (allowed && best)
        result = tli_choice_allow_all(desc, allowed)
            ? tli_choice_find_front(&x, point_limit ? point_limit : 256, front) : TL_ERROR_INFEASIBLE;
    tli_choice_free(&x);
    tli_release(env, allowed);
    tli_release(env, best);
    return result;
}

static void tli_free_choice_front(tl_env *env, tli_choice_front *front) {
    tli_release(env, front->memory);
    tli_zero(front, sizeof *front);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION

