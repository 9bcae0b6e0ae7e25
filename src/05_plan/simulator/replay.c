#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_ONLY_TABLES

// -- replay with functions of the caller --
//
// The lifetimes that the simulator wrote down are carried out: what begins at a step is allocated, the step is
// called, what the step frees is released. No rule about bytes stands here. A step that copies or converts
// acts on its tensors one after the other, as the simulator does:
//
//     C v    allocate the copy of v.0, convert, release v.0;   allocate the copy of v.1, convert, ..
//
// In names, walk is the way of one replay through the steps.

static const char *const tli_start_names[] = { TL_STARTS(TLI_NAME) };

TLI_IMPL const char *tl_name_start(tl_start start) {
    return tli_name(tli_start_names, TL_START_COUNT, (int64_t)start);
}

typedef enum tli_under_way { TLI_NO_COPY, TLI_SPILLS, TLI_FETCHES } tli_under_way;

// A tensor in a slot while it is replayed.
typedef struct tli_walk_state {
    uint8_t under_way;  // tli_under_way
    uint8_t codec;      // of its compressed copy
} tli_walk_state;

typedef struct tli_walk {
    tl_env               *env;
    tli_function          function;   // for error sentences
    const tl_replay_desc *desc;
    const tl_graph       *graph;
    tl_lifetimes          lifetimes;
    void                **memory;     // [lifetimes.count] NULL = not allocated, released, or handed over
    int32_t              *by_free;    // [lifetimes.count] in the order of the steps that free them
    int32_t              *live;       // [slots x keys of a ledger] the one that is live; -1 = none
    tli_walk_state       *states;     // [slots x tensors]
    uint8_t              *ran;        // [slots x nodes]
    uint8_t              *is_read;    // [tensors]
    tl_replay_operand    *operands;   // [2 inputs + 2 tensors of the graph] more than those of a call
    int32_t               opened, freed;  // lifetimes so far, freed in the order of by_free
    int32_t               index;      // of the step; -1 = before the first
    tl_step               step;
} tli_walk;

// How many lifetimes begin before the first step: first those of graph inputs, then those of the entry.
static int32_t tli_count_first_lives(const tl_lifetimes *lifetimes, const tl_graph *graph,
                                     const tl_plan *plan) {
    int32_t count = 0, i;
    while (count < lifetimes->count && (lifetimes->items[count].use == TL_USE_INPUT ||
                                        lifetimes->items[count].use == TL_USE_STATE)) count++;
    for (i = 0; i < plan->entry_count; i++) {
        const tl_entry *entry = &plan->entry[i];
        count += graph->outputs[graph->nodes[entry->node].first_output + entry->output].bytes > 0;
    }
    return count;
}

static int32_t tli_life_index(const tl_graph *graph, const tl_lifetime *life) {
    int is_of_node = life->use == TL_USE_SAVED || life->use == TL_USE_SCRATCH;
    return is_of_node ? life->node : graph->nodes[life->node].first_output + life->output;
}

// Where the number of the live lifetime of a use, of a tensor or a node in a slot, stands; -1 there = none.
static int32_t *tli_walk_live(const tli_walk *w, int32_t slot, tl_use use, int32_t index) {
    return &w->live[tli_ledger_key(w->graph, slot, use, index)];
}

static tli_walk_state *tli_walk_state_of(const tli_walk *w, int32_t tensor) {
    return &w->states[(size_t)w->step.slot * (size_t)w->graph->tensor_count + (size_t)tensor];
}

static int32_t *tli_walk_live_as(const tli_walk *w, const tl_lifetime *life) {
    return tli_walk_live(w, life->slot, life->use, tli_life_index(w->graph, life));
}

static tl_result tli_walk_failed(tli_walk *w, tl_result why, const char *what) {
    tli_sentence s = tli_begin_error(w->env, why, w->function, TLI_RULE(CALLER_STOPPED_REPLAY),
                                     (uint64_t)(w->index < 0 ? 0 : w->index),
                                     (uint64_t)(int64_t)(w->index < 0 ? -1 : w->step.node));
    tli_put_text(&s, what);
    return tli_end_error(w->env, &s, why);
}

