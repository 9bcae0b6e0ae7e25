#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)

// ============================================================================
// [5] PLAN (implementation)
// ============================================================================
//
// The simulator: it replays steps on the states of tensors and finds what is live, where, and when.
// Planners, explanations, lifetimes, tables and online runs all use this one replay. The bytes that a run
// really takes are counted by its backend, which knows no plan, so that planned and measured peaks are
// independent.
// In names, sim is the simulator.

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
    int      failed;  // 1 = out of memory; steps added later are dropped
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

// In units, where the plan is narrow.
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

#ifndef TL_ONLY_TABLES
// -- state of a simulation --
//
// A step costs O(1) and O(tensors of its node).

// The state of a tensor on the device. Kernels can read it while RESIDENT or LEAVING. Whether the
// host has a copy is a separate flag, set when a spill starts and cleared by DROP_HOST only.
typedef enum tli_state {
    TLI_ABSENT,    // no device bytes
    TLI_RESIDENT,
    TLI_LEAVING,   // being spilled: readable, has its bytes until WAIT
    TLI_COMING,    // being fetched: has its bytes, not readable until WAIT
    TLI_PACKED     // compressed: not readable, has the compressed bytes
} tli_state;

// What an allocation is for. The first four outlive the step; with offsets, their place is looked
// up when they are freed.
typedef enum tli_use {
    TLI_USE_TENSOR,    // index: tensor
    TLI_USE_PACKED,    // index: tensor; its compressed copy
    TLI_USE_GRADIENT,  // index: tensor
    TLI_USE_SAVED,     // index: node
    TLI_USE_TWICE,     // index: tensor; second copy of an output that is resident, during the call
    TLI_USE_WORK       // index: node; fwork, swork or bwork, during the call
} tli_use;

// An allocation of a step.
typedef struct tli_made {
    tli_use  use;
    int32_t  index;   // tensor or node
    int32_t  slot;
    uint64_t bytes;   // > 0: 0 bytes are no allocation and have no number
} tli_made;

// The lifetimes of all allocations, written down where a caller asks for them. A key is a use with its tensor
// or node, and its slot.
typedef struct tli_ledger {
    tl_lifetime *items;           // [count]
    int32_t      count, capacity;
    int32_t     *open;            // [keys] the lifetime that has not ended, -1 = none
    int32_t     *occurrences;     // [keys]
    int          failed;          // 1 = out of memory; what came later is missing
} tli_ledger;

// What checks the offsets of one arena. An owner is what has an allocation beyond its step.
typedef struct tli_sim_arena {
    const uint64_t *offsets;      // [count] 0 = none; then the fields below are not used
    int32_t         count;
    int32_t        *ranks;        // [count] of an allocation, in the order of offsets
    int32_t        *by_rank;      // [count] allocations in that order
    uint64_t       *ends;         // [count] offset + bytes of those that were made
    int32_t        *places;       // [owner_count] number of the allocation, -1 = not live
    int32_t         owner_count;
    uint8_t        *live;         // [2 leaves] a tree over the ranks: 1 = an allocation from here down is live
    int32_t         leaf_count;
    int             is_host;
    const tl_plan_block *blocks;  // [block_count] of its tier, by offset; none = one block of any bytes
    int32_t         block_count, first_block;  // the first of them in the plan
    uint64_t       *highs;        // [1 or block_count] aligned high-water mark of each
} tli_sim_arena;

// What a step has freed while others may be under way: it counts as live until step `until`.
typedef struct tli_late {
    tli_made made;
    int32_t  is_host;  // of which arena
    int32_t  number;   // of the allocation, -1 = the arena has no offsets
    int32_t  until;
} tli_late;

enum { TLI_SUMMED = 2 };

typedef struct tli_sim_tensor {
    uint8_t  state;         // tli_state
    uint8_t  on_host;
    uint8_t  has_gradient;  // TLI_SUMMED = a call under way writes it
    uint8_t  codec;         // while packed
    uint32_t readers;       // operands of calls under way that it is
    uint64_t packed_bytes;  // while packed
    uint64_t ready;         // time at which the copy under way ends
} tli_sim_tensor;

enum { TLI_BEGUN_NOT, TLI_BEGUN_FORWARD, TLI_BEGUN_BACKWARD };

typedef struct tli_sim_node {
    uint8_t ran, done, has_saved;
    uint8_t is_read;   // 1 = some node reads one of its outputs
    uint8_t enters;    // 1 = all its outputs are in the entry: it has run, before this plan
    uint8_t under_way; // TLI_BEGUN_ of a call that was begun, until the W that ends it
    int32_t waits_for; // number of inputs of nodes with a gradient that read it and have not run backward
} tli_sim_node;

typedef struct tli_sim {
    tl_env         *env;
    tli_function    function;     // for error sentences
    const tl_graph *graph;
    const tl_entry *entry;        // [entry_count]
    int32_t         entry_count;
    int             inference, any_order;
    uint64_t        link_rate, link_latency, codec_rate, alignment;
    int32_t         slot_count;   // micro-batches under way together; each has a state of its own
    int32_t         slot;         // whose state the two below are
    tli_sim_tensor *tensors;      // [tensor_count]
    tli_sim_node   *nodes;        // [node_count]
    tli_sim_tensor *all_tensors;  // [slot_count * tensor_count]
    tli_sim_node   *all_nodes;    // [slot_count * node_count]
    int32_t        *next_backward;  // [slot_count] node whose backward is next in reverse order; -1 = none

    uint64_t        live_bytes, host_bytes;
    uint64_t        step_bytes;   // highest live bytes during the last step, its start included
    uint64_t        call_bytes;   // the part of live_bytes that is freed at the end of the call
    uint64_t        now, link_free;
    const tl_step  *step;         // being simulated; NULL before the first and at the end
    int32_t         step_count;   // steps begun
    tl_report       report;       // figures of the steps so far

    int32_t         in_flight;    // steps under way together
    tli_late       *late;         // [late_count] freed and not yet free, from late_first on, by `until`
    int32_t         late_first, late_count, late_capacity;
    int32_t         has_failed;   // 1 = there was no memory for it

    tli_made       *made;         // [made_count] allocations of the last step, in order
    int32_t         made_count;

    tli_sim_arena   arena;        // of the device; owners of each slot: 3 tensors + nodes
    tli_sim_arena   host_arena;   // owners of each slot: tensors

    uint64_t       *wide_offsets; // of a narrow plan, of both arenas; else NULL
    tli_ledger     *ledger;       // 0 = allocations are not written down
} tli_sim;

// Go on with the state of a slot.
static void tli_sim_choose_slot(tli_sim *sim, int32_t slot) {
    sim->slot = slot;
    sim->tensors = sim->all_tensors + (size_t)slot * (size_t)sim->graph->tensor_count;
    sim->nodes = sim->all_nodes + (size_t)slot * (size_t)sim->graph->node_count;
}

// ceil(bytes * 10^9 / rate); 0 on overflow. The remainder of bytes / rate is multiplied bit by bit,
// so that nothing is wider than 64 bits.
static int tli_find_time(uint64_t bytes, uint64_t rate, uint64_t *ns) {
    uint64_t whole = bytes / rate, rest = bytes % rate, left = 0, part = 0, bit;
    for (bit = UINT64_C(1) << 29; bit; bit >>= 1) {  // part + left / rate = rest * (bits done) / rate
        part *= 2;
        if (left >= rate - left) { left -= rate - left; part++; } else left += left;
        if (!(UINT64_C(1000000000) & bit)) continue;
        if (left >= rate - rest) { left -= rate - rest; part++; } else left += rest;
    }
    return tli_mul_u64(whole, UINT64_C(1000000000), ns) && tli_add_u64(*ns, part + (left > 0), ns);
}

// -- error sentences of the simulator --

// Record an error at the present step. second: its second value, the node or the tensor that the rule is about.
static tli_sentence tli_sim_begin_error(tli_sim *sim, tl_result code, tli_rule rule, int32_t second) {
    const tl_step *step = sim->step;
    int32_t index = step ? sim->step_count - 1 : sim->step_count;
    tli_sentence s = tli_begin_error(sim->env, code, sim->function, rule, (uint64_t)index,
                                     (uint64_t)(int64_t)second);
    if (code == TL_ERROR_INVALID_PLAN) sim->report.broken_step = index;
    if (!TLI_ERROR_TEXT) return s;
    if (!step) {
        tli_put(&s.text, sim->step_count ? "after the last step" : "before the first step");
        if (sim->slot) { tli_put(&s.text, " of slot "); tli_put_i64(&s.text, sim->slot); }
        tli_put(&s.text, ": ");
        return s;
    }
    tli_put(&s.text, "step ");
    tli_put_i64(&s.text, index);
    tli_put(&s.text, " (");
    tli_put(&s.text, tli_name(tli_step_names, TL_STEP_COUNT, step->kind));
    tli_put(&s.text, " ");
    tli_put_i64(&s.text, step->node);
    if (step->output != TL_ALL_OUTPUTS) { tli_put(&s.text, "."); tli_put_i64(&s.text, step->output); }
    if (step->slot) { tli_put(&s.text, "@"); tli_put_i64(&s.text, step->slot); }
    if (step->node >= 0 && step->node < sim->graph->node_count) {
        tli_put(&s.text, " ");
        tli_put(&s.text, tl_name_node(sim->graph, step->node));
    }
    tli_put(&s.text, "): ");
    return s;
}

static tl_result tli_sim_fail(tli_sim *sim, tl_result code, tli_rule rule) {
    tli_sentence s = tli_sim_begin_error(sim, code, rule, sim->step ? sim->step->node : -1);
    return tli_end_error(sim->env, &s, code);
}

static tl_result tli_sim_broken(tli_sim *sim, tli_rule why) {
    return tli_sim_fail(sim, TL_ERROR_INVALID_PLAN, why);
}

// Fail with a sentence about a tensor: "input 2.0 is not resident".
static tl_result tli_sim_broken_tensor(tli_sim *sim, tli_rule rule, int32_t tensor) {
    tli_sentence s = tli_sim_begin_error(sim, TL_ERROR_INVALID_PLAN, rule, tensor);
    tli_put_rule(&s);
    tli_put_i64(&s.text, sim->graph->outputs[tensor].node);
    tli_put(&s.text, ".");
    tli_put_i64(&s.text, sim->graph->outputs[tensor].output);
    return tli_end_error(sim->env, &s, TL_ERROR_INVALID_PLAN);
}

static tl_result tli_sim_broken_node(tli_sim *sim, tli_rule rule, int32_t node) {
    tli_sentence s = tli_sim_begin_error(sim, TL_ERROR_INVALID_PLAN, rule, node);
    tli_put_rule(&s);
    tli_put_named(&s.text, node, tl_name_node(sim->graph, node));
    return tli_end_error(sim->env, &s, TL_ERROR_INVALID_PLAN);
}

static tl_result tli_sim_fail_entry(tli_sim *sim, tli_rule rule, int32_t index) {
    sim->report.broken_step = 0;
    return tli_fail_values(sim->env, TL_ERROR_INVALID_PLAN, sim->function, rule, (uint64_t)index,
                           (uint64_t)(int64_t)sim->entry[index].node);
}

// -- lifetimes --

// Keys of one slot in a ledger.
static size_t tli_ledger_keys(const tl_graph *graph) {
    return 5 * (size_t)graph->tensor_count + 2 * (size_t)graph->node_count;
}

// The key of a tensor or a node in a ledger.
static size_t tli_ledger_key(const tl_graph *graph, int32_t slot, tl_use use, int32_t index) {
    size_t tensors = (size_t)graph->tensor_count, nodes = (size_t)graph->node_count;
    size_t at = (size_t)slot * tli_ledger_keys(graph) + (size_t)index;
    switch (use) {
    case TL_USE_INPUT:
    case TL_USE_OUTPUT: return at;
    case TL_USE_SECOND: return tensors + at;
    case TL_USE_GRADIENT: return 2 * tensors + at;
    case TL_USE_COMPRESSED: return 3 * tensors + at;
    case TL_USE_HOST: return 4 * tensors + at;
    case TL_USE_SAVED: return 5 * tensors + at;
    case TL_USE_SCRATCH: return 5 * tensors + nodes + at;
    case TL_USE_COUNT: break;
    }
    return at;
}

static size_t tli_sim_key(const tli_sim *sim, tl_use use, int32_t index) {
    return tli_ledger_key(sim->graph, sim->slot, use, index);
}

static tl_use tli_sim_use(const tli_sim *sim, tli_use use, int32_t index) {
    switch (use) {
    case TLI_USE_TENSOR: break;
    case TLI_USE_PACKED: return TL_USE_COMPRESSED;
    case TLI_USE_GRADIENT: return TL_USE_GRADIENT;
    case TLI_USE_SAVED: return TL_USE_SAVED;
    case TLI_USE_TWICE: return TL_USE_SECOND;
    case TLI_USE_WORK: return TL_USE_SCRATCH;
    }
    return sim->graph->nodes[sim->graph->outputs[index].node].is_input ? TL_USE_INPUT : TL_USE_OUTPUT;
}

// Write down that a step reads or writes an allocation so many times.
static void tli_ledger_move(const tli_sim *sim, tl_use use, int32_t index, uint64_t times) {
    int32_t open = sim->ledger ? sim->ledger->open[tli_sim_key(sim, use, index)] : -1;
    uint64_t bytes, *moved;
    if (open < 0) return;
    moved = &sim->ledger->items[open].moved_bytes;
    if (!tli_mul_u64(sim->ledger->items[open].bytes, times, &bytes) || !tli_add_u64(*moved, bytes, moved))
        *moved = UINT64_MAX;
}

// Write down an allocation that begins. Scratch of 0 bytes is a call without scratch: counted, not listed.
static void tli_ledger_open(const tli_sim *sim, tl_use use, int32_t index, uint64_t bytes, int32_t number) {
    const tli_sim_arena *arena = use == TL_USE_HOST ? &sim->host_arena : &sim->arena;
    tli_ledger *ledger = sim->ledger;
    size_t key = tli_sim_key(sim, use, index);
    int is_of_node = use == TL_USE_SAVED || use == TL_USE_SCRATCH;
    int32_t occurrence = ledger->occurrences[key]++;
    void *items = ledger->items;
    tl_lifetime *life;
    int32_t block;
    if (!bytes || ledger->failed) return;
    if (!tli_grow(sim->env, &items, &ledger->capacity, ledger->count, (int64_t)ledger->count + 1,
                  sizeof *life)) {
        ledger->failed = 1;
        return;
    }
    ledger->items = (tl_lifetime *)items;
    ledger->open[key] = ledger->count;
    life = &ledger->items[ledger->count++];
    life->bytes = bytes;
    life->offset = arena->offsets && number < arena->count ? arena->offsets[number] : 0;
    life->use = use;
    life->node = is_of_node ? index : sim->graph->outputs[index].node;
    life->output = is_of_node ? 0 : sim->graph->outputs[index].output;
    life->occurrence = occurrence;
    life->first_step = sim->step ? sim->step_count - 1 : 0;
    life->end_step = life->free_step = -1;
    life->number = number;
    life->over = -1;
    life->slot = sim->slot;
    block = arena->block_count ? tli_find_plan_block(arena->blocks, arena->block_count, life->offset) : -1;
    life->block = block < 0 ? -1 : arena->first_block + block;
    life->bank = block < 0 ? 0 : arena->blocks[block].bank;
    life->moved_bytes = 0;
    if (sim->step) tli_ledger_move(sim, use, index, use == TL_USE_SCRATCH ? 2 : 1);  // what makes it writes it
}

// Write down its end.
static void tli_ledger_close(const tli_sim *sim, tl_use use, int32_t index, int32_t end_step) {
    int32_t *open = &sim->ledger->open[tli_sim_key(sim, use, index)];
    tl_lifetime *life = *open < 0 ? NULL : &sim->ledger->items[*open];
    if (life) life->free_step = sim->step_count - 1;
    if (life) life->end_step = end_step;
    *open = -1;
}

// Output 0 of a node takes over the bytes of an input.
static void tli_ledger_hand_over(const tli_sim *sim, int32_t from, int32_t to) {
    int32_t old = sim->ledger->open[tli_sim_key(sim, TL_USE_OUTPUT, from)];
    int32_t count = sim->ledger->count, number = old < 0 ? -1 : sim->ledger->items[old].number;
    tli_ledger_close(sim, TL_USE_OUTPUT, from, sim->step_count - 1);
    tli_ledger_open(sim, TL_USE_OUTPUT, to, sim->graph->outputs[to].bytes, number);
    if (sim->ledger->count > count) sim->ledger->items[count].over = old;
}

// Whether what the present step frees lives until its call, or its conversion, has ended.
static int tli_frees_after(const tli_sim *sim) {
    const tl_step *step = sim->step;
    if (step->kind == TL_STEP_WAIT) return sim->nodes[step->node].under_way != TLI_BEGUN_NOT;
    return step->kind == TL_STEP_BACKWARD || step->kind == TL_STEP_COMPRESS || step->kind == TL_STEP_EXPAND;
}

// The step from which on something is free that the present one frees: after what it does, or before it.
static int32_t tli_sim_free_step(const tli_sim *sim, int after) {
    int32_t step = sim->step_count - 1, later = sim->in_flight > 1 ? sim->in_flight : after;
    return step > INT32_MAX - later ? INT32_MAX : step + later;
}

// -- bytes and offsets --

// The owner of an allocation on the device; -1 for one that is freed at the end of the call.
static int32_t tli_sim_owner(const tli_sim *sim, tli_use use, int32_t index) {
    int32_t tensors = sim->graph->tensor_count, first = sim->slot * (3 * tensors + sim->graph->node_count);
    switch (use) {
    case TLI_USE_TENSOR: return first + index;
    case TLI_USE_PACKED: return first + tensors + index;
    case TLI_USE_GRADIENT: return first + 2 * tensors + index;
    case TLI_USE_SAVED: return first + 3 * tensors + index;
    case TLI_USE_TWICE:
    case TLI_USE_WORK: break;
    }
    return -1;
}

// The live allocation beside a rank, above it or below; -1 = none.
static int32_t tli_sim_beside(const tli_sim_arena *arena, int32_t rank, int above) {
    int32_t at = arena->leaf_count + rank;
    while (at > 1 && ((at & 1) == above || !arena->live[at ^ 1])) at /= 2;
    if (at <= 1) return -1;
    for (at ^= 1; at < arena->leaf_count;) {
        at = 2 * at + !above;
        if (!arena->live[at]) at ^= 1;
    }
    return arena->by_rank[at - arena->leaf_count];
}

static void tli_sim_mark(tli_sim_arena *arena, int32_t number, int is_live) {
    int32_t at = arena->leaf_count + arena->ranks[number];
    arena->live[at] = (uint8_t)is_live;
    for (at /= 2; at; at /= 2) arena->live[at] = arena->live[2 * at] | arena->live[2 * at + 1];
}

static uint64_t *tli_sim_bytes(tli_sim *sim, const tli_sim_arena *arena) {
    return arena->is_host ? &sim->host_bytes : &sim->live_bytes;
}

// Free an allocation: at once, or where others may be under way, later. number: -1 = without offsets.
static void tli_sim_free(tli_sim *sim, tli_sim_arena *arena, int32_t number, const tli_made *made) {
    void *array = sim->late;
    tli_late *late;
    if (sim->in_flight <= 1) {
        *tli_sim_bytes(sim, arena) -= made->bytes;
        if (number >= 0) tli_sim_mark(arena, number, 0);
        return;
    }
    if (!tli_grow(sim->env, &array, &sim->late_capacity, sim->late_count, (int64_t)sim->late_count + 1,
                  sizeof *late)) {
        sim->has_failed = 1;
        return;
    }
    sim->late = (tli_late *)array;
    late = &sim->late[sim->late_count++];
    late->is_host = arena->is_host;
    late->made = *made;
    late->number = number;
    late->until = tli_sim_free_step(sim, 1);
}

// What was freed long enough before a step is free now.
static void tli_sim_free_late(tli_sim *sim, int32_t step) {
    while (sim->late_first < sim->late_count && sim->late[sim->late_first].until <= step) {
        const tli_late *late = &sim->late[sim->late_first++];
        tli_sim_arena *arena = late->is_host ? &sim->host_arena : &sim->arena;
        *tli_sim_bytes(sim, arena) -= late->made.bytes;
        if (late->number >= 0) tli_sim_mark(arena, late->number, 0);
    }
    if (!sim->late_first || sim->late_count - sim->late_first > sim->late_first) return;    // moved later
    sim->late_count -= sim->late_first;
    tli_copy(sim->late, sim->late + sim->late_first, (size_t)sim->late_count * sizeof *sim->late);
    sim->late_first = 0;
}

// An owner gives its place and its bytes back.
static void tli_sim_leave(tli_sim *sim, tli_sim_arena *arena, int32_t owner, tli_use use, int32_t index,
                          uint64_t bytes) {
    int32_t number = arena->offsets ? arena->places[owner] : -1;
    tli_made made;
    made.use = use; made.index = index; made.slot = sim->slot; made.bytes = bytes;
    if (arena->offsets) arena->places[owner] = -1;
    tli_sim_free(sim, arena, number, &made);
}

// Raise the high-water mark of the block in which an allocation lies, and the sum of these.
static tl_result tli_sim_raise(tli_sim *sim, tli_sim_arena *arena, uint64_t offset, uint64_t end,
                               uint64_t *sum) {
    int32_t block = arena->block_count ? tli_find_plan_block(arena->blocks, arena->block_count, offset) : 0;
    uint64_t start = 0, padded, *high;
    if (arena->block_count) {
        if (block < 0 || end - arena->blocks[block].offset > arena->blocks[block].bytes)
            return tli_sim_broken(sim, TLI_RULE(OFFSETS_CROSS_BLOCK));
        start = arena->blocks[block].offset;
    }
    if ((offset - start) & (sim->alignment - 1))  // a power of two: tl_check_device, tli_check_plan
        return tli_sim_broken(sim, TLI_RULE(OFFSETS_NOT_MULTIPLE_OF_ALIGNMENT));
    high = &arena->highs[block];
    if (!tli_add_u64(end - start, sim->alignment - 1, &padded))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(OFFSETS_OFFSET_BYTES_DOES_NOT_FIT_64));
    padded &= ~(sim->alignment - 1);
    if (padded <= *high) return TL_OK;
    if (!tli_add_u64(*sum, padded - *high, sum))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(OFFSETS_OFFSET_BYTES_DOES_NOT_FIT_64));
    *high = padded;
    return TL_OK;
}

// Give an allocation its offset, which must be aligned, inside of one block, and not overlap a live allocation.
// Live ones do not overlap each other, so the two beside it tell. sum: of the high-water marks of blocks.
static tl_result tli_sim_place(tli_sim *sim, tli_sim_arena *arena, int32_t number, int32_t owner,
                               uint64_t bytes, uint64_t *sum) {
    uint64_t offset, end;
    int32_t below, above;
    tl_result result;
    if (number >= arena->count)
        return tli_sim_broken(sim, arena->is_host ? TLI_RULE(HOST_OFFSETS_FEWER_THAN_COPIES)
                                                  : TLI_RULE(OFFSETS_FEWER_THAN_ALLOCATIONS));
    offset = arena->offsets[number];
    if (!tli_add_u64(offset, bytes, &end))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(OFFSETS_OFFSET_BYTES_DOES_NOT_FIT_64));
    result = tli_sim_raise(sim, arena, offset, end, sum);
    if (result) return result;
    below = tli_sim_beside(arena, arena->ranks[number], 0);
    above = tli_sim_beside(arena, arena->ranks[number], 1);
    if ((below >= 0 && arena->ends[below] > offset) || (above >= 0 && arena->offsets[above] < end))
        return tli_sim_broken(sim, TLI_RULE(OFFSETS_TWO_LIVE_ALLOCATIONS_OVERLAP));
    arena->ends[number] = end;
    tli_sim_mark(arena, number, 1);
    if (owner >= 0) arena->places[owner] = number;
    return TL_OK;
}

static tl_result tli_sim_alloc(tli_sim *sim, tli_use use, int32_t index, uint64_t bytes) {
    tli_made *made = &sim->made[sim->made_count];
    if (sim->ledger)
        tli_ledger_open(sim, tli_sim_use(sim, use, index), index, bytes, sim->report.allocation_count);
    if (!bytes) return TL_OK;
    if (!tli_add_u64(sim->live_bytes, bytes, &sim->live_bytes))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(LIVE_BYTES_DO_NOT_FIT_64_BITS));
    if (sim->report.allocation_count == INT32_MAX)
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(ALLOCATIONS_DO_NOT_FIT_31_BITS));
    if (use == TLI_USE_TWICE || use == TLI_USE_WORK) sim->call_bytes += bytes;
    if (sim->live_bytes > sim->step_bytes) sim->step_bytes = sim->live_bytes;
    if (sim->live_bytes > sim->report.peak_bytes) {
        sim->report.peak_bytes = sim->live_bytes;
        sim->report.peak_step = sim->step ? sim->step_count - 1 : -1;
    }
    made->use = use; made->index = index; made->slot = sim->slot; made->bytes = bytes;
    sim->made_count++;
    sim->report.allocation_count++;
    if (!sim->arena.offsets) return TL_OK;
    return tli_sim_place(sim, &sim->arena, sim->report.allocation_count - 1, tli_sim_owner(sim, use, index),
                         bytes, &sim->report.arena_bytes);
}

static void tli_sim_release(tli_sim *sim, tli_use use, int32_t index, uint64_t bytes) {
    if (!bytes) return;
    if (sim->ledger)
        tli_ledger_close(sim, tli_sim_use(sim, use, index), index,
                         tli_sim_free_step(sim, tli_frees_after(sim)));
    tli_sim_leave(sim, &sim->arena, tli_sim_owner(sim, use, index), use, index, bytes);
}

// End a call: free second copies and scratch.
static void tli_sim_release_call(tli_sim *sim) {
    int32_t i;
    if (!sim->call_bytes) return;
    for (i = 0; i < sim->made_count; i++) {
        const tli_made *made = &sim->made[i];
        if (made->use != TLI_USE_TWICE && made->use != TLI_USE_WORK) continue;
        if (sim->ledger)
            tli_ledger_close(sim, tli_sim_use(sim, made->use, made->index), made->index,
                             tli_sim_free_step(sim, 1));
        tli_sim_free(sim, &sim->arena,
                     sim->arena.offsets ? sim->report.allocation_count - sim->made_count + i : -1, made);
    }
    sim->call_bytes = 0;
}

// Run in place: output 0 takes over the allocation of the input and its offset; no allocation is
// made.
static void tli_sim_hand_over(tli_sim *sim, int32_t from, int32_t to) {
    sim->tensors[from].state = TLI_ABSENT;
    sim->tensors[to].state = TLI_RESIDENT;
    if (sim->ledger) tli_ledger_hand_over(sim, from, to);
    if (!sim->arena.offsets || !sim->graph->outputs[from].bytes) return;
    from = tli_sim_owner(sim, TLI_USE_TENSOR, from);
    sim->arena.places[tli_sim_owner(sim, TLI_USE_TENSOR, to)] = sim->arena.places[from];
    sim->arena.places[from] = -1;
}

// -- time --

static tl_result tli_sim_compute(tli_sim *sim, uint64_t cost) {
    uint64_t *sum = &sim->report.compute_cost;
    if (!tli_add_u64(sim->now, cost, &sim->now) || !tli_add_u64(*sum, cost, sum))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(COST_DOES_NOT_FIT_64_BITS));
    return TL_OK;
}

// Count the time of a conversion; like a kernel, it runs after all compute before it.
static tl_result tli_sim_convert(tli_sim *sim, uint64_t bytes) {
    uint64_t ns = 0;
    sim->report.codec_count++;
    if (!sim->codec_rate) return TL_OK;
    if (!tli_find_time(bytes, sim->codec_rate, &ns) || !tli_add_u64(sim->now, ns, &sim->now))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(COST_DOES_NOT_FIT_64_BITS));
    return TL_OK;
}

// Start a copy: it begins when it has been issued and the link is free.
static tl_result tli_sim_copy(tli_sim *sim, int32_t tensor) {
    uint64_t ns = 0, start = sim->link_free > sim->now ? sim->link_free : sim->now;
    sim->report.copy_count++;
    if (sim->link_rate && (!tli_find_time(sim->graph->outputs[tensor].bytes, sim->link_rate, &ns) ||
                           !tli_add_u64(ns, sim->link_latency, &ns)))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(COST_DOES_NOT_FIT_64_BITS));
    if (!tli_add_u64(start, ns, &sim->link_free))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(COST_DOES_NOT_FIT_64_BITS));
    sim->tensors[tensor].ready = sim->link_free;
    return TL_OK;
}

// -- forward and backward --

// The inputs of a node; NULL if it has none, because a graph without inputs has no array of them.
static const tl_node_input *tli_inputs_of(const tl_graph *graph, const tl_node *node) {
    return node->input_count ? graph->inputs + node->first_input : NULL;
}

static int tli_sim_readable(const tli_sim *sim, int32_t tensor) {
    return sim->tensors[tensor].state == TLI_RESIDENT || sim->tensors[tensor].state == TLI_LEAVING;
}

static tl_result tli_sim_check_inplace(tli_sim *sim, const tl_node *node) {
    const tl_node_input *inputs = tli_inputs_of(sim->graph, node);
    int32_t from, i, reads = 0;
    if (node->inplace < 0) return tli_sim_broken(sim, TLI_RULE(MAY_NOT_RUN_IN_PLACE));
    from = inputs[node->inplace].tensor;  // no graph input, and of the same bytes: tl_check_graph
    if (sim->tensors[from].state != TLI_RESIDENT)
        return tli_sim_broken_tensor(sim, TLI_RULE(INPUT_CANNOT_BE_OVERWRITTEN_IT), from);
    if (sim->tensors[from].readers) return tli_sim_broken_tensor(sim, TLI_RULE(CALL_UNDER_WAY_READS), from);
    if (sim->tensors[node->first_output].state != TLI_ABSENT)
        return tli_sim_broken(sim, TLI_RULE(OUTPUT_0_IS_ALREADY_RESIDENT));
    for (i = 0; i < node->input_count; i++) reads += inputs[i].tensor == from;
    return reads == 1 ? TL_OK : tli_sim_broken_tensor(sim, TLI_RULE(READS_OVERWRITTEN_TENSOR_TWICE), from);
}

