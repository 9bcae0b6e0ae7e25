#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// Lifetimes are a replay with a ledger; places are a layout of those on the device, and one of those on the
// host. What is written in place has the number of its input, so the two are one buffer.

static const char *const tli_use_names[] = { TL_USES(TLI_NAME) };

TLI_IMPL const char *tl_name_use(tl_use use) { return tli_name(tli_use_names, TL_USE_COUNT, (int64_t)use); }

// -- lifetimes --

static void tli_free_ledger(tl_env *env, tli_ledger *ledger) {
    tli_release(env, ledger->items);
    tli_release(env, ledger->open);
    tli_release(env, ledger->occurrences);
    tli_zero(ledger, sizeof *ledger);
}

static tl_result tli_init_ledger(tl_env *env, const tl_graph *graph, int32_t slot_count, tli_ledger *ledger) {
    uint64_t keys = (uint64_t)slot_count * tli_ledger_keys(graph), i;
    tli_zero(ledger, sizeof *ledger);
    ledger->open = (int32_t *)tli_alloc_array(env, keys, sizeof *ledger->open);
    ledger->occurrences = (int32_t *)tli_alloc_array(env, keys, sizeof *ledger->occurrences);
    if (!ledger->open || !ledger->occurrences) return TL_ERROR_NO_MEMORY;
    for (i = 0; i < keys; i++) ledger->open[i] = -1;
    return TL_OK;
}

// Replay a plan and write down its lifetimes.
static tl_result tli_find_lifetimes(tl_env *env, tli_function function, const tl_simulate_desc *desc,
                                    tl_lifetimes *lifetimes, tl_report *report) {
    tli_ledger ledger;
    int32_t i;
    tl_result result = tl_check_graph(env, desc->graph);
    tli_zero(lifetimes, sizeof *lifetimes);
    if (!result) result = tli_check_plan(env, function, desc->plan);
    if (result) return result;
    result = tli_init_ledger(env, desc->graph, tli_count_slots(desc->plan), &ledger);
    if (!result) result = tli_simulate_checked(env, function, desc, &ledger, report);
    else result = tli_fail(env, result, function, TLI_RULE(NO_MEMORY_FOR_LIFETIMES));
    if (!result && ledger.failed)
        result = tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_LIFETIMES));
    for (i = 0; i < ledger.count; i++) {
        tl_lifetime *life = &ledger.items[i];
        int32_t end = desc->plan->step_count;
        if (life->free_step < 0) life->free_step = end;
        if (life->end_step < 0 || life->end_step > end) life->end_step = end;
    }
    if (!result) {
        lifetimes->items = ledger.items;
        lifetimes->count = ledger.count;
        ledger.items = NULL;
    }
    tli_free_ledger(env, &ledger);
    return result;
}

TLI_IMPL tl_result tl_find_lifetimes(tl_env *env, const tl_graph *graph, const tl_plan *plan,
                                     tl_lifetimes *lifetimes) {
    tl_simulate_desc desc;
    tl_report report;
    TL_ASSERT(graph && plan && lifetimes);
    tli_zero(&desc, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    return tli_find_lifetimes(env, TLI_IN(FIND_LIFETIMES), &desc, lifetimes, &report);
}

TLI_IMPL void tl_free_lifetimes(tl_env *env, tl_lifetimes *lifetimes) {
    TL_ASSERT(lifetimes);
    tli_release(env, lifetimes->items);
    tli_zero(lifetimes, sizeof *lifetimes);
}

// -- places --

// Copy a plan with its steps, entry, offsets and blocks, narrow ones as plain ones, which are one allocation.
// All other fields of the copy are those of the plan.
static tl_result tli_join_plan(tl_env *env, tli_function function, const tl_plan *plan, tl_plan *copy) {
    uint64_t *offsets, *host_offsets, bytes;
    tl_plan_block *blocks;
    tl_step *steps;
    tl_entry *entry;
    int32_t i;
    // no overflow, because counts are below 2^31; offsets come first, because their alignment is larger
    bytes = (uint64_t)plan->step_count * sizeof *steps + (uint64_t)plan->entry_count * sizeof *entry +
            (uint64_t)plan->block_count * sizeof *blocks +
            ((uint64_t)plan->offset_count + (uint64_t)plan->host_offset_count) * sizeof *offsets;
    offsets = (uint64_t *)tli_alloc_array(env, bytes, 1);
    if (!offsets) return tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_STEPS));
    host_offsets = offsets + plan->offset_count;
    blocks = (tl_plan_block *)(void *)(host_offsets + plan->host_offset_count);
    steps = (tl_step *)(void *)(blocks + plan->block_count);
    entry = (tl_entry *)(void *)(steps + plan->step_count);
    tli_copy(entry, plan->entry, (size_t)plan->entry_count * sizeof *entry);
    tli_copy(blocks, plan->blocks, (size_t)plan->block_count * sizeof *blocks);
    for (i = 0; i < plan->offset_count; i++) offsets[i] = tl_find_offset(plan, i, 0);
    for (i = 0; i < plan->host_offset_count; i++) host_offsets[i] = tl_find_offset(plan, i, 1);
    for (i = 0; i < plan->step_count; i++) steps[i] = tl_find_step(plan, i);
    *copy = *plan;
    copy->narrow = NULL;
    copy->steps = plan->step_count ? steps : NULL;
    copy->entry = plan->entry_count ? entry : NULL;
    copy->offsets = plan->offset_count ? offsets : NULL;
    copy->host_offsets = plan->host_offset_count ? host_offsets : NULL;
    copy->blocks = plan->block_count ? blocks : NULL;
    copy->memory = offsets;
    return TL_OK;
}