// Begin the next lifetime: where it overwrites another one in place, it takes the memory of that one.
static tl_result tli_walk_open(tli_walk *w) {
    const tl_lifetime *life = &w->lifetimes.items[w->opened];
    void **memory = &w->memory[w->opened];
    tl_result result = TL_OK;
    if (life->over >= 0) {
        *memory = w->memory[life->over];
        w->memory[life->over] = NULL;
        *tli_walk_live_as(w, &w->lifetimes.items[life->over]) = -1;
    } else {
        result = (w->desc->allocate)(life, memory, w->desc->user);
    }
    if (result) *memory = NULL;
    if (result) return tli_walk_failed(w, result, "allocate");
    *tli_walk_live_as(w, life) = w->opened++;
    return TL_OK;
}

// Whether the next lifetime begins at the step.
static int tli_walk_begins(const tli_walk *w) {
    return w->opened < w->lifetimes.count && w->lifetimes.items[w->opened].first_step == w->index;
}

static void tli_walk_release(tli_walk *w, int32_t number) {
    const tl_lifetime *life = &w->lifetimes.items[number];
    void *memory = w->memory[number];
    if (!memory) return;
    w->memory[number] = NULL;
    *tli_walk_live_as(w, life) = -1;
    (w->desc->release)(life, memory, w->desc->user);
}

// Release what the step frees.
static void tli_walk_free(tli_walk *w) {
    while (w->freed < w->lifetimes.count) {
        int32_t number = w->by_free[w->freed];
        if (w->lifetimes.items[number].free_step > w->index) return;
        tli_walk_release(w, number);
        w->freed++;
    }
}

// -- calls --

static tl_replay_operand tli_walk_operand_of(const tli_walk *w, tl_use use, int32_t index) {
    tl_replay_operand operand;
    operand.lifetime = *tli_walk_live(w, w->step.slot, use, index);
    operand.memory = operand.lifetime < 0 ? NULL : w->memory[operand.lifetime];
    operand.start = TL_START_FILLED;
    operand.offset = 0;
    operand.bytes = operand.lifetime < 0 ? 0 : w->lifetimes.items[operand.lifetime].bytes;
    return operand;
}

static tl_replay_operand tli_walk_nothing(void) {
    tl_replay_operand none;
    tli_zero(&none, sizeof none);
    none.lifetime = -1;
    return none;
}

static tl_replay_operand tli_walk_tensor(const tli_walk *w, int32_t tensor, int is_present) {
    return is_present ? tli_walk_operand_of(w, TL_USE_OUTPUT, tensor) : tli_walk_nothing();
}

// The gradient of a tensor as an operand. first: the first lifetime that begins at the step; a gradient from
// there on holds nothing yet, but one that a state holds.
static tl_replay_operand tli_walk_gradient(const tli_walk *w, int32_t tensor, int32_t first) {
    int32_t held = tli_held_gradient(w->graph, tensor);
    tl_replay_operand operand = held < 0 ? tli_walk_operand_of(w, TL_USE_GRADIENT, tensor)
                                         : tli_walk_tensor(w, held, 1);
    int is_sum = w->is_read[tensor] || w->graph->nodes[w->graph->outputs[tensor].node].state;
    if (held < 0 && operand.lifetime >= first) operand.start = is_sum ? TL_START_ZERO : TL_START_LOSS;
    return operand;
}

