// [13] TRACE: events of a run, the trace as JSON, memory as a picture.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/sink_support.h"
#include "support/texts.h"

// -- helpers --

static void must_be_json(const char *text) {
    tl_env env = silent_env();
    tli_json j = tli_json_open(&env, TLI_IN(PARSE_STRATEGY_JSON), text, strlen(text));
    tli_json_skip(&j);
    if (tli_json_end(&j)) fail_msg("%s\n%s", env.error.text, text);
}

// -- the trace --

static const char *const network =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=64 needs=none in=-\n"
    "node 1 conv1 conv fwd=1 bwd=1 out=64 needs=in in=0\n"
    "node 2 split split fwd=1 bwd=1 out=32,32 needs=in in=1\n"
    "node 3 loss sum fwd=1 bwd=1 out=4 needs=in in=2.0,2.1 keep\n";

static tl_run_event event_of(tl_step_kind kind, int32_t node, int32_t output, uint64_t start_ns, uint64_t end_ns) {
    tl_run_event event;
    memset(&event, 0, sizeof event);
    event.step.kind = (uint8_t)kind;
    event.step.node = node;
    event.step.output = output;
    event.start_ns = start_ns;
    event.end_ns = end_ns;
    return event;
}

static tl_trace *trace_of(int32_t capacity) {
    tl_trace *trace;
    assert_int_equal(tl_init_trace(NULL, capacity, &trace), TL_OK);
    return trace;
}

static void add(tl_trace *trace, tl_step_kind kind, int32_t node, int32_t output, uint64_t start_ns, uint64_t end_ns) {
    tl_run_event event = event_of(kind, node, output, start_ns, end_ns);
    tl_record_event(&event, trace);
}

// The trace as text, checked; free() it. The trace is freed.
static char *json_of(tl_trace *trace, const tl_graph *graph) {
    tl_env env = silent_env();
    memory_sink m;
    tl_sink sink = sink_of(&m, -1);
    if (tl_write_trace_json(&env, trace, graph, sink)) fail_msg("%s", env.error.text);
    must_be_json(m.text);
    tl_free_trace(trace);
    return m.text;
}

static void trace_keeps_the_oldest_events_and_counts_the_rest(void **state) {
    tl_trace *trace = trace_of(3);
    int32_t kept = -1, dropped = -1;
    uint64_t i;
    (void)state;
    for (i = 0; i < 5; i++) add(trace, TL_STEP_FORWARD, (int32_t)i, -1, i, i + 1);
    tl_measure_trace(trace, &kept, &dropped);
    assert_int_equal(kept, 3);
    assert_int_equal(dropped, 2);
    assert_int_equal(trace->events[0].step.node, 0);
    assert_int_equal(trace->events[2].step.node, 2);
    assert_int_equal(trace->events[2].end_ns, 3);
    tl_reset_trace(trace);
    tl_measure_trace(trace, &kept, &dropped);
    assert_int_equal(kept, 0);
    assert_int_equal(dropped, 0);
    add(trace, TL_STEP_BACKWARD, 7, -1, 0, 0);
    assert_int_equal(trace->events[0].step.node, 7);
    tl_measure_trace(trace, NULL, NULL);
    tl_free_trace(trace);
    tl_free_trace(NULL);
}

static void trace_dropped_events_stop_at_the_largest_count(void **state) {
    tl_trace *trace = trace_of(1);
    int32_t dropped;
    (void)state;
    trace->dropped = INT32_MAX - 1;
    add(trace, TL_STEP_FORWARD, 0, -1, 0, 0);
    add(trace, TL_STEP_FORWARD, 0, -1, 0, 0);
    add(trace, TL_STEP_FORWARD, 0, -1, 0, 0);
    tl_measure_trace(trace, NULL, &dropped);
    assert_int_equal(dropped, INT32_MAX);
    tl_free_trace(trace);
}

static void trace_without_room_is_an_error(void **state) {
    tl_env env = silent_env();
    tl_trace *trace = (tl_trace *)&env;
    (void)state;
    assert_int_equal(tl_init_trace(&env, 0, &trace), TL_ERROR_INVALID_ARG);
    assert_null(trace);
    assert_string_equal(env.error.text, "tl_init_trace: capacity: must be > 0");
    trace = (tl_trace *)&env;
    assert_int_equal(tl_init_trace(&env, INT32_MIN, &trace), TL_ERROR_INVALID_ARG);
    assert_null(trace);
}

static void trace_survives_each_failing_allocation(void **state) {
    long at;
    (void)state;
    for (at = 0;; at++) {
        failing_alloc f = { 0 };
        tl_env env = failing_env(&f, at);
        tl_trace *trace;
        tl_result result = tl_init_trace(&env, 4, &trace);
        if (!result) tl_free_trace(trace);
        else {
            assert_int_equal(result, TL_ERROR_NO_MEMORY);
            assert_int_equal(env.error.code, TL_ERROR_NO_MEMORY);
            assert_null(trace);
        }
        assert_int_equal(f.live, 0);
        if (f.count <= at) break;
    }
    assert_int_equal(at, 2);
}

static void json_of_an_empty_trace_is_valid(void **state) {
    tl_graph graph = graph_of(network);
    char *text = json_of(trace_of(1), &graph);
    (void)state;
    assert_string_equal(text,
        "{\"traceEvents\":[\n"
        "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":\"tl_strategy\"}},\n"
        "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"compute\"}},\n"
        "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":2,\"args\":{\"name\":\"copies\"}}\n"
        "],\"displayTimeUnit\":\"ms\",\"otherData\":{\"kept\":0,\"dropped\":0}}\n");
    free(text);
    tl_free_graph(NULL, &graph);
}

static void json_shows_each_step_with_its_time_and_bytes(void **state) {
    tl_graph graph = graph_of(network);
    tl_trace *trace = trace_of(1);
    tl_run_event event = event_of(TL_STEP_FORWARD, 1, -1, 1002003, 1014063);
    char *text;
    (void)state;
    event.index = 7;
    event.micro_batch = 2;
    event.training_step = 31;
    event.device_bytes = 4096;
    event.host_bytes = 12;
    tl_record_event(&event, trace);
    event.start_ns = 0;  // dropped: not the origin of time
    tl_record_event(&event, trace);
    text = json_of(trace, &graph);
    must_hold(text,
        ",\n{\"name\":\"forward conv1\",\"cat\":\"compute\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":0.000,\"dur\":12.060,"
        "\"args\":{\"step\":7,\"micro_batch\":2,\"training_step\":31,\"device_bytes\":4096}}"
        ",\n{\"name\":\"device memory\",\"ph\":\"C\",\"pid\":1,\"ts\":0.000,\"args\":{\"bytes\":4096}}"
        ",\n{\"name\":\"host memory\",\"ph\":\"C\",\"pid\":1,\"ts\":12.060,\"args\":{\"bytes\":12}}"
        "\n],\"displayTimeUnit\":\"ms\",\"otherData\":{\"kept\":1,\"dropped\":1}}\n");
    free(text);
    tl_free_graph(NULL, &graph);
}