static tl_result tli_sim_check_forward(tli_sim *sim, const tl_node *node, tl_step_kind kind,
                                       int32_t *missing) {
    const tl_node_input *inputs = tli_inputs_of(sim->graph, node);
    int32_t i;
    *missing = 0;
    if (node->once && sim->nodes[sim->step->node].ran)
        return tli_sim_broken(sim, TLI_RULE(MAY_RUN_ONCE_ONLY));
    for (i = 0; i < node->input_count; i++)
        if (!tli_sim_readable(sim, inputs[i].tensor))
            return tli_sim_broken_tensor(sim, TLI_RULE(INPUT_IS_NOT_RESIDENT), inputs[i].tensor);
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        if (sim->tensors[i].state == TLI_COMING)
            return tli_sim_broken_tensor(sim, TLI_RULE(OUTPUT_IS_BEING_FETCHED), i);
        if (sim->tensors[i].state == TLI_PACKED)
            return tli_sim_broken_tensor(sim, TLI_RULE(OUTPUT_IS_COMPRESSED), i);
        *missing += sim->tensors[i].state == TLI_ABSENT;
    }
    if (kind == TL_STEP_FORWARD_SAVE) {
        if (!node->saved_bytes) return tli_sim_broken(sim, TLI_RULE(HAS_NO_SAVED_BYTES));
        if (!sim->nodes[sim->step->node].has_saved) return TL_OK;
        return tli_sim_broken(sim, TLI_RULE(SAVED_BYTES_ARE_ALREADY_RESIDENT));
    }
    if (!*missing) return tli_sim_broken(sim, TLI_RULE(ALL_OUTPUTS_ARE_ALREADY_RESIDENT));
    if (sim->step->begins && (*missing < node->output_count))
        return tli_sim_broken(sim, TLI_RULE(BEGINS_ALL_OUTPUTS));
    if (sim->step->begins && (node->fwork_bytes || node->saved_bytes))
        return tli_sim_broken(sim, TLI_RULE(BEGINS_NO_SCRATCH));
    return kind == TL_STEP_FORWARD_INPLACE ? tli_sim_check_inplace(sim, node) : TL_OK;
}

// What a call under way reads and adds to is held until it ends. holds: 1 = from now on; 0 = not any more.
static void tli_sim_hold_operands(tli_sim *sim, int32_t id, int backward, int holds) {
    const tl_graph *graph = sim->graph;
    const tl_node *node = &graph->nodes[id];
    uint32_t change = holds ? 1 : UINT32_MAX;   // modulo 2^32 the latter is -1
    int32_t i;
    for (i = node->first_input; i < node->first_input + node->input_count; i++) {
        tli_sim_tensor *t = &sim->tensors[graph->inputs[i].tensor];
        if (!backward || graph->inputs[i].needed) t->readers += change;
        if (backward && t->has_gradient) t->has_gradient = holds ? TLI_SUMMED : 1;
    }
    for (i = node->first_output; i < node->first_output + node->output_count && backward; i++)
        if (graph->outputs[i].needed) sim->tensors[i].readers += change;
}

// The call of the present step goes on until a W ends it.
static void tli_sim_begin_call(tli_sim *sim, int32_t id, uint8_t begun) {
    sim->nodes[id].under_way = begun;
    tli_sim_hold_operands(sim, id, begun == TLI_BEGUN_BACKWARD, 1);
}

// Run a forward. It allocates, in this order: missing outputs; second copies of outputs that are
// resident; saved; fwork, or swork with saved. In place, output 0 takes over the input's allocation.
// FORWARD_SAVE with all outputs resident makes the saved bytes only, and no second copies. What a call that is
// begun makes is coming until it ends.
static tl_result tli_sim_forward(tli_sim *sim, int32_t id, tl_step_kind kind) {
    const tl_node *node = &sim->graph->nodes[id];
    int32_t i, end = node->first_output + node->output_count, missing;
    const tl_node_input *inputs = tli_inputs_of(sim->graph, node);
    tl_result result = tli_sim_check_forward(sim, node, kind, &missing);
    if (result) return result;
    for (i = 0; i < node->input_count; i++) tli_ledger_move(sim, TL_USE_OUTPUT, inputs[i].tensor, 1);
    if (kind == TL_STEP_FORWARD_INPLACE)
        tli_sim_hand_over(sim, inputs[node->inplace].tensor, node->first_output);
    for (i = node->first_output; i < end; i++) {
        if (sim->tensors[i].state != TLI_ABSENT) continue;
        result = tli_sim_alloc(sim, TLI_USE_TENSOR, i, sim->graph->outputs[i].bytes);
        if (result) return result;
        sim->tensors[i].state = TLI_COMING;  // during this call: marks the outputs made by it
    }
    for (i = node->first_output; i < end; i++) {
        int again = tli_sim_readable(sim, i) && missing;
        if (kind == TL_STEP_FORWARD_INPLACE && i == node->first_output) again = 0;
        if (sim->tensors[i].state == TLI_COMING && !sim->step->begins) sim->tensors[i].state = TLI_RESIDENT;
        result = again ? tli_sim_alloc(sim, TLI_USE_TWICE, i, sim->graph->outputs[i].bytes) : TL_OK;
        if (result) return result;
    }
    if (kind == TL_STEP_FORWARD_SAVE) {
        result = tli_sim_alloc(sim, TLI_USE_SAVED, id, node->saved_bytes);
        if (result) return result;
        sim->nodes[id].has_saved = 1;
    }
    result = tli_sim_alloc(sim, TLI_USE_WORK, id,
                           kind == TL_STEP_FORWARD_SAVE ? node->swork_bytes : node->fwork_bytes);
    if (result) return result;
    tli_sim_release_call(sim);
    if (sim->step->begins) tli_sim_begin_call(sim, id, TLI_BEGUN_FORWARD);
    sim->report.forward_count++;
    sim->report.recompute_count += sim->nodes[id].ran;
    sim->nodes[id].ran = 1;
    return tli_sim_compute(sim, node->fwd_cost);
}

// A node that reads an output of node `id` and has not run backward.
static int32_t tli_sim_find_waiting(const tli_sim *sim, int32_t id) {
    const tl_graph *graph = sim->graph;
    int32_t reader, i;
    for (reader = id + 1; reader < graph->node_count; reader++) {
        const tl_node *node = &graph->nodes[reader];
        if (!node->has_grad || (sim->nodes[reader].done && sim->nodes[reader].under_way != TLI_BEGUN_BACKWARD))
            continue;
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            if (graph->outputs[graph->inputs[i].tensor].node == id) return reader;
    }
    return id;
}

static tl_result tli_sim_check_backward(tli_sim *sim, int32_t id) {
    const tl_graph *graph = sim->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i;
    if (sim->inference) return tli_sim_broken(sim, TLI_RULE(NO_BACKWARD_IN_INFERENCE));
    if (!node->has_grad) return tli_sim_broken(sim, TLI_RULE(HAS_NO_GRADIENT));
    if (sim->nodes[id].done) return tli_sim_broken(sim, TLI_RULE(BACKWARD_ALREADY_RAN));
    if (!sim->nodes[id].ran && !sim->nodes[id].enters) return tli_sim_broken(sim, TLI_RULE(FORWARD_NEVER_RAN));
    if (!sim->any_order && id != sim->next_backward[sim->slot])
        return tli_sim_broken_node(sim, TLI_RULE(BACKWARD_OUT_OF_ORDER_NODE_IS_NEXT),
                                   sim->next_backward[sim->slot]);
    if (sim->nodes[id].waits_for)
        return tli_sim_broken_node(sim, TLI_RULE(CONSUMER_HAS_NOT_RUN_BACKWARD), tli_sim_find_waiting(sim, id));
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        if (graph->inputs[i].needed && !tli_sim_readable(sim, graph->inputs[i].tensor))
            return tli_sim_broken_tensor(sim, TLI_RULE(NEEDS_WHICH_IS_NOT_RESIDENT), graph->inputs[i].tensor);
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        if (graph->outputs[i].needed && !tli_sim_readable(sim, i))
            return tli_sim_broken_tensor(sim, TLI_RULE(NEEDS_WHICH_IS_NOT_RESIDENT), i);
    if (node->saved_bytes && !sim->nodes[id].has_saved)
        return tli_sim_broken(sim, TLI_RULE(NEEDS_ITS_SAVED_BYTES));
    if (sim->step->begins && (node->saved_bytes || node->bwork_bytes))
        return tli_sim_broken(sim, TLI_RULE(BEGINS_NO_SCRATCH));
    return TL_OK;
}

// Make a gradient, unless there is one. adds: 1 = the backward adds to it then.
static tl_result tli_sim_make_gradient(tli_sim *sim, int32_t tensor, int adds) {
    const tl_node_output *output = &sim->graph->outputs[tensor];
    if (!sim->graph->nodes[output->node].has_grad) return TL_OK;
    if (sim->tensors[tensor].has_gradient == TLI_SUMMED)
        return tli_sim_broken_tensor(sim, TLI_RULE(CALL_UNDER_WAY_WRITES_GRADIENT), tensor);
    if (sim->tensors[tensor].has_gradient) {
        if (adds) tli_ledger_move(sim, TL_USE_GRADIENT, tensor, 2);
        return TL_OK;
    }
    sim->tensors[tensor].has_gradient = 1;
    return tli_sim_alloc(sim, TLI_USE_GRADIENT, tensor, output->bytes);
}

// Write down what a backward reads.
static void tli_sim_read_backward(const tli_sim *sim, int32_t id) {
    const tl_graph *graph = sim->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        if (graph->inputs[i].needed) tli_ledger_move(sim, TL_USE_OUTPUT, graph->inputs[i].tensor, 1);
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        if (graph->outputs[i].needed) tli_ledger_move(sim, TL_USE_OUTPUT, i, 1);
        tli_ledger_move(sim, TL_USE_GRADIENT, i, 1);
    }
    tli_ledger_move(sim, TL_USE_SAVED, id, 1);
}