// The operands of a forward. outputs_ready: nothing but the saved bytes is made.
static void tli_walk_forward(const tli_walk *w, const tl_node *node, tl_replay_call *call, int32_t first) {
    tl_replay_operand *at = w->operands;
    uint8_t *ran = &w->ran[(size_t)w->step.slot * (size_t)w->graph->node_count + (size_t)w->step.node];
    int32_t i, made = 0;
    for (i = first; i < w->opened; i++)
        made += w->lifetimes.items[i].use == TL_USE_OUTPUT || w->lifetimes.items[i].use == TL_USE_SECOND;
    for (i = 0; i < node->input_count; i++) {
        int32_t tensor = w->graph->inputs[node->first_input + i].tensor;
        if (w->step.kind == TL_STEP_FORWARD_INPLACE && i == node->inplace) tensor = node->first_output;
        *at++ = tli_walk_tensor(w, tensor, 1);
    }
    for (i = node->first_output; i < node->first_output + node->output_count; i++, at++) {
        *at = tli_walk_operand_of(w, TL_USE_SECOND, i);
        if (at->lifetime < 0) *at = tli_walk_tensor(w, i, 1);
    }
    for (i = 0; i < node->input_count + node->output_count; i++) *at++ = tli_walk_tensor(w, 0, 0);
    call->recompute = *ran;
    call->outputs_ready = w->step.kind == TL_STEP_FORWARD_SAVE && !made;
    *ran = 1;
}

// The operands of a backward: of inputs and outputs those that it needs. Of two gradients of one tensor the
// first alone starts it.
static void tli_walk_backward(const tli_walk *w, const tl_node *node, int32_t first) {
    const tl_graph *graph = w->graph;
    tl_replay_operand *at = w->operands;
    int32_t i, k;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        *at++ = tli_walk_tensor(w, graph->inputs[i].tensor, graph->inputs[i].needed);
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        *at++ = tli_walk_tensor(w, i, graph->outputs[i].needed);
    for (i = node->first_output; i < node->first_output + node->output_count; i++)
        *at++ = tli_walk_gradient(w, i, first);
    for (i = 0; i < node->input_count; i++) {
        at[i] = tli_walk_gradient(w, graph->inputs[node->first_input + i].tensor, first);
        for (k = 0; k < i; k++)
            if (at[k].lifetime == at[i].lifetime) at[i].start = TL_START_FILLED;
    }
}

// Where the operands of a call of a node begin.
static void tli_walk_place_operands(const tli_walk *w, const tl_node *node, tl_replay_call *call) {
    call->inputs = w->operands;
    call->outputs = call->inputs + node->input_count;
    call->output_grads = call->outputs + node->output_count;
    call->input_grads = call->output_grads + node->output_count;
}

// The operands of the update of a piece: its rows of the weight and of the moments, and the gradient.
static void tli_walk_update(const tli_walk *w, const tli_state_piece *piece, tl_replay_operand gradient,
                            tl_replay_call *call) {
    const tl_node *state = &w->graph->nodes[piece->state];
    tl_replay_operand *at = w->operands;
    int32_t i;
    for (i = state->first_output; i < state->first_output + state->output_count; i++, at++) {
        *at = tli_walk_tensor(w, i, 1);
        at->bytes = at->bytes / (uint64_t)state->weight_rows * (uint64_t)piece->count;
        at->offset = w->graph->outputs[i].bytes / (uint64_t)state->weight_rows * (uint64_t)piece->first;
    }
    for (i = 0; i < state->output_count; i++) *at++ = i ? tli_walk_nothing() : gradient;
    tli_walk_place_operands(w, state, call);
    call->saved = tli_walk_nothing();
    call->step.node = piece->state;
}

// The operands of the backward that makes a piece of a gradient.
static void tli_walk_make_piece(const tli_walk *w, const tli_state_piece *piece, tl_replay_operand gradient,
                                tl_replay_call *call) {
    const tl_node *node = &w->graph->nodes[w->step.node];
    tl_replay_operand *input_grads = w->operands + node->input_count + 2 * node->output_count;
    int32_t i;
    tli_walk_backward(w, node, INT32_MAX);
    for (i = 0; i < node->input_count; i++) {
        if (tli_find_pieces(w->graph, node, i)) w->operands[i] = tli_walk_nothing();
        input_grads[i] = i == piece->input ? gradient : tli_walk_nothing();
    }
    tli_walk_place_operands(w, node, call);
    call->step.node = w->step.node;
}

