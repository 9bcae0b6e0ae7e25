#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- pool: the plans that are known, and what is proven --
//
//     cost                         Every part offers each plan that it makes to one pool, under one rule: the
//      |  x                        plan is simulated, and it is kept unless a plan that is kept takes at most
//      |     x                     its bytes at at most its cost. So the plans that are kept are a front, and
//      |        x                  the answer to a budget is the last of them that fits it.
//      |              x
//      +-------------------- peak  A lower bound of the cost for one budget holds for every smaller budget.
//
// Plans are kept in memory of the pool's env. All plans of a pool are of one class: the same graph, training
// or inference, form, host budget and link, codec with its rate, and tensors that it may not compress.

#define TLI_POOL_BYTES (UINT64_C(32) << 20)  // the most that the steps of a pool that calls share take

// No plan within the budget costs less.
typedef struct tli_pool_bound { uint64_t budget, cost; } tli_pool_bound;

struct tl_remat_pool {
    tl_env   env;                // allocator of the caller's env, without its log
    uint64_t class_key;          // of the graph and the class of its plans; 0 = not known yet
    tl_plan *plans;              // [plan_count] peaks ascend, costs descend
    int32_t  plan_count, plan_capacity;
    tli_pool_bound *bounds;      // [bound_count] budgets ascend, costs descend
    int32_t  bound_count, bound_capacity;
    uint64_t *budgets;           // [budget_count] that were asked for, ascending; their answers stay
    int32_t  budget_count, budget_capacity;
    uint64_t bytes, most_bytes;  // of all steps; the limit, which the first plan and answers alone may exceed
    uint64_t floor;              // proven: no plan fits below; 0 = nothing is
    int32_t  floor_node;         // the node that takes it; -1 = none
    int32_t  least_node;         // at which the plan of `least` peaks
    uint64_t least;              // a plan of so few bytes exists, but may be long and was not made; 0 = none
    int32_t  is_bounded;         // 1 = bounds are known well enough, and are not raised by search
    uint64_t ladder_least;       // what the search for the least budget found; 0 = it was not done to its end
    tl_plan  lowest;             // its plan; the pool may keep a cheaper one of as many bytes or fewer
    int32_t  lowest_node;        // at which it peaks
    tl_plan  arena_lowest;       // of the lowest arena, with costs of bytes alone; no steps = not made
    uint64_t arena_key;          // of its alignment, blocks and steps in flight; 0 = it was not searched
    uint64_t arena_bytes, arena_floor;
    int32_t  arena_node;
};

#ifdef TLI_INVARIANTS
// Peaks of plans ascend and their costs descend, and bytes count their steps; bounds and budgets ascend, and
// costs of bounds descend.
static int tli_pool_holds(const tl_remat_pool *pool) {
    uint64_t bytes = 0;
    int32_t i;
    for (i = 0; i < pool->plan_count; i++) {
        const tl_plan *plan = &pool->plans[i];
        bytes += (uint64_t)plan->step_count * sizeof(tl_step);
        if (i && (plan[-1].peak_bytes >= plan->peak_bytes || plan[-1].cost <= plan->cost)) return 0;
    }
    for (i = 1; i < pool->bound_count; i++) {
        const tli_pool_bound *bound = &pool->bounds[i];
        if (bound[-1].budget >= bound->budget || bound[-1].cost <= bound->cost) return 0;
    }
    for (i = 1; i < pool->budget_count; i++) if (pool->budgets[i - 1] >= pool->budgets[i]) return 0;
    return bytes == pool->bytes && pool->plan_count <= pool->plan_capacity &&
           pool->bound_count <= pool->bound_capacity && pool->budget_count <= pool->budget_capacity;
}

// No plan that is known beats what is proven.
static int tli_pool_keeps_bounds(const tl_remat_pool *pool) {
    int32_t i, k;
    for (i = 0; i < pool->plan_count; i++) {
        if (pool->plans[i].peak_bytes < pool->floor) return 0;
        for (k = 0; k < pool->bound_count && pool->bounds[k].budget < pool->plans[i].peak_bytes;) k++;
        if (k < pool->bound_count && pool->plans[i].cost < pool->bounds[k].cost) return 0;
    }
    return 1;
}
#endif