#ifndef TL_NO_PLANNERS
TLI_IMPL tl_result tl_copy_plan(tl_env *env, const tl_plan *plan, tl_plan *copy) {
    tl_result result;
    TL_ASSERT(plan && copy);
    if (plan == copy)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(COPY_PLAN), TLI_RULE(COPY_MUST_NOT_BE_PLAN));
    tli_zero(copy, sizeof *copy);
    result = tli_check_plan(env, TLI_IN(COPY_PLAN), plan);
    return result ? result : tli_join_plan(env, TLI_IN(COPY_PLAN), plan, copy);
}
#endif

// The bytes of the largest allocation for a node: an output or its gradient, saved bytes or scratch.
static uint64_t tli_largest_allocation(const tl_graph *graph, int32_t id, int inference) {
    const tl_node *node = &graph->nodes[id];
    uint64_t largest = node->fwork_bytes;
    int32_t i;
    if (node->saved_bytes && node->swork_bytes > largest && !inference) largest = node->swork_bytes;
    if (node->saved_bytes > largest && !inference) largest = node->saved_bytes;
    if (node->bwork_bytes > largest && !inference) largest = node->bwork_bytes;
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (graph->outputs[i].bytes > largest) largest = graph->outputs[i].bytes;
    return largest;
}

static tl_result tli_fail_cut(tl_env *env, tli_function function, const tl_graph *graph, uint64_t cut,
                              uint64_t bytes, int32_t id) {
    tli_sentence s = tli_begin_error(env, TL_ERROR_INFEASIBLE, function,
                                     TLI_RULE(ALLOCATION_LARGER_THAN_BLOCK), cut, bytes);
    tli_put_rule(&s);
    if (TLI_ERROR_TEXT) tli_put_named(&s.text, id, tl_name_node(graph, id));
    return tli_end_error(env, &s, TL_ERROR_INFEASIBLE);
}

// What is placed in one tier. Arrays are over the numbers of allocations.
typedef struct tli_tier_places {
    int32_t           count;
    tl_layout_buffer *buffers;   // [count]
    tl_layout_buffer *members;   // [count] those of one bank
    uint64_t         *moved;     // [count]
    uint64_t         *offsets;   // [count] in its bank; then of the tier
    uint64_t         *ends;      // [count] offset in its bank, when offsets[] become those of the tier
    int32_t          *banks;     // [count] where it lives
    int32_t          *order;     // [count]
    tl_plan_block    *blocks;    // [block_count] in room for count
    int32_t           block_count;
    int               is_host;
    uint64_t          bound_bytes, cost, bound_cost, work;
} tli_tier_places;

// Both tiers: what is asked, and what was found. A tier that keeps its offsets has count 0.
typedef struct tli_places {
    tl_env       *env;
    tli_function  function;      // for error sentences
    const tl_places_desc *desc;
    int           keeps_banks;   // 1 = each allocation stays in the bank in which it is
    tl_bank       asked[TL_MOST_BANKS];  // those of desc, some with less, so that blocks fit
    uint64_t      alignment;
    tl_lifetimes  lifetimes;
    tli_tier_places tiers[2];
} tli_places;