// The calls of a backward for the pieces of states. call: as the one for all other gradients had it.
static tl_result tli_walk_pieces(const tli_walk *w, tl_replay_call *call) {
    int32_t count = tli_count_piece_calls(w->graph, w->step.node), at;
    tl_replay_operand saved = call->saved, scratch = call->scratch;
    tl_result result = TL_OK;
    for (at = 1; at < count && !result; at++) {
        tli_state_piece piece = tli_find_state_piece(w->graph, w->step.node, at);
        const tl_node *state = &w->graph->nodes[piece.state];
        tl_replay_operand gradient = scratch;
        uint64_t bytes = tli_find_piece_bytes(w->graph, state), begin = scratch.bytes - bytes;
        begin -= begin % tli_larger_u64(TLI_PIECE_ALIGNMENT, w->desc->plan->alignment_bytes);
        gradient.offset = begin;
        gradient.bytes = bytes / (uint64_t)state->piece_rows * (uint64_t)piece.count;
        gradient.start = piece.is_update ? TL_START_FILLED : TL_START_ZERO;
        call->first = piece.first;
        call->count = piece.count;
        call->total = state->weight_rows;
        call->saved = saved;
        if (piece.is_update) tli_walk_update(w, &piece, gradient, call);
        else tli_walk_make_piece(w, &piece, gradient, call);
        call->scratch = begin ? scratch : tli_walk_nothing();
        call->scratch.bytes = begin;
        result = (w->desc->call)(call, w->desc->user);
    }
    return result;
}

static tl_result tli_walk_compute(tli_walk *w) {
    const tl_node *node = &w->graph->nodes[w->step.node];
    int32_t first = w->opened;
    tl_replay_call call;
    tl_result result = TL_OK;
    while (tli_walk_begins(w) && !result) result = tli_walk_open(w);
    if (result) return result;
    tli_zero(&call, sizeof call);
    call.graph = w->graph;
    call.lifetimes = w->lifetimes.items;
    call.step = w->step;
    call.index = w->index;
    tli_walk_place_operands(w, node, &call);
    if (w->step.kind == TL_STEP_BACKWARD) tli_walk_backward(w, node, first);
    else tli_walk_forward(w, node, &call, first);
    call.saved = tli_walk_operand_of(w, TL_USE_SAVED, w->step.node);
    if (w->step.kind == TL_STEP_FORWARD || w->step.kind == TL_STEP_FORWARD_INPLACE)
        call.saved = tli_walk_tensor(w, 0, 0);
    call.scratch = tli_walk_operand_of(w, TL_USE_SCRATCH, w->step.node);
    result = (w->desc->call)(&call, w->desc->user);
    if (!result && w->step.kind == TL_STEP_BACKWARD) result = tli_walk_pieces(w, &call);
    return result ? tli_walk_failed(w, result, "call") : TL_OK;
}

// -- copies --

// Copy or convert one tensor, or wait for its copy.
static tl_result tli_walk_copy_tensor(tli_walk *w, int32_t tensor, tl_use to, tl_use from) {
    tl_replay_copy copy;
    tl_result result;
    if (!w->desc->copy)
        return tli_fail_values(w->env, TL_ERROR_INVALID_ARG, w->function,
                               TLI_RULE(COPY_MUST_NOT_BE_NULL), (uint64_t)w->index, (uint64_t)w->step.node);
    tli_zero(&copy, sizeof copy);
    copy.graph = w->graph;
    copy.lifetimes = w->lifetimes.items;
    copy.step = w->step;
    copy.step.output = w->graph->outputs[tensor].output;
    copy.step.codec = tli_walk_state_of(w, tensor)->codec;
    copy.index = w->index;
    copy.to = tli_walk_operand_of(w, to, tensor);
    copy.from = tli_walk_operand_of(w, from, tensor);
    result = (w->desc->copy)(&copy, w->desc->user);
    return result ? tli_walk_failed(w, result, "copy") : TL_OK;
}

// Convert one tensor, and release what it was converted from.
static tl_result tli_walk_convert(tli_walk *w, int32_t tensor, tl_use to, tl_use from) {
    tl_result result = tli_walk_copy_tensor(w, tensor, to, from);
    if (result) return result;
    tli_walk_release(w, *tli_walk_live(w, w->step.slot, from, tensor));
    return TL_OK;
}

// Act on the tensor of a lifetime that has begun.
static tl_result tli_walk_move(tli_walk *w, int32_t tensor) {
    tli_walk_state *state = tli_walk_state_of(w, tensor);
    switch ((tl_step_kind)w->step.kind) {
    case TL_STEP_SPILL:
        state->under_way = TLI_SPILLS;
        return tli_walk_copy_tensor(w, tensor, TL_USE_HOST, TL_USE_OUTPUT);
    case TL_STEP_FETCH:
        state->under_way = TLI_FETCHES;
        return tli_walk_copy_tensor(w, tensor, TL_USE_OUTPUT, TL_USE_HOST);
    case TL_STEP_COMPRESS:
        state->codec = w->step.codec;
        return tli_walk_convert(w, tensor, TL_USE_COMPRESSED, TL_USE_OUTPUT);
    case TL_STEP_EXPAND: {
        tl_result result = tli_walk_convert(w, tensor, TL_USE_OUTPUT, TL_USE_COMPRESSED);
        state->codec = TL_CODEC_NONE;
        return result;
    }
    case TL_STEP_FORWARD:
    case TL_STEP_FORWARD_INPLACE:
    case TL_STEP_FORWARD_SAVE:
    case TL_STEP_BACKWARD:
    case TL_STEP_DROP:
    case TL_STEP_DROP_SAVED:
    case TL_STEP_WAIT:
    case TL_STEP_DROP_HOST:
    case TL_STEP_COUNT: break;
    }
    return TL_OK;
}

// Wait for the copies of one tensor of the node of the step, or of all.
static tl_result tli_walk_wait(tli_walk *w) {
    const tl_node *node = &w->graph->nodes[w->step.node];
    tl_result result = TL_OK;
    int32_t i;
    for (i = 0; i < node->output_count && !result; i++) {
        tli_walk_state *state = tli_walk_state_of(w, node->first_output + i);
        int spills = state->under_way == TLI_SPILLS;
        if (!state->under_way || (w->step.output != TL_ALL_OUTPUTS && w->step.output != i)) continue;
        result = tli_walk_copy_tensor(w, node->first_output + i, spills ? TL_USE_HOST : TL_USE_OUTPUT,
                                        spills ? TL_USE_OUTPUT : TL_USE_HOST);
        state->under_way = TLI_NO_COPY;
    }
    return result;
}

// -- the whole plan --

static tl_result tli_walk_step(tli_walk *w) {
    tl_result result = TL_OK;
    if (w->step.kind <= TL_STEP_BACKWARD) result = tli_walk_compute(w);
    else if (w->step.kind == TL_STEP_WAIT) result = tli_walk_wait(w);
    while (!result && tli_walk_begins(w)) {
        result = tli_walk_open(w);
        if (!result)
            result = tli_walk_move(w, tli_life_index(w->graph, &w->lifetimes.items[w->opened - 1]));
    }
    if (!result) tli_walk_free(w);
    return result;
}

// Replay from the first step to the end; what is left, or was left by an error, is released.
static tl_result tli_walk_steps(tli_walk *w) {
    int32_t start = tli_count_first_lives(&w->lifetimes, w->graph, w->desc->plan), i;
    tl_result result = TL_OK;
    w->index = -1;
    while (w->opened < start && !result) result = tli_walk_open(w);
    for (i = 0; i < w->desc->plan->step_count && !result; i++) {
        w->index = i;
        w->step = tl_find_step(w->desc->plan, i);
        result = tli_walk_step(w);
    }
    for (i = 0; i < w->opened; i++) tli_walk_release(w, i);
    return result;
}

