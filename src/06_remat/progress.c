#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// ============================================================================
// [6] REMAT (implementation)
// ============================================================================

#ifndef TL_NO_PLANNERS
// -- progress --
//
// All parts of this section count their work in elementary steps and report it to one watch, which asks the
// caller's progress function from time to time whether to stop.

#define TLI_REMAT_ASK 1000000  // steps of work between two calls of progress

typedef struct tli_remat_watch {
    const tl_remat_desc *desc;
    tl_remat_progress    now;
    uint64_t             before;   // work of the parts that have ended
    uint64_t             next;     // total work at which progress is called again
    int32_t              stopped;  // 1 = progress asked to stop
    uint64_t             target;   // cost of the best plan: a bound that reaches it is enough; 0 = none
    int32_t              is_near;  // 1 = the best plan is near the bound: raising that is worth more work
    uint64_t             patience; // work after which branching that has not raised the bound ends; 0 = none
} tli_remat_watch;

// Whether the caller asks to stop; `work` is that of the part that is running.
static int tli_remat_stops(tli_remat_watch *watch, uint64_t work) {
    if (watch->before + work > watch->now.work) watch->now.work = watch->before + work;
    if (watch->stopped || !watch->desc->progress || watch->now.work < watch->next) return watch->stopped;
    watch->next = watch->now.work + TLI_REMAT_ASK;
    if (watch->now.work_limit < watch->now.work) watch->now.work_limit = watch->now.work;
    watch->stopped = (watch->desc->progress)(&watch->now, watch->desc->user) != 0;
    return watch->stopped;
}

// What the caller's seed adds to the state of a generator. Searches for least budgets have none.
static uint64_t tli_remat_seed(const tli_remat_watch *watch) {
    uint64_t seed = watch && watch->desc ? watch->desc->seed : 0;
    return seed ? tl_mix_u64(seed, 0) : 0;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION

