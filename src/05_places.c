#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

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
    for (i = 0; i < ledger.count; i++)
        if (ledger.items[i].end_step < 0) ledger.items[i].end_step = desc->plan->step_count;
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

// One buffer for each number on the device, or on the host, from the first to the last lifetime that has it.
static tl_layout_buffer *tli_make_buffers(tl_env *env, const tl_lifetimes *lifetimes, int is_host,
                                          int32_t count, uint64_t alignment) {
    tl_layout_buffer *buffers = (tl_layout_buffer *)tli_alloc_array(env, (uint64_t)count, sizeof *buffers);
    int32_t i;
    for (i = 0; buffers && i < lifetimes->count; i++) {
        const tl_lifetime *life = &lifetimes->items[i];
        tl_layout_buffer *buffer = &buffers[life->number];
        if ((life->use == TL_USE_HOST) != is_host) continue;
        if (life->over < 0) buffer->first_step = life->first_step;
        buffer->last_step = life->end_step > life->first_step ? life->end_step - 1 : life->first_step;
        buffer->bytes = life->bytes;
        buffer->alignment = alignment;
    }
    return buffers;
}

// Steps, entry and offsets of a plan in one block; the counts of the plan are those of the copy.
static tl_result tli_join_plan(tl_env *env, tli_function function, const tl_plan *plan, tl_plan *copy) {
    uint64_t *offsets, *host_offsets, bytes;
    tl_step *steps;
    tl_entry *entry;
    int32_t i;
    // no overflow, because counts are below 2^31; offsets come first, because their alignment is larger
    bytes = (uint64_t)plan->step_count * sizeof *steps + (uint64_t)plan->entry_count * sizeof *entry +
            ((uint64_t)plan->offset_count + (uint64_t)plan->host_offset_count) * sizeof *offsets;
    offsets = (uint64_t *)tli_alloc_array(env, bytes, 1);
    if (!offsets) return tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_STEPS));
    host_offsets = offsets + plan->offset_count;
    steps = (tl_step *)(void *)(host_offsets + plan->host_offset_count);
    entry = (tl_entry *)(void *)(steps + plan->step_count);
    tli_copy(entry, plan->entry, (size_t)plan->entry_count * sizeof *entry);
    for (i = 0; i < plan->offset_count; i++) offsets[i] = tl_find_offset(plan, i, 0);
    for (i = 0; i < plan->host_offset_count; i++) host_offsets[i] = tl_find_offset(plan, i, 1);
    for (i = 0; i < plan->step_count; i++) steps[i] = tl_find_step(plan, i);
    *copy = *plan;
    copy->narrow = NULL;
    copy->steps = plan->step_count ? steps : NULL;
    copy->entry = plan->entry_count ? entry : NULL;
    copy->offsets = plan->offset_count ? offsets : NULL;
    copy->host_offsets = plan->host_offset_count ? host_offsets : NULL;
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

// Lay out what lives on the device, or on the host.
static tl_result tli_place_tier(tl_env *env, const tl_places_desc *desc, const tl_lifetimes *lifetimes,
                                int is_host, int32_t count, tl_layout_plan *layout) {
    uint64_t alignment = desc->device && desc->device->alignment_bytes ? desc->device->alignment_bytes : 1;
    tl_layout_buffer *buffers = tli_make_buffers(env, lifetimes, is_host, count, alignment);
    tl_layout_desc wanted;
    tl_result result;
    if (!buffers)
        return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(PLAN_PLACES), TLI_RULE(NO_MEMORY_FOR_LIFETIMES));
    tli_zero(&wanted, sizeof wanted);
    wanted.buffers = buffers;
    wanted.buffer_count = count;
    wanted.work_limit = desc->work_limit;
    result = tl_plan_layout(env, &wanted, layout);
    tli_release(env, buffers);
    return result;
}

// Lay out the tiers of a plan in which it has no offsets.
static tl_result tli_place_allocations(tl_env *env, const tl_places_desc *desc, const tl_plan *plan,
                                       tl_layout_plan *layout, tl_layout_plan *host_layout) {
    tl_simulate_desc simulate;
    tl_lifetimes lifetimes;
    tl_report report;
    tl_result result;
    tli_zero(layout, sizeof *layout);
    tli_zero(host_layout, sizeof *host_layout);
    tli_zero(&simulate, sizeof simulate);
    simulate.graph = desc->graph;
    simulate.device = desc->device;
    simulate.plan = plan;
    result = tli_find_lifetimes(env, TLI_IN(PLAN_PLACES), &simulate, &lifetimes, &report);
    if (result) return result;
    if (!plan->offset_count)
        result = tli_place_tier(env, desc, &lifetimes, 0, report.allocation_count, layout);
    if (!result && report.host_allocation_count && !plan->host_offset_count)
        result = tli_place_tier(env, desc, &lifetimes, 1, report.host_allocation_count, host_layout);
    tl_free_lifetimes(env, &lifetimes);
    return result;
}

static void tli_report_places(const tl_plan *plan, uint64_t alignment, const tl_layout_plan *layout,
                              const tl_layout_plan *host_layout, tl_places_report *report) {
    report->arena_bytes = plan->arena_bytes;
    report->bound_bytes = tli_align_up(layout->bound_bytes, alignment);
    report->host_arena_bytes = plan->host_arena_bytes;
    report->host_bound_bytes = tli_align_up(host_layout->bound_bytes, alignment);
    report->proven = report->arena_bytes == report->bound_bytes &&
                     report->host_arena_bytes == report->host_bound_bytes;
    report->work = layout->work + host_layout->work;
}

// Give a plan the offsets that were found, in a copy that is measured, in place of the plan.
static tl_result tli_take_places(tl_env *env, const tl_places_desc *desc, tl_plan *bare,
                                 const tl_layout_plan *layout, const tl_layout_plan *host_layout,
                                 tl_plan *plan) {
    tl_plan placed;
    tl_result result;
    if (layout->buffer_count) bare->offsets = layout->offsets;
    if (layout->buffer_count) bare->offset_count = layout->buffer_count;
    if (host_layout->buffer_count) bare->host_offsets = host_layout->offsets;
    if (host_layout->buffer_count) bare->host_offset_count = host_layout->buffer_count;
    result = tli_join_plan(env, TLI_IN(PLAN_PLACES), bare, &placed);
    if (result) return result;
    result = tli_measure(env, TLI_IN(PLAN_PLACES), desc->graph, desc->device, 1, &placed);
    tl_free_plan(env, result ? &placed : plan);
    if (!result) *plan = placed;
    return result;
}

// bare: the plan without the offsets that are to be found.
static tl_result tli_plan_places(tl_env *env, const tl_places_desc *desc, tl_plan *bare, tl_plan *plan,
                                 tl_places_report *report) {
    uint64_t alignment = desc->device && desc->device->alignment_bytes ? desc->device->alignment_bytes : 1;
    tl_layout_plan layout, host_layout;
    tl_result result = tli_place_allocations(env, desc, bare, &layout, &host_layout);
    if (!result) result = tli_take_places(env, desc, bare, &layout, &host_layout, plan);
    if (!result && report) tli_report_places(plan, alignment, &layout, &host_layout, report);
    tl_free_layout_plan(env, &layout);
    tl_free_layout_plan(env, &host_layout);
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
    bare.alignment_bytes = desc->device && desc->device->alignment_bytes ? desc->device->alignment_bytes : 1;
    return tli_plan_places(env, desc, &bare, plan, report);
}
#endif  // TL_STRATEGY_IMPLEMENTATION