static void tli_free_places(tli_places *p) {
    int tier;
    for (tier = 0; tier < 2; tier++) {
        tli_release(p->env, p->tiers[tier].buffers);
        tli_release(p->env, p->tiers[tier].moved);
        tli_release(p->env, p->tiers[tier].banks);
        tli_release(p->env, p->tiers[tier].blocks);
    }
    tl_free_lifetimes(p->env, &p->lifetimes);
}

// One buffer for each number on the device, or on the host, from the first to the last lifetime that has it.
static tl_result tli_make_buffers(tli_places *p, tli_tier_places *t) {
    uint64_t count = (uint64_t)t->count;
    int32_t i;
    t->buffers = (tl_layout_buffer *)tli_alloc_array(p->env, 2 * count, sizeof *t->buffers);
    t->moved = (uint64_t *)tli_alloc_array(p->env, 3 * count, sizeof *t->moved);
    t->banks = (int32_t *)tli_alloc_array(p->env, 2 * count, sizeof *t->banks);
    t->blocks = (tl_plan_block *)tli_alloc_array(p->env, count, sizeof *t->blocks);
    if (!t->buffers || !t->moved || !t->banks || !t->blocks)
        return tli_fail(p->env, TL_ERROR_NO_MEMORY, p->function, TLI_RULE(NO_MEMORY_FOR_LIFETIMES));
    t->members = t->buffers + count;
    t->offsets = t->moved + count;
    t->ends = t->offsets + count;
    t->order = t->banks + count;
    for (i = 0; i < p->lifetimes.count; i++) {
        const tl_lifetime *life = &p->lifetimes.items[i];
        tl_layout_buffer *buffer = &t->buffers[life->number];
        if ((life->use == TL_USE_HOST) != t->is_host) continue;
        if (life->over < 0) buffer->first_step = life->first_step;
        buffer->last_step = life->end_step > life->first_step ? life->end_step - 1 : life->first_step;
        buffer->bytes = life->bytes;
        buffer->alignment = p->alignment;
        if (p->keeps_banks) t->banks[life->number] = life->bank;
        if (!tli_add_u64(t->moved[life->number], life->moved_bytes, &t->moved[life->number]))
            t->moved[life->number] = UINT64_MAX;
    }
    return TL_OK;
}

// The strictest alignment in a bank of a tier.
static uint64_t tli_bank_alignment(const tli_places *p, const tli_tier_places *t, int32_t bank) {
    int has_banks = !t->is_host && bank < p->desc->bank_count;
    return has_banks ? tli_larger_u64(p->alignment, p->desc->banks[bank].alignment) : p->alignment;
}

// The bytes of a block of a bank; 0 = it is not cut.
static uint64_t tli_bank_cut(const tli_places *p, const tli_tier_places *t, int32_t bank) {
    uint64_t alignment = tli_bank_alignment(p, t, bank);
    return p->desc->block_bytes & ~(alignment - 1);
}

// Choose a bank for each buffer, and an offset in it.
static tl_result tli_choose_banks(tli_places *p, tli_tier_places *t) {
#ifndef TL_NO_PLANNERS
    tl_bank_desc wanted;
    tl_bank_plan found;
    tl_result result;
    int32_t i;
    for (i = 0; i < t->count; i++)      // so that what is taken of a bank stays within its capacity
        if (!(t->buffers[i].bytes >> 61)) t->buffers[i].bytes = tli_align_up(t->buffers[i].bytes, p->alignment);
    tli_zero(&wanted, sizeof wanted);
    wanted.buffers = t->buffers;
    wanted.moved_bytes = t->moved;
    wanted.banks = p->asked;
    wanted.buffer_count = t->count;
    wanted.bank_count = p->desc->bank_count;
    wanted.work_limit = p->desc->work_limit;
    result = tl_plan_banks(p->env, &wanted, &found);
    if (result) return result;
    tli_copy(t->banks, found.banks, (size_t)t->count * sizeof *t->banks);
    tli_copy(t->offsets, found.offsets, (size_t)t->count * sizeof *t->offsets);
    t->cost = found.cost;
    if (!t->work) t->bound_cost = found.bound_cost;     // of the first choice alone: later ones ask for less
    t->work += found.work;
    tl_free_bank_plan(p->env, &found);
    return TL_OK;
#else
    (void)t;
    return tli_fail(p->env, TL_ERROR_UNSUPPORTED, p->function, TLI_RULE(BANKS_TL_NO_PLANNERS_LEFT));
#endif
}