static void tli_pool_init(tl_remat_pool *pool, const tl_env *env, uint64_t most_bytes) {
    tli_zero(pool, sizeof *pool);
    if (env) pool->env = *env;
    pool->env.log = NULL;
    pool->most_bytes = most_bytes;
    pool->floor_node = -1;
    TLI_INVARIANT(tli_pool_holds(pool));
}

static void tli_pool_clear(tl_remat_pool *pool) {
    while (pool->plan_count) tl_free_plan(&pool->env, &pool->plans[--pool->plan_count]);
    tl_free_plan(&pool->env, &pool->lowest);
    tl_free_plan(&pool->env, &pool->arena_lowest);
    tli_release(&pool->env, pool->plans);
    tli_release(&pool->env, pool->bounds);
    tli_release(&pool->env, pool->budgets);
}

// The number of plans with a peak of at most so many bytes.
static int32_t tli_pool_count_below(const tl_remat_pool *pool, uint64_t bytes) {
    int32_t low = 0, high = pool->plan_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (pool->plans[middle].peak_bytes <= bytes) low = middle + 1; else high = middle;
    }
    return low;
}

// The cheapest plan within a budget; NULL = none is known.
static const tl_plan *tli_pool_find(const tl_remat_pool *pool, uint64_t budget) {
    int32_t count = tli_pool_count_below(pool, budget);
    return count ? &pool->plans[count - 1] : NULL;
}

// The plan with the least peak; NULL = the pool is empty.
static const tl_plan *tli_pool_least(const tl_remat_pool *pool) {
    return pool->plan_count ? &pool->plans[0] : NULL;
}

// -- pool: what stays --

static void tli_pool_remove(tl_remat_pool *pool, int32_t at) {
    TLI_INVARIANT(pool->bytes >= (uint64_t)pool->plans[at].step_count * sizeof(tl_step));
    pool->bytes -= (uint64_t)pool->plans[at].step_count * sizeof(tl_step);
    tl_free_plan(&pool->env, &pool->plans[at]);
    for (--pool->plan_count; at < pool->plan_count; at++) pool->plans[at] = pool->plans[at + 1];
    TLI_INVARIANT(tli_pool_holds(pool));
}

// Remove all plans but one.
static void tli_pool_keep_one(tl_remat_pool *pool, int32_t at) {
    while (pool->plan_count > at + 1) tli_pool_remove(pool, pool->plan_count - 1);
    while (pool->plan_count > 1) tli_pool_remove(pool, 0);
}

// Whether a plan is the answer to a budget that was asked for.
static int tli_pool_is_answer(const tl_remat_pool *pool, int32_t at) {
    uint64_t next = at + 1 < pool->plan_count ? pool->plans[at + 1].peak_bytes : UINT64_MAX;
    int32_t i;
    for (i = 0; i < pool->budget_count && pool->budgets[i] < pool->plans[at].peak_bytes;) i++;
    return i < pool->budget_count && (pool->budgets[i] < next || at + 1 == pool->plan_count);
}

// While there are too many bytes, remove the plan that matters least: the one before it is about as cheap, or
// the one after it takes about as little. How much a plan matters is log2 of the product of both differences.
// The first plan, that of the least peak, and answers stay.
static void tli_pool_thin(tl_remat_pool *pool) {
    while (pool->bytes > pool->most_bytes) {
        int32_t at, worst = -1;
        int64_t least = 0;
        for (at = 1; at < pool->plan_count; at++) {
            const tl_plan *plan = &pool->plans[at];
            uint64_t width = at + 1 < pool->plan_count ? plan[1].peak_bytes - plan->peak_bytes : UINT64_MAX;
            int64_t matters = tli_search_log(width) + tli_search_log(plan[-1].cost - plan->cost);
            if ((worst >= 0 && matters >= least) || tli_pool_is_answer(pool, at)) continue;
            worst = at;
            least = matters;
        }
        if (worst < 0) return;
        tli_pool_remove(pool, worst);
    }
    TLI_INVARIANT(pool->bytes <= pool->most_bytes);
}

// Note a budget that is asked for. TL_ERROR_NO_MEMORY.
static tl_result tli_pool_ask(tl_remat_pool *pool, uint64_t budget) {
    void *array = pool->budgets;
    int32_t at;
    for (at = 0; at < pool->budget_count && pool->budgets[at] < budget;) at++;
    if (at < pool->budget_count && pool->budgets[at] == budget) return TL_OK;
    if (!tli_grow(&pool->env, &array, &pool->budget_capacity, pool->budget_count,
                  (int64_t)pool->budget_count + 1, sizeof budget)) return TL_ERROR_NO_MEMORY;
    pool->budgets = (uint64_t *)array;
    for (at = pool->budget_count++; at > 0 && pool->budgets[at - 1] > budget; at--)
        pool->budgets[at] = pool->budgets[at - 1];
    pool->budgets[at] = budget;
    TLI_INVARIANT(tli_pool_holds(pool));
    return TL_OK;
}

// -- pool: what comes --

// Move a plan of `env` into *taken, in memory of the pool's env: the plan itself where `env` has the same
// allocator, else a copy. *plan is all zero afterwards. TL_ERROR_NO_MEMORY: the plan is freed.
static tl_result tli_pool_take(tl_remat_pool *pool, tl_env *env, tl_plan *plan, tl_plan *taken) {
    tl_result result = TL_OK;
    if (env->alloc == pool->env.alloc && env->release == pool->env.release && env->user == pool->env.user) {
        *taken = *plan;
        tli_zero(plan, sizeof *plan);
        return TL_OK;
    }
    result = tl_copy_plan(&pool->env, plan, taken);
    tl_free_plan(env, plan);
    return result;
}

// Admit a simulated plan of `env`: keep it unless one that is kept already takes no more bytes and costs no
// more. The plan is the pool's from here on. TL_ERROR_NO_MEMORY: the pool is as before.
static tl_result tli_pool_offer(tl_remat_pool *pool, tl_env *env, tl_plan *plan) {
    const tl_plan *other = tli_pool_find(pool, plan->peak_bytes);
    void *array = pool->plans;
    tl_plan taken;
    int32_t at;
    if (other && other->cost <= plan->cost) {
        tl_free_plan(env, plan);
        return TL_OK;
    }
    if (!tli_grow(&pool->env, &array, &pool->plan_capacity, pool->plan_count, (int64_t)pool->plan_count + 1,
                  sizeof taken)) {
        tl_free_plan(env, plan);
        return TL_ERROR_NO_MEMORY;
    }
    pool->plans = (tl_plan *)array;
    if (tli_pool_take(pool, env, plan, &taken)) return TL_ERROR_NO_MEMORY;
    at = tli_pool_count_below(pool, taken.peak_bytes);
    if (at && pool->plans[at - 1].peak_bytes == taken.peak_bytes) tli_pool_remove(pool, --at);
    while (at < pool->plan_count && pool->plans[at].cost >= taken.cost) tli_pool_remove(pool, at);
    for (at = pool->plan_count++; at > 0 && pool->plans[at - 1].peak_bytes > taken.peak_bytes; at--)
        pool->plans[at] = pool->plans[at - 1];
    pool->plans[at] = taken;
    pool->bytes += (uint64_t)taken.step_count * sizeof(tl_step);
    tli_pool_thin(pool);
    TLI_INVARIANT(tli_pool_holds(pool));
    TLI_INVARIANT(tli_pool_keeps_bounds(pool));
    return TL_OK;
}

// The highest lower bound that is known for a budget.
static uint64_t tli_pool_bound_at(const tl_remat_pool *pool, uint64_t budget) {
    int32_t at = 0;
    while (at < pool->bound_count && pool->bounds[at].budget < budget) at++;
    return at < pool->bound_count ? pool->bounds[at].cost : 0;
}

// Note a lower bound of the cost within a budget. TL_ERROR_NO_MEMORY.
static tl_result tli_pool_add_bound(tl_remat_pool *pool, uint64_t budget, uint64_t cost) {
    void *array = pool->bounds;
    int32_t at, kept = 0;
    if (cost <= tli_pool_bound_at(pool, budget)) return TL_OK;
    if (!tli_grow(&pool->env, &array, &pool->bound_capacity, pool->bound_count, (int64_t)pool->bound_count + 1,
                  sizeof *pool->bounds)) return TL_ERROR_NO_MEMORY;
    pool->bounds = (tli_pool_bound *)array;
    for (at = 0; at < pool->bound_count; at++)  // those of at most this budget and cost say nothing more
        if (pool->bounds[at].budget > budget || pool->bounds[at].cost > cost)
            pool->bounds[kept++] = pool->bounds[at];
    for (at = kept; at > 0 && pool->bounds[at - 1].budget > budget; at--)
        pool->bounds[at] = pool->bounds[at - 1];
    pool->bounds[at].budget = budget;
    pool->bounds[at].cost = cost;
    pool->bound_count = kept + 1;
    TLI_INVARIANT(tli_pool_holds(pool));
    TLI_INVARIANT(tli_pool_keeps_bounds(pool));
    return TL_OK;
}

// Note that no plan fits below so many bytes; node: what takes them, -1 = nothing in particular.
static void tli_pool_raise_floor(tl_remat_pool *pool, uint64_t floor, int32_t node) {
    if (floor <= pool->floor) return;
    pool->floor = floor;
    pool->floor_node = node;
    TLI_INVARIANT(tli_pool_keeps_bounds(pool));
}

// -- pool: whose plans --

static void tli_pool_mix(uint64_t *key, uint64_t value) { *key = tl_mix_u64(*key ^ value, 1); }

// A number that graphs and classes of plans share only by accident: one in 2^64.
static uint64_t tli_pool_class_of(const tl_graph *graph, int32_t inference, tl_remat_form form,
                                  uint64_t host_budget, const tl_device *device) {
    uint64_t key = tl_mix_u64((uint64_t)graph->node_count, (uint64_t)graph->tensor_count);
    int32_t i;
    for (i = 0; i < graph->node_count; i++) {
        const tl_node *node = &graph->nodes[i];
        uint64_t flags = (uint64_t)(node->is_input > 0) + 2 * (uint64_t)node->has_grad +
                         4 * (uint64_t)node->keep + 8 * (uint64_t)node->once + 16 * (uint64_t)node->dynamic;
        tli_pool_mix(&key, (uint64_t)(uint32_t)node->input_count << 32 | (uint32_t)node->output_count);
        tli_pool_mix(&key, flags + 32 * (uint64_t)(node->inplace + 1));
        tli_pool_mix(&key, node->fwd_cost);
        tli_pool_mix(&key, node->bwd_cost);
        tli_pool_mix(&key, node->saved_bytes);
        tli_pool_mix(&key, node->fwork_bytes);
        tli_pool_mix(&key, node->bwork_bytes);
        tli_pool_mix(&key, node->saved_bytes ? node->swork_bytes : 0);
    }
    for (i = 0; i < graph->tensor_count; i++)
        tli_pool_mix(&key, graph->outputs[i].bytes << 1 ^ (uint64_t)(graph->outputs[i].needed != 0));
    for (i = 0; i < graph->input_count; i++)
        tli_pool_mix(&key, 2 * (uint64_t)graph->inputs[i].tensor + (uint64_t)(graph->inputs[i].needed != 0));
    tli_pool_mix(&key, (uint64_t)inference + 2 * (uint64_t)form);
    tli_pool_mix(&key, host_budget);
    if (host_budget && device) {
        tli_pool_mix(&key, device->link_bytes_per_second);
        tli_pool_mix(&key, device->upload_bytes_per_second);
        tli_pool_mix(&key, device->link_latency_ns);
        tli_pool_mix(&key, (uint64_t)(int64_t)device->copy_channels);
        tli_pool_mix(&key, device->wait_latency_ns);
    }
    return key ? key : 1;
}

// As tli_pool_class_of, of plans that may compress; key: of the same plans without.
static uint64_t tli_pool_class_with(uint64_t key, const tl_graph *graph, tl_codec codec,
                                    const uint8_t *lossless, const tl_device *device) {
    int32_t i;
    tli_pool_mix(&key, (uint64_t)codec);
    tli_pool_mix(&key, device ? device->codec_bytes_per_second : 0);
    for (i = 0; i < graph->tensor_count && lossless; i++) tli_pool_mix(&key, lossless[i]);
    return key ? key : 1;
}

TLI_IMPL tl_result tl_init_remat_pool(tl_env *env, tl_remat_pool **pool) {
    TL_ASSERT(pool);
    *pool = (tl_remat_pool *)tli_alloc_array(env, 1, sizeof **pool);
    if (!*pool)
        return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_REMAT_POOL), TLI_RULE(NO_MEMORY_FOR_POOL));
    tli_pool_init(*pool, env, TLI_POOL_BYTES);
    TLI_INVARIANT(tli_pool_holds(*pool));
    return TL_OK;
}

TLI_IMPL void tl_free_remat_pool(tl_remat_pool *pool) {
    tl_env env;
    if (!pool) return;
    env = pool->env;
    tli_pool_clear(pool);
    tli_release(&env, pool);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
