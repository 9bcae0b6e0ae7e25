#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- state of a simulation --
//
// The simulator replays steps on the states of tensors and finds what is live, where, and when. Planners,
// explanations, lifetimes, tables and online runs all use this one replay. The bytes that a run really takes
// are counted by its backend, which knows no plan, so that planned and measured peaks are independent.
// In names, sim is the simulator.
//
// This part: the state, and the amounts that a step changes in it: lifetimes, live bytes, offsets and time. The
// two parts that follow have what each kind of step does, and the replay of a whole plan.
//
// A step costs O(tensors of its node); with offsets each of its allocations O(log allocations).

// The state of a tensor on the device. Kernels can read it while RESIDENT or LEAVING. Whether the
// host has a copy is a separate flag, set when a spill starts and cleared by DROP_HOST only.
typedef enum tli_state {
    TLI_ABSENT,    // no device bytes
    TLI_RESIDENT,
    TLI_LEAVING,   // being spilled: readable, has its bytes until WAIT
    TLI_COMING,    // being fetched, or made by a call that was begun: has its bytes, not readable until WAIT
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
    uint32_t readers;       // how many operands of calls under way read it
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

// The time of copies to and from the host.
typedef struct tli_copy_clock {
    int32_t  channels;       // 2 = one each way, 0 or 1 = one for both, TL_COPIES_IN_TURN = none
    int32_t  has_waited;     // 1 = nothing was computed since the last wait
    uint64_t wait_latency;   // of the first wait after something was computed
    uint64_t free_at[2];     // of each channel
} tli_copy_clock;

// All channels are free at 0.
static void tli_reset_copy_clock(tli_copy_clock *clock) {
    clock->has_waited = 0;
    clock->free_at[0] = clock->free_at[1] = 0;
}

static void tli_init_copy_clock(tli_copy_clock *clock, const tl_device *device) {
    tli_zero(clock, sizeof *clock);
    if (device) {
        clock->channels = device->copy_channels;
        clock->wait_latency = device->wait_latency_ns;
    }
}

// What the link carries each way; 0 = copies take no time.
static uint64_t tli_copy_rate(const tl_device *device, int to_device) {
    if (!device) return 0;
    return to_device && device->upload_bytes_per_second ? device->upload_bytes_per_second
                                                        : device->link_bytes_per_second;
}

static int32_t tli_copy_channel(const tli_copy_clock *clock, int to_device) {
    return clock->channels == 2 && to_device;
}

// A copy of so many ns is issued now. *ends: when it is done; where there is no channel, that is the new now.
// 0 = it does not fit 64 bits.
static int tli_clock_copy(tli_copy_clock *clock, uint64_t *now, int to_device, uint64_t ns, uint64_t *ends) {
    uint64_t *free_at = &clock->free_at[tli_copy_channel(clock, to_device)];
    if (!tli_add_u64(*free_at > *now ? *free_at : *now, ns, ends)) return 0;
    *free_at = *ends;
    if (clock->channels == TL_COPIES_IN_TURN) *now = *ends;
    TLI_INVARIANT(*ends >= *now);
    return 1;
}

// Wait for a copy. 0 = the time does not fit 64 bits.
static int tli_clock_wait(tli_copy_clock *clock, uint64_t *now, uint64_t ready) {
    if (!clock->has_waited && !tli_add_u64(*now, clock->wait_latency, now)) return 0;
    clock->has_waited = 1;
    if (ready > *now) *now = ready;
    return 1;
}

typedef struct tli_sim {
    tl_env         *env;
    tli_function    function;     // for error sentences
    const tl_graph *graph;
    const tl_entry *entry;        // [entry_count]
    int32_t         entry_count;
    int             inference, any_order;
    uint64_t        link_rates[2], link_latency, codec_rate, alignment;  // rates: to the host, to the device
    tli_copy_clock  copies;
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
    uint64_t        now;
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

#ifdef TLI_INVARIANTS
// A tensor that is being spilled has a host copy, only one whose node has a backward has a gradient, and
// compressed bytes are those of the codec.
static int tli_sim_tensor_holds(const tli_sim *sim, const tli_sim_tensor *t, int32_t tensor) {
    const tl_node_output *output = &sim->graph->outputs[tensor];
    if (t->state > TLI_PACKED || (t->state == TLI_LEAVING && !t->on_host)) return 0;
    if (t->has_gradient && (sim->inference || !tli_gets_gradient(sim->graph, tensor))) return 0;
    return t->state != TLI_PACKED || t->packed_bytes == tl_find_codec_bytes((tl_codec)t->codec, output->bytes);
}

// Live bytes are those of all tensors, gradients and saved bytes of all slots, of the call at hand, and of what
// was freed and may still be in use.
static int tli_sim_holds(const tli_sim *sim) {
    const tl_graph *graph = sim->graph;
    uint64_t live = sim->call_bytes, host = 0;
    int32_t slot, i;
    for (slot = 0; slot < sim->slot_count; slot++) {
        const tli_sim_tensor *tensors = sim->all_tensors + (size_t)slot * (size_t)graph->tensor_count;
        const tli_sim_node *nodes = sim->all_nodes + (size_t)slot * (size_t)graph->node_count;
        for (i = 0; i < graph->tensor_count; i++) {
            if (!tli_sim_tensor_holds(sim, &tensors[i], i)) return 0;
            if (tensors[i].state == TLI_PACKED) live += tensors[i].packed_bytes;
            else if (tensors[i].state != TLI_ABSENT) live += graph->outputs[i].bytes;
            if (tensors[i].has_gradient) live += graph->outputs[i].bytes;
            if (tensors[i].on_host) host += graph->outputs[i].bytes;
        }
        for (i = 0; i < graph->node_count; i++) {
            if (nodes[i].has_saved) live += graph->nodes[i].saved_bytes;
            if (nodes[i].waits_for < 0) return 0;
        }
    }
    for (i = sim->late_first; i < sim->late_count; i++) {
        if (sim->late[i].is_host) host += sim->late[i].made.bytes;
        else live += sim->late[i].made.bytes;
    }
    return live == sim->live_bytes && host == sim->host_bytes && live <= sim->report.peak_bytes &&
           host <= sim->report.host_peak_bytes;
}

// The same after a step: of large graphs so seldom that it costs no more than the steps.
static int tli_sim_holds_often(const tli_sim *sim) {
    int64_t size = (int64_t)sim->slot_count * (sim->graph->tensor_count + sim->graph->node_count);
    return (sim->step_count % (size / 16 + 1)) != 0 || tli_sim_holds(sim);
}

// The allocations of a call add up.
static int tli_sim_call_holds(const tli_sim *sim) {
    uint64_t bytes = 0;
    int32_t i;
    for (i = 0; i < sim->made_count; i++)
        if (sim->made[i].use == TLI_USE_TWICE || sim->made[i].use == TLI_USE_WORK) bytes += sim->made[i].bytes;
    return bytes == sim->call_bytes && bytes <= sim->live_bytes;
}
#endif

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

// What an allocation of a tensor is for; of an input that comes back from the host, as of any tensor that does.
static tl_use tli_find_tensor_use(const tl_graph *graph, int32_t tensor, int is_at_start) {
    const tl_node *maker = &graph->nodes[graph->outputs[tensor].node];
    if (maker->state) return TL_USE_STATE;
    return maker->is_input && is_at_start ? TL_USE_INPUT : TL_USE_OUTPUT;
}

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
    case TL_USE_STATE:
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
    return tli_find_tensor_use(sim->graph, index, !sim->step);
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
    TLI_INVARIANT(ledger->count <= ledger->capacity);
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

// Write down that an allocation ends.
static void tli_ledger_close(const tli_sim *sim, tl_use use, int32_t index, int32_t end_step) {
    int32_t *open = &sim->ledger->open[tli_sim_key(sim, use, index)];
    tl_lifetime *life = *open < 0 ? NULL : &sim->ledger->items[*open];
    if (life) life->free_step = sim->step_count - 1;
    if (life) life->end_step = end_step;
    *open = -1;
    TLI_INVARIANT(!life || life->free_step >= life->first_step - 1);
}

// Output 0 of a node takes over the bytes of an input.
static void tli_ledger_hand_over(const tli_sim *sim, int32_t from, int32_t to) {
    int32_t old = sim->ledger->open[tli_sim_key(sim, TL_USE_OUTPUT, from)];
    int32_t count = sim->ledger->count, number = old < 0 ? -1 : sim->ledger->items[old].number;
    tli_ledger_close(sim, TL_USE_OUTPUT, from, sim->step_count - 1);
    tli_ledger_open(sim, TL_USE_OUTPUT, to, sim->graph->outputs[to].bytes, number);
    if (sim->ledger->count > count) sim->ledger->items[count].over = old;
    TLI_INVARIANT(sim->ledger->open[tli_sim_key(sim, TL_USE_OUTPUT, from)] < 0);
}

// Whether what the present step frees lives until its call, or its conversion, has ended.
static int tli_frees_after(const tli_sim *sim) {
    const tl_step *step = sim->step;
    if (step->kind == TL_STEP_WAIT) return sim->nodes[step->node].under_way != TLI_BEGUN_NOT;
    return step->kind == TL_STEP_BACKWARD || step->kind == TL_STEP_COMPRESS || step->kind == TL_STEP_EXPAND;
}

// The step from which on something is free that the present one frees. after: 1 = the present step still uses
// it, 0 = it frees it before it does anything else.
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
    TLI_INVARIANT(arena->live[1] || !is_live);
}

static uint64_t *tli_sim_bytes(tli_sim *sim, const tli_sim_arena *arena) {
    return arena->is_host ? &sim->host_bytes : &sim->live_bytes;
}

// Free an allocation: at once, or where others may be under way, later. number: -1 = without offsets.
static void tli_sim_free(tli_sim *sim, tli_sim_arena *arena, int32_t number, const tli_made *made) {
    void *array = sim->late;
    tli_late *late;
    TLI_INVARIANT(*tli_sim_bytes(sim, arena) >= made->bytes);
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
    TLI_INVARIANT(sim->late_count <= sim->late_capacity && late->until >= sim->step_count);
}

// What was freed long enough before a step is free now.
static void tli_sim_free_late(tli_sim *sim, int32_t step) {
    while (sim->late_first < sim->late_count && sim->late[sim->late_first].until <= step) {
        const tli_late *late = &sim->late[sim->late_first++];
        tli_sim_arena *arena = late->is_host ? &sim->host_arena : &sim->arena;
        TLI_INVARIANT(*tli_sim_bytes(sim, arena) >= late->made.bytes);
        *tli_sim_bytes(sim, arena) -= late->made.bytes;
        if (late->number >= 0) tli_sim_mark(arena, late->number, 0);
    }
    if (!sim->late_first || sim->late_count - sim->late_first > sim->late_first) return;    // moved later
    sim->late_count -= sim->late_first;
    tli_copy(sim->late, sim->late + sim->late_first, (size_t)sim->late_count * sizeof *sim->late);
    sim->late_first = 0;
    TLI_INVARIANT(sim->late_count >= 0);
}

// An owner gives its place and its bytes back.
static void tli_sim_leave(tli_sim *sim, tli_sim_arena *arena, int32_t owner, tli_use use, int32_t index,
                          uint64_t bytes) {
    int32_t number = arena->offsets ? arena->places[owner] : -1;
    tli_made made;
    made.use = use; made.index = index; made.slot = sim->slot; made.bytes = bytes;
    TLI_INVARIANT(!arena->offsets || number >= 0);
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
    TLI_INVARIANT(*sum >= padded);
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
    TLI_INVARIANT(arena->live[1] && (owner < 0 || arena->places[owner] == number));
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
    TLI_INVARIANT(sim->live_bytes <= sim->step_bytes && sim->step_bytes <= sim->report.peak_bytes);
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
    TLI_INVARIANT(tli_sim_call_holds(sim));
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
    TLI_INVARIANT(sim->graph->outputs[from].bytes == sim->graph->outputs[to].bytes);
    if (sim->ledger) tli_ledger_hand_over(sim, from, to);
    if (!sim->arena.offsets || !sim->graph->outputs[from].bytes) return;
    from = tli_sim_owner(sim, TLI_USE_TENSOR, from);
    sim->arena.places[tli_sim_owner(sim, TLI_USE_TENSOR, to)] = sim->arena.places[from];
    sim->arena.places[from] = -1;
}

// -- time --

static tl_result tli_sim_compute(tli_sim *sim, uint64_t cost) {
    uint64_t *sum = &sim->report.compute_cost;
    sim->copies.has_waited = 0;
    if (!tli_add_u64(sim->now, cost, &sim->now) || !tli_add_u64(*sum, cost, sum))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(COST_DOES_NOT_FIT_64_BITS));
    TLI_INVARIANT(sim->now >= cost && *sum >= cost);
    return TL_OK;
}

// Count the time of a conversion; like a kernel, it runs after all compute before it.
static tl_result tli_sim_convert(tli_sim *sim, uint64_t bytes) {
    uint64_t ns = 0;
    sim->report.codec_count++;
    sim->copies.has_waited = 0;
    if (!sim->codec_rate) return TL_OK;
    if (!tli_find_time(bytes, sim->codec_rate, &ns) || !tli_add_u64(sim->now, ns, &sim->now))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(COST_DOES_NOT_FIT_64_BITS));
    TLI_INVARIANT(sim->now >= ns);
    return TL_OK;
}

// Start a copy: it begins when it has been issued and its channel is free.
static tl_result tli_sim_copy(tli_sim *sim, int32_t tensor, int to_device) {
    uint64_t ns = 0, rate = sim->link_rates[to_device];
    sim->report.copy_count++;
    if (rate && (!tli_find_time(sim->graph->outputs[tensor].bytes, rate, &ns) ||
                 !tli_add_u64(ns, sim->link_latency, &ns)))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(COST_DOES_NOT_FIT_64_BITS));
    if (!tli_clock_copy(&sim->copies, &sim->now, to_device, ns, &sim->tensors[tensor].ready))
        return tli_sim_fail(sim, TL_ERROR_OVERFLOW, TLI_RULE(COST_DOES_NOT_FIT_64_BITS));
    return TL_OK;
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