// Lay out the buffers of one bank, cut as is asked, and within its capacity. TL_ERROR_INFEASIBLE: *height was
// found.
static tl_result tli_lay_out_bank(tli_places *p, tli_tier_places *t, int32_t bank, uint64_t *height) {
    uint64_t alignment = tli_bank_alignment(p, t, bank), high = 0;
    tl_layout_desc wanted;
    tl_layout_plan layout;
    tl_result result;
    int32_t i, count = 0;
    tli_zero(&wanted, sizeof wanted);
    for (i = 0; i < t->count; i++) {
        if (t->banks[i] != bank) continue;
        high = tli_larger_u64(high, t->offsets[i] + t->buffers[i].bytes);
        t->members[count] = t->buffers[i];
        t->members[count++].alignment = alignment;
    }
    if (!count) return TL_OK;
    wanted.buffers = t->members;
    wanted.buffer_count = count;
    wanted.work_limit = p->desc->work_limit;
    wanted.block_bytes = tli_bank_cut(p, t, bank);
    if (!t->is_host && p->desc->bank_count) {   // tl_plan_banks laid it out
        if (!wanted.block_bytes || high <= wanted.block_bytes) return TL_OK;
        wanted.capacity_bytes = p->desc->banks[bank].capacity_bytes;
    }
    result = tl_plan_layout(p->env, &wanted, &layout);
    *height = layout.height_bytes;
    if (result) return result;
    for (i = count = 0; i < t->count; i++)
        if (t->banks[i] == bank) t->offsets[i] = layout.offsets[count++];
    t->bound_bytes += tli_align_up(layout.bound_bytes, p->alignment);
    t->work += layout.work;
    tl_free_layout_plan(p->env, &layout);
    return TL_OK;
}

// Put the blocks of a bank behind those before it; each is as large as what lies in it.
static void tli_add_blocks(const tli_places *p, tli_tier_places *t, int32_t bank) {
    uint64_t cut = tli_bank_cut(p, t, bank), number = UINT64_MAX, start = 0;
    tl_plan_block *block = t->block_count ? &t->blocks[t->block_count - 1] : NULL;
    int32_t k;
    for (k = 0; k < t->count; k++) {
        int32_t i = t->order[k];
        uint64_t at = cut ? t->ends[i] / cut : 0;
        if (t->banks[i] != bank) continue;
        if (at != number) {
            start = block ? block->offset + block->bytes : 0;
            block = &t->blocks[t->block_count++];
            block->offset = start;
            block->tier = (uint8_t)t->is_host;
            block->bank = (uint8_t)bank;
            number = at;
        }
        t->offsets[i] = t->ends[i] - (cut ? at * cut : 0);
        block->bytes = tli_larger_u64(block->bytes,
                                      tli_align_up(t->offsets[i] + t->buffers[i].bytes, p->alignment));
        t->offsets[i] += start;
    }
}

// Fail with the largest of the allocations that a block of their bank cannot hold, if there are any.
static tl_result tli_check_cut(const tli_places *p, const tli_tier_places *t) {
    const tl_lifetime *largest = NULL;
    uint64_t cut, least = 0;
    int32_t i;
    for (i = 0; i < p->lifetimes.count && p->desc->block_bytes; i++) {
        const tl_lifetime *life = &p->lifetimes.items[i];
        if ((life->use == TL_USE_HOST) != t->is_host) continue;
        cut = tli_bank_cut(p, t, t->banks[life->number]);
        if (life->bytes <= cut || (largest && life->bytes <= largest->bytes)) continue;
        largest = life;
        least = cut;
    }
    if (!largest) return TL_OK;
    return tli_fail_cut(p->env, p->function, p->desc->graph, least, largest->bytes, largest->node);
}

#define TLI_BANK_TURNS 12   // times that banks are chosen at most to make their blocks fit

// Lay out the chosen banks. TL_ERROR_INFEASIBLE: *bank does not hold what was chosen for it, in blocks.
static tl_result tli_lay_out_banks(tli_places *p, tli_tier_places *t, int32_t *bank, uint64_t *height) {
    tl_result result = TL_OK;
    t->bound_bytes = 0;
    for (*bank = 0; *bank < TL_MOST_BANKS; ++*bank) {
        result = tli_lay_out_bank(p, t, *bank, height);
        if (result) break;
    }
    return result;
}

// Choose banks, and again with less of a bank whose blocks do not hold what was chosen for it: by what exceeds
// its capacity, and an eighth at least; at last with next to nothing of it.
static tl_result tli_place_banks(tli_places *p, tli_tier_places *t) {
    int32_t bank = 0, turn;
    uint64_t height = 0, less;
    tl_result result = tli_choose_banks(p, t);
    if (!result) result = tli_check_cut(p, t);
    if (!result) result = tli_lay_out_banks(p, t, &bank, &height);
    else return result;
    for (turn = 2; turn <= TLI_BANK_TURNS && result == TL_ERROR_INFEASIBLE; turn++) {
        uint64_t capacity = p->desc->banks[bank].capacity_bytes, *asked = &p->asked[bank].capacity_bytes;
        less = tli_larger_u64(height > capacity ? height - capacity : 0, *asked / 8 + 1);
        *asked = *asked > less && turn < TLI_BANK_TURNS ? *asked - less : 1;
        result = tli_choose_banks(p, t);
        if (!result) result = tli_check_cut(p, t);
        if (!result) result = tli_lay_out_banks(p, t, &bank, &height);
        else break;
    }
    if (result != TL_ERROR_INFEASIBLE) return result;
    return tli_fail_values(p->env, result, p->function, TLI_RULE(BANK_HOLDS_NO_BLOCKS), (uint64_t)bank,
                           p->desc->banks[bank].capacity_bytes);
}

// Lay out what lives on the device, or on the host, and cut it into blocks. Without banks a single block of
// bank 0 is not listed.
static tl_result tli_place_tier(tli_places *p, int is_host, int32_t count) {
    tli_tier_places *t = &p->tiers[is_host];
    int has_banks = !is_host && p->desc->bank_count;
    tli_quiet quiet = tli_begin_quiet(p->env);
    uint64_t height;
    tl_result result;
    int32_t bank;
    t->is_host = is_host;
    t->count = count;
    result = tli_make_buffers(p, t);
    if (!result && has_banks) {
        result = tli_place_banks(p, t);
    } else {
        if (!result) result = tli_check_cut(p, t);
        if (!result) result = tli_lay_out_banks(p, t, &bank, &height);
    }
    tli_end_quiet(&quiet, result);
    if (result == TL_ERROR_OVERFLOW && !has_banks)
        return tli_fail(p->env, result, p->function, TLI_RULE(ALLOCATIONS_DO_NOT_FIT_61_BITS));
    if (result) return result;
    tli_sort_numbers(t->order, count, t->offsets);
    tli_copy(t->ends, t->offsets, (size_t)count * sizeof *t->ends);
    for (bank = 0; bank < TL_MOST_BANKS; bank++) tli_add_blocks(p, t, bank);
    if (!has_banks && t->block_count == 1 && !t->blocks[0].bank) t->block_count = 0;
    return TL_OK;
}

static tl_result tli_check_bank_count(tl_env *env, tli_function function, const tl_bank *banks, int32_t count) {
    if (count < 0 || count > TL_MOST_BANKS || (count && !banks))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(PLACES_BANK_COUNT_MUST_BE_0_TO_8));
    return TL_OK;
}

static tl_result tli_check_places(const tli_places *p) {
    const tl_places_desc *desc = p->desc;
    uint64_t strictest = p->alignment;
    tl_result result = tli_check_bank_count(p->env, p->function, desc->banks, desc->bank_count);
    int32_t k;
    if (result) return result;
    for (k = 0; k < desc->bank_count; k++) strictest = tli_larger_u64(strictest, desc->banks[k].alignment);
    if (desc->block_bytes && desc->block_bytes < strictest)
        return tli_fail_values(p->env, TL_ERROR_INVALID_ARG, p->function,
                               TLI_RULE(BLOCK_BYTES_LESS_THAN_ALIGNMENT), desc->block_bytes, strictest);
    return TL_OK;
}

// The lifetimes were found with the plan that has banks, for another number of steps under way: let each end
// where it does in `bare`.
static tl_result tli_lengthen(tli_places *p, const tl_plan *bare) {
    tl_simulate_desc simulate;
    tl_lifetimes longer;
    tl_report report;
    tl_result result;
    int32_t i;
    tli_zero(&simulate, sizeof simulate);
    simulate.graph = p->desc->graph;
    simulate.plan = bare;
    result = tli_find_lifetimes(p->env, p->function, &simulate, &longer, &report);
    for (i = 0; i < p->lifetimes.count && !result; i++)     // both replays list the same in the same order
        p->lifetimes.items[i].end_step = longer.items[i].end_step;
    if (!result) tl_free_lifetimes(p->env, &longer);
    return result;
}

// Lay out the tiers of a plan in which it has no offsets. banked: NULL, or the plan whose allocations stay in
// their banks.
static tl_result tli_place_allocations(tli_places *p, const tl_plan *bare, const tl_plan *banked) {
    tl_simulate_desc simulate;
    tl_report report;
    tl_result result;
    tli_zero(&simulate, sizeof simulate);
    simulate.graph = p->desc->graph;
    simulate.device = banked ? NULL : p->desc->device;  // places of `banked` need not suit the alignment asked
    simulate.plan = banked ? banked : bare;
    p->keeps_banks = banked != NULL;
    result = tli_find_lifetimes(p->env, p->function, &simulate, &p->lifetimes, &report);
    if (!result && banked && banked->in_flight != bare->in_flight) result = tli_lengthen(p, bare);
    if (!result) result = tli_check_places(p);
    if (!result) tli_copy(p->asked, p->desc->banks, (size_t)p->desc->bank_count * sizeof *p->asked);
    if (!result && !bare->offset_count) result = tli_place_tier(p, 0, report.allocation_count);
    if (!result && report.host_allocation_count && !bare->host_offset_count)
        result = tli_place_tier(p, 1, report.host_allocation_count);
    return result;
}

// What no places of a tier take less than: where it is one block, the bound of its layout; else all live bytes.
static uint64_t tli_places_bound(const tli_places *p, const tli_tier_places *t, uint64_t peak_bytes) {
    return t->block_count ? tli_align_up(peak_bytes, p->alignment) : t->bound_bytes;
}

static void tli_report_places(const tli_places *p, const tl_plan *plan, tl_places_report *report) {
    const tli_tier_places *device = &p->tiers[0], *host = &p->tiers[1];
    int32_t k;
    report->arena_bytes = plan->arena_bytes;
    report->bound_bytes = tli_places_bound(p, device, plan->peak_bytes);
    report->host_arena_bytes = plan->host_arena_bytes;
    report->host_bound_bytes = tli_places_bound(p, host, plan->host_peak_bytes);
    report->proven = report->arena_bytes == report->bound_bytes &&
                     report->host_arena_bytes == report->host_bound_bytes && device->cost == device->bound_cost;
    report->work = device->work + host->work;
    report->block_count = plan->block_count;
    report->cost = device->cost;
    report->bound_cost = device->bound_cost;
    for (k = 0; k < plan->block_count; k++)
        if (!plan->blocks[k].tier) report->bank_bytes[plan->blocks[k].bank] += plan->blocks[k].bytes;
    if (!plan->block_count || plan->blocks[0].tier) report->bank_bytes[0] = plan->arena_bytes;
}

// Give a plan the offsets and blocks that were found, in a copy that is measured, in place of the plan.
static tl_result tli_take_places(tli_places *p, tl_plan *bare, tl_plan *plan) {
    tli_tier_places *device = &p->tiers[0], *host = &p->tiers[1];
    tl_plan_block *blocks;
    tl_plan placed;
    tl_result result;
    int32_t k, count = 0;
    blocks = (tl_plan_block *)tli_alloc_array(p->env, (uint64_t)bare->block_count +
                                              (uint64_t)device->block_count + (uint64_t)host->block_count,
                                              sizeof *blocks);
    if (!blocks)
        return tli_fail(p->env, TL_ERROR_NO_MEMORY, p->function, TLI_RULE(NO_MEMORY_FOR_LIFETIMES));
    for (k = 0; k < device->block_count; k++) blocks[count++] = device->blocks[k];
    for (k = 0; k < bare->block_count; k++)     // of the tier that keeps its offsets
        if (!p->tiers[bare->blocks[k].tier].count) blocks[count++] = bare->blocks[k];
    for (k = 0; k < host->block_count; k++) blocks[count++] = host->blocks[k];
    if (device->count) bare->offsets = device->offsets;
    if (device->count) bare->offset_count = device->count;
    if (host->count) bare->host_offsets = host->offsets;
    if (host->count) bare->host_offset_count = host->count;
    bare->blocks = blocks;
    bare->block_count = count;
    result = tli_join_plan(p->env, p->function, bare, &placed);
    if (!result) {
        result = tli_measure(p->env, p->function, p->desc->graph, p->desc->device, 1, &placed);
        tl_free_plan(p->env, result ? &placed : plan);
        if (!result) *plan = placed;
    }
    tli_release(p->env, blocks);
    return result;
}

// bare: the plan without the offsets that are to be found. banked: NULL = banks are chosen as is asked; else a
// plan with the same steps, whose allocations stay in their banks.
static tl_result tli_plan_places(tl_env *env, tli_function function, const tl_places_desc *desc, tl_plan *bare,
                                 const tl_plan *banked, tl_plan *plan, tl_places_report *report) {
    tli_places p;
    tl_result result;
    tli_zero(&p, sizeof p);
    p.env = env;
    p.function = function;
    p.desc = desc;
    p.alignment = desc->device && desc->device->alignment_bytes ? desc->device->alignment_bytes : 1;
    result = tli_place_allocations(&p, bare, banked);
    if (!result) result = tli_take_places(&p, bare, plan);
    if (!result && report) tli_report_places(&p, plan, report);
    tli_free_places(&p);
    return result;
}

TLI_IMPL tl_result tl_plan_places(tl_env *env, const tl_places_desc *desc, tl_plan *plan,
                                  tl_places_report *report) {
    tl_plan bare;
    TL_ASSERT(desc && desc->graph && plan);
    if (report) tli_zero(report, sizeof *report);
    bare = *plan;
    bare.offsets = bare.host_offsets = NULL;
    bare.offset_count = bare.host_offset_count = 0;
    bare.blocks = NULL;
    bare.block_count = 0;
    bare.alignment_bytes = desc->device && desc->device->alignment_bytes ? desc->device->alignment_bytes : 1;
    return tli_plan_places(env, TLI_IN(PLAN_PLACES), desc, &bare, NULL, plan, report);
}

#ifndef TL_NO_PLANNERS
// -- places of two plans --
//
// Two plans of one graph that run one after the other in the same arenas. What the entry of the second names,
// the first leaves resident; graph inputs are there all the time. Both are laid out as one:
//
//     steps     first           second
//     inputs    ################################    the same allocation in both
//     entry            #########################    from where the first makes it to the end of the second
//     others    ####  #####     ###  #########

// The allocations of the second plan that are there before its first step.
static int32_t tli_count_first_allocations(const tl_graph *graph, const tl_plan *plan) {
    int32_t count = 0, i;
    for (i = 0; i < graph->tensor_count; i++)
        count += graph->nodes[graph->outputs[i].node].is_input && graph->outputs[i].bytes;
    for (i = 0; i < plan->entry_count; i++) {
        const tl_entry *entry = &plan->entry[i];
        count += graph->outputs[graph->nodes[entry->node].first_output + entry->output].bytes > 0;
    }
    return count;
}

// Put the lifetimes of a second plan behind those of the first. numbers: of the allocations of the second,
// those among both; of what is there before its first step, that of the first plan.
static tl_result tli_join_lifetimes(tli_places *p, const tl_lifetimes *later, int32_t start_count,
                                    int32_t step_count, const tl_report *report, int32_t *numbers) {
    const tl_graph *graph = p->desc->graph;
    uint64_t count = (uint64_t)p->lifetimes.count + (uint64_t)later->count;
    tl_lifetime *items = (tl_lifetime *)tli_alloc_array(p->env, count, sizeof *items);
    int32_t *last = (int32_t *)tli_alloc_array(p->env, (uint64_t)graph->tensor_count, sizeof *last);
    int32_t i, at = p->lifetimes.count;
    if (items && last) {
        tli_copy(items, p->lifetimes.items, (size_t)at * sizeof *items);
        for (i = 0; i < at; i++)    // later lifetimes of a tensor stand behind earlier ones
            if (items[i].use == TL_USE_INPUT || items[i].use == TL_USE_STATE || items[i].use == TL_USE_OUTPUT)
                last[graph->nodes[items[i].node].first_output + items[i].output] = i;
        for (i = 0; i < later->count; i++) {
            tl_lifetime life = later->items[i];
            int is_host = life.use == TL_USE_HOST;
            life.end_step += step_count + 1;
            if (!is_host && life.number < start_count) {
                tl_lifetime *before = &items[last[graph->nodes[life.node].first_output + life.output]];
                before->end_step = life.end_step;
                numbers[life.number] = before->number;
                continue;
            }
            if (!is_host) numbers[life.number] = report->allocation_count + life.number - start_count;
            life.number = is_host ? report->host_allocation_count + life.number : numbers[life.number];
            life.first_step += step_count + 1;
            items[at++] = life;
        }
        tli_release(p->env, p->lifetimes.items);
        p->lifetimes.items = items;
        p->lifetimes.count = at;
    }
    tli_release(p->env, last);
    if (items && last) return TL_OK;
    tli_release(p->env, items);
    return tli_fail(p->env, TL_ERROR_NO_MEMORY, TLI_IN(PLAN_PLACES), TLI_RULE(NO_MEMORY_FOR_LIFETIMES));
}