static tl_result tli_walk_alloc(tli_walk *w) {
    const tl_graph *graph = w->graph;
    uint64_t slot_total = (uint64_t)tli_count_slots(w->desc->plan), count = (uint64_t)w->lifetimes.count, i;
    uint64_t keys = slot_total * tli_ledger_keys(graph), tensors = (uint64_t)graph->tensor_count;
    uint64_t *free_steps = (uint64_t *)tli_alloc_array(w->env, count, sizeof *free_steps);
    w->memory = (void **)tli_alloc_array(w->env, count, sizeof *w->memory);
    w->by_free = (int32_t *)tli_alloc_array(w->env, count, sizeof *w->by_free);
    w->live = (int32_t *)tli_alloc_array(w->env, keys, sizeof *w->live);
    w->states = (tli_walk_state *)tli_alloc_array(w->env, slot_total * tensors, sizeof *w->states);
    w->ran = (uint8_t *)tli_alloc_array(w->env, slot_total * (uint64_t)graph->node_count, 1);
    w->is_read = (uint8_t *)tli_alloc_array(w->env, tensors, 1);
    w->operands = (tl_replay_operand *)tli_alloc_array(w->env, 2 * (tensors + (uint64_t)graph->input_count),
                                                       sizeof *w->operands);
    if (!free_steps || !w->memory || !w->by_free || !w->live || !w->states || !w->ran || !w->is_read ||
        !w->operands) {
        tli_release(w->env, free_steps);
        return tli_fail(w->env, TL_ERROR_NO_MEMORY, w->function, TLI_RULE(NO_MEMORY_TO_REPLAY));
    }
    for (i = 0; i < count; i++) free_steps[i] = (uint64_t)w->lifetimes.items[i].free_step;
    for (i = 0; i < keys; i++) w->live[i] = -1;
    for (i = 0; i < (uint64_t)graph->input_count; i++) w->is_read[graph->inputs[i].tensor] = 1;
    tli_sort_numbers(w->by_free, (int32_t)count, free_steps);
    tli_release(w->env, free_steps);
    return TL_OK;
}

// Refuse a plan that begins calls: the caller has no function that would end one.
static tl_result tli_refuse_begun_calls(tl_env *env, tli_function function, const tl_plan *plan) {
    int32_t i;
    for (i = 0; i < plan->step_count; i++) {
        const tl_step step = tl_find_step(plan, i);
        if (step.begins)
            return tli_fail_values(env, TL_ERROR_UNSUPPORTED, function, TLI_RULE(PLAN_BEGINS_CALLS),
                                   (uint64_t)i, (uint64_t)(int64_t)step.node);
    }
    return TL_OK;
}

static tl_result tli_replay_plan(tl_env *env, tli_function function, const tl_replay_desc *desc) {
    tl_simulate_desc simulate;
    tl_report report;
    tli_walk w;
    tl_result result;
    tli_zero(&w, sizeof w);
    w.env = env;
    w.function = function;
    w.desc = desc;
    w.graph = desc->graph;
    tli_zero(&simulate, sizeof simulate);
    simulate.graph = desc->graph;
    simulate.plan = desc->plan;
    result = tli_find_lifetimes(env, function, &simulate, &w.lifetimes, &report);
    if (!result) result = tli_refuse_begun_calls(env, function, desc->plan);
    if (!result) result = tli_walk_alloc(&w);
    if (!result) result = tli_walk_steps(&w);
    tl_free_lifetimes(env, &w.lifetimes);
    tli_release(env, w.memory);
    tli_release(env, w.by_free);
    tli_release(env, w.live);
    tli_release(env, w.states);
    tli_release(env, w.ran);
    tli_release(env, w.is_read);
    tli_release(env, w.operands);
    return result;
}

TLI_IMPL tl_result tl_replay_plan(tl_env *env, const tl_replay_desc *desc) {
    TL_ASSERT(desc && desc->graph && desc->plan && desc->allocate && desc->release && desc->call);
    return tli_replay_plan(env, TLI_IN(REPLAY_PLAN), desc);
}
#endif  // TL_ONLY_TABLES
#endif  // TL_STRATEGY_IMPLEMENTATION
