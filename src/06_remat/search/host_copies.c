#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_PLANNERS) && !defined(TL_NO_OFFLOAD)

// -- offload: the end time of a sequence with fetches --
//
//     link     [ O 1 ][ O 2 ]      [ L 2 ][ L 1 ]     In the sequence, a fetch is a call just before
//     calls    F1  F2  F3  F4  B4  B3  B2  B1         the use that makes its tensor and reads nothing;
//     item 1   mu~~~~                  ----u          the search treats it like a recomputation. This
//              made, spilled while     issued early,  part places the copies; the calls stay in the
//              it is used, freed by    as bytes and   order given:
//              a WAIT                  link allow
//
//   spill   issued right after the tensor is made. Its bytes are freed (WAIT) when other bytes need the
//           room; of several pending spills the one that ends first is freed first, so waits are shortest
//   fetch   issued at the latest moment from which the copies, one after the other, end just before
//           their uses if nothing waits; later if there is no room for it beside what the sequence holds
//
// A fetch may have to wait for the bytes of a pending spill, never a spill for the bytes of a fetch: sequence
// and fetches together fit the budget. A sequence cannot run (failed) where the host has no room, or where a
// first run or a result would read what was compressed.
//
// With a codec, an expansion is a call like a fetch, but takes the time of a conversion. The tensor is
// compressed right behind the last use before it. What was compressed is read by backwards and by forwards that
// run again, never by a first run, nor for a result: so results are exact, and gradients are not.
//
// o is the placement of copies, x the search with a host tier.

typedef struct tli_offload {
    tl_env         *env;
    const tl_graph *graph;
    tli_search_seq     *seq;
    uint64_t        rate, latency, host_budget;
    uint64_t       *copy_ns[2];   // [tensors] to the host, to the device
    uint64_t       *both_ns;      // [tensors]
    uint64_t       *ready;        // [tensors] time at which the last copy ends; UINT64_MAX = not issued
    int32_t        *left;         // [tensors] number of later fetches
    uint8_t        *on_host, *leaving, *coming;  // [tensors] 1 = has a host copy, is being spilled, fetched
    uint8_t        *is_packed, *is_lossy;        // [tensors] 1 = is compressed; was, or made of such
    uint8_t        *has_run;      // [nodes]
    tl_codec        codec;
    int32_t        *pending;      // [pending_count] spilled, no longer used, bytes not freed; by `ready`
    int32_t         pending_count;
    int32_t         capacity, count;
    int32_t        *place, *index;  // [count] places in time order; [places] the inverse
    int32_t        *first, *next; // [count] list of the fetches issued before a place; -1 = end
    int32_t        *issue;        // [count] of a fetch: the place before which it is issued
    int64_t        *room;         // [count] free bytes
    uint64_t       *clock;        // [count] time at which a place begins if nothing waits
    uint64_t       *start;        // [count] of a fetch: latest time at which it should start
    tli_steps      *list;         // gets the steps; NULL = only the time is wanted
    tli_copy_clock  copies;
    uint64_t        now, host_bytes;
    int64_t         pending_bytes;
    int             failed;       // 1 = the sequence cannot run: no room on the host, an unused fetch, or a
                                  // first run or a result would read what was compressed
} tli_offload;

static void tli_offload_free(tli_offload *o) {
    tli_release(o->env, o->copy_ns[0]);
    tli_release(o->env, o->copy_ns[1]);
    tli_release(o->env, o->both_ns);
    tli_release(o->env, o->ready);
    tli_release(o->env, o->left);
    tli_release(o->env, o->on_host);
    tli_release(o->env, o->has_run);
    tli_release(o->env, o->pending);
    tli_release(o->env, o->place);
    tli_release(o->env, o->room);
}

// The time of a copy as the simulator finds it, or one that is too long to be useful.
static uint64_t tli_offload_find_ns(uint64_t bytes, const tl_device *device, int to_device) {
    uint64_t ns = 0, rate = tli_copy_rate(device, to_device);
    if (!rate) return 0;
    if (!tli_find_time(bytes, rate, &ns) || !tli_add_u64(ns, device->link_latency_ns, &ns) ||
        ns > TLI_SEARCH_MOST_COST >> 10) return TLI_SEARCH_MOST_COST >> 10;
    return ns;
}

