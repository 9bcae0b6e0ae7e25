#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// ============================================================================
// [5] PLAN (implementation)
// ============================================================================
//
// This part: the names of steps and codecs, lists of steps, and the fields of a plan, wide or narrow.
// Everything that makes or reads plans uses it, and so does a run of tables.

// -- names and codecs --

static const char *const tli_step_names[] = { TL_STEPS(TLI_NAME) };
static const struct { TL_STEPS(TLI_HELP_ROOM) } tli_step_helps = { TL_STEPS(TLI_HELP) };
static const char *const tli_codec_names[] = { TL_CODECS(TLI_NAME) };

TLI_IMPL const char *tl_name_step(tl_step_kind kind) {
    return tli_name(tli_step_names, TL_STEP_COUNT, (int64_t)kind);
}

TLI_IMPL const char *tl_explain_step(tl_step_kind kind) {
    return tli_help(&tli_step_helps, TL_STEP_COUNT, (int64_t)kind);
}

TLI_IMPL const char *tl_name_codec(tl_codec codec) {
    return tli_name(tli_codec_names, TL_CODEC_COUNT, (int64_t)codec);
}

TLI_IMPL uint64_t tl_find_codec_bytes(tl_codec codec, uint64_t bytes) {
    uint64_t count = bytes / 4 + (bytes % 4 != 0);  // f32 elements
    switch (codec) {
    case TL_CODEC_NONE: return bytes;
    case TL_CODEC_F16:
    case TL_CODEC_BF16: return 2 * count;
    case TL_CODEC_Q8: return count + 4 * (count / 32 + (count % 32 != 0));
    case TL_CODEC_COUNT: break;
    }
    return bytes;
}

// -- steps --

#ifndef TL_ONLY_TABLES
// Whether a kind acts on a node (F, I, S, B, DS), with output TL_ALL_OUTPUTS, rather than on
// tensors.
static int tli_acts_on_node(tl_step_kind kind) {
    return kind <= TL_STEP_BACKWARD || kind == TL_STEP_DROP_SAVED;
}
#endif

#if !defined(TL_NO_TEXT) || !defined(TL_NO_PLANNERS) || !defined(TL_NO_ONLINE)
static tl_step tli_step_of(tl_step_kind kind, int32_t node, int32_t output) {
    tl_step step;
    step.kind = (uint8_t)kind;
    step.codec = TL_CODEC_NONE;
    step.slot = 0;
    step.node = node;
    step.output = output;
    step.begins = 0;
    return step;
}

// A list of steps that grows; its array becomes the memory of a plan.
typedef struct tli_steps {
    tl_env  *env;
    tl_step *steps;
    int32_t  count, capacity;
    int      failed;  // 1 = out of memory, or more than INT32_MAX steps; those added later are dropped
    int      counts;  // 1 = steps are counted, not stored
} tli_steps;

static tli_steps tli_steps_of(tl_env *env) {
    tli_steps list;
    tli_zero(&list, sizeof list);
    list.env = env;
    return list;
}

static void tli_add_step(tli_steps *list, tl_step step) {
    void *array = list->steps;
    if (list->failed) return;
    if (list->counts) {
        if (list->count < INT32_MAX) list->count++;
        else list->failed = 1;
        return;
    }
    if (!tli_grow(list->env, &array, &list->capacity, list->count, (int64_t)list->count + 1, sizeof step)) {
        list->failed = 1;
        return;
    }
    list->steps = (tl_step *)array;
    list->steps[list->count++] = step;
}
#endif

#if !defined(TL_NO_TEXT) || !defined(TL_NO_PLANNERS)
// Move the list into a plan. If memory ran out while it grew, it is released and *plan stays zero.
static tl_result tli_take_steps(tli_steps *list, tli_function function, tl_plan *plan) {
    if (list->failed) {
        tli_release(list->env, list->steps);
        return tli_fail(list->env, TL_ERROR_NO_MEMORY, function, TLI_RULE(NO_MEMORY_FOR_STEPS));
    }
    plan->steps = list->steps;
    plan->step_count = list->count;
    plan->memory = list->steps;
    return TL_OK;
}
#endif

// -- reading a plan --

TLI_IMPL tl_step tl_find_step(const tl_plan *plan, int32_t index) {
    const uint16_t *words;
    tl_step step;
    TL_ASSERT(plan);
    if (plan->steps) return plan->steps[index];
    words = plan->narrow->steps + (size_t)index * (size_t)plan->narrow->step_words;
    step.kind = (uint8_t)(words[0] & 15);
    step.codec = (uint8_t)(words[0] >> 4 & 15);
    step.begins = step.kind <= TL_STEP_BACKWARD ? step.codec : 0;
    if (step.begins) step.codec = TL_CODEC_NONE;
    step.slot = plan->narrow->step_words > 2 ? words[2] : 0;
    step.node = words[1];
    step.output = (words[0] >> 8) - 1;
    return step;
}

// The offset of an allocation of a narrow plan (is_host: of a host copy), in units.
static uint64_t tli_narrow_offset(const tl_narrow_plan *narrow, int32_t number, int is_host) {
    const void *offsets = is_host ? narrow->host_offsets : narrow->offsets;
    if (narrow->offset_bytes == 2) return ((const uint16_t *)offsets)[number];
    return ((const uint32_t *)offsets)[number];
}

TLI_IMPL uint64_t tl_find_offset(const tl_plan *plan, int32_t number, int is_host) {
    const uint64_t *offsets;
    TL_ASSERT(plan);
    offsets = is_host ? plan->host_offsets : plan->offsets;
    if (offsets) return offsets[number];
    return tli_narrow_offset(plan->narrow, number, is_host) * plan->narrow->unit_bytes;
}

#ifndef TL_ONLY_TABLES
// Steps of a plan that may be under way together.
static int32_t tli_count_in_flight(const tl_plan *plan) { return plan->in_flight > 1 ? plan->in_flight : 1; }
#endif

#define TLI_MOST_SLOTS 65536

static int32_t tli_count_slots(const tl_plan *plan) { return plan->slot_count ? plan->slot_count : 1; }

TLI_IMPL void tl_free_plan(tl_env *env, tl_plan *plan) {
    TL_ASSERT(plan);
    tli_release(env, plan->memory);
    tli_zero(plan, sizeof *plan);
}

// The block of its tier that an offset is in; -1 = none.
static int32_t tli_find_plan_block(const tl_plan_block *blocks, int32_t count, uint64_t offset) {
    int32_t low = 0, high = count;
    while (low < high) {    // blocks below low begin at the offset or before it
        int32_t middle = low + (high - low) / 2;
        if (blocks[middle].offset <= offset) low = middle + 1;
        else high = middle;
    }
    return low && offset - blocks[low - 1].offset < blocks[low - 1].bytes ? low - 1 : -1;
}
#endif  // TL_STRATEGY_IMPLEMENTATION
