#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// Lifetimes are a replay with a ledger; places are a layout of the lifetimes that have a number. What is
// written in place has the number of its input, so the two are one buffer.

static const char *const tli_use_names[] = { TL_USES(TLI_NAME) };

TLI_IMPL const char *tl_name_use(tl_use use) { return tli_name(tli_use_names, TL_USE_COUNT, (int64_t)use); }

// -- lifetimes --

static void tli_free_ledger(tl_env *env, tli_ledger *ledger) {
    tli_release(env, ledger->items);
    tli_release(env, ledger->open);
    tli_release(env, ledger->occurrences);
    tli_zero(ledger, sizeof *ledger);
}

static tl_result tli_init_ledger(tl_env *env, const tl_graph *graph, tli_ledger *ledger) {
    uint64_t keys = 5 * (uint64_t)graph->tensor_count + 2 * (uint64_t)graph->node_count, i;
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
    if (result) return result;
    result = tli_init_ledger(env, desc->graph, &ledger);
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

// One buffer for each number, from the first to the last lifetime that has it.
static tl_layout_buffer *tli_make_buffers(tl_env *env, const tl_lifetimes *lifetimes, int32_t count,
                                          uint64_t alignment) {
    tl_layout_buffer *buffers = (tl_layout_buffer *)tli_alloc_array(env, (uint64_t)count, sizeof *buffers);
    int32_t i;
    for (i = 0; buffers && i < lifetimes->count; i++) {
        const tl_lifetime *life = &lifetimes->items[i];
        tl_layout_buffer *buffer;
        if (life->number < 0) continue;
        buffer = &buffers[life->number];
        if (life->over < 0) buffer->first_step = life->first_step;
        buffer->last_step = life->end_step > life->first_step ? life->end_step - 1 : life->first_step;
        buffer->bytes = life->bytes;
        buffer->alignment = alignment;
    }
    return buffers;
}

// Steps and offsets of a plan in one block; the counts of the plan are those of the copy.
static tl_result tli_join_plan(tl_env *env, tli_function function, const tl_plan *plan, tl_plan *copy) {
    uint64_t *offsets, bytes;
    tl_step *steps;
    // no overflow, because counts are below 2^31; offsets come first, because their alignment is larger
    bytes = (uint64_t)plan->step_count * sizeof *steps + (uint64_t)plan->offset_count * sizeof *offsets;
    offsets = (uint64_t *)tli_alloc_array(env, bytes, 1);
    if (!offsets) return tli_fail(env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_STEPS));
    steps = (tl_step *)(void *)(offsets + plan->offset_count);
    tli_copy(offsets, plan->offsets, (size_t)plan->offset_count * sizeof *offsets);
    tli_copy(steps, plan->steps, (size_t)plan->step_count * sizeof *steps);
    *copy = *plan;
    copy->steps = plan->step_count ? steps : NULL;
    copy->offsets = plan->offset_count ? offsets : NULL;
    copy->memory = offsets;
    return TL_OK;
}

#ifndef TL_NO_PLANNERS
TLI_IMPL tl_result tl_copy_plan(tl_env *env, const tl_plan *plan, tl_plan *copy) {
    tl_result result;
    TL_ASSERT(plan && copy && plan != copy);
    tli_zero(copy, sizeof *copy);
    result = tli_check_plan(env, TLI_IN(COPY_PLAN), plan);
    return result ? result : tli_join_plan(env, TLI_IN(COPY_PLAN), plan, copy);
}
#endif

static tl_result tli_place_allocations(tl_env *env, const tl_places_desc *desc, const tl_plan *plan,
                                 tl_layout_plan *layout) {
    uint64_t alignment = desc->device && desc->device->alignment_bytes ? desc->device->alignment_bytes : 1;
    tl_simulate_desc simulate;
    tl_layout_desc wanted;
    tl_lifetimes lifetimes;
    tl_layout_buffer *buffers;
    tl_report report;
    tl_result result;
    tli_zero(&simulate, sizeof simulate);
    simulate.graph = desc->graph;
    simulate.device = desc->device;
    simulate.plan = plan;
    result = tli_find_lifetimes(env, TLI_IN(PLAN_PLACES), &simulate, &lifetimes, &report);
    if (result) return result;
    buffers = tli_make_buffers(env, &lifetimes, report.allocation_count, alignment);
    tl_free_lifetimes(env, &lifetimes);
    if (!buffers)
        return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(PLAN_PLACES), TLI_RULE(NO_MEMORY_FOR_LIFETIMES));
    tli_zero(&wanted, sizeof wanted);
    wanted.buffers = buffers;
    wanted.buffer_count = report.allocation_count;
    wanted.work_limit = desc->work_limit;
    result = tl_plan_layout(env, &wanted, layout);
    tli_release(env, buffers);
    return result;
}

TLI_IMPL tl_result tl_plan_places(tl_env *env, const tl_places_desc *desc, tl_plan *plan,
                                  tl_places_report *report) {
    uint64_t alignment = desc->device && desc->device->alignment_bytes ? desc->device->alignment_bytes : 1;
    tl_plan bare, placed;
    tl_layout_plan layout;
    tl_result result;
    TL_ASSERT(desc && desc->graph && plan);
    if (report) tli_zero(report, sizeof *report);
    bare = *plan;
    bare.offsets = NULL;
    bare.offset_count = 0;
    bare.alignment_bytes = alignment;
    result = tli_place_allocations(env, desc, &bare, &layout);
    if (result) return result;
    bare.offsets = layout.offsets;
    bare.offset_count = layout.buffer_count;
    result = tli_join_plan(env, TLI_IN(PLAN_PLACES), &bare, &placed);
    if (!result) {
        result = tli_measure(env, TLI_IN(PLAN_PLACES), desc->graph, desc->device, 1, &placed);
        if (result) tl_free_plan(env, &placed);
    }
    if (!result) {
        tl_free_plan(env, plan);
        *plan = placed;
        if (report) {
            report->arena_bytes = plan->arena_bytes;
            report->bound_bytes = tli_align_up(layout.bound_bytes, alignment);
            report->proven = report->arena_bytes == report->bound_bytes;
            report->work = layout.work;
        }
    }
    tl_free_layout_plan(env, &layout);
    return result;
}
#endif  // TL_STRATEGY_IMPLEMENTATION