// Compute the times of all copies. 0 = no memory.
static int tli_offload_init(tli_offload *o, tli_search_seq *seq, const tl_device *device,
                            uint64_t host_budget, tl_codec codec) {
    uint64_t tensors = (uint64_t)seq->p->graph->tensor_count;
    int32_t way, i;
    tli_zero(o, sizeof *o);
    o->env = seq->p->env;
    o->graph = seq->p->graph;
    o->seq = seq;
    tli_init_copy_clock(&o->copies, device);
    if (o->copies.wait_latency > TLI_SEARCH_MOST_COST >> 10)
        o->copies.wait_latency = TLI_SEARCH_MOST_COST >> 10;
    o->host_budget = host_budget;
    o->codec = codec;
    for (way = 0; way < 2; way++)
        o->copy_ns[way] = (uint64_t *)tli_alloc_array(o->env, tensors, sizeof *o->copy_ns[way]);
    o->both_ns = (uint64_t *)tli_alloc_array(o->env, tensors, sizeof *o->both_ns);
    o->ready = (uint64_t *)tli_alloc_array(o->env, tensors, sizeof *o->ready);
    o->left = (int32_t *)tli_alloc_array(o->env, tensors, sizeof *o->left);
    o->on_host = (uint8_t *)tli_alloc_array(o->env, 5 * tensors, 1);
    o->has_run = (uint8_t *)tli_alloc_array(o->env, (uint64_t)seq->p->node_count, 1);
    o->pending = (int32_t *)tli_alloc_array(o->env, tensors, sizeof *o->pending);
    if (!o->copy_ns[0] || !o->copy_ns[1] || !o->both_ns || !o->ready || !o->left || !o->on_host ||
        !o->has_run || !o->pending) return 0;
    o->leaving = o->on_host + tensors;
    o->coming = o->leaving + tensors;
    o->is_packed = o->coming + tensors;
    o->is_lossy = o->is_packed + tensors;
    for (way = 0; way < 2; way++)
        for (i = 0; i < o->graph->tensor_count; i++)
            o->both_ns[i] += o->copy_ns[way][i] = tli_offload_find_ns(o->graph->outputs[i].bytes, device, way);
    return 1;
}

static int tli_offload_reserve(tli_offload *o) {
    int32_t most = o->seq->place_count;
    if (most <= o->capacity) return 1;
    tli_release(o->env, o->place);
    tli_release(o->env, o->room);
    o->capacity = 2 * most;
    o->place = (int32_t *)tli_alloc_array(o->env, 5 * (uint64_t)o->capacity, sizeof *o->place);
    o->room = (int64_t *)tli_alloc_array(o->env, (uint64_t)o->capacity, 3 * sizeof *o->room);
    if (!o->place || !o->room) { o->capacity = 0; return 0; }
    o->index = o->place + o->capacity;
    o->first = o->index + o->capacity;
    o->next = o->first + o->capacity;
    o->issue = o->next + o->capacity;
    o->clock = (uint64_t *)(void *)(o->room + o->capacity);
    o->start = o->clock + o->capacity;
    return 1;
}

static uint64_t tli_offload_call_cost(const tli_offload *o, int32_t call) {
    int32_t tensor = tli_search_expanded(o->seq->p, call);
    if (tensor >= 0) return o->seq->p->codec_ns[tensor];    // its compression is counted where it happens
    return call % 2 ? o->graph->nodes[call / 2].bwd_cost : tli_search_call_cost(o->seq->p, call);
}

// The event of a fetch.
static const tli_search_event *tli_offload_event(const tli_offload *o, int32_t i) {
    return &o->seq->events[o->seq->places[o->place[i]].first_event];
}

static int tli_offload_is_fetch(const tli_search_seq *s, int32_t at) {
    return tli_search_is_return(s, at) && s->places[at].call < tli_search_expand_call(s->p, 0);
}

