#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION)

// -- the plan of a rank, interleaved from that of one micro-batch --
//
//     body     F receive  F 1  F 2  F send  D 1 | B send  F 1  B 2  B 1  B receive      the turn is at |
//     events   F@0  F@1  B@0  F@2  ..
//
// Each event carries out one part of the body in the slot of its micro-batch. What it receives is begun before
// the calls of the event before it, if that is another micro-batch's, and ended where the body has the call. A
// send is ended before its tensor is dropped or its gradient asked for, or at the end; a gradient that is sent
// back, at the end of the event after. So no rank waits for a message that another rank sends only after it has
// got one from the first (tli_simulate_ranks looks).
//
// With chunks a body has a forward and a backward part for each, and events name the chunk. What an event
// receives is begun two events ahead then, which is one of its kind where they take turns: with less, a rank
// that waits until a tensor is sent could wait for itself, once round the ring.

enum { TLI_MESSAGE_NOT, TLI_MESSAGE_RECEIVE, TLI_MESSAGE_SEND };

// What a node of a stage is. Conversions have no members either, but may run again.
static uint8_t tli_find_message(const tl_compiled_plan *compiled, int32_t id) {
    const tl_node *node = &compiled->graph->nodes[id];
    int has_members = compiled->first_members[id] < compiled->first_members[id + 1];
    if (node->is_input || !node->once || has_members) return TLI_MESSAGE_NOT;
    return node->input_count ? TLI_MESSAGE_SEND : TLI_MESSAGE_RECEIVE;
}

// The chunks of a rank.
typedef struct tli_chunks {
    int32_t        count;
    const int32_t *starts; // [count + 1] the nodes of chunk c are starts[c] .. starts[c + 1] - 1
} tli_chunks;

// A plan of one micro-batch: for each chunk a forward and a backward part.
typedef struct tli_body {
    tl_step *steps;        // [step_count] of chunk 0, of chunk 1, ..
    int32_t  step_count;
    int32_t  part_count;   // 2 * chunks
    int32_t *ends;         // [part_count] where the forward part of each chunk ends, and its backward part
} tli_body;

static int32_t tli_find_part_start(const tli_body *body, int32_t chunk, int is_backward) {
    int32_t part = 2 * chunk + is_backward;
    return part ? body->ends[part - 1] : 0;
}

typedef struct tli_interleave {
    tl_env         *env;
    const tl_graph *graph;
    const tli_chunks *chunks;
    const tli_body *body;
    const tl_pipeline_event *events;   // [event_count]
    int32_t         event_count;
    const uint8_t  *messages;          // [nodes] TLI_MESSAGE_
    uint8_t        *sending;           // [slots x nodes] 1 = the forward of a send is under way
    uint8_t        *has_begun;         // [events] 1 = what it receives has been begun
    int32_t        *interleaved;             // [slots] events of it so far: forwards of all chunks come first
    tli_steps       steps;
} tli_interleave;

static void tli_interleave_step(tli_interleave *w, tl_step_kind kind, int32_t node, int32_t slot,
                                int32_t begins) {
    tl_step step = tli_step_of(kind, node, TL_ALL_OUTPUTS);
    step.slot = (uint16_t)slot;
    step.begins = begins;
    tli_add_step(&w->steps, step);
}

static uint8_t *tli_interleave_sending(const tli_interleave *w, int32_t node, int32_t slot) {
    return &w->sending[(size_t)slot * (size_t)w->graph->node_count + (size_t)node];
}

// End the forward of a send, if it is under way.
static void tli_end_send(tli_interleave *w, int32_t node, int32_t slot) {
    uint8_t *sending = tli_interleave_sending(w, node, slot);
    if (*sending) tli_interleave_step(w, TL_STEP_WAIT, node, slot, 0);
    *sending = 0;
}

// How many events of the same micro-batch come before one.
static int32_t tli_count_before(const tli_interleave *w, const tl_pipeline_event *event) {
    return event->is_backward ? 2 * w->chunks->count - 1 - event->chunk : event->chunk;
}

// Begin what an event receives: tensors before a forward; gradients before a backward, in reverse order.
// Nothing is done where there is no such event, where that has begun, or where an earlier event of the same
// micro-batch is not interleaved yet.
static void tli_begin_event(tli_interleave *w, int32_t index) {
    const tl_pipeline_event *event = &w->events[index < w->event_count ? index : 0];
    int32_t first = w->chunks->starts[event->chunk], end = w->chunks->starts[event->chunk + 1], at, node;
    if (index >= w->event_count || w->has_begun[index]) return;
    if (w->interleaved[event->micro_batch] < tli_count_before(w, event)) return;
    w->has_begun[index] = 1;
    for (at = first; at < end; at++) {
        node = event->is_backward ? first + end - 1 - at : at;
        if (!event->is_backward && w->messages[node] == TLI_MESSAGE_RECEIVE)
            tli_interleave_step(w, TL_STEP_FORWARD, node, event->micro_batch, 1);
        if (!event->is_backward || w->messages[node] != TLI_MESSAGE_SEND) continue;
        if (!w->graph->nodes[node].has_grad) continue;
        tli_end_send(w, node, event->micro_batch);
        tli_interleave_step(w, TL_STEP_BACKWARD, node, event->micro_batch, 1);
    }
}

// End the sends of a tensor before a step changes it or frees it.
static void tli_free_sent(tli_interleave *w, const tl_step *step, int32_t slot) {
    const tl_graph *graph = w->graph;
    const tl_node *node = &graph->nodes[step->node];
    int32_t from = node->first_output, end = from + node->output_count, id;
    if (step->kind == TL_STEP_FORWARD_INPLACE) {
        from = graph->inputs[node->first_input + node->inplace].tensor;
        end = from + 1;
    } else if (tli_acts_on_node((tl_step_kind)step->kind)) return;
    else if (step->output != TL_ALL_OUTPUTS) {
        from += step->output;
        end = from + 1;
    }
    for (id = 0; id < graph->node_count; id++) {
        int32_t tensor;
        if (w->messages[id] != TLI_MESSAGE_SEND) continue;
        tensor = graph->inputs[graph->nodes[id].first_input].tensor;
        if (tensor >= from && tensor < end) tli_end_send(w, id, slot);
    }
}

static void tli_interleave_body_step(tli_interleave *w, tl_step step, int32_t slot) {
    int message = w->messages[step.node], backward = step.kind == TL_STEP_BACKWARD;
    tli_free_sent(w, &step, slot);
    step.slot = (uint16_t)slot;
    if (!message || step.kind > TL_STEP_BACKWARD) {
        tli_add_step(&w->steps, step);
    } else if ((message == TLI_MESSAGE_RECEIVE) != backward) {   // begun before: tli_begin_event
        tli_interleave_step(w, TL_STEP_WAIT, step.node, slot, 0);
    } else {
        step.begins = 1;
        tli_add_step(&w->steps, step);
        if (!backward) *tli_interleave_sending(w, step.node, slot) = 1;
    }
}

// End the gradients that an event has sent back.
static void tli_end_gradients(tli_interleave *w, int32_t index) {
    const tl_pipeline_event *event = &w->events[index < 0 ? 0 : index];
    int32_t node;
    if (index < 0 || !event->is_backward) return;
    for (node = w->chunks->starts[event->chunk + 1] - 1; node >= w->chunks->starts[event->chunk]; node--)
        if (w->messages[node] == TLI_MESSAGE_RECEIVE && w->graph->nodes[node].has_grad)
            tli_interleave_step(w, TL_STEP_WAIT, node, event->micro_batch, 0);
}

static void tli_interleave_event(tli_interleave *w, int32_t index) {
    const tl_pipeline_event *event = &w->events[index];
    int32_t at = tli_find_part_start(w->body, event->chunk, event->is_backward);
    int32_t end = w->body->ends[2 * event->chunk + event->is_backward];
    tli_begin_event(w, index);
    tli_begin_event(w, index + 1);
    if (w->chunks->count > 1) tli_begin_event(w, index + 2);
    for (; at < end; at++) tli_interleave_body_step(w, w->body->steps[at], event->micro_batch);
    w->interleaved[event->micro_batch]++;
    tli_end_gradients(w, index - 1);
}

// Interleave the plan of a rank. messages: [nodes] TLI_MESSAGE_; starts: [event_count + 1] overwritten with the
// first step of each event, and the number of steps; NULL = not asked.
static tl_result tli_interleave_plan(tl_env *env, const tl_graph *graph, const tli_chunks *chunks,
                                const tli_body *body, const uint8_t *messages, const tl_pipeline_event *events,
                                int32_t event_count, int32_t micro_batches, int32_t inference, int32_t *starts,
                                tl_plan *plan) {
    uint64_t places = (uint64_t)micro_batches * (uint64_t)graph->node_count;
    int32_t i, slot;
    tli_interleave w;
    tl_result result;
    tli_zero(&w, sizeof w);
    tli_zero(plan, sizeof *plan);
    w.env = env;
    w.graph = graph;
    w.chunks = chunks;
    w.body = body;
    w.events = events;
    w.event_count = event_count;
    w.messages = messages;
    w.steps = tli_steps_of(env);
    w.sending = (uint8_t *)tli_alloc_array(env, places + (uint64_t)event_count, 1);
    w.interleaved = (int32_t *)tli_alloc_array(env, (uint64_t)micro_batches, sizeof *w.interleaved);
    if (!w.sending || !w.interleaved) {
        tli_release(env, w.sending);
        tli_release(env, w.interleaved);
        return tli_fail_ranks(env);
    }
    w.has_begun = w.sending + places;
    for (i = 0; i < event_count; i++) {
        if (starts) starts[i] = w.steps.count;
        tli_interleave_event(&w, i);
    }
    tli_end_gradients(&w, event_count - 1);
    for (slot = 0; slot < micro_batches; slot++)
        for (i = 0; i < graph->node_count; i++) tli_end_send(&w, i, slot);
    if (starts) starts[event_count] = w.steps.count;
    tli_release(env, w.sending);
    tli_release(env, w.interleaved);
    result = tli_take_steps(&w.steps, TLI_IN(COMPILE_RANKS), plan);
    plan->slot_count = micro_batches;
    plan->repeat_count = 1;
    plan->inference = inference;
    return result;
}

// -- bodies --
//
// Sends stand right behind what makes their tensor, wherever the plan has them.

// Where the forward part of a plan ends for the nodes first .. end - 1 of a chunk: after the last forward that
// runs for the first time before the first backward, and what is dropped behind it. What other chunks do counts
// for neither. ran: [nodes] scratch.
static int32_t tli_find_turn(const tl_plan *plan, int32_t first, int32_t end, uint8_t *ran) {
    int32_t turn = 0, i;
    tli_zero(ran + first, (size_t)(end - first));
    for (i = 0; i < plan->step_count; i++) {
        const tl_step *step = &plan->steps[i];
        int is_other = step->node < first || step->node >= end;
        if (!is_other && step->kind == TL_STEP_BACKWARD) break;
        if (!is_other && step->kind < TL_STEP_BACKWARD && !ran[step->node]) {
            ran[step->node] = 1;
            turn = i + 1;
        } else if (turn == i && (is_other || step->kind == TL_STEP_DROP || step->kind == TL_STEP_DROP_SAVED))
            turn = i + 1;
    }
    return turn;
}

// What is resident while a body is joined.
typedef struct tli_join {
    const tl_graph *graph;
    const uint8_t *messages;
    int32_t first, end;    // nodes of the chunk; steps of others are left out
    uint8_t *there;        // [tensors]
    uint8_t *has_saved;    // [nodes]
    uint8_t *held;         // [tensors + nodes] 1 = it was there at the turn, and the second plan makes it again
                           // behind its own turn, up to which it is not dropped; NULL = nothing is held
    tli_steps steps;
} tli_join;

static int tli_is_all_there(const tli_join *j, int32_t id) {
    const tl_node *node = &j->graph->nodes[id];
    int32_t k = 0;
    while (k < node->output_count && j->there[node->first_output + k]) k++;
    return k == node->output_count;
}

static void tli_join_outputs(tli_join *j, int32_t id, int32_t output, uint8_t there) {
    const tl_node *node = &j->graph->nodes[id];
    int32_t k;
    for (k = 0; k < node->output_count; k++)
        if (output == TL_ALL_OUTPUTS || output == k) j->there[node->first_output + k] = there;
}

// Drop what is left of the outputs of a node.
static void tli_join_drop(tli_join *j, int32_t id) {
    const tl_node *node = &j->graph->nodes[id];
    int32_t k;
    for (k = 0; k < node->output_count && !node->keep; k++) {
        if (!j->there[node->first_output + k]) continue;
        tli_add_step(&j->steps, tli_step_of(TL_STEP_DROP, id, k));
        j->there[node->first_output + k] = 0;
    }
}

// Whether a step would drop what is held for the backward.
static int tli_holds(const tli_join *j, const tl_step *step) {
    int32_t tensor = j->graph->nodes[step->node].first_output + (step->output > 0 ? step->output : 0);
    if (!j->held) return 0;
    if (step->kind == TL_STEP_DROP) return j->held[tensor];
    return step->kind == TL_STEP_DROP_SAVED && j->held[j->graph->tensor_count + step->node];
}

// Send what a node has made, if that was not done.
static void tli_join_sends(tli_join *j, int32_t maker) {
    const tl_graph *graph = j->graph;
    int32_t id;
    for (id = maker + 1; id < graph->node_count; id++) {
        if (j->messages[id] != TLI_MESSAGE_SEND || j->there[graph->nodes[id].first_output]) continue;
        if (graph->outputs[graph->inputs[graph->nodes[id].first_input].tensor].node != maker) continue;
        tli_add_step(&j->steps, tli_step_of(TL_STEP_FORWARD, id, TL_ALL_OUTPUTS));
        j->there[graph->nodes[id].first_output] = 1;
    }
}

// Add a step, unless what it makes is there, what it drops is not there or is held, or it is of another chunk
// or of a node that tli_open_turn has added. Forwards of sends are added behind what makes their tensor.
static void tli_join_step(tli_join *j, tl_step step) {
    const tl_node *node;
    int is_there, runs = step.kind < TL_STEP_BACKWARD;
    if (step.node < j->first || step.node >= j->end) return;
    node = &j->graph->nodes[step.node];
    is_there = tli_is_all_there(j, step.node);
    if (step.kind == TL_STEP_FORWARD_SAVE && !j->has_saved[step.node]) is_there = 0;
    if (runs && (is_there || j->messages[step.node] == TLI_MESSAGE_SEND)) return;
    if (step.kind == TL_STEP_DROP && step.output == TL_ALL_OUTPUTS && node->output_count == 1 &&
        !j->there[node->first_output]) return;
    if (tli_holds(j, &step)) return;
    if (step.kind == TL_STEP_BACKWARD && j->messages[step.node] == TLI_MESSAGE_RECEIVE)
        tli_join_drop(j, step.node);
    tli_add_step(&j->steps, step);
    if (step.kind == TL_STEP_FORWARD_SAVE) j->has_saved[step.node] = 1;
    if (step.kind == TL_STEP_DROP_SAVED || step.kind == TL_STEP_BACKWARD) j->has_saved[step.node] = 0;
    if (step.kind == TL_STEP_FORWARD_INPLACE)
        j->there[j->graph->inputs[node->first_input + node->inplace].tensor] = 0;
    if (runs) tli_join_outputs(j, step.node, TL_ALL_OUTPUTS, 1);
    if (runs) tli_join_sends(j, step.node);
    if (step.kind == TL_STEP_DROP) tli_join_outputs(j, step.node, step.output, 0);
}

// Hold nothing that a plan does not make again behind its turn.
static void tli_hold_recomputed(tli_join *j, const tl_plan *plan, int32_t turn) {
    const tl_graph *graph = j->graph;
    int32_t id, k, i;
    for (id = 0; id < graph->node_count; id++) {
        const tl_node *node = &graph->nodes[id];
        for (i = turn; i < plan->step_count; i++)
            if (plan->steps[i].node == id && plan->steps[i].kind < TL_STEP_BACKWARD) break;
        if (i < plan->step_count) continue;
        for (k = 0; k < node->output_count; k++) j->held[node->first_output + k] = 0;
        j->held[graph->tensor_count + id] = 0;
    }
}

// The rest of a plan after its forward part, or all of a second plan, whose forwards make again what the first
// has dropped.
static void tli_join_backward(tli_join *j, const tl_plan *first, int32_t turn, const tl_plan *second,
                              int32_t second_turn, uint8_t *held) {
    size_t count = (size_t)j->graph->tensor_count + (size_t)j->graph->node_count;
    int32_t i;
    for (i = turn; i < first->step_count && !second; i++) tli_join_step(j, first->steps[i]);
    if (second) {
        tli_copy(held, j->there, count);
        j->held = held;
        tli_hold_recomputed(j, second, second_turn);
    }
    for (i = 0; second && i < second->step_count; i++) {
        if (i == second_turn) j->held = NULL;
        tli_join_step(j, second->steps[i]);
    }
    for (i = j->first; i < j->end; i++)
        if (!j->messages[i] && !j->graph->nodes[i].is_input) tli_join_drop(j, i);
    j->held = NULL;
}

// The forward part of one plan, and the backward part of the same or of a second one, for each chunk. It needs
// ran, [nodes], as scratch.
static tl_result tli_join_bodies(tl_env *env, const tl_graph *graph, const tli_chunks *chunks,
                                 const uint8_t *messages, const tl_plan *first, const tl_plan *second,
                                 uint8_t *ran, tli_body *body) {
    uint64_t count = (uint64_t)graph->tensor_count + (uint64_t)graph->node_count;
    tli_join j;
    int32_t chunk, i;
    tli_zero(&j, sizeof j);
    tli_zero(body, sizeof *body);
    j.graph = graph;
    j.messages = messages;
    j.steps = tli_steps_of(env);
    j.there = (uint8_t *)tli_alloc_array(env, 2 * count, 1);    // and held
    body->part_count = 2 * chunks->count;
    body->ends = (int32_t *)tli_alloc_array(env, (uint64_t)body->part_count, sizeof *body->ends);
    if (j.there && body->ends) {
        j.has_saved = j.there + graph->tensor_count;
        for (chunk = 0; chunk < chunks->count; chunk++) {
            int32_t turn, second_turn = 0;
            j.first = chunks->starts[chunk];
            j.end = chunks->starts[chunk + 1];
            turn = tli_find_turn(first, j.first, j.end, ran);
            if (second) second_turn = tli_find_turn(second, j.first, j.end, ran);
            for (i = 0; i < turn; i++) tli_join_step(&j, first->steps[i]);
            body->ends[2 * chunk] = j.steps.count;
            tli_join_backward(&j, first, turn, second, second_turn, j.there + count);
            body->ends[2 * chunk + 1] = j.steps.count;
        }
    }
    tli_release(env, j.there);
    if (!body->ends || !j.there || j.steps.failed) {
        tli_release(env, j.steps.steps);
        return tli_fail_ranks(env);
    }
    body->steps = j.steps.steps;
    body->step_count = j.steps.count;
    return TL_OK;
}
#endif
#endif  // TL_STRATEGY_IMPLEMENTATION
