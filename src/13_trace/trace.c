#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_TRACE

// ============================================================================
// [13] TRACE (implementation)
// ============================================================================

// The trace: events in an array of fixed capacity, and their JSON in the format of Chrome's trace viewer.

struct tl_trace {
    tl_env       *env;
    tl_run_event *events;    // [capacity] the first `kept` are set
    int32_t       capacity, kept, dropped;
};

#ifdef TLI_INVARIANTS
// Events are dropped only where there is no room for more.
static int tli_trace_holds(const tl_trace *trace) {
    if (trace->kept < 0 || trace->kept > trace->capacity) return 0;
    return trace->dropped == 0 || (trace->dropped > 0 && trace->kept == trace->capacity);
}
#endif

TLI_IMPL tl_result tl_init_trace(tl_env *env, int32_t capacity, tl_trace **trace) {
    tl_trace *made;
    TL_ASSERT(trace);
    *trace = NULL;
    if (capacity < 1)
        return tli_fail(env, TL_ERROR_INVALID_ARG, TLI_IN(INIT_TRACE), TLI_RULE(CAPACITY_MUST_BE_POSITIVE));
    made = (tl_trace *)tli_alloc_array(env, 1, sizeof *made);
    if (made) made->events = (tl_run_event *)tli_alloc_array(env, (uint64_t)capacity, sizeof *made->events);
    if (!made || !made->events) {
        tli_release(env, made);
        return tli_fail(env, TL_ERROR_NO_MEMORY, TLI_IN(INIT_TRACE), TLI_RULE(CAPACITY_NO_MEMORY_FOR_EVENTS));
    }
    made->env = env;
    made->capacity = capacity;
    *trace = made;
    TLI_INVARIANT(tli_trace_holds(made));
    return TL_OK;
}

TLI_IMPL void tl_free_trace(tl_trace *trace) {
    tl_env *env = trace ? trace->env : NULL;
    if (!trace) return;
    tli_release(env, trace->events);
    tli_release(env, trace);
}

TLI_IMPL void tl_reset_trace(tl_trace *trace) {
    TL_ASSERT(trace);
    trace->kept = 0;
    trace->dropped = 0;
    TLI_INVARIANT(tli_trace_holds(trace));
}

TLI_IMPL void tl_record_event(const tl_run_event *event, void *trace) {
    tl_trace *into = (tl_trace *)trace;
    TL_ASSERT(event && trace);
    if (into->kept < into->capacity) into->events[into->kept++] = *event;
    else if (into->dropped < INT32_MAX) into->dropped++;
    TLI_INVARIANT(tli_trace_holds(into));
}

TLI_IMPL void tl_measure_trace(const tl_trace *trace, int32_t *kept, int32_t *dropped) {
    TL_ASSERT(trace);
    if (kept) *kept = trace->kept;
    if (dropped) *dropped = trace->dropped;
}

#ifndef TL_NO_TEXT
// -- the trace as JSON --

typedef struct tli_trace_writer {
    tli_stream      out;
    const tl_trace *trace;
    const tl_graph *graph;
    uint64_t        origin_ns;      // the earliest start
    int             has_clock;      // 0 = every time is 0: each step is drawn 1 us long
    uint64_t        lane_end_ns[2];  // of compute, of copies
    uint64_t        bytes[2];       // last written of device, of host
} tli_trace_writer;

// Whether a WAIT ends a call that was begun: the event of that call is observed right before it.
static int tli_ends_call(const tl_trace *trace, int32_t wait) {
    const tl_run_event *end = &trace->events[wait], *begun = end - 1;
    return wait > 0 && begun->step.begins && begun->step.node == end->step.node &&
           begun->micro_batch == end->micro_batch && begun->training_step == end->training_step;
}

// The event that issued the copy, or began the call, which this WAIT ends; -1 = not in the trace.
static int32_t tli_find_issue(const tl_trace *trace, int32_t wait) {
    const tl_run_event *end = &trace->events[wait];
    int32_t i;
    if (tli_ends_call(trace, wait)) return wait - 1;
    for (i = wait - 1; i >= 0; i--) {
        const tl_run_event *event = &trace->events[i];
        const tl_step *step = &event->step;
        if (event->training_step != end->training_step) return -1;
        if (event->micro_batch != end->micro_batch) continue;
        if (step->kind != TL_STEP_SPILL && step->kind != TL_STEP_FETCH) continue;
        if (step->node != end->step.node) continue;
        if (step->output == end->step.output) return i;
        if (step->output == TL_ALL_OUTPUTS || end->step.output == TL_ALL_OUTPUTS) return i;
    }
    return -1;
}

// What a step does, in words. A WAIT is named after the copy, or the call, that it ends and `issue` began.
static const char *tli_explain_event(const tl_run_event *event, const tl_run_event *issue) {
    switch ((tl_step_kind)event->step.kind) {
    case TL_STEP_FORWARD:
    case TL_STEP_FORWARD_INPLACE:
    case TL_STEP_FORWARD_SAVE: return event->recompute ? "recompute " : "forward ";
    case TL_STEP_BACKWARD: return "backward ";
    case TL_STEP_DROP: return "drop ";
    case TL_STEP_DROP_SAVED: return "drop saved ";
    case TL_STEP_SPILL: return "start spill ";
    case TL_STEP_FETCH: return "start fetch ";
    case TL_STEP_WAIT:
        if (issue && issue->step.begins) return "wait for ";
        return !issue ? "copy " : issue->step.kind == TL_STEP_SPILL ? "spill " : "fetch ";
    case TL_STEP_DROP_HOST: return "drop host copy ";
    case TL_STEP_COMPRESS: return "compress ";
    case TL_STEP_EXPAND: return "expand ";
    case TL_STEP_COUNT: break;
    }
    return "unknown step ";
}

// Send a name such as "recompute conv1" or "spill conv1.0". The names of checked graphs always fit.
static void tli_send_event_name(tli_trace_writer *t, const tl_run_event *event, const tl_run_event *issue) {
    char name[320], quoted[6 * sizeof name + 2];
    const tl_step *step = &event->step;
    tli_writer w = tli_writer_of(name, sizeof name);
    tli_put(&w, tli_explain_event(event, issue));
    tli_put(&w, tl_name_node(t->graph, step->node));
    if (!tli_acts_on_node((tl_step_kind)step->kind) && step->output != TL_ALL_OUTPUTS) {
        tli_put(&w, ".");
        tli_put_i64(&w, step->output);
    }
    tli_put_slot(&w, step->slot);
    tli_finish(&w);
    w = tli_writer_of(quoted, sizeof quoted);
    tli_put_json_text(&w, name);
    tli_send_bytes(&t->out, quoted, w.length);
}

static void tli_send_counter(tli_trace_writer *t, const char *name, tl_tier tier, uint64_t bytes,
                             uint64_t ns) {
    if (t->bytes[tier] == bytes) return;
    t->bytes[tier] = bytes;
    tli_send(&t->out, ",\n{\"name\":\"");
    tli_send(&t->out, name);
    tli_send(&t->out, "\",\"ph\":\"C\",\"pid\":1,\"ts\":");
    tli_send_decimal(&t->out, ns, 3);
    tli_send(&t->out, ",\"args\":{\"bytes\":");
    tli_send_u64(&t->out, bytes);
    tli_send(&t->out, "}}");
}

static void tli_send_event_args(tli_trace_writer *t, const tl_run_event *event) {
    tli_stream *out = &t->out;
    tli_send(out, ",\"args\":{\"step\":");
    tli_send_i32(out, event->index);
    tli_send(out, ",\"micro_batch\":");
    tli_send_i32(out, event->micro_batch);
    tli_send(out, ",\"training_step\":");
    tli_send_u64(out, event->training_step);
    tli_send(out, ",\"device_bytes\":");
    tli_send_u64(out, event->device_bytes);
    tli_send(out, "}}");
}

// Send one end of a call that was begun: of an asynchronous event, which may overlap others.
static void tli_send_begun_end(tli_trace_writer *t, int32_t index, const char *phase, uint64_t ns) {
    tli_send(&t->out, ",\n{\"name\":");
    tli_send_event_name(t, &t->trace->events[index], NULL);
    tli_send(&t->out, ",\"cat\":\"call\",\"ph\":\"");
    tli_send(&t->out, phase);
    tli_send(&t->out, "\",\"id\":");
    tli_send_i32(&t->out, index);
    tli_send(&t->out, ",\"pid\":1,\"tid\":1,\"ts\":");
    tli_send_decimal(&t->out, ns, 3);
    tli_send_event_args(t, &t->trace->events[index]);
}

// Send a call that was begun. Its counter is of an earlier time than those before it.
static void tli_send_begun(tli_trace_writer *t, int32_t index, uint64_t start, uint64_t end) {
    tli_send_begun_end(t, index, "b", start);
    tli_send_begun_end(t, index, "e", end < start ? start : end);
    tli_send_counter(t, "device memory", TL_TIER_DEVICE, t->trace->events[index].device_bytes, start);
    t->bytes[TL_TIER_DEVICE] = UINT64_MAX;
}

// Send one event: of a call that was begun the two asynchronous ones, else a complete one. Complete events of
// one thread must not overlap, so a copy begins when it was issued, or when the copy before it ended if that is
// later.
static void tli_send_event(tli_trace_writer *t, int32_t index) {
    const tl_run_event *event = &t->trace->events[index];
    int32_t issued = event->step.kind == TL_STEP_WAIT ? tli_find_issue(t->trace, index) : -1;
    int copies = event->step.kind == TL_STEP_WAIT && !tli_ends_call(t->trace, index);
    uint64_t start = event->start_ns - t->origin_ns, end = event->end_ns - t->origin_ns;
    tli_stream *out = &t->out;
    if (!t->has_clock) {
        start = (uint64_t)(copies && issued >= 0 ? issued : index) * 1000;
        end = (uint64_t)index * 1000 + 1000;
    }
    if (event->step.begins) { tli_send_begun(t, index, start, end); return; }
    if (start < t->lane_end_ns[copies]) start = t->lane_end_ns[copies];
    if (event->end_ns < event->start_ns || end < start) end = start;
    t->lane_end_ns[copies] = end;
    tli_send(out, ",\n{\"name\":");
    tli_send_event_name(t, event, issued < 0 ? NULL : &t->trace->events[issued]);
    tli_send(out, copies ? ",\"cat\":\"copy\",\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":"
                         : ",\"cat\":\"compute\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":");
    tli_send_decimal(out, start, 3);
    tli_send(out, ",\"dur\":");
    tli_send_decimal(out, end - start, 3);
    tli_send_event_args(t, event);
    tli_send_counter(t, "device memory", TL_TIER_DEVICE, event->device_bytes, copies ? end : start);
    tli_send_counter(t, "host memory", TL_TIER_HOST, event->host_bytes, end);
}

static void tli_find_clock(tli_trace_writer *t) {
    int32_t i;
    t->origin_ns = t->trace->kept ? t->trace->events[0].start_ns : 0;
    for (i = 0; i < t->trace->kept; i++) {
        const tl_run_event *event = &t->trace->events[i];
        if (event->start_ns < t->origin_ns) t->origin_ns = event->start_ns;
        if (event->end_ns) t->has_clock = 1;
    }
    TLI_INVARIANT(tli_trace_holds(t->trace));
}

static const char tli_trace_head[] =
    "{\"traceEvents\":[\n"
    "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":\"tl_strategy\"}},\n"
    "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"compute\"}},\n"
    "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":2,\"args\":{\"name\":\"copies\"}}";

TLI_IMPL tl_result tl_write_trace_json(tl_env *env, const tl_trace *trace, const tl_graph *graph,
                                       tl_sink sink) {
    tli_trace_writer t;
    int32_t i;
    TL_ASSERT(trace && graph && sink.write);
    tli_zero(&t, sizeof t);
    tli_open_stream(&t.out, sink);
    t.trace = trace;
    t.graph = graph;
    t.bytes[TL_TIER_DEVICE] = UINT64_MAX;  // so that the first event sends a counter; the host's starts at 0
    tli_find_clock(&t);
    tli_send(&t.out, tli_trace_head);
    for (i = 0; i < trace->kept && !t.out.result; i++) tli_send_event(&t, i);
    tli_send(&t.out, "\n],\"displayTimeUnit\":\"ms\",\"otherData\":{\"kept\":");
    tli_send_i32(&t.out, trace->kept);
    tli_send(&t.out, ",\"dropped\":");
    tli_send_i32(&t.out, trace->dropped);
    tli_send(&t.out, "}}\n");
    return tli_close_stream(&t.out, env, TLI_IN(WRITE_TRACE_JSON));
}
#endif  // TL_NO_TEXT
#endif  // TL_NO_TRACE
#endif  // TL_STRATEGY_IMPLEMENTATION