// Read the sequence: places in time order, free bytes and starting time of each. 0 = a fetch is not used.
static int tli_offload_read(tli_offload *o) {
    tli_search_seq *s = o->seq;
    uint64_t clock = 0;
    int32_t at, n = 0;
    tli_zero(o->left, (size_t)o->graph->tensor_count * sizeof *o->left);
    tli_zero(o->on_host, 5 * (size_t)o->graph->tensor_count);
    tli_zero(o->has_run, (size_t)o->graph->node_count);
    for (at = s->places[0].behind; at >= 0; at = s->places[at].behind, n++) {
        o->place[n] = at;
        o->index[at] = n;
        o->first[n] = -1;
        o->room[n] = s->budget - tli_search_held(s, at);
        o->clock[n] = clock;
        clock += tli_offload_call_cost(o, s->places[at].call);
        if (!tli_offload_is_fetch(s, at)) continue;
        if (!tli_search_is_use(s, tli_offload_event(o, n)->behind)) return 0;
        o->left[tli_offload_event(o, n)->item]++;
    }
    o->count = n;
    return 1;
}

// Choose the call before which each fetch is issued.
static void tli_offload_hoist(tli_offload *o) {
    tli_search_seq *s = o->seq;
    uint64_t latest = UINT64_MAX;
    int32_t i;
    for (i = o->count; i-- > 0;) {
        uint64_t ns, use;
        if (!tli_offload_is_fetch(s, o->place[i])) continue;
        ns = o->copy_ns[1][tli_offload_event(o, i)->item];
        use = o->clock[o->index[s->events[tli_offload_event(o, i)->behind].call]];
        if (use < latest) latest = use;
        latest = latest > ns ? latest - ns : 0;
        o->start[i] = latest;
    }
    for (i = 0; i < o->count; i++) {
        int32_t q = i, low;
        int64_t bytes;
        if (!tli_offload_is_fetch(s, o->place[i])) continue;
        low = o->index[s->events[tli_offload_event(o, i)->before].call] + 1;
        bytes = s->p->item_bytes[tli_offload_event(o, i)->item];
        for (; q > low && o->clock[q] > o->start[i] && o->room[q - 1] >= bytes; s->work++)
            o->room[--q] -= bytes;
        o->issue[i] = q;
    }
    for (i = o->count; i-- > 0;) {
        if (!tli_offload_is_fetch(s, o->place[i])) continue;
        o->next[i] = o->first[o->issue[i]];
        o->first[o->issue[i]] = i;
    }
}

static void tli_offload_add_step(tli_offload *o, tl_step_kind kind, int32_t tensor) {
    if (o->list) tli_add_tensor_step(o->list, o->graph, kind, tensor);
}

static void tli_offload_copy(tli_offload *o, int32_t tensor, int to_device) {
    (void)tli_clock_copy(&o->copies, &o->now, to_device, o->copy_ns[to_device][tensor], &o->ready[tensor]);
}

static void tli_offload_wait(tli_offload *o, int32_t tensor) {
    tli_offload_add_step(o, TL_STEP_WAIT, tensor);
    (void)tli_clock_wait(&o->copies, &o->now, o->ready[tensor]);
}

// Start a spill if the host has room; 0 = it has not yet.
static int tli_offload_spill(tli_offload *o, int32_t tensor) {
    uint64_t bytes = o->graph->outputs[tensor].bytes;
    if (bytes > o->host_budget - o->host_bytes) return 0;
    o->host_bytes += bytes;
    o->on_host[tensor] = o->leaving[tensor] = 1;
    tli_offload_add_step(o, TL_STEP_SPILL, tensor);
    tli_offload_copy(o, tensor, 0);
    return 1;
}

// Wait for a pending spill, by its index in the list, and free its bytes.
static void tli_offload_settle(tli_offload *o, int32_t i) {
    int32_t tensor = o->pending[i];
    if (o->ready[tensor] == UINT64_MAX) { o->failed = 1; return; }
    tli_offload_wait(o, tensor);
    o->leaving[tensor] = 0;
    o->pending_bytes -= (int64_t)o->graph->outputs[tensor].bytes;
    for (o->pending_count--; i < o->pending_count; i++) o->pending[i] = o->pending[i + 1];
}

// Add a tensor that is not used again before it is fetched to the pending spills.
static void tli_offload_add_pending(tli_offload *o, int32_t tensor) {
    int32_t i = o->pending_count++;
    if (!o->on_host[tensor] && !tli_offload_spill(o, tensor)) o->ready[tensor] = UINT64_MAX;
    for (; i > 0 && o->ready[o->pending[i - 1]] > o->ready[tensor]; i--) o->pending[i] = o->pending[i - 1];
    o->pending[i] = tensor;
    o->pending_bytes += (int64_t)o->graph->outputs[tensor].bytes;
}

// Drop a host copy and start the spills that waited for room on the host.
static void tli_offload_drop_host(tli_offload *o, int32_t tensor) {
    int32_t i;
    tli_offload_add_step(o, TL_STEP_DROP_HOST, tensor);
    o->on_host[tensor] = 0;
    o->host_bytes -= o->graph->outputs[tensor].bytes;
    for (i = 0; i < o->pending_count; i++)
        if (o->ready[o->pending[i]] == UINT64_MAX) (void)tli_offload_spill(o, o->pending[i]);
}

static void tli_offload_fetch(tli_offload *o, int32_t tensor) {
    int32_t i;
    for (i = 0; i < o->pending_count && o->pending[i] != tensor; i++) { }
    if (i < o->pending_count) tli_offload_settle(o, i);
    tli_offload_add_step(o, TL_STEP_FETCH, tensor);
    tli_offload_copy(o, tensor, 1);
    o->coming[tensor] = 1;
}

// Whether the next absence of a tensor made by this event ends with a fetch, so that it has to be spilled.
static int tli_offload_is_spilled_next(const tli_offload *o, int32_t e) {
    const tli_search_seq *s = o->seq;
    if (!o->left[s->events[e].item] || o->on_host[s->events[e].item]) return 0;
    while (tli_search_is_use(s, s->events[e].behind)) e = s->events[e].behind;
    e = s->events[e].behind;
    return e >= 0 && tli_offload_is_fetch(s, s->events[e].call);
}

// Wait for the fetches of the items that a call uses.
static void tli_offload_begin_call(tli_offload *o, const tli_search_place *place) {
    const tli_search_seq *s = o->seq;
    int32_t e;
    for (e = place->first_event; e >= 0; e = s->events[e].sibling) {
        int32_t item = s->events[e].item;
        if (!s->events[e].is_use || item >= o->graph->tensor_count || !o->coming[item]) continue;
        tli_offload_wait(o, item);
        o->coming[item] = 0;
        if (!--o->left[item]) tli_offload_drop_host(o, item);
    }
}

// Whether the tensor of an event is compressed behind its call: the next event expands it.
static int tli_offload_is_packed_next(const tli_offload *o, int32_t e) {
    int32_t behind = o->seq->events[e].behind;
    return behind >= 0 && tli_search_expanded(o->seq->p, o->seq->places[o->seq->events[behind].call].call) >= 0;
}

static void tli_offload_compress(tli_offload *o, int32_t tensor) {
    const tl_node_output *output = &o->graph->outputs[tensor];
    tl_step step = tli_step_of(TL_STEP_COMPRESS, output->node, output->output);
    step.codec = (uint8_t)o->codec;
    if (o->list) tli_add_step(o->list, step);
    o->is_packed[tensor] = 1;
    o->now += o->seq->p->codec_ns[tensor];
    o->copies.has_waited = 0;
}

static void tli_offload_expand(tli_offload *o, int32_t tensor) {
    if (!o->is_packed[tensor]) { o->failed = 1; return; }
    tli_offload_add_step(o, TL_STEP_EXPAND, tensor);
    o->is_packed[tensor] = 0;
    o->is_lossy[tensor] = 1;
}

// Note what a forward makes of what was compressed; o->failed = 1 where it must not read that.
static void tli_offload_pass_loss(tli_offload *o, const tli_search_place *place) {
    const tl_node *node = &o->graph->nodes[place->call / 2];
    int32_t i, id = place->call / 2;
    int is_lossy = 0, makes_result = 0;
    for (i = node->first_input; i < node->first_input + node->input_count; i++)
        is_lossy |= o->is_lossy[o->graph->inputs[i].tensor];
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        o->is_lossy[i] = (uint8_t)is_lossy;
        makes_result |= o->seq->p->is_result[i];
    }
    if (is_lossy && (makes_result || !o->has_run[id])) o->failed = 1;
    o->has_run[id] = 1;
}

// Spill what the call made and a fetch brings back later. Drop, or add to the pending spills, what is not used
// before it comes back. Compress last, when most bytes are free.
static void tli_offload_end_call(tli_offload *o, const tli_search_place *place) {
    const tli_search_seq *s = o->seq;
    const tl_node *node = &o->graph->nodes[place->overwrites ? place->call / 2 : 0];
    int32_t e, over = place->overwrites ? o->graph->inputs[node->first_input + node->inplace].tensor : -1;
    for (e = place->first_event; e >= 0; e = s->events[e].sibling) {
        int32_t item = s->events[e].item, behind = s->events[e].behind;
        if (item >= o->graph->tensor_count || item == over) continue;
        if (s->p->settled_by[item] == place->call) continue;
        if (!s->events[e].is_use && tli_offload_is_spilled_next(o, e)) (void)tli_offload_spill(o, item);
        if (tli_search_is_use(s, behind) || tli_offload_is_packed_next(o, e)) continue;
        if (tli_search_is_kept(s, behind) && (o->leaving[item] || !o->on_host[item]))
            tli_offload_add_pending(o, item);
        else tli_offload_add_step(o, TL_STEP_DROP, item);
    }
    for (e = place->first_event; e >= 0; e = s->events[e].sibling)
        if (tli_offload_is_packed_next(o, e)) tli_offload_compress(o, s->events[e].item);
}

// Do what comes before a call: wait for spills until its bytes fit, then issue fetches. 0 = the host has no
// room.
static int tli_offload_prepare(tli_offload *o, int32_t i) {
    int32_t f;
    while (o->pending_bytes > o->room[i] && o->pending_count && !o->failed) tli_offload_settle(o, 0);
    for (f = o->first[i]; f >= 0 && !o->failed; f = o->next[f])
        tli_offload_fetch(o, tli_offload_event(o, f)->item);
    return !o->failed;
}

static void tli_offload_run_call(tli_offload *o, const tli_search_place *place) {
    tl_step_kind kind = place->saves ? TL_STEP_FORWARD_SAVE
                        : place->overwrites ? TL_STEP_FORWARD_INPLACE : TL_STEP_FORWARD;
    int32_t expanded = tli_search_expanded(o->seq->p, place->call);
    if (place->call > tli_search_end_call(o->seq->p) && expanded < 0) return;
    tli_offload_begin_call(o, place);
    if (place->call == tli_search_end_call(o->seq->p)) return;
    if (place->call % 2) kind = TL_STEP_BACKWARD;
    if (expanded >= 0) tli_offload_expand(o, expanded);
    else if (kind != TL_STEP_BACKWARD) tli_offload_pass_loss(o, place);
    if (o->list && expanded < 0) tli_add_step(o->list, tli_step_of(kind, place->call / 2, TL_ALL_OUTPUTS));
    o->now += tli_offload_call_cost(o, place->call);
    o->copies.has_waited = 0;
    tli_offload_end_call(o, place);
}

// The time at which the sequence, which keeps the budget, ends; UINT64_MAX = it cannot run (o->failed), or no
// memory (seq->failed). The steps go to `list` if it is not NULL.
static uint64_t tli_offload_time(tli_offload *o, tli_steps *list) {
    int32_t i;
    o->list = list;
    o->now = o->host_bytes = 0;
    tli_reset_copy_clock(&o->copies);
    o->pending_bytes = 0;
    o->pending_count = 0;
    if (!tli_offload_reserve(o)) { o->seq->failed = 1; return UINT64_MAX; }
    o->failed = !tli_offload_read(o);
    if (o->failed) return UINT64_MAX;
    tli_offload_hoist(o);
    for (i = 0; i < o->count && !o->failed && tli_offload_prepare(o, i); i++)
        tli_offload_run_call(o, &o->seq->places[o->place[i]]);
    o->seq->work += 16 * (uint64_t)o->count;
    return o->failed ? UINT64_MAX : o->now;
}

// -- offload: the search --

typedef struct tli_offload_search {
    tli_search_state  r;
    tli_offload    o;
    uint64_t       best_time, time;  // of the best sequence; of the present one
} tli_offload_search;

// Draw a price of the link time in 256ths: near 0 suits an idle link, near 256 one that everything waits for,
// as where copies take turns with calls.
static uint64_t tli_offload_draw_price(tli_search_state *r) {
    static const uint8_t prices[] = { 0, 4, 16, 40, 80, 128, 200, 255 };
    if (r->p->turns_ns) return 256;
    return prices[tli_search_draw(r, 8)];
}

static int tli_offload_save_best(tli_offload_search *x) {
    if (!tli_search_list_calls(&x->r.seq, &x->r.best)) return 0;
    x->best_time = x->time;
    x->r.best_cost = x->r.seq.cost;
    return 1;
}

// As tli_search_try, but the end time of the sequence counts, not the cost of its forwards.
static void tli_offload_try(tli_offload_search *x, uint64_t heat) {
    tli_search_state *r = &x->r;
    tli_search_seq *s = &r->seq;
    uint64_t most, time;
    int32_t mark;
    s->change_count = 0;
    s->logs = 1;
    most = tli_search_temper(r, x->time, heat);
    r->link_price = tli_offload_draw_price(r);
    mark = tli_search_shake(r);
    if (mark >= 0 && most >= r->bwd_cost && tli_search_mend(r, most - r->bwd_cost, 40)) {
        tli_search_tidy(r, mark);
        time = s->failed ? UINT64_MAX : tli_offload_time(&x->o, NULL);
        if (time <= most) {
            x->time = time;
            if (time < x->best_time) tli_offload_save_best(x);
            return;
        }
    }
    tli_search_undo(s, 0);
}

static int tli_offload_goes_on(tli_offload_search *x) {
    uint64_t *known = &x->r.watch->now.cost;
    if (x->r.seq.failed || x->r.seq.work >= x->r.limit || x->best_time <= x->r.goal) return 0;
    if (x->best_time != UINT64_MAX && (!*known || x->best_time < *known)) *known = x->best_time;
    return !tli_remat_stops(x->r.watch, x->r.seq.work);
}

#define TLI_OFFLOAD_STARTS 6

// Phases as in tli_search_improve.
static void tli_offload_improve(tli_offload_search *x, const tli_search_calls *starts) {
    static const uint8_t heats[] = { 16, 2, 255, 1 };  // of the mean cost of a call, in 16ths
    tli_search_state *r = &x->r;
    int32_t phase, turn;
    for (phase = 0; tli_offload_goes_on(x); phase++) {
        const tli_search_calls *from = phase < TLI_OFFLOAD_STARTS ? &starts[phase] : &r->best;
        int32_t length = 400 << (phase < 24 ? phase / 2 : 12);
        uint64_t heat;
        if (!from->count) continue;
        if (!tli_search_load(&r->seq, from) || r->seq.over_count) return;
        x->time = tli_offload_time(&x->o, NULL);
        heat = x->best_time / (uint64_t)r->seq.used / 16;
        heat = (heat < TLI_SEARCH_MOST_COST >> 12 ? heat : TLI_SEARCH_MOST_COST >> 12) * heats[phase % 4];
        for (turn = 0; turn < length && tli_offload_goes_on(x); turn++) {
            tli_offload_try(x, heat);
            if (turn % (length / 20 + 1) == length / 20) heat -= heat / 3;
        }
    }
}

// If the loaded sequence keeps the budget, tidy it and make it a start. 0 = no memory.
static int tli_offload_add_start(tli_offload_search *x, tli_search_calls *start) {
    tli_search_seq *s = &x->r.seq;
    if (s->failed) return 0;
    if (s->over_count) return 1;
    s->change_count = 0;
    s->logs = 1;
    tli_search_tidy(&x->r, 0);
    if (s->failed) return 0;
    x->time = tli_offload_time(&x->o, NULL);
    if (s->failed || (x->time < x->best_time && !tli_offload_save_best(x))) return 0;
    return x->time == UINT64_MAX || tli_search_list_calls(s, start);
}

// Lower the loaded sequence to its budget, and make it a start if that succeeds. 0 = no memory.
static int tli_offload_lower(tli_offload_search *x, tli_search_calls *start) {
    tli_search_mend(&x->r, TLI_SEARCH_MOST_COST, 4 * x->r.p->node_count + 64);
    return tli_offload_add_start(x, start);
}

// How starts are lowered: the exponent of the distance in scores, and the price of the link.
static void tli_offload_set_rule(tli_offload_search *x, int32_t distance, uint64_t link_price) {
    x->r.distance = distance;
    x->r.noise = 0;
    x->r.is_exact = 0;
    x->r.link_price = link_price;
    x->r.seq.logs = 0;
}

// Make the calls of a plan a start, lowered to the budget, unless they are too many; a fetch is put where it is
// waited for. 0 = no memory.
static int tli_offload_start_from(tli_offload_search *x, const tl_plan *plan, tli_search_calls *start) {
    const tli_search_problem *p = x->r.p;
    tli_search_calls calls;
    int32_t i, ok = 1;
    tli_zero(&calls, sizeof calls);
    tli_zero(x->o.coming, (size_t)p->graph->tensor_count);
    for (i = 0; i < plan->step_count && ok; i++) {
        const tl_step *step = &plan->steps[i];
        int32_t tensor = p->graph->nodes[step->node].first_output + (step->output > 0 ? step->output : 0);
        if (step->kind == TL_STEP_FETCH) x->o.coming[tensor] = 1;
        if (step->kind == TL_STEP_WAIT && x->o.coming[tensor]) {
            x->o.coming[tensor] = 0;
            ok = tli_search_add_call(p->env, &calls, tli_search_fetch_call(p, tensor));
        }
        if (step->kind == TL_STEP_EXPAND)
            ok = tli_search_add_call(p->env, &calls, tli_search_expand_call(p, tensor));
        if (step->kind <= TL_STEP_BACKWARD)
            ok = tli_search_add_call(p->env, &calls, 2 * step->node + (step->kind == TL_STEP_BACKWARD));
    }
    ok = ok && tli_search_add_call(p->env, &calls, tli_search_end_call(p));
    tli_offload_set_rule(x, 2, 40);
    if (ok && tli_search_is_short(p, &calls))
        ok = tli_search_load(&x->r.seq, &calls) && tli_offload_lower(x, start);
    tli_release(p->env, calls.calls);
    return ok;
}

#define TLI_OFFLOAD_TRIES 64   // random starts, where the others find nothing

// Make the starts for a budget: a plan, where one is given, and the plan that keeps everything, lowered to it
// at several prices of the link, or where there is none, by several rules; then by random ones, until one
// succeeds. 0 = no memory.
static int tli_offload_begin(tli_offload_search *x, int64_t budget, const tl_plan *plan,
                             tli_search_calls *starts) {
    static const uint8_t prices[TLI_OFFLOAD_STARTS - 1] = { 4, 40, 128, 255, 0 };
    tli_search_state *r = &x->r;
    int32_t i;
    r->seq.budget = budget;
    if (plan && plan->step_count && !tli_offload_start_from(x, plan, &starts[0])) return 0;
    for (i = 1; i < TLI_OFFLOAD_STARTS; i++) {
        tli_offload_set_rule(x, r->copies_ns ? 2 : i - 1, prices[i - 1]);
        if (!tli_search_load_program(&r->seq) || !tli_offload_lower(x, &starts[i])) return 0;
    }
    for (i = 0; i < TLI_OFFLOAD_TRIES && !r->best.count && r->seq.work < r->limit; i++) {
        (void)tli_search_temper(r, 0, 0);
        r->link_price = tli_offload_draw_price(r);
        r->seq.logs = 0;
        if (!tli_search_load_program(&r->seq) || !tli_offload_lower(x, &starts[1])) return 0;
    }
    return 1;
}

static tl_result tli_offload_finish(tli_offload_search *x, tli_steps *best) {
    if (!tli_search_load(&x->r.seq, &x->r.best)) return TL_ERROR_NO_MEMORY;
    *best = tli_steps_of(x->r.p->env);
    (void)tli_offload_time(&x->o, best);
    if (!best->failed && !x->r.seq.failed) return TL_OK;
    tli_release(x->r.p->env, best->steps);
    tli_zero(best, sizeof *best);
    return TL_ERROR_NO_MEMORY;
}

// Search a plan within the budget that does not end later than `plan`, where that is within the budget.
static tl_result tli_offload_run(tli_offload_search *x, const tli_remat_input *in, const tl_plan *plan,
                                 tli_search_calls *starts) {
    x->r.goal = in->bound;
    x->r.limit = in->work_limit;
    x->r.random.state = 1 + (uint64_t)(plan ? plan->step_count : 0) + tli_remat_seed(in->watch);
    if (!tli_offload_begin(x, x->r.p->budget, plan, starts)) return TL_ERROR_NO_MEMORY;
    if (!x->r.best.count) return TL_ERROR_INFEASIBLE;
    tli_offload_improve(x, starts);
    return TL_OK;
}

// Find the least budget for which there is a start, to 1/4096 of it: the floor, then by bisection between it
// and what keeping everything takes. What is tried depends on the graph, the host, the work limit and `plan`.
static tl_result tli_offload_run_least(tli_offload_search *x, const tli_remat_input *in, int64_t floor,
                                       const tl_plan *plan, tli_search_calls *starts) {
    tli_search_seq *s = &x->r.seq;
    tli_search_calls least;
    int64_t low = floor, high, budget = floor;
    int ok;
    x->r.limit = in->work_limit;
    tli_zero(&least, sizeof least);
    ok = tli_search_load_program(s) && tli_search_list_calls(s, &least);
    high = ok ? tli_search_held(s, tli_search_find_full(s)) : floor;
    while (ok && low < high && s->work <= in->work_limit && !tli_remat_stops(in->watch, s->work)) {
        x->best_time = UINT64_MAX;
        x->r.best.count = 0;
        ok = tli_offload_begin(x, budget, plan, starts);
        if (ok && x->r.best.count) {
            high = budget;
            ok = tli_search_load(s, &x->r.best) && tli_search_list_calls(s, &least);
        } else {
            low = budget + 1;
        }
        if (high - low <= high / 4096) break;
        budget = low + (high - low) / 2;
    }
    s->budget = high;
    tli_release(in->env, x->r.best.calls);
    x->r.best = least;
    return ok ? TL_OK : TL_ERROR_NO_MEMORY;
}

// Find a plan with copies, on the host or compressed, from `plan` on (NULL = none is known): one that does not
// end later, if that is within the budget. least: instead the plan of the least budget, which is not below the
// floor. Bytes are without base. TL_ERROR_INFEASIBLE: none was found.
static tl_result tli_remat_offload(const tli_remat_input *in, const tl_device *device, uint64_t host_budget,
                                   const tl_plan *plan, int least, uint64_t floor, tli_steps *best,
                                   uint64_t *work) {
    tli_search_problem p;
    tli_search_start none[TLI_SEARCH_STARTS];
    tli_search_calls starts[TLI_OFFLOAD_STARTS];
    tli_offload_search x;
    tl_result result;
    int32_t i;
    tli_zero(best, sizeof *best);
    tli_zero(none, sizeof none);
    tli_zero(starts, sizeof starts);
    tli_zero(&x, sizeof x);
    *work = 0;
    result = tli_search_init_problem(in, &p);
    if (result) return result;
    result = tli_search_init_search(&p, &x.r);
    if (!result) {
        x.best_time = UINT64_MAX;
        x.r.watch = in->watch;
        if (!tli_offload_init(&x.o, &x.r.seq, device, host_budget, in->codec)) result = TL_ERROR_NO_MEMORY;
        x.r.copies_ns = in->fetches ? x.o.both_ns : NULL;
        if (x.r.copies_ns && x.o.copies.channels == TL_COPIES_IN_TURN) p.turns_ns = x.o.both_ns;
        if (!result) result = least ? tli_offload_run_least(&x, in, (int64_t)floor, plan, starts)
                                    : tli_offload_run(&x, in, plan, starts);
        if (!result) result = x.r.seq.failed ? TL_ERROR_NO_MEMORY : tli_offload_finish(&x, best);
        *work = x.r.seq.work;
        tli_offload_free(&x.o);
        tli_search_free_search(&x.r, none);
    }
    for (i = 0; i < TLI_OFFLOAD_STARTS; i++) tli_release(in->env, starts[i].calls);
    tli_search_free_problem(&p);
    return result;
}
#endif  // !defined(TL_NO_PLANNERS) && !defined(TL_NO_OFFLOAD)
#endif  // TL_STRATEGY_IMPLEMENTATION