// A plan without its places.
static tl_plan tli_strip_places(const tli_places *p, const tl_plan *plan) {
    tl_plan bare = *plan;
    bare.offsets = bare.host_offsets = NULL;
    bare.offset_count = bare.host_offset_count = 0;
    bare.blocks = NULL;
    bare.block_count = 0;
    bare.alignment_bytes = p->alignment;
    return bare;
}

// Give the second plan its part of the places: in the order of its own numbers.
static tl_result tli_take_later_places(tli_places *p, const int32_t *numbers, const tl_report *first,
                                       const tl_report *second, tl_plan *plan) {
    tl_plan bare = tli_strip_places(p, plan);
    uint64_t count = (uint64_t)second->allocation_count;
    uint64_t *offsets = (uint64_t *)tli_alloc_array(p->env, count, sizeof *offsets);
    tl_result result;
    int32_t i;
    if (!offsets)
        return tli_fail(p->env, TL_ERROR_NO_MEMORY, TLI_IN(PLAN_PLACES), TLI_RULE(NO_MEMORY_FOR_LIFETIMES));
    for (i = 0; i < second->allocation_count; i++) offsets[i] = p->tiers[0].offsets[numbers[i]];
    p->tiers[0].offsets = offsets;
    p->tiers[0].count = second->allocation_count;
    if (p->tiers[1].count) p->tiers[1].offsets += first->host_allocation_count;
    p->tiers[1].count = second->host_allocation_count;
    result = tli_take_places(p, &bare, plan);
    tli_release(p->env, offsets);
    return result;
}

// Give two plans places in the same arenas. Both own their memory. Where there is an error they may have
// got places all the same.
static tl_result tli_plan_shared_places(tl_env *env, tli_function function, const tl_places_desc *desc,
                                        tl_plan *first, tl_plan *second) {
    tl_simulate_desc simulate;
    tl_report reports[2];
    tl_lifetimes later;
    tli_places p;
    tl_plan bare, bare_second;
    int32_t *numbers = NULL, start = tli_count_first_allocations(desc->graph, second);
    tl_result result;
    tli_zero(&p, sizeof p);
    tli_zero(&later, sizeof later);
    p.env = env;
    p.function = function;
    p.desc = desc;
    p.alignment = desc->device && desc->device->alignment_bytes ? desc->device->alignment_bytes : 1;
    bare = tli_strip_places(&p, first);
    bare_second = tli_strip_places(&p, second);
    tli_zero(&simulate, sizeof simulate);
    simulate.graph = desc->graph;
    simulate.device = desc->device;
    simulate.plan = &bare;
    result = tli_find_lifetimes(env, function, &simulate, &p.lifetimes, &reports[0]);
    simulate.plan = &bare_second;
    if (!result) result = tli_find_lifetimes(env, function, &simulate, &later, &reports[1]);
    if (!result) result = tli_check_places(&p);
    if (!result) {
        numbers = (int32_t *)tli_alloc_array(env, (uint64_t)reports[1].allocation_count, sizeof *numbers);
        result = numbers ? tli_join_lifetimes(&p, &later, start, bare.step_count, &reports[0], numbers)
                         : tli_fail(env, TL_ERROR_NO_MEMORY, function,
                                    TLI_RULE(NO_MEMORY_FOR_LIFETIMES));
    }
    if (!result)
        result = tli_place_tier(&p, 0, reports[0].allocation_count + reports[1].allocation_count - start);
    if (!result && reports[0].host_allocation_count + reports[1].host_allocation_count)
        result = tli_place_tier(&p, 1, reports[0].host_allocation_count + reports[1].host_allocation_count);
    if (!result) {
        p.tiers[0].count = reports[0].allocation_count;
        p.tiers[1].count = reports[0].host_allocation_count;
        result = tli_take_places(&p, &bare, first);
    }
    if (!result) result = tli_take_later_places(&p, numbers, &reports[0], &reports[1], second);
    tl_free_lifetimes(env, &later);
    tli_release(env, numbers);
    tli_free_places(&p);
    return result;
}
#endif
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