static void json_names_every_kind_of_step(void **state) {
    static const struct { tl_step_kind kind; int32_t node, output, recompute; const char *name; int lane; } rows[] = {
        { TL_STEP_FORWARD, 1, -1, 0, "forward conv1", 1 },
        { TL_STEP_FORWARD, 1, -1, 1, "recompute conv1", 1 },
        { TL_STEP_FORWARD_INPLACE, 1, -1, 0, "forward conv1", 1 },
        { TL_STEP_FORWARD_SAVE, 2, -1, 1, "recompute split", 1 },
        { TL_STEP_BACKWARD, 3, -1, 0, "backward loss", 1 },
        { TL_STEP_DROP, 2, 1, 0, "drop split.1", 1 },
        { TL_STEP_DROP, 2, -1, 0, "drop split", 1 },
        { TL_STEP_DROP_SAVED, 1, -1, 0, "drop saved conv1", 1 },
        { TL_STEP_SPILL, 2, 1, 0, "start spill split.1", 1 },
        { TL_STEP_WAIT, 2, 1, 0, "spill split.1", 2 },
        { TL_STEP_FETCH, 2, 1, 0, "start fetch split.1", 1 },
        { TL_STEP_SPILL, 1, 0, 0, "start spill conv1.0", 1 },
        { TL_STEP_WAIT, 2, 1, 0, "fetch split.1", 2 },
        { TL_STEP_WAIT, 2, 0, 0, "copy split.0", 2 },
        { TL_STEP_WAIT, 1, -1, 0, "spill conv1", 2 },
        { TL_STEP_FETCH, 1, -1, 0, "start fetch conv1", 1 },
        { TL_STEP_WAIT, 1, 0, 0, "fetch conv1.0", 2 },
        { TL_STEP_DROP_HOST, 2, 1, 0, "drop host copy split.1", 1 },
        { TL_STEP_COMPRESS, 1, 0, 0, "compress conv1.0", 1 },
        { TL_STEP_EXPAND, 1, 0, 0, "expand conv1.0", 1 } };
    tl_graph graph = graph_of(network);
    tl_trace *trace = trace_of(100);
    uint32_t seen = 0;
    size_t i;
    char *text, *at, part[160];
    (void)state;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tl_run_event event = event_of(rows[i].kind, rows[i].node, rows[i].output, 10 * i, 10 * i + 10);
        event.recompute = rows[i].recompute;
        tl_record_event(&event, trace);
        seen |= (uint32_t)1 << rows[i].kind;
    }
    assert_int_equal(seen, ((uint32_t)1 << TL_STEP_COUNT) - 1);
    at = text = json_of(trace, &graph);
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(part, sizeof part, "{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":%d,", rows[i].name,
                 rows[i].lane == 2 ? "copy" : "compute", rows[i].lane);
        at = strstr(at, part);
        if (!at) fail_msg("not found, or not in its place: %s\n%s", part, text);
    }
    free(text);
    tl_free_graph(NULL, &graph);
}

// A call that was begun is observed before its W, after what ran meanwhile; it overlaps that.
static void json_shows_calls_under_way(void **state) {
    tl_graph graph = graph_of(network);
    int has_clock;
    (void)state;
    for (has_clock = 0; has_clock < 2; has_clock++) {
        tl_trace *trace = trace_of(8);
        tl_run_event event;
        uint64_t ns = has_clock ? 1 : 0;
        char *text;
        add(trace, TL_STEP_FORWARD, 2, -1, 5000 * ns, 7000 * ns);
        event = event_of(TL_STEP_FORWARD, 1, -1, 4000 * ns, 9000 * ns);
        event.step.begins = 1;
        event.index = 3;
        event.device_bytes = 100;
        tl_record_event(&event, trace);
        event = event_of(TL_STEP_WAIT, 1, -1, 7000 * ns, 9500 * ns);
        event.device_bytes = 100;
        tl_record_event(&event, trace);
        add(trace, TL_STEP_WAIT, 1, 0, 9500 * ns, 9600 * ns);
        text = json_of(trace, &graph);
        must_hold(text, has_clock ? "{\"name\":\"forward conv1\",\"cat\":\"call\",\"ph\":\"b\",\"id\":1,\"pid\":1,\"tid\":1,\"ts\":0.000,"
                                    "\"args\":{\"step\":3,\"micro_batch\":0,\"training_step\":0,\"device_bytes\":100}}"
                                  : "{\"name\":\"forward conv1\",\"cat\":\"call\",\"ph\":\"b\",\"id\":1,\"pid\":1,\"tid\":1,\"ts\":1.000,");
        must_hold(text, has_clock ? "{\"name\":\"forward conv1\",\"cat\":\"call\",\"ph\":\"e\",\"id\":1,\"pid\":1,\"tid\":1,\"ts\":5.000,"
                                  : "{\"name\":\"forward conv1\",\"cat\":\"call\",\"ph\":\"e\",\"id\":1,\"pid\":1,\"tid\":1,\"ts\":2.000,");
        must_hold(text, has_clock ? "{\"name\":\"forward split\",\"cat\":\"compute\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1.000,\"dur\":2.000,"
                                  : "{\"name\":\"forward split\",\"cat\":\"compute\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":0.000,\"dur\":1.000,");
        must_hold(text, has_clock ? "{\"name\":\"wait for conv1\",\"cat\":\"compute\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":3.000,\"dur\":2.500,"
                                  : "{\"name\":\"wait for conv1\",\"cat\":\"compute\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":2.000,\"dur\":1.000,");
        must_hold(text, "{\"name\":\"copy conv1.0\",\"cat\":\"copy\",");
        assert_int_equal(count_of(text, "{\"name\":\"device memory\""), 4);     // each of them differs from the one before it in time
        free(text);
    }
    tl_free_graph(NULL, &graph);
}

static void json_copies_of_another_pass_are_not_mixed_up(void **state) {
    tl_graph graph = graph_of(network);
    tl_trace *trace = trace_of(4);
    tl_run_event event = event_of(TL_STEP_SPILL, 1, 0, 1, 2);
    char *text;
    (void)state;
    tl_record_event(&event, trace);
    event = event_of(TL_STEP_WAIT, 1, 0, 2, 3);
    event.micro_batch = 1;
    tl_record_event(&event, trace);
    text = json_of(trace, &graph);
    assert_int_equal(count_of(text, "\"copy conv1.0\""), 1);
    free(text);
    trace = trace_of(4);
    add(trace, TL_STEP_SPILL, 1, 0, 1, 2);
    event.micro_batch = 0;
    event.training_step = 1;
    tl_record_event(&event, trace);
    text = json_of(trace, &graph);
    assert_int_equal(count_of(text, "\"copy conv1.0\""), 1);
    free(text);
    tl_free_graph(NULL, &graph);
}

// Overlapping events of one thread are refused by viewers: copies queue up on their link.
static void json_copies_do_not_overlap(void **state) {
    tl_graph graph = graph_of(network);
    tl_trace *trace = trace_of(8);
    char *text;
    (void)state;
    add(trace, TL_STEP_SPILL, 1, 0, 1000, 1010);
    add(trace, TL_STEP_SPILL, 2, 0, 2000, 2010);
    add(trace, TL_STEP_FORWARD, 3, -1, 2010, 9000);
    add(trace, TL_STEP_WAIT, 1, 0, 1000, 9500);
    add(trace, TL_STEP_WAIT, 2, 0, 2000, 9700);
    text = json_of(trace, &graph);
    must_hold(text, "\"spill conv1.0\",\"cat\":\"copy\",\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":0.000,\"dur\":8.500,");
    must_hold(text, "\"spill split.0\",\"cat\":\"copy\",\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":8.500,\"dur\":0.200,");
    must_hold(text, "\"forward loss\",\"cat\":\"compute\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1.010,\"dur\":6.990,");
    free(text);
    tl_free_graph(NULL, &graph);
}

static void json_without_a_clock_draws_steps_of_a_microsecond(void **state) {
    tl_graph graph = graph_of(network);
    tl_trace *trace = trace_of(8);
    char *text;
    (void)state;
    add(trace, TL_STEP_FORWARD, 1, -1, 0, 0);
    add(trace, TL_STEP_SPILL, 1, 0, 0, 0);
    add(trace, TL_STEP_FORWARD, 2, -1, 0, 0);
    add(trace, TL_STEP_WAIT, 1, 0, 0, 0);
    text = json_of(trace, &graph);
    must_hold(text, "\"forward conv1\",\"cat\":\"compute\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":0.000,\"dur\":1.000,");
    must_hold(text, "\"forward split\",\"cat\":\"compute\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":2.000,\"dur\":1.000,");
    must_hold(text, "\"spill conv1.0\",\"cat\":\"copy\",\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":1.000,\"dur\":3.000,");
    free(text);
    tl_free_graph(NULL, &graph);
}

static void json_times_count_from_the_earliest_start(void **state) {
    tl_graph graph = graph_of(network);
    tl_trace *trace = trace_of(8);
    char *text;
    (void)state;
    add(trace, TL_STEP_WAIT, 1, 0, 5000, 6000);
    add(trace, TL_STEP_FORWARD, 2, -1, 3000, 4000);
    add(trace, TL_STEP_BACKWARD, 2, -1, 4500, 1000);  // a clock that went back: no time at all
    text = json_of(trace, &graph);
    must_hold(text, "\"pid\":1,\"tid\":2,\"ts\":2.000,\"dur\":1.000,");
    must_hold(text, "\"pid\":1,\"tid\":1,\"ts\":0.000,\"dur\":1.000,");
    must_hold(text, "\"pid\":1,\"tid\":1,\"ts\":1.500,\"dur\":0.000,");
    free(text);
    tl_free_graph(NULL, &graph);
}

static void json_counts_memory_where_it_changes(void **state) {
    static const uint64_t device[] = { 0, 64, 64, 128, 0, 0 }, host[] = { 0, 0, 5, 5, 5, 0 };
    tl_graph graph = graph_of(network);
    tl_trace *trace = trace_of(6);
    uint64_t i;
    char *text;
    (void)state;
    for (i = 0; i < 6; i++) {
        tl_run_event event = event_of(TL_STEP_FORWARD, 1, -1, 100 * i, 100 * i + 50);
        event.device_bytes = device[i];
        event.host_bytes = host[i];
        tl_record_event(&event, trace);
    }
    text = json_of(trace, &graph);
    assert_int_equal(count_of(text, "\"device memory\""), 4);
    assert_int_equal(count_of(text, "\"host memory\""), 2);
    must_hold(text, "{\"name\":\"device memory\",\"ph\":\"C\",\"pid\":1,\"ts\":0.300,\"args\":{\"bytes\":128}}");
    must_hold(text, "{\"name\":\"host memory\",\"ph\":\"C\",\"pid\":1,\"ts\":0.250,\"args\":{\"bytes\":5}}");
    free(text);
    tl_free_graph(NULL, &graph);
}

static void json_stays_json_whatever_an_event_holds(void **state) {
    tl_graph graph = graph_of(network);
    tl_trace *trace = trace_of(20);
    tl_run_event event;
    char *text;
    (void)state;
    add(trace, TL_STEP_FORWARD, 99, -1, UINT64_MAX, UINT64_MAX);
    add(trace, TL_STEP_BACKWARD, -5, 3, UINT64_MAX, 1);   // ends before it starts
    add(trace, TL_STEP_DROP, 1, INT32_MIN, 5, UINT64_MAX);
    add(trace, TL_STEP_WAIT, INT32_MAX, INT32_MAX, 4, 3);
    add(trace, TL_STEP_COUNT, 1, 0, 2, 2);
    memset(&event, 0xFF, sizeof event);
    tl_record_event(&event, trace);
    text = json_of(trace, &graph);
    must_hold(text, "\"forward ?\"");
    must_hold(text, "\"drop conv1.-2147483648\"");
    must_hold(text, "\"unknown step conv1.0\"");
    must_hold(text, "\"device_bytes\":18446744073709551615}");
    assert_int_equal(count_of(text, "\"ph\":\"X\""), 5);
    assert_int_equal(count_of(text, "\"ph\":\"b\"") + count_of(text, "\"ph\":\"e\""), 2);     // begins is -1 there
    free(text);
    tl_free_graph(NULL, &graph);
}

static void json_escapes_names(void **state) {
    tl_graph graph = graph_of(network);
    tl_trace *trace = trace_of(2);
    char *text, *name = TEXT(&graph) + graph.nodes[1].name;
    (void)state;
    memcpy(name, "\"\\\n\xff" "e", 5);  // over "conv1": no reader lets that through, a hand may
    add(trace, TL_STEP_FORWARD, 1, -1, 0, 1);
    text = json_of(trace, &graph);
    must_hold(text, "{\"name\":\"forward \\\"\\\\\\u000a\\ufffde\",");
    free(text);
    tl_free_graph(NULL, &graph);
}

static void json_shows_the_longest_name_whole(void **state) {
    char line[600], name[256], *text;
    tl_graph graph;
    tl_trace *trace = trace_of(2);
    (void)state;
    memset(name, 'n', 255);
    name[255] = 0;
    snprintf(line, sizeof line, "tlg 1\nnode 0 %s input fwd=0 bwd=0 out=1 needs=none in=-\n", name);
    graph = graph_of(line);
    add(trace, TL_STEP_DROP_HOST, 0, INT32_MAX, 0, 1);
    text = json_of(trace, &graph);
    snprintf(line, sizeof line, "\"drop host copy %s.2147483647\"", name);
    must_hold(text, line);
    free(text);
    tl_free_graph(NULL, &graph);
}

static tl_trace *long_trace(void) {
    tl_trace *trace = trace_of(500);
    uint64_t i;
    for (i = 0; i < 500; i++) {
        tl_run_event event = event_of((tl_step_kind)(i % TL_STEP_COUNT), (int32_t)(i % 4), -1, 1000 * i, 1000 * i + 900);
        event.device_bytes = i * i;
        event.host_bytes = i / 5;
        tl_record_event(&event, trace);
    }
    return trace;
}

static void json_stops_at_each_failing_write(void **state) {
    tl_graph graph = graph_of(network);
    tl_trace *trace = long_trace();
    memory_sink m;
    long at, writes;
    (void)state;
    assert_int_equal(tl_write_trace_json(NULL, trace, &graph, sink_of(&m, -1)), TL_OK);
    writes = m.count;
    assert_true(writes > 100 && m.largest <= 512);
    free(m.text);
    for (at = 0; at < writes; at++) {
        tl_env env = silent_env();
        tl_sink sink = sink_of(&m, at);
        char wanted[120];
        assert_int_equal(tl_write_trace_json(&env, trace, &graph, sink), TL_ERROR_DEVICE_LOST);
        assert_int_equal(env.error.code, TL_ERROR_DEVICE_LOST);
        snprintf(wanted, sizeof wanted, "tl_write_trace_json: sink: stopped with device lost after %d bytes", (int)m.length);
        assert_string_equal(env.error.text, wanted);
        assert_int_equal(m.count, at + 1);
        assert_int_equal(m.after_failure, 0);
        free(m.text);
    }
    tl_free_trace(trace);
    tl_free_graph(NULL, &graph);
}

static void json_is_the_same_each_time(void **state) {
    tl_graph graph = graph_of(network);
    char *first = json_of(long_trace(), &graph), *again = json_of(long_trace(), &graph);
    (void)state;
    assert_string_equal(first, again);
    assert_int_equal(count_of(first, "\"ph\":\"X\""), 500);
    free(first);
    free(again);
    tl_free_graph(NULL, &graph);
}

// -- a run, observed --

typedef struct run_clock { uint64_t now; } run_clock;

static uint64_t tick(void *user) { return ((run_clock *)user)->now += 100; }

static tl_result work(const tl_kernel_call *call, void *user) {
    ((run_clock *)user)->now += 5000 + (uint64_t)call->node * 1000;
    return TL_OK;
}

static void run_fills_a_trace_that_agrees_with_its_report(void **state) {
    static const char *const chain =
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=64 needs=none in=-\n"
        "node 1 a work fwd=1 bwd=1 out=640 needs=in in=0\n"
        "node 2 b work fwd=1 bwd=1 out=64 needs=in in=1\n"
        "node 3 c work fwd=1 bwd=1 out=4 needs=in in=2 keep\n";
    static const char *const steps = "F 1\nF 2\nO 1\nF 3\nW 1\nD 2\nL 1\nW 1\nF 2\nB 3\nD 2\nB 2\nD 1\nDH 1\nB 1\n";
    tl_graph graph = graph_of(chain);
    tl_env env = silent_env();
    tl_plan plan;
    tl_backend backend;
    tl_cpu_backend_desc backend_desc;
    tl_run_desc desc;
    tl_run_report report;
    tl_kernel kernel;
    tl_run *run;
    tl_trace *trace = trace_of(100);
    run_clock clock = { 1000000 };
    uint64_t highest = 0;
    int32_t kept, dropped, i;
    char *text;
    (void)state;
    if (tl_parse_schedule(&env, steps, strlen(steps), &plan)) fail_msg("%s", env.error.text);
    memset(&backend_desc, 0, sizeof backend_desc);
    backend_desc.now_ns = tick;
    backend_desc.user = &clock;
    if (tl_init_cpu_backend(&env, &backend_desc, &backend)) fail_msg("%s", env.error.text);
    memset(&kernel, 0, sizeof kernel);
    kernel.op = "work";
    kernel.forward = kernel.backward = work;
    kernel.user = &clock;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.backend = &backend;
    desc.kernels = &kernel;
    desc.kernel_count = 1;
    desc.plan = &plan;
    desc.profiling = 1;
    desc.observe = tl_record_event;
    desc.observe_user = trace;
    if (tl_init_run(&env, &desc, &run)) fail_msg("%s", env.error.text);
    if (tl_run_plan(run)) fail_msg("%s", env.error.text);
    tl_measure_run(run, &report);
    tl_measure_trace(trace, &kept, &dropped);
    assert_int_equal(kept, plan.step_count);
    assert_int_equal(dropped, 0);
    for (i = 0; i < kept; i++) {
        const tl_run_event *event = &trace->events[i];
        assert_int_equal(event->index, i);
        if (event->device_bytes > highest) highest = event->device_bytes;
    }
    assert_int_equal(highest, report.measured_peak_bytes);
    text = json_of(trace, &graph);
    assert_int_equal(count_of(text, "\"forward "), 3);
    assert_int_equal(count_of(text, "\"recompute b\""), 1);
    assert_int_equal(count_of(text, "\"backward "), 3);
    must_hold(text, "\"spill a");
    must_hold(text, "\"fetch a");
    tl_free_run(run);
    tl_free_cpu_backend(&env, &backend);
    tl_free_plan(&env, &plan);
    free(text);
    tl_free_graph(NULL, &graph);
}

// -- the picture --

static tl_memory_curve curve_of(const char *label, const uint64_t *live_bytes, const double *times, int32_t count) {
    tl_memory_curve curve;
    curve.label = label;
    curve.live_bytes = live_bytes;
    curve.times = times;
    curve.count = count;
    return curve;
}

// The picture as text, checked; free() it.
static char *svg_of(const tl_memory_curve *curves, int32_t count, const tl_svg_style *style) {
    tl_env env = silent_env();
    memory_sink m;
    tl_sink sink = sink_of(&m, -1);
    if (tl_write_memory_svg(&env, curves, count, style, sink)) fail_msg("%s", env.error.text);
    must_be_xml(m.text);
    return m.text;
}

// Of one curve without a style: left 84, right 930, top 70, bottom 422.
static void svg_of_one_curve_is_a_line_of_steps(void **state) {
    static const uint64_t live[] = { 100, 400, 200 };
    tl_memory_curve curve = curve_of("all <kept> & \"well\"", live, NULL, 3);
    char *text = svg_of(&curve, 1, NULL);
    (void)state;
    must_hold(text, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"960\" height=\"480\" viewBox=\"0 0 960 480\">");
    // 500 bytes are 352 pixels: 100 is at 422 - 70.4
    must_hold(text, "<path class=\"curve k0 f0\" d=\"M74 422V351.6H366V140.4H648V281.2H930V422\">");
    must_hold(text, "<title>all &lt;kept&gt; &amp; \"well\"</title></path>");
    must_hold(text, "\" class=\"label\">all &lt;kept&gt; &amp; \"well\"</text>");
    must_hold(text, "<circle class=\"mark k0\" cx=\"507\" cy=\"140.4\" r=\"4\"/>");
    must_hold(text, "<text x=\"507\" y=\"130.4\" class=\"value\" text-anchor=\"middle\">400 B</text>");
    must_hold(text, ">500 B</text>");
    must_hold(text, "<text x=\"74\" y=\"426.5\" text-anchor=\"end\">0</text>");
    must_hold(text, "<path class=\"grid\" d=\"M84 70H930\"/>");
    must_hold(text, ">live bytes</text>");
    must_hold(text, ">step</text>");
    assert_false(contains(text, "class=\"title\""));
    free(text);
}

static void svg_serves_light_and_dark_surroundings(void **state) {
    static const uint64_t live[] = { 1 };
    tl_memory_curve curve = curve_of("x", live, NULL, 1);
    char *text = svg_of(&curve, 1, NULL), *dark = strstr(text, "@media (prefers-color-scheme:dark){");
    char name[24];
    int i;
    (void)state;
    assert_non_null(dark);
    for (i = 0; i < 8; i++) {
        snprintf(name, sizeof name, ".k%d{", i);
        assert_true(strstr(text, name) < dark && contains(text, name));
        snprintf(name, sizeof name, ".f%d{", i);
        assert_true(strstr(text, name) < dark && contains(text, name));
    }
    must_hold(dark, ".page{fill:#0d1117");
    must_hold(text, "<rect class=\"page\"");
    free(text);
}

static void svg_holds_its_rules(void **state) {
    static const uint64_t live[] = { 1, 2, 3 };
    static const double fall[] = { 1, 3, 2 }, below[] = { -1, 2, 3 }, none[] = { 0, 0, 0 }, late[] = { 1, 2, 1e19 };
    double nan = 0, infinite = 1e300;
    double not_a_number[3], endless[3];
    tl_memory_curve good = curve_of("good", live, NULL, 3), bad, both[9];
    tl_svg_style style;
    static const struct { int32_t width, height; } sizes[] = {
        { 319, 0 }, { 16385, 0 }, { -1, 0 }, { 0, 239 }, { 0, 16385 }, { 0, INT32_MIN } };
    const double *times[6];
    tl_env env = silent_env();
    memory_sink m;
    tl_sink sink = sink_of(&m, -1);
    size_t i;
    (void)state;
    infinite *= infinite;
    nan = infinite - infinite;
    not_a_number[0] = 1; not_a_number[1] = nan; not_a_number[2] = 3;
    endless[0] = 1; endless[1] = 2; endless[2] = infinite;
    times[0] = fall; times[1] = below; times[2] = not_a_number; times[3] = endless; times[4] = none; times[5] = late;
    for (i = 0; i < 9; i++) both[i] = good;
    assert_int_equal(tl_write_memory_svg(&env, NULL, 0, NULL, sink), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_write_memory_svg: curve_count: must be 1 to 8");
    assert_int_equal(tl_write_memory_svg(&env, both, -1, NULL, sink), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_write_memory_svg(&env, both, 9, NULL, sink), TL_ERROR_INVALID_ARG);
    both[1].count = 0;
    assert_int_equal(tl_write_memory_svg(&env, both, 2, NULL, sink), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_write_memory_svg: curve 1: count: must be > 0");
    for (i = 0; i < 6; i++) {
        bad = curve_of("bad", live, times[i], 3);
        assert_int_equal(tl_write_memory_svg(&env, &bad, 1, NULL, sink), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text, i < 3 ? "tl_write_memory_svg: curve 0: times: must be >= 0 and never fall"
                                                  : "tl_write_memory_svg: curve 0: times: must end between 1e-12 and 1e18");
    }
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        memset(&style, 0, sizeof style);
        style.width = sizes[i].width;
        style.height = sizes[i].height;
        assert_int_equal(tl_write_memory_svg(&env, &good, 1, &style, sink), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text, "tl_write_memory_svg: style: must be 320 to 16384 pixels wide and 240 to 16384 high, or 0");
    }
    assert_int_equal(m.count, 0);  // refused before the first byte
}

// The path of curve i, and what it holds: pieces, its highest and lowest place, whether x ever falls.
typedef struct path_facts { int pieces; double top, low, last_x; int falls; } path_facts;

static path_facts facts_of(const char *text, int curve) {
    path_facts facts = { 0, 1e9, 0, 0, 0 };
    char start[80];
    const char *at;
    snprintf(start, sizeof start, "<path class=\"curve k%d f%d\" d=\"M", curve, curve);
    at = strstr(text, start);
    assert_non_null(at);
    for (at += strlen(start); *at != '"'; at++) {
        double value;
        if (*at != 'H' && *at != 'V') continue;
        value = strtod(at + 1, NULL);
        if (*at == 'V') {
            if (value < facts.top) facts.top = value;
            if (value > facts.low) facts.low = value;
            facts.pieces++;
        } else {
            if (value < facts.last_x) facts.falls++;
            facts.last_x = value;
        }
    }
    return facts;
}

static void svg_thinning_keeps_the_peak(void **state) {
    enum { COUNT = 100000 };
    uint64_t *live = (uint64_t *)malloc(COUNT * sizeof *live);
    double *times = (double *)malloc(COUNT * sizeof *times);
    tl_memory_curve curve;
    tl_random random = { 3 };
    int round, i;
    (void)state;
    assert_true(live && times);
    for (round = 0; round < 40; round++) {
        int spike = round == 0 ? 0 : round == 1 ? COUNT - 1 : (int)tl_next_random_below(&random, COUNT);
        double now = 0;
        path_facts facts;
        char *text;
        for (i = 0; i < COUNT; i++) {
            live[i] = 1000 + tl_next_random_below(&random, 1000) * (uint64_t)(round % 2);
            // even steps, bursts, no time at all
            now += round % 4 < 2 || tl_next_random_below(&random, 50) == 0 ? 1 : round % 4 < 3 ? 0.0001 : 0;
            times[i] = now;
        }
        live[spike] = 4096;
        curve = curve_of("spike", live, times, COUNT);
        text = svg_of(&curve, 1, NULL);
        facts = facts_of(text, 0);
        assert_true(facts.top == 140.4);  // 4 of 5 KiB
        assert_true(facts.pieces <= 2 * 846 + 4);
        assert_int_equal(facts.falls, 0);
        assert_true(facts.last_x == 930);
        must_hold(text, "\" cy=\"140.4\" r=\"4\"/>");
        must_hold(text, ">4.00 KiB</text>");
        assert_true(strlen(text) < 60000);
        free(text);
    }
    free(live);
    free(times);
}

static void svg_thinning_follows_what_rises_and_falls(void **state) {
    uint64_t live[8460];
    tl_memory_curve curve;
    path_facts facts;
    char *text;
    int i;
    (void)state;
    for (i = 0; i < 8460; i++) live[i] = (uint64_t)(i < 4230 ? i : 8459 - i);
    curve = curve_of("roof", live, NULL, 8460);  // ten steps a pixel
    text = svg_of(&curve, 1, NULL);
    facts = facts_of(text, 0);
    assert_true(facts.pieces >= 800 && facts.pieces <= 850);
    must_hold(text, "V420.77H930V422\"");  // all the way down: 18 of 5 KiB are 1.23 pixels
    free(text);
}

static void svg_marks_the_first_of_equal_peaks(void **state) {
    static const uint64_t live[] = { 5, 9, 2, 9 };
    tl_memory_curve curve = curve_of("x", live, NULL, 4);
    char *text = svg_of(&curve, 1, NULL);
    (void)state;
    must_hold(text, "<circle class=\"mark k0\" cx=\"401.25\" ");
    free(text);
}

static void svg_dips_narrower_than_a_pixel_are_left_out(void **state) {
    static const uint64_t live[] = { 400, 100, 400, 600, 400, 300, 200 };
    static const double times[] = { 300, 300.1, 600, 600.1, 700, 700.1, 846 };  // a pixel each
    tl_memory_curve curve = curve_of("dips", live, times, 7);
    char *text = svg_of(&curve, 1, NULL);
    (void)state;
    // 700 bytes are 352 pixels; the dip at 300 and the landing at 700 go, the spike at 600 stays
    must_hold(text, "d=\"M74 422V220.86H684V120.29H684.1V220.86H784.1V321.43H930V422\"");
    free(text);
}

static void svg_bytes_read_well(void **state) {
    static const struct { uint64_t bytes; const char *text; } rows[] = {
        { 0, "0 B" }, { 1, "1 B" }, { 1023, "1023 B" }, { 1024, "1.00 KiB" }, { 1029, "1.00 KiB" }, { 1030, "1.01 KiB" },
        { 10234, "9.99 KiB" }, { 10235, "10.0 KiB" }, { 102348, "99.9 KiB" }, { 102349, "100 KiB" }, { 842752, "823 KiB" },
        { 1048063, "1023 KiB" }, { 1048064, "1.00 MiB" }, { 1048575, "1.00 MiB" }, { 1048576, "1.00 MiB" },
        { 1310720, "1.25 MiB" }, { 12582912, "12.0 MiB" }, { UINT64_C(5) << 30, "5.00 GiB" }, { UINT64_C(3) << 39, "1.50 TiB" },
        { UINT64_C(1) << 50, "1.00 PiB" }, { UINT64_C(3) << 59, "1.50 EiB" }, { UINT64_MAX, "16.0 EiB" } };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memory_sink m;
        tli_stream s;
        tli_open_stream(&s, sink_of(&m, -1));
        tli_send_size(&s, rows[i].bytes);
        assert_int_equal(tli_close_stream(&s, NULL, TLI_IN(WRITE_TRACE_JSON)), TL_OK);
        assert_string_equal(m.text, rows[i].text);
        free(m.text);
    }
}

// The labels of one axis, from 0 on, joined by spaces.
static void read_ticks(const char *text, const char *anchor, char *ticks) {
    const char *at = strstr(text, "</style>");
    size_t length = 0;
    while ((at = strstr(at, anchor)) != NULL) {
        int is_value = at[-1] == 'e';  // class="value"
        at += strlen(anchor);
        while (!is_value && *at != '<') ticks[length++] = *at++;
        if (!is_value) ticks[length++] = ' ';
    }
    ticks[length - 1] = 0;
}

static void svg_byte_axis_has_round_ticks(void **state) {
    static const struct { uint64_t peak; int32_t height; const char *ticks; } rows[] = {
        { 0, 0, "0 1 B" },
        { 1, 0, "0 1 B 2 B" },
        { 700, 0, "0 200 B 400 B 600 B 800 B" },
        { 1000, 0, "0 200 B 400 B 600 B 800 B 1000 B 1200 B" },
        { 1300, 0, "0 0.2 KiB 0.4 KiB 0.6 KiB 0.8 KiB 1.0 KiB 1.2 KiB 1.4 KiB" },
        { 11430000, 0, "0 2 MiB 4 MiB 6 MiB 8 MiB 10 MiB 12 MiB" },
        { 11430000, 240, "0 5 MiB 10 MiB 15 MiB" },
        { 1073741824, 2000, "0 0.05 GiB 0.10 GiB 0.15 GiB 0.20 GiB 0.25 GiB 0.30 GiB 0.35 GiB 0.40 GiB 0.45 GiB 0.50 GiB 0.55 GiB "
                            "0.60 GiB 0.65 GiB 0.70 GiB 0.75 GiB 0.80 GiB 0.85 GiB 0.90 GiB 0.95 GiB 1.00 GiB 1.05 GiB 1.10 GiB" },
        { UINT64_MAX, 0, "0 5 EiB 10 EiB 15 EiB 20 EiB" } };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tl_memory_curve curve = curve_of("x", &rows[i].peak, NULL, 1);
        tl_svg_style style;
        char ticks[400], *text;
        memset(&style, 0, sizeof style);
        style.height = rows[i].height;
        text = svg_of(&curve, 1, &style);
        read_ticks(text, "\" text-anchor=\"end\">", ticks);
        assert_string_equal(ticks, rows[i].ticks);
        free(text);
    }
}

static void svg_time_axis_has_round_ticks(void **state) {
    static const struct { double last; const char *ticks; } rows[] = {
        { 1, "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0" },
        { 273.5, "0 50 100 150 200 250" },
        { 2800, "0 500 1000 1500 2000 2500" },
        { 0.03, "0 0.005 0.010 0.015 0.020 0.025 0.030" },
        { 3e7, "0 5e6 10e6 15e6 20e6 25e6 30e6" },
        { 7e5, "0 100000 200000 300000 400000 500000 600000 700000" },
        { 1e18, "0 1e17 2e17 3e17 4e17 5e17 6e17 7e17 8e17 9e17 10e17" },
        { 2e-12, "0 0.0000000000002 0.0000000000004 0.0000000000006 0.0000000000008 0.0000000000010 0.0000000000012 "
                 "0.0000000000014 0.0000000000016 0.0000000000018 0.0000000000020" } };
    static const uint64_t live[] = { 5, 5, 5 };
    tl_memory_curve curve = curve_of("x", live, NULL, 3);
    char ticks[400], *text;
    size_t i;
    (void)state;
    text = svg_of(&curve, 1, NULL);
    read_ticks(text, "\" text-anchor=\"middle\">", ticks);
    assert_string_equal(ticks, "0 1 2 3 step");  // steps are whole, whatever the room
    free(text);
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tl_svg_style style;
        memset(&style, 0, sizeof style);
        style.time_label = "";
        curve = curve_of("x", live, &rows[i].last, 1);
        text = svg_of(&curve, 1, &style);
        read_ticks(text, "\" text-anchor=\"middle\">", ticks);
        ticks[strlen(ticks) - 1] = 0;  // the empty label
        assert_string_equal(ticks, rows[i].ticks);
        free(text);
    }
}

static void svg_texts_are_escaped_whatever_they_hold(void **state) {
    static const uint64_t live[] = { 5 };
    tl_memory_curve curves[3];
    tl_svg_style style;
    char *text;
    (void)state;
    curves[0] = curve_of("</text>\n\x01\xff\xc3 \xef\xbf\xbf\xc3\xa9", live, NULL, 1);
    curves[1] = curve_of("", live, NULL, 1);
    curves[2] = curve_of(NULL, live, NULL, 1);
    memset(&style, 0, sizeof style);
    style.title = "<&>\"'";
    style.time_label = "]]>";
    text = svg_of(curves, 3, &style);
    must_hold(text, ">&lt;/text&gt;  \xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd\xc3\xa9</text>");
    must_hold(text, "class=\"title\">&lt;&amp;&gt;\"'</text>");
    must_hold(text, ">]]&gt;</text>");
    must_hold(text, "class=\"label\">curve 2</text>");
    free(text);
}

// 500 bytes are 352 pixels. A line beyond four times the curve is named at the upper edge and leaves the axis alone.
static void svg_lines_are_drawn_and_named(void **state) {
    static const uint64_t live[] = { 100, 400, 200 };
    static const tl_svg_line lines[] = { { "budget", 450 }, { "taken", 440 }, { "keep all", 1601 }, { NULL, 0 }, { "host", 1604 } };
    tl_memory_curve curve = curve_of("a", live, NULL, 3);
    tl_env env = silent_env();
    tl_svg_style style;
    memory_sink m;
    tl_sink sink = sink_of(&m, -1);
    char *text;
    (void)state;
    memset(&style, 0, sizeof style);
    style.lines = lines;
    style.line_count = 2;
    text = svg_of(&curve, 1, &style);
    must_hold(text, "<path class=\"line\" d=\"M84 105.2H930\"/>");
    must_hold(text, "<path class=\"line\" d=\"M84 112.24H930\"/>");
    must_hold(text, "<text x=\"926\" y=\"100.2\" class=\"note\" text-anchor=\"end\">budget 450 B</text>");
    must_hold(text, "<text x=\"926\" y=\"127.24\" class=\"note\" text-anchor=\"end\">taken 440 B</text>");
    free(text);
    style.line_count = 4;
    text = svg_of(&curve, 1, &style);
    assert_int_equal(count_of(text, "class=\"line\""), 4);  // 1601 / 4 is 400
    must_hold(text, ">keep all 1.56 KiB</text>");
    must_hold(text, ">0 B</text>");
    free(text);
    style.lines = lines + 4;
    style.line_count = 1;
    text = svg_of(&curve, 1, &style);
    assert_int_equal(count_of(text, "class=\"line\""), 0);
    must_hold(text, ">\xe2\x86\x91 host 1.57 KiB</text>");
    must_hold(text, ">500 B</text>");
    free(text);
    for (style.line_count = -1; style.line_count < 10; style.line_count += 10) {
        assert_int_equal(tl_write_memory_svg(&env, &curve, 1, &style, sink), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text, "tl_write_memory_svg: style: line_count must be 0 to 8");
    }
    assert_int_equal(m.count, 0);
}

static void svg_long_texts_are_cut_with_an_ellipsis(void **state) {
    static const uint64_t live[] = { 5 };
    char many[4000], wanted[400], *text;
    tl_memory_curve curve;
    tl_svg_style style;
    (void)state;
    memset(many, 'm', sizeof many - 1);
    many[sizeof many - 1] = 0;
    curve = curve_of(many, live, NULL, 1);
    memset(&style, 0, sizeof style);
    style.title = style.time_label = many;
    text = svg_of(&curve, 1, &style);
    assert_true(strlen(text) < 6000);
    memset(wanted, 'm', sizeof wanted);
    snprintf(wanted + 90, sizeof wanted - 90, "\xe2\x80\xa6</text>");  // (960 - 48) / 10 = 91 letters of title
    must_hold(text, wanted);
    free(text);
}

static void svg_legend_breaks_into_rows_and_the_picture_grows(void **state) {
    static const uint64_t live[] = { 5 };
    static const char *const label = "a label of thirty letters, full";
    tl_memory_curve curves[8];
    tl_svg_style style;
    char *text;
    int i;
    (void)state;
    for (i = 0; i < 8; i++) curves[i] = curve_of(label, live, NULL, 1);
    memset(&style, 0, sizeof style);
    text = svg_of(curves, 8, &style);  // 31 letters are 275.2 pixels wide: three in a row
    must_hold(text, "<rect class=\"f2\" x=\"574.4\" y=\"18\" ");
    must_hold(text, "<rect class=\"f3\" x=\"24\" y=\"40\" ");
    must_hold(text, "<rect class=\"f7\" x=\"299.2\" y=\"62\" ");
    must_hold(text, " height=\"480\" ");
    free(text);
    style.title = "t";
    style.width = 320;
    style.height = 240;
    text = svg_of(curves, 8, &style);  // eight rows: 86 + 176 to the plot, 40 for the plot, 58 below
    must_hold(text, "<rect class=\"f7\" x=\"24\" y=\"210\" ");
    must_hold(text, " width=\"320\" height=\"360\" viewBox=\"0 0 320 360\"");
    free(text);
}

// x, y and anchor of the value of each peak, as a box of eight letters.
static int read_values(const char *text, tli_box *boxes) {
    const char *at = text;
    int count = 0;
    while ((at = strstr(at, "r=\"4\"/>\n<text x=\"")) != NULL) {
        char *end;
        double x, y;
        at += 17;
        x = strtod(at, &end);
        y = strtod(end + 5, &end);
        if (!strncmp(end, "\" class=\"value\" text-anchor=\"middle\"", 35)) x -= 28.8;
        else if (!strncmp(end, "\" class=\"value\" text-anchor=\"end\"", 32)) x -= 57.6;
        boxes[count++] = tli_box_of((int32_t)(x * 100), (int32_t)(y * 100) - 1000, (int32_t)(x * 100) + 5750,
                                    (int32_t)(y * 100) + 250);
    }
    return count;
}

static void svg_values_of_peaks_do_not_cover_each_other(void **state) {
    tl_random random = { 11 };
    int round;
    (void)state;
    for (round = 0; round < 500; round++) {
        uint64_t live[4][20];
        tl_memory_curve curves[4];
        tli_box boxes[8];
        char *text;
        int i, j;
        for (i = 0; i < 4; i++) {
            for (j = 0; j < 20; j++) live[i][j] = 1000 + tl_next_random_below(&random, 500);
            live[i][9 + tl_next_random_below(&random, 2)] = 2000 + 100 * tl_next_random_below(&random, 10);
            curves[i] = curve_of("x", live[i], NULL, 20);
        }
        text = svg_of(curves, 4, NULL);
        assert_int_equal(read_values(text, boxes), 4);
        for (i = 0; i < 4; i++)
            for (j = 0; j < i; j++)
                if (boxes[i].left < boxes[j].right && boxes[j].left < boxes[i].right && boxes[i].top < boxes[j].bottom &&
                    boxes[j].top < boxes[i].bottom)
                    fail_msg("round %d: the values of curves %d and %d\n%s", round, i, j, text);
        free(text);
    }
}

static void svg_values_of_peaks_stay_inside(void **state) {
    int at_end;
    (void)state;
    for (at_end = 0; at_end < 2; at_end++) {
        uint64_t live[200];
        tl_memory_curve curve;
        tli_box box;
        char *text;
        int i;
        for (i = 0; i < 200; i++) live[i] = i == at_end * 199 ? 900 : 100;
        curve = curve_of("x", live, NULL, 200);
        text = svg_of(&curve, 1, NULL);
        assert_int_equal(read_values(text, &box), 1);
        assert_true(box.left >= 8400 && box.right <= 93000);
        free(text);
    }
}

static void svg_draws_anything_that_holds_the_rules(void **state) {
    tl_random random = { 5 };
    int round;
    (void)state;
    for (round = 0; round < 300; round++) {
        uint64_t live[8][60];
        double times[8][60];
        tl_memory_curve curves[8];
        tl_svg_style style;
        int32_t count = 1 + (int32_t)tl_next_random_below(&random, 8);
        uint64_t bits = tl_next_random_below(&random, 65);
        int i, j;
        char *text;
        for (i = 0; i < 8; i++) {
            double now = 0, scale = i % 2 ? 1e16 : 1e-12;
            for (j = 0; j < 60; j++) {
                live[i][j] = bits ? tl_next_random(&random) >> (64 - bits) : 0;
                now += tl_next_random_below(&random, 3) ? scale * tl_next_random_ratio(&random) : 0;
                times[i][j] = now;
            }
            times[i][59] = now + scale;
            curves[i] = curve_of("x", live[i], round % 3 ? times[i] : NULL, 60);
        }
        if (round % 2) curves[0].count = 1, curves[0].times = NULL;
        memset(&style, 0, sizeof style);
        style.width = 320 + (int32_t)tl_next_random_below(&random, 16065);
        style.height = 240 + (int32_t)tl_next_random_below(&random, 16145);
        text = svg_of(curves, count, &style);
        for (i = 0; i < count; i++) {
            path_facts facts = facts_of(text, i);
            assert_true(facts.top >= 60 && facts.low <= style.height + 400 && !facts.falls && facts.last_x <= style.width - 30);
        }
        assert_int_equal(count_of(text, "<circle "), count);
        free(text);
    }
}

static void svg_is_the_same_each_time(void **state) {
    static const uint64_t live[] = { 1, 5, 3, 9, 9, 2 };
    static const double times[] = { 0.1, 0.7, 1.3, 2.9, 3.1, 3.3 };
    tl_memory_curve curves[2];
    char *first, *again;
    (void)state;
    curves[0] = curve_of("a", live, times, 6);
    curves[1] = curve_of("b", live, NULL, 6);
    first = svg_of(curves, 2, NULL);
    again = svg_of(curves, 2, NULL);
    assert_string_equal(first, again);
    free(first);
    free(again);
}

static void svg_stops_at_each_failing_write(void **state) {
    static const uint64_t live[] = { 1, 5, 3, 9, 9, 2 };
    tl_memory_curve curve = curve_of("a", live, NULL, 6);
    memory_sink m;
    long at, writes;
    (void)state;
    assert_int_equal(tl_write_memory_svg(NULL, &curve, 1, NULL, sink_of(&m, -1)), TL_OK);
    writes = m.count;
    assert_true(writes > 5 && m.largest <= 512);
    free(m.text);
    for (at = 0; at < writes; at++) {
        tl_env env = silent_env();
        tl_sink sink = sink_of(&m, at);
        char wanted[120];
        assert_int_equal(tl_write_memory_svg(&env, &curve, 1, NULL, sink), TL_ERROR_DEVICE_LOST);
        snprintf(wanted, sizeof wanted, "tl_write_memory_svg: sink: stopped with device lost after %d bytes", (int)m.length);
        assert_string_equal(env.error.text, wanted);
        assert_int_equal(m.count, at + 1);
        assert_int_equal(m.after_failure, 0);
        free(m.text);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trace_keeps_the_oldest_events_and_counts_the_rest),
        cmocka_unit_test(trace_dropped_events_stop_at_the_largest_count),
        cmocka_unit_test(trace_without_room_is_an_error),
        cmocka_unit_test(trace_survives_each_failing_allocation),
        cmocka_unit_test(json_of_an_empty_trace_is_valid),
        cmocka_unit_test(json_shows_each_step_with_its_time_and_bytes),
        cmocka_unit_test(json_names_every_kind_of_step),
        cmocka_unit_test(json_shows_calls_under_way),
        cmocka_unit_test(json_copies_of_another_pass_are_not_mixed_up),
        cmocka_unit_test(json_copies_do_not_overlap),
        cmocka_unit_test(json_without_a_clock_draws_steps_of_a_microsecond),
        cmocka_unit_test(json_times_count_from_the_earliest_start),
        cmocka_unit_test(json_counts_memory_where_it_changes),
        cmocka_unit_test(json_stays_json_whatever_an_event_holds),
        cmocka_unit_test(json_escapes_names),
        cmocka_unit_test(json_shows_the_longest_name_whole),
        cmocka_unit_test(json_stops_at_each_failing_write),
        cmocka_unit_test(json_is_the_same_each_time),
        cmocka_unit_test(run_fills_a_trace_that_agrees_with_its_report),
        cmocka_unit_test(svg_of_one_curve_is_a_line_of_steps),
        cmocka_unit_test(svg_serves_light_and_dark_surroundings),
        cmocka_unit_test(svg_holds_its_rules),
        cmocka_unit_test(svg_thinning_keeps_the_peak),
        cmocka_unit_test(svg_thinning_follows_what_rises_and_falls),
        cmocka_unit_test(svg_marks_the_first_of_equal_peaks),
        cmocka_unit_test(svg_dips_narrower_than_a_pixel_are_left_out),
        cmocka_unit_test(svg_bytes_read_well),
        cmocka_unit_test(svg_byte_axis_has_round_ticks),
        cmocka_unit_test(svg_time_axis_has_round_ticks),
        cmocka_unit_test(svg_texts_are_escaped_whatever_they_hold),
        cmocka_unit_test(svg_lines_are_drawn_and_named),
        cmocka_unit_test(svg_long_texts_are_cut_with_an_ellipsis),
        cmocka_unit_test(svg_legend_breaks_into_rows_and_the_picture_grows),
        cmocka_unit_test(svg_values_of_peaks_do_not_cover_each_other),
        cmocka_unit_test(svg_values_of_peaks_stay_inside),
        cmocka_unit_test(svg_draws_anything_that_holds_the_rules),
        cmocka_unit_test(svg_is_the_same_each_time),
        cmocka_unit_test(svg_stops_at_each_failing_write),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