// A backward has ended: free the gradients of its outputs and its saved bytes.
static void tli_sim_end_backward(tli_sim *sim, int32_t id) {
    const tl_graph *graph = sim->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t i;
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        tli_sim_release(sim, TLI_USE_GRADIENT, i, graph->outputs[i].bytes);
        sim->tensors[i].has_gradient = 0;
    }
    if (sim->nodes[id].has_saved) tli_sim_release(sim, TLI_USE_SAVED, id, node->saved_bytes);
    sim->nodes[id].has_saved = 0;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        sim->nodes[graph->outputs[graph->inputs[i].tensor].node].waits_for--;
}

// End the call of a node that was begun.
static tl_result tli_sim_end_call(tli_sim *sim, const tl_step *step) {
    const tl_node *node = &sim->graph->nodes[step->node];
    int backward = sim->nodes[step->node].under_way == TLI_BEGUN_BACKWARD;
    int32_t i;
    if (step->output != TL_ALL_OUTPUTS) return tli_sim_broken(sim, TLI_RULE(WAIT_FOR_A_CALL_IS_OF_THE_NODE));
    tli_sim_hold_operands(sim, step->node, backward, 0);
    for (i = node->first_output; i < node->first_output + node->output_count && !backward; i++)
        sim->tensors[i].state = TLI_RESIDENT;
    if (backward) tli_sim_end_backward(sim, step->node);
    sim->nodes[step->node].under_way = TLI_BEGUN_NOT;
    return TL_OK;
}

// Run a backward. It allocates, in this order: gradients of outputs, gradients of inputs, bwork,
// where a gradient is allocated only if no other backward has done so. Then it frees bwork, and what
// tli_sim_end_backward says.
static tl_result tli_sim_backward(tli_sim *sim, int32_t id) {
    const tl_graph *graph = sim->graph;
    const tl_node *node = &graph->nodes[id];
    int32_t out_end = node->first_output + node->output_count;
    int32_t in_end = node->first_input + node->input_count, i, *next = &sim->next_backward[sim->slot];
    tl_result result = tli_sim_check_backward(sim, id);
    for (i = node->first_output; i < out_end && !result; i++) result = tli_sim_make_gradient(sim, i, 0);
    for (i = node->first_input; i < in_end && !result; i++)
        result = tli_sim_make_gradient(sim, graph->inputs[i].tensor, 1);
    if (!result) result = tli_sim_alloc(sim, TLI_USE_WORK, id, node->bwork_bytes);
    if (!result) result = tli_sim_compute(sim, node->bwd_cost);
    if (result) return result;
    if (sim->ledger) tli_sim_read_backward(sim, id);
    tli_sim_release_call(sim);
    if (sim->step->begins) tli_sim_begin_call(sim, id, TLI_BEGUN_BACKWARD);
    else tli_sim_end_backward(sim, id);
    sim->nodes[id].done = 1;
    while (*next >= 0 && (sim->nodes[*next].done || !graph->nodes[*next].has_grad)) --*next;
    sim->report.backward_count++;
    return TL_OK;
}

// -- steps on tensors --

static void tli_sim_drop(tli_sim *sim, int32_t tensor) {
    tli_sim_tensor *t = &sim->tensors[tensor];
    if (t->state == TLI_PACKED) tli_sim_release(sim, TLI_USE_PACKED, tensor, t->packed_bytes);
    else tli_sim_release(sim, TLI_USE_TENSOR, tensor, sim->graph->outputs[tensor].bytes);
    t->state = TLI_ABSENT;
}

static int32_t tli_sim_host_owner(const tli_sim *sim, int32_t tensor) {
    return sim->slot * sim->graph->tensor_count + tensor;
}

// The host copy of a tensor is made.
static tl_result tli_sim_alloc_host(tli_sim *sim, int32_t tensor) {
    uint64_t bytes = sim->graph->outputs[tensor].bytes;
    int32_t number = sim->report.host_allocation_count;
    if (sim->ledger) tli_ledger_open(sim, TL_USE_HOST, tensor, bytes, number);
    if (!bytes) return TL_OK;
    if (!tli_add_u64(sim->host_bytes, bytes, &sim->host_bytes))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(HOST_BYTES_DO_NOT_FIT_64_BITS));
    if (sim->host_bytes > sim->report.host_peak_bytes) sim->report.host_peak_bytes = sim->host_bytes;
    if (number == INT32_MAX)
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(ALLOCATIONS_DO_NOT_FIT_31_BITS));
    sim->report.host_allocation_count++;
    if (!sim->host_arena.offsets) return TL_OK;
    return tli_sim_place(sim, &sim->host_arena, number, tli_sim_host_owner(sim, tensor), bytes,
                         &sim->report.host_arena_bytes);
}

static tl_result tli_sim_spill(tli_sim *sim, int32_t tensor) {
    tli_sim_tensor *t = &sim->tensors[tensor];
    tl_result result;
    if (t->on_host) return tli_sim_broken_tensor(sim, TLI_RULE(HOST_HAS_ALREADY), tensor);
    result = tli_sim_alloc_host(sim, tensor);
    if (result) return result;
    t->on_host = 1;
    t->state = TLI_LEAVING;
    tli_ledger_move(sim, TL_USE_OUTPUT, tensor, 1);
    return tli_sim_copy(sim, tensor);
}

static tl_result tli_sim_fetch(tli_sim *sim, int32_t tensor) {
    tl_result result;
    if (!sim->tensors[tensor].on_host)
        return tli_sim_broken_tensor(sim, TLI_RULE(HOST_HAS_NO_COPY_OF), tensor);
    result = tli_sim_alloc(sim, TLI_USE_TENSOR, tensor, sim->graph->outputs[tensor].bytes);
    if (result) return result;
    sim->tensors[tensor].state = TLI_COMING;
    tli_ledger_move(sim, TL_USE_HOST, tensor, 1);
    return tli_sim_copy(sim, tensor);
}

static void tli_sim_wait(tli_sim *sim, int32_t tensor) {
    tli_sim_tensor *t = &sim->tensors[tensor];
    if (t->ready > sim->now) sim->now = t->ready;
    if (t->state == TLI_LEAVING) tli_sim_drop(sim, tensor);
    else t->state = TLI_RESIDENT;
}

// Compress one tensor. A step on several outputs converts them one after the other: both copies of
// a tensor live until its own conversion ends, not until the step ends.
static tl_result tli_sim_compress(tli_sim *sim, int32_t tensor, uint8_t codec) {
    tli_sim_tensor *t = &sim->tensors[tensor];
    uint64_t bytes = sim->graph->outputs[tensor].bytes, packed = tl_find_codec_bytes((tl_codec)codec, bytes);
    tl_result result = tli_sim_alloc(sim, TLI_USE_PACKED, tensor, packed);
    if (result) return result;
    tli_ledger_move(sim, TL_USE_OUTPUT, tensor, 1);
    tli_sim_release(sim, TLI_USE_TENSOR, tensor, bytes);
    t->state = TLI_PACKED;
    t->packed_bytes = packed;
    t->codec = codec;
    return tli_sim_convert(sim, bytes);
}

static tl_result tli_sim_expand(tli_sim *sim, int32_t tensor) {
    tli_sim_tensor *t = &sim->tensors[tensor];
    uint64_t bytes = sim->graph->outputs[tensor].bytes;
    tl_result result = tli_sim_alloc(sim, TLI_USE_TENSOR, tensor, bytes);
    if (result) return result;
    tli_ledger_move(sim, TL_USE_COMPRESSED, tensor, 1);
    tli_sim_release(sim, TLI_USE_PACKED, tensor, t->packed_bytes);
    t->state = TLI_RESIDENT;
    return tli_sim_convert(sim, bytes);
}

static tl_result tli_sim_drop_host(tli_sim *sim, int32_t tensor) {
    tli_sim_tensor *t = &sim->tensors[tensor];
    if (!t->on_host) return tli_sim_broken_tensor(sim, TLI_RULE(HOST_HAS_NO_COPY_OF), tensor);
    if (t->state == TLI_LEAVING || t->state == TLI_COMING)
        return tli_sim_broken_tensor(sim, TLI_RULE(COPY_OF_IS_UNDER_WAY), tensor);
    t->on_host = 0;
    if (sim->ledger) tli_ledger_close(sim, TL_USE_HOST, tensor, tli_sim_free_step(sim, 0));
    if (!sim->graph->outputs[tensor].bytes) return TL_OK;
    tli_sim_leave(sim, &sim->host_arena, tli_sim_host_owner(sim, tensor), TLI_USE_TENSOR, tensor,
                  sim->graph->outputs[tensor].bytes);
    return TL_OK;
}

// Whether a step can act on a tensor in this state. DROP_HOST depends on the host copy instead.
static int tli_acts_in_state(tl_step_kind kind, tli_state state, int on_host) {
    switch (kind) {
    case TL_STEP_DROP: return state == TLI_RESIDENT || state == TLI_PACKED;
    case TL_STEP_SPILL:
    case TL_STEP_COMPRESS: return state == TLI_RESIDENT;
    case TL_STEP_FETCH: return state == TLI_ABSENT;
    case TL_STEP_WAIT: return state == TLI_LEAVING || state == TLI_COMING;
    case TL_STEP_EXPAND: return state == TLI_PACKED;
    case TL_STEP_DROP_HOST: return on_host;
    case TL_STEP_FORWARD:
    case TL_STEP_FORWARD_INPLACE:
    case TL_STEP_FORWARD_SAVE:
    case TL_STEP_BACKWARD:
    case TL_STEP_DROP_SAVED:
    case TL_STEP_COUNT: break;
    }
    return 0;
}

static int tli_sim_acts_on(const tli_sim *sim, tl_step_kind kind, int32_t tensor) {
    const tli_sim_tensor *t = &sim->tensors[tensor];
    return tli_acts_in_state(kind, (tli_state)t->state, t->on_host);
}

