#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- several limits: candidates --
//
// Choices are compared, and the best one so far is kept. One above its limits is better the less it exceeds
// them, so that candidates which do not fit are mended by the moves that improve those which do.

// -- several limits: comparing choices --

#define TLI_EXCESS_BITS 20                       // of a share
#define TLI_MOST_EXCESS (UINT64_C(1) << 40)      // of one amount

// What an amount takes above its limit, in 2^-20 of that, in integers, so that the search is the same on every
// machine.
static uint64_t tli_exceed(uint64_t amount, uint64_t limit) {
    uint64_t over = amount - limit, whole;
    if (amount <= limit) return 0;
    for (; limit >> (63 - TLI_EXCESS_BITS); limit /= 2) over /= 2;
    if (!limit) return TLI_MOST_EXCESS;
    whole = over / limit;
    if (whole >> TLI_EXCESS_BITS) return TLI_MOST_EXCESS;
    return (whole << TLI_EXCESS_BITS) + (over % limit << TLI_EXCESS_BITS) / limit + 1;
}

static uint64_t tli_exceed_loss(const tli_limits *f, const tli_amounts *amounts) {
    double loss = tli_f64_of(amounts->of[TL_MEASURE_LOSS]), limit = f->desc.precision.loss_limit;
    uint64_t share;
    if (!(loss > limit)) return 0;
    if (!(limit > 0)) return TLI_MOST_EXCESS;
    share = tli_divide_f64(loss, TLI_EXCESS_BITS, limit, 1) - (UINT64_C(1) << TLI_EXCESS_BITS);
    return share < TLI_MOST_EXCESS ? share + 1 : TLI_MOST_EXCESS;
}

static uint64_t tli_sum_excess(const tli_limits *f, const tli_amounts *amounts) {
    return tli_exceed(amounts->of[TL_MEASURE_RAM], f->limits.of[TL_MEASURE_RAM]) +
           tli_exceed(amounts->of[TL_MEASURE_FLASH], f->limits.of[TL_MEASURE_FLASH]) +
           tli_exceed(amounts->of[TL_MEASURE_COST], f->limits.of[TL_MEASURE_COST]) +
           tli_exceed_loss(f, amounts);
}

// Whether a choice is better: it exceeds less, then it takes less of what is minimised, then of the others.
static int tli_is_better_choice(const tli_limits *f, uint64_t excess, const tli_amounts *a,
                                uint64_t than_excess, const tli_amounts *than) {
    static const uint8_t ties[] = { TL_MEASURE_COST, TL_MEASURE_LOSS, TL_MEASURE_RAM, TL_MEASURE_FLASH };
    size_t k;
    if (excess != than_excess) return excess < than_excess;
    if (a->of[f->desc.minimized] != than->of[f->desc.minimized])
        return a->of[f->desc.minimized] < than->of[f->desc.minimized];
    for (k = 0; k < sizeof ties; k++)
        if (a->of[ties[k]] != than->of[ties[k]]) return a->of[ties[k]] < than->of[ties[k]];
    return 0;
}

static int tli_may_go_on(tli_limits *f) {
    if (f->arena_count >= f->desc.arena_limit) f->stopped = 1;
    return !f->stopped && !f->result;
}

// Whether a choice beats a known one, whose excess and amounts are given: first by its sums, then by its live
// bytes, then by its arena. If it does, both are overwritten.
static int tli_beats(tli_limits *f, const uint8_t *schemes, uint64_t *excess, tli_amounts *amounts) {
    tli_amounts own;
    uint64_t own_excess;
    int stage;
    own.of[TL_MEASURE_FLASH] = tli_sum_flash(f, schemes);
    own.of[TL_MEASURE_LOSS] = tli_sum_loss_bits(f, schemes);
    own.of[TL_MEASURE_COST] = tli_sum_time(f, schemes);
    for (stage = 0; stage < 3; stage++) {
        if (stage == 2 && !tli_may_go_on(f)) return 0;
        own.of[TL_MEASURE_RAM] = !stage ? f->live_floor : stage == 1 ? tli_bound_live(f, schemes)
                                                                     : tli_find_ram(f, schemes);
        own_excess = tli_sum_excess(f, &own);
        if (f->result || !tli_is_better_choice(f, own_excess, &own, *excess, amounts)) return 0;
    }
    if (f->desc.progress && (f->desc.progress)(f->arena_count, f->desc.arena_limit, f->desc.user))
        f->stopped = 1;
    *excess = own_excess;
    *amounts = own;
    return 1;
}

// Keep a choice if it is the best one so far. Returns whether it is.
static int tli_try_choice(tli_limits *f, const uint8_t *schemes) {
    if (!tli_beats(f, schemes, &f->excess, &f->amounts)) return 0;
    f->found = 1;
    tli_copy(f->best, schemes, (size_t)f->p.node_count);
    return 1;
}

static int tli_same_schemes(const uint8_t *a, const uint8_t *b, int32_t count) {
    int32_t i;
    for (i = 0; i < count; i++)
        if (a[i] != b[i]) return 0;
    return 1;
}

// Try a choice, and note it as one that is to be improved, unless it is known.
static void tli_offer_schemes(tli_limits *f, const uint8_t *schemes) {
    size_t bytes = (size_t)f->p.node_count;
    int32_t i;
    for (i = 0; i < f->pool_count; i++)
        if (tli_same_schemes(f->pool + (size_t)i * bytes, schemes, f->graph->node_count)) return;
    if (f->pool_count < TLI_FIT_POOL) tli_copy(f->pool + (size_t)f->pool_count++ * bytes, schemes, bytes);
    tli_try_choice(f, schemes);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION
