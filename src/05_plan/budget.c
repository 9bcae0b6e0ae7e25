#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- budgets --
//
// The one rule that says how many bytes a plan, a run or a manager may use.
//
//     caller    budget_bytes            0 = no limit ---+
//     device    device_capacity_bytes   0 = no limit ---+-- the least, less base_bytes --> bytes of the plan
//     backend   capacity_bytes    UINT64_MAX = none  ---+
//
//     caller    host_budget_bytes       0 = no host ----+
//     device    host_capacity_bytes     0 = no limit ---+-- the least -------------------> bytes on the host
//     backend   capacity_bytes    UINT64_MAX = none  ---+
//
// A plan that is given with host steps needs a host: 0 of the caller is no limit then. The bytes that a backend
// reports as free at present are not part of the rule: they change from call to call, and the same desc must
// give the same plan. They are compared with the bytes of the finished plan when a run is made.

typedef struct tli_budget {
    uint64_t  bytes;            // of a plan, without the base: with it they fit 64 bits, limited or not
    uint64_t  allowed_bytes;    // with the base, what errors name; UINT64_MAX = nobody limits
    uint64_t  host_bytes;       // of host copies at a time; 0 = no host tier, UINT64_MAX = no limit
    uint64_t  base_bytes;
    int32_t   is_limited;       // 1 = somebody limits the bytes on the device
    int32_t   is_over;          // 1 = the base alone exceeds the limit
    tl_limit  limit, host_limit;  // whose limit is the least
} tli_budget;

static void tli_lower_limit(uint64_t *least, tl_limit *limit, uint64_t bytes, tl_limit whose) {
    if (bytes >= *least) return;
    *least = bytes;
    *limit = whose;
}

// Find what binds.
//
//   caller, host    as the desc of the caller has them
//   device          NULL = not known
//   backend         capacities by tier, as in the limits of a backend; NULL = there is none
//   has_host_steps  1 = for a plan that spills and fetches already
static tli_budget tli_find_budget(uint64_t caller, uint64_t host, uint64_t base, const tl_device *device,
                                  const uint64_t *backend, int has_host_steps) {
    tli_budget budget;
    tli_zero(&budget, sizeof budget);
    budget.base_bytes = base;
    budget.bytes = caller ? caller : UINT64_MAX;
    budget.host_bytes = host || !has_host_steps ? host : UINT64_MAX;
    budget.limit = TL_LIMIT_BUDGET;
    budget.host_limit = TL_LIMIT_HOST_BUDGET;
    if (device && device->device_capacity_bytes)
        tli_lower_limit(&budget.bytes, &budget.limit, device->device_capacity_bytes, TL_LIMIT_DEVICE);
    if (device && device->host_capacity_bytes)
        tli_lower_limit(&budget.host_bytes, &budget.host_limit, device->host_capacity_bytes,
                        TL_LIMIT_HOST_DEVICE);
    if (backend) {
        tli_lower_limit(&budget.bytes, &budget.limit, backend[0], TL_LIMIT_BACKEND);
        tli_lower_limit(&budget.host_bytes, &budget.host_limit, backend[1], TL_LIMIT_HOST_BACKEND);
    }
    budget.is_limited = budget.bytes != UINT64_MAX;
    budget.allowed_bytes = budget.bytes;
    budget.is_over = budget.bytes < base;
    budget.bytes -= budget.is_over ? budget.bytes : base;
    return budget;
}

// The number of bytes that a caller has to allow for so many bytes of a plan.
static uint64_t tli_add_base(const tli_budget *budget, uint64_t bytes) {
    uint64_t sum;
    return tli_add_u64(bytes, budget->base_bytes, &sum) ? sum : UINT64_MAX;
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