static tl_result tli_sim_act(tli_sim *sim, tl_step_kind kind, int32_t tensor) {
    if (sim->tensors[tensor].readers && kind != TL_STEP_DROP_HOST)
        return tli_sim_broken_tensor(sim, TLI_RULE(CALL_UNDER_WAY_READS), tensor);
    switch (kind) {
    case TL_STEP_DROP: tli_sim_drop(sim, tensor); break;
    case TL_STEP_SPILL: return tli_sim_spill(sim, tensor);
    case TL_STEP_FETCH: return tli_sim_fetch(sim, tensor);
    case TL_STEP_WAIT: tli_sim_wait(sim, tensor); break;
    case TL_STEP_DROP_HOST: return tli_sim_drop_host(sim, tensor);
    case TL_STEP_COMPRESS: return tli_sim_compress(sim, tensor, sim->step->codec);
    case TL_STEP_EXPAND: return tli_sim_expand(sim, tensor);
    case TL_STEP_FORWARD:
    case TL_STEP_FORWARD_INPLACE:
    case TL_STEP_FORWARD_SAVE:
    case TL_STEP_BACKWARD:
    case TL_STEP_DROP_SAVED:
    case TL_STEP_COUNT: break;
    }
    return TL_OK;
}

// Run a step on one output or, with TL_ALL_OUTPUTS, on every output in a suitable state; the step
// is broken if one of these breaks a rule. Only DROP_HOST may find no such output.
static tl_result tli_sim_tensor_step(tli_sim *sim, const tl_step *step) {
    static const tli_rule sentences[] = { TLI_RULE(TENSOR_IS_ABSENT), TLI_RULE(TENSOR_IS_RESIDENT),
        TLI_RULE(TENSOR_IS_BEING_SPILLED), TLI_RULE(TENSOR_IS_BEING_FETCHED), TLI_RULE(TENSOR_IS_COMPRESSED) };
    const tl_node *node = &sim->graph->nodes[step->node];
    tl_step_kind kind = (tl_step_kind)step->kind;
    int32_t i, acted = 0;
    tl_result result;
    if (step->output != TL_ALL_OUTPUTS) {
        i = node->first_output + step->output;
        if (kind == TL_STEP_DROP_HOST || tli_sim_acts_on(sim, kind, i)) return tli_sim_act(sim, kind, i);
        return tli_sim_broken(sim, sentences[sim->tensors[i].state]);
    }
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        if (!tli_sim_acts_on(sim, kind, i)) continue;
        acted++;
        result = tli_sim_act(sim, kind, i);
        if (result) return result;
    }
    if (acted || kind == TL_STEP_DROP_HOST) return TL_OK;
    return tli_sim_broken(sim, TLI_RULE(NO_OUTPUT_IS_IN_STATE_TO_ACT_ON));
}

// -- replay from the first step to the end --

static tl_result tli_sim_check_step(tli_sim *sim, const tl_step *step) {
    const tl_graph *graph = sim->graph;
    int packs = step->kind == TL_STEP_COMPRESS;
    if (step->kind >= TL_STEP_COUNT) return tli_sim_broken(sim, TLI_RULE(NO_SUCH_KIND_OF_STEP));
    if (step->slot >= sim->slot_count) return tli_sim_broken(sim, TLI_RULE(NO_SUCH_SLOT));
    if (step->begins &&
        (step->begins != 1 || (step->kind != TL_STEP_FORWARD && step->kind != TL_STEP_BACKWARD)))
        return tli_sim_broken(sim, TLI_RULE(BEGINS_MUST_BE_0));
    if (step->begins && sim->in_flight > 1) return tli_sim_broken(sim, TLI_RULE(BEGINS_ONE_STEP_UNDER_WAY));
    if (step->node < 0 || step->node >= graph->node_count) return tli_sim_broken(sim, TLI_RULE(NO_SUCH_NODE));
    if (graph->nodes[step->node].is_input) return tli_sim_broken(sim, TLI_RULE(INPUT_NODES_TAKE_NO_STEPS));
    if (tli_acts_on_node((tl_step_kind)step->kind)) {
        if (step->output != TL_ALL_OUTPUTS)
            return tli_sim_broken(sim, TLI_RULE(ACTS_ON_NODE_OUTPUT));
    } else if (step->output < TL_ALL_OUTPUTS || step->output >= graph->nodes[step->node].output_count) {
        return tli_sim_broken(sim, TLI_RULE(NO_SUCH_OUTPUT));
    }
    if (packs && (step->codec == TL_CODEC_NONE || step->codec >= TL_CODEC_COUNT))
        return tli_sim_broken(sim, TLI_RULE(CODEC_MUST_BE_F16_BF16_OR_Q8_2));
    if (!packs && step->codec != TL_CODEC_NONE)
        return tli_sim_broken(sim, TLI_RULE(CODEC_IS_FOR_COMPRESS_ONLY));
    return TL_OK;
}

static tl_result tli_sim_run_step(tli_sim *sim, const tl_step *step) {
    tli_sim_node *node;
    tl_result result = tli_sim_check_step(sim, step);
    if (result) return result;
    tli_sim_choose_slot(sim, step->slot);
    node = &sim->nodes[step->node];
    if (node->under_way) {
        if (step->kind == TL_STEP_WAIT) return tli_sim_end_call(sim, step);
        return tli_sim_broken(sim, TLI_RULE(CALL_IS_UNDER_WAY));
    }
    switch ((tl_step_kind)step->kind) {
    case TL_STEP_FORWARD:
    case TL_STEP_FORWARD_INPLACE:
    case TL_STEP_FORWARD_SAVE: return tli_sim_forward(sim, step->node, (tl_step_kind)step->kind);
    case TL_STEP_BACKWARD: return tli_sim_backward(sim, step->node);
    case TL_STEP_DROP_SAVED:
        if (!node->has_saved) return tli_sim_broken(sim, TLI_RULE(SAVED_BYTES_ARE_NOT_RESIDENT));
        node->has_saved = 0;
        tli_sim_release(sim, TLI_USE_SAVED, step->node, sim->graph->nodes[step->node].saved_bytes);
        return TL_OK;
    case TL_STEP_DROP:
    case TL_STEP_SPILL:
    case TL_STEP_FETCH:
    case TL_STEP_WAIT:
    case TL_STEP_DROP_HOST:
    case TL_STEP_COMPRESS:
    case TL_STEP_EXPAND: return tli_sim_tensor_step(sim, step);
    case TL_STEP_COUNT: break;
    }
    return TL_OK;
}

// Simulate one step. After an error the simulation is over: release it.
static tl_result tli_sim_step(tli_sim *sim, const tl_step *step) {
    tl_result result;
    if (sim->step_count == INT32_MAX)
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(STEPS_DO_NOT_FIT_31_BITS));
    sim->step = step;
    tli_sim_free_late(sim, sim->step_count++);
    sim->step_bytes = sim->live_bytes;
    sim->made_count = 0;
    result = tli_sim_run_step(sim, step);
    if (!result && sim->has_failed)
        result = tli_sim_fail(sim, TL_ERROR_NO_MEMORY, TLI_RULE(NO_MEMORY_FOR_SIMULATION));
    sim->step = NULL;
    return result;
}

static int tli_sim_is_result(const tli_sim *sim, int32_t id, int any_keep) {
    const tl_node *node = &sim->graph->nodes[id];
    if (node->keep) return 1;
    return sim->inference && !any_keep && !node->is_input && !sim->nodes[id].is_read;
}

// Check the rules of the end in the present slot.
static tl_result tli_sim_end_slot(tli_sim *sim, int any_keep) {
    const tl_graph *graph = sim->graph;
    int32_t id, i;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        if (!sim->inference && node->has_grad && !sim->nodes[id].done)
            return tli_sim_broken_node(sim, TLI_RULE(NODE_NEVER_RAN_BACKWARD), id);
        if (sim->nodes[id].under_way) return tli_sim_broken_node(sim, TLI_RULE(CALL_HAS_NOT_ENDED), id);
        if (!tli_sim_is_result(sim, id, any_keep)) continue;
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (!tli_sim_readable(sim, i))
                return tli_sim_broken_tensor(sim, TLI_RULE(RESULT_IS_NOT_RESIDENT), i);
    }
    return TL_OK;
}

// Check the rules of the end, and complete sim->report.
static tl_result tli_sim_end(tli_sim *sim) {
    const tl_graph *graph = sim->graph;
    int32_t id, slot;
    int any_keep = 0;
    tl_result result = TL_OK;
    sim->made_count = 0;
    tli_sim_free_late(sim, INT32_MAX);
    for (id = 0; id < graph->node_count; id++) any_keep |= graph->nodes[id].keep;
    for (slot = 0; slot < sim->slot_count && !result; slot++) {
        tli_sim_choose_slot(sim, slot);
        result = tli_sim_end_slot(sim, any_keep);
    }
    if (result) return result;
    tli_sim_choose_slot(sim, 0);
    if (sim->arena.offsets && sim->report.allocation_count != sim->arena.count)
        return tli_sim_broken(sim, TLI_RULE(OFFSETS_MORE_THAN_ALLOCATIONS));
    if (sim->host_arena.offsets && sim->report.host_allocation_count != sim->host_arena.count)
        return tli_sim_broken(sim, TLI_RULE(HOST_OFFSETS_MORE_THAN_COPIES));
    sim->report.end_bytes = sim->live_bytes;
    sim->report.end_host_bytes = sim->host_bytes;
    sim->report.cost = sim->now;
    return TL_OK;
}

static void tli_free_sim_arena(tl_env *env, tli_sim_arena *arena) {
    tli_release(env, arena->ranks);
    tli_release(env, arena->by_rank);
    tli_release(env, arena->ends);
    tli_release(env, arena->live);
    tli_release(env, arena->places);
    tli_release(env, arena->highs);
    tli_zero(arena, sizeof *arena);
}

static void tli_free_sim(tli_sim *sim) {
    tli_release(sim->env, sim->all_tensors);
    tli_release(sim->env, sim->all_nodes);
    tli_release(sim->env, sim->next_backward);
    tli_release(sim->env, sim->wide_offsets);
    tli_release(sim->env, sim->made);
    tli_release(sim->env, sim->late);
    tli_free_sim_arena(sim->env, &sim->arena);
    tli_free_sim_arena(sim->env, &sim->host_arena);
    sim->all_tensors = sim->tensors = NULL;
    sim->all_nodes = sim->nodes = NULL;
    sim->next_backward = NULL;
    sim->wide_offsets = NULL;
    sim->made = NULL;
    sim->late = NULL;
    sim->late_capacity = 0;
}

// An upper bound on the allocations of one step, and of the graph inputs of a slot before the first step.
static uint64_t tli_sim_most_made(const tl_graph *graph) {
    uint64_t most = 0, inputs = 0;
    int32_t id;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        uint64_t made = (uint64_t)node->output_count + (uint64_t)node->input_count + 2;
        if (made > most) most = made;
        if (node->is_input) inputs += (uint64_t)node->output_count;
    }
    return most > inputs ? most : inputs;
}

// Get what checks the offsets of an arena, if it has some. 0 = no memory.
static int tli_sim_alloc_arena(tl_env *env, tli_sim_arena *arena) {
    uint64_t count = (uint64_t)arena->count;
    int32_t rank;
    if (!arena->offsets) return 1;
    arena->leaf_count = 1;
    while (arena->leaf_count < arena->count && arena->leaf_count <= INT32_MAX / 4) arena->leaf_count *= 2;
    arena->places = (int32_t *)tli_alloc_array(env, (uint64_t)arena->owner_count, sizeof *arena->places);
    arena->ranks = (int32_t *)tli_alloc_array(env, count, sizeof *arena->ranks);
    arena->by_rank = (int32_t *)tli_alloc_array(env, count, sizeof *arena->by_rank);
    arena->ends = (uint64_t *)tli_alloc_array(env, count, sizeof *arena->ends);
    arena->live = (uint8_t *)tli_alloc_array(env, 2 * (uint64_t)arena->leaf_count, 1);
    arena->highs = (uint64_t *)tli_alloc_array(env, (uint64_t)arena->block_count + 1, sizeof *arena->highs);
    if (!arena->places || !arena->ranks || !arena->by_rank || !arena->ends || !arena->live || !arena->highs)
        return 0;
    tli_sort_numbers(arena->by_rank, arena->count, arena->offsets);
    for (rank = 0; rank < arena->count; rank++) arena->ranks[arena->by_rank[rank]] = rank;
    return arena->leaf_count >= arena->count;
}

static void tli_reset_sim_arena(tli_sim_arena *arena) {
    int32_t i;
    if (!arena->offsets) return;
    for (i = 0; i < arena->owner_count; i++) arena->places[i] = -1;
    tli_zero(arena->live, 2 * (size_t)arena->leaf_count);
    tli_zero(arena->highs, ((size_t)arena->block_count + 1) * sizeof *arena->highs);
}

static tl_result tli_sim_alloc_state(tli_sim *sim) {
    uint64_t tensors = (uint64_t)sim->graph->tensor_count, nodes = (uint64_t)sim->graph->node_count;
    uint64_t most = tli_sim_most_made(sim->graph), slots = (uint64_t)sim->slot_count;
    uint64_t owners = slots * (3 * tensors + nodes);  // no overflow: slots fit 17 bits
    if (owners > INT32_MAX) return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(GRAPH_TOO_MANY_TENSORS));
    sim->arena.owner_count = (int32_t)owners;
    sim->host_arena.owner_count = (int32_t)(slots * tensors);
    sim->all_tensors = (tli_sim_tensor *)tli_alloc_array(sim->env, slots * tensors, sizeof *sim->tensors);
    sim->all_nodes = (tli_sim_node *)tli_alloc_array(sim->env, slots * nodes, sizeof *sim->nodes);
    sim->next_backward = (int32_t *)tli_alloc_array(sim->env, slots, sizeof *sim->next_backward);
    sim->made = (tli_made *)tli_alloc_array(sim->env, most, sizeof *sim->made);
    if (!sim->all_tensors || !sim->all_nodes || !sim->next_backward || !sim->made ||
        !tli_sim_alloc_arena(sim->env, &sim->arena) || !tli_sim_alloc_arena(sim->env, &sim->host_arena))
        return tli_fail(sim->env, TL_ERROR_NO_MEMORY, sim->function, TLI_RULE(NO_MEMORY_FOR_SIMULATION));
    return TL_OK;
}

// Set what depends on the graph only, in the present slot: readers, the first backward. Returns the base cost,
// which fits 64 bits: tl_check_graph.
static uint64_t tli_sim_read_graph(tli_sim *sim) {
    const tl_graph *graph = sim->graph;
    uint64_t cost = 0;
    int32_t id, i;
    sim->next_backward[sim->slot] = -1;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        cost += node->fwd_cost + (!sim->inference && node->has_grad ? node->bwd_cost : 0);
        if (node->has_grad) sim->next_backward[sim->slot] = id;
        for (i = node->first_input; i < node->first_input + node->input_count; i++) {
            tli_sim_node *maker = &sim->nodes[graph->outputs[graph->inputs[i].tensor].node];
            maker->is_read = 1;
            maker->waits_for += node->has_grad;
        }
    }
    return cost;
}

// Make a slot ready: its graph inputs are resident.
static tl_result tli_sim_start_slot(tli_sim *sim, int32_t slot) {
    const tl_graph *graph = sim->graph;
    uint64_t *cost = &sim->report.base_cost;
    tl_result result = TL_OK;
    int32_t i;
    tli_sim_choose_slot(sim, slot);
    sim->made_count = 0;
    if (!tli_add_u64(*cost, tli_sim_read_graph(sim), cost))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(COST_DOES_NOT_FIT_64_BITS));
    for (i = 0; i < graph->tensor_count && !result; i++) {
        if (!graph->nodes[graph->outputs[i].node].is_input) continue;
        sim->tensors[i].state = TLI_RESIDENT;
        result = tli_sim_alloc(sim, TLI_USE_TENSOR, i, graph->outputs[i].bytes);
    }
    return result;
}

// A tensor of the entry is resident.
static tl_result tli_sim_enter(tli_sim *sim, int32_t index) {
    const tl_graph *graph = sim->graph;
    const tl_entry *entry = &sim->entry[index];
    int is_node = entry->node >= 0 && entry->node < graph->node_count;
    const tl_node *node = is_node ? &graph->nodes[entry->node] : NULL;
    tli_rule rule = TLI_NO_RULE;
    int32_t tensor, i;
    sim->made_count = 0;
    if (!node) rule = TLI_RULE(ENTRY_NAMES_NO_NODE);
    else if (node->is_input) rule = TLI_RULE(ENTRY_NAMES_GRAPH_INPUT);
    else if (entry->output < 0 || entry->output >= node->output_count) rule = TLI_RULE(ENTRY_NAMES_NO_OUTPUT);
    else if (entry->slot < 0 || entry->slot >= sim->slot_count) rule = TLI_RULE(ENTRY_NAMES_NO_SLOT);
    if (rule) return tli_sim_fail_entry(sim, rule, index);
    tli_sim_choose_slot(sim, entry->slot);
    tensor = node->first_output + entry->output;
    if (sim->tensors[tensor].state != TLI_ABSENT)
        return tli_sim_fail_entry(sim, TLI_RULE(ENTRY_NAMES_TENSOR_TWICE), index);
    sim->tensors[tensor].state = TLI_RESIDENT;
    i = 0;
    while (i < node->output_count && sim->tensors[node->first_output + i].state != TLI_ABSENT) i++;
    sim->nodes[entry->node].enters = i == node->output_count;
    return tli_sim_alloc(sim, TLI_USE_TENSOR, tensor, graph->outputs[tensor].bytes);
}

// Return to the state before the first step, without allocating.
static tl_result tli_reset_sim(tli_sim *sim) {
    size_t slots = (size_t)sim->slot_count;
    tl_result result = TL_OK;
    int32_t slot, i;
    tli_zero(sim->all_tensors, slots * (size_t)sim->graph->tensor_count * sizeof *sim->tensors);
    tli_zero(sim->all_nodes, slots * (size_t)sim->graph->node_count * sizeof *sim->nodes);
    tli_zero(&sim->report, sizeof sim->report);
    sim->report.broken_step = -1;
    sim->report.peak_step = -1;
    sim->live_bytes = sim->host_bytes = sim->step_bytes = sim->call_bytes = 0;
    sim->now = sim->link_free = 0;
    sim->step = NULL;
    sim->step_count = sim->made_count = 0;
    sim->late_first = sim->late_count = 0;
    tli_reset_sim_arena(&sim->arena);
    tli_reset_sim_arena(&sim->host_arena);
    for (slot = 0; slot < sim->slot_count && !result; slot++) result = tli_sim_start_slot(sim, slot);
    for (i = 0; i < sim->entry_count && !result; i++) result = tli_sim_enter(sim, i);
    if (!result) tli_sim_choose_slot(sim, 0);
    return result;
}

// The blocks of a tier among those of a plan.
static void tli_sim_take_blocks(tli_sim_arena *arena, const tl_plan *plan, uint8_t tier) {
    int32_t k;
    for (k = 0; k < plan->block_count && plan->blocks[k].tier < tier; k++) { }
    arena->first_block = k;
    for (; k < plan->block_count && plan->blocks[k].tier == tier; k++) arena->block_count++;
    arena->blocks = arena->block_count ? plan->blocks + arena->first_block : NULL;
}

// Find the offsets of both arenas: those of a plan, or the numbers of a narrow one as plain ones.
static tl_result tli_sim_read_offsets(tli_sim *sim, const tl_plan *plan) {
    int reads = plan->offset_count && !plan->offsets;
    int reads_host = plan->host_offset_count && !plan->host_offsets;
    uint64_t *wide = NULL;
    int32_t i, k, count = 0;
    sim->arena.offsets = plan->offset_count ? plan->offsets : NULL;
    sim->host_arena.offsets = plan->host_offset_count ? plan->host_offsets : NULL;
    if (!reads && !reads_host) return TL_OK;
    wide = sim->wide_offsets = (uint64_t *)tli_alloc_array(
        sim->env, (uint64_t)plan->offset_count + (uint64_t)plan->host_offset_count, sizeof *wide);
    if (!wide) return tli_fail(sim->env, TL_ERROR_NO_MEMORY, sim->function, TLI_RULE(NO_MEMORY_FOR_SIMULATION));
    for (k = 0; k < 2; k++) {
        tli_sim_arena *arena = k ? &sim->host_arena : &sim->arena;
        if (!(k ? reads_host : reads)) continue;
        arena->offsets = wide + count;
        for (i = 0; i < arena->count; i++)
            if (!tli_mul_u64(tli_narrow_offset(plan->narrow, i, k), plan->narrow->unit_bytes, &wide[count++]))
                return tli_fail(sim->env, TL_ERROR_OVERFLOW, sim->function,
                                TLI_RULE(OFFSETS_OFFSET_BYTES_DOES_NOT_FIT_64));
    }
    return TL_OK;
}

// Start a simulation of a graph that passed tl_check_graph. Of the plan only flags, offsets and blocks
// are read. Release it with tli_free_sim, also after an error. ledger: NULL = none.
static tl_result tli_init_sim(tl_env *env, tli_sim *sim, tli_function function, const tl_graph *graph,
                              const tl_device *device, const tl_plan *plan, tli_ledger *ledger) {
    tl_result result;
    tli_zero(sim, sizeof *sim);
    sim->env = env;
    sim->function = function;
    sim->graph = graph;
    sim->slot_count = tli_count_slots(plan);
    sim->entry = plan->entry;
    sim->entry_count = plan->entry_count;
    sim->inference = plan->inference;
    sim->any_order = plan->any_order;
    sim->in_flight = tli_count_in_flight(plan);
    sim->link_rate = device ? device->link_bytes_per_second : 0;
    sim->link_latency = device ? device->link_latency_ns : 0;
    sim->codec_rate = device ? device->codec_bytes_per_second : 0;
    sim->alignment = device && device->alignment_bytes ? device->alignment_bytes : 1;
    if (plan->alignment_bytes > sim->alignment) sim->alignment = plan->alignment_bytes;
    sim->arena.count = plan->offset_count;
    sim->host_arena.count = plan->host_offset_count;
    sim->host_arena.is_host = 1;
    tli_sim_take_blocks(&sim->arena, plan, 0);
    tli_sim_take_blocks(&sim->host_arena, plan, 1);
    sim->ledger = ledger;
    sim->report.broken_step = -1;
    result = tli_sim_read_offsets(sim, plan);
    if (!result) result = tli_sim_alloc_state(sim);
    return result ? result : tli_reset_sim(sim);
}

static void tli_sim_copy_highs(const tli_sim_arena *arena, uint64_t *bytes) {
    if (arena->offsets && arena->block_count)
        tli_copy(bytes + arena->first_block, arena->highs, (size_t)arena->block_count * sizeof *bytes);
}

// Simulate a plan on a graph and a device that were checked.
static tl_result tli_simulate(tl_env *env, tli_function function, const tl_simulate_desc *desc,
                              tli_ledger *ledger, tl_report *report) {
    const tl_plan *plan = desc->plan;
    tli_sim sim;
    int32_t i;
    tl_result result = tli_init_sim(env, &sim, function, desc->graph, desc->device, plan, ledger);
    for (i = 0; i < plan->step_count && !result; i++) {
        tl_step step = tl_find_step(plan, i);
        int copies = step.kind == TL_STEP_SPILL || step.kind == TL_STEP_FETCH;
        uint64_t start = copies && sim.link_free > sim.now ? sim.link_free : sim.now;
        result = tli_sim_step(&sim, &step);
        if (desc->live_bytes) desc->live_bytes[i] = sim.step_bytes;
        if (desc->host_bytes) desc->host_bytes[i] = sim.host_bytes;
        if (desc->start_cost) desc->start_cost[i] = start;
        if (desc->end_cost) desc->end_cost[i] = copies ? sim.link_free : sim.now;
    }
    if (!result) result = tli_sim_end(&sim);
    for (i = 0; i < plan->block_count && desc->block_bytes; i++) desc->block_bytes[i] = 0;
    if (!result && desc->block_bytes) {
        tli_sim_copy_highs(&sim.arena, desc->block_bytes);
        tli_sim_copy_highs(&sim.host_arena, desc->block_bytes);
    }
    if (result) {
        i = sim.report.broken_step;
        tli_zero(&sim.report, sizeof sim.report);
        sim.report.broken_step = i;
    }
    *report = sim.report;
    tli_free_sim(&sim);
    return result;
}

// Check the blocks of a plan, of which the alignment was checked.
static tl_result tli_check_plan_blocks(tl_env *env, tli_function function, const tl_plan *plan) {
    uint64_t alignment = plan->alignment_bytes ? plan->alignment_bytes : 1, end;
    int32_t k;
    if (plan->block_count < 0 || (plan->block_count && !plan->blocks))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(BLOCK_COUNT_MUST_BE_NUMBER_OF_BLOCKS));
    for (k = 0; k < plan->block_count; k++) {
        const tl_plan_block *block = &plan->blocks[k], *before = k ? block - 1 : NULL;
        tli_rule why = TLI_NO_RULE;
        if (block->tier > 1 || block->bank >= TL_MOST_BANKS || block->reserved)
            why = TLI_RULE(BLOCK_IS_OF_NO_BANK);
        else if (!block->bytes || block->offset & (alignment - 1) ||
                 !tli_add_u64(block->offset, block->bytes, &end))
            why = TLI_RULE(BLOCK_LEAVES_TIER);
        else if (before && (before->tier > block->tier || (before->tier == block->tier &&
                                                           before->offset + before->bytes > block->offset)))
            why = TLI_RULE(BLOCKS_OVERLAP);
        if (why) return tli_fail_values(env, TL_ERROR_INVALID_ARG, function, why, (uint64_t)k, 0);
    }
    return TL_OK;
}

// Whether the narrow part of a plan can be read; of one without, too.
static int tli_is_narrow_plan(const tl_narrow_plan *narrow) {
    return !narrow || ((narrow->step_words == 2 || narrow->step_words == 3) && narrow->unit_bytes &&
                       (narrow->offset_bytes == 2 || narrow->offset_bytes == 4));
}

static tl_result tli_check_plan(tl_env *env, tli_function function, const tl_plan *plan) {
    const tl_narrow_plan *narrow = plan->narrow;
    if (!tli_is_narrow_plan(narrow))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(NARROW_MUST_HAVE_WIDTHS_AND_UNIT));
    if (plan->step_count < 0 || (plan->step_count && !plan->steps && !(narrow && narrow->steps)))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(STEP_COUNT_MUST_BE_NUMBER_OF_STEPS));
    if (plan->offset_count < 0 || (plan->offset_count && !plan->offsets && !(narrow && narrow->offsets)))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(OFFSET_COUNT_MUST_BE_NUMBER_OF_OFFSETS));
    if (plan->host_offset_count < 0 ||
        (plan->host_offset_count && !plan->host_offsets && !(narrow && narrow->host_offsets)))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function,
                        TLI_RULE(HOST_OFFSET_COUNT_MUST_BE_NUMBER_OF_OFFSETS));
    if (plan->repeat_count < 0)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(REPEAT_COUNT_MUST_BE_NOT_NEGATIVE));
    if (plan->entry_count < 0 || (plan->entry_count && !plan->entry))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(ENTRY_COUNT_MUST_BE_NUMBER_OF_TENSORS));
    if (plan->slot_count < 0 || plan->slot_count > TLI_MOST_SLOTS)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(SLOT_COUNT_MUST_BE_AT_MOST_65536));
    if (plan->alignment_bytes & (plan->alignment_bytes - 1 + !plan->alignment_bytes))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(ALIGNMENT_BYTES_MUST_BE_0_OR_POWER));
    if ((plan->inference != 0 && plan->inference != 1) || (plan->any_order != 0 && plan->any_order != 1))
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(INFERENCE_ANY_ORDER_MUST_BE_0_OR_1));
    if (plan->in_flight < 0)
        return tli_fail(env, TL_ERROR_INVALID_ARG, function, TLI_RULE(IN_FLIGHT_MUST_BE_NOT_NEGATIVE));
    return tli_check_plan_blocks(env, function, plan);
}

static tl_result tli_simulate_checked(tl_env *env, tli_function function, const tl_simulate_desc *desc,
                                      tli_ledger *ledger, tl_report *report) {
    tl_result result = tl_check_graph(env, desc->graph);
    tli_zero(report, sizeof *report);
    report->broken_step = -1;
    if (!result && desc->device) result = tl_check_device(env, desc->device);
    if (!result) result = tli_check_plan(env, function, desc->plan);
    return result ? result : tli_simulate(env, function, desc, ledger, report);
}

TLI_IMPL tl_result tl_simulate_plan(tl_env *env, const tl_simulate_desc *desc, tl_report *report) {
    TL_ASSERT(desc && desc->graph && desc->plan && report);
    return tli_simulate_checked(env, TLI_IN(SIMULATE_PLAN), desc, NULL, report);
}

static tl_result tli_measure(tl_env *env, tli_function function, const tl_graph *graph, const tl_device *device,
                             int is_checked, tl_plan *plan) {
    tl_simulate_desc desc;
    tl_report report;
    tl_result result;
    tli_zero(&desc, sizeof desc);
    desc.graph = graph;
    desc.device = device;
    desc.plan = plan;
    result = is_checked ? tli_simulate(env, function, &desc, NULL, &report)
                        : tli_simulate_checked(env, function, &desc, NULL, &report);
    plan->peak_bytes = report.peak_bytes;
    plan->arena_bytes = report.arena_bytes;
    plan->host_peak_bytes = report.host_peak_bytes;
    plan->host_arena_bytes = report.host_arena_bytes;
    plan->cost = report.cost;
    plan->base_cost = report.base_cost;
    return result;
}

TLI_IMPL tl_result tl_measure_plan(tl_env *env, const tl_graph *graph, const tl_device *device,
                                   tl_plan *plan) {
    TL_ASSERT(graph && plan);
    return tli_measure(env, TLI_IN(MEASURE_PLAN), graph, device, 0, plan);
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION

