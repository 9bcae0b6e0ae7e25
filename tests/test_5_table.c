// [5] PLAN: plans as C tables, compiled and run; copies of plans; plans in words.
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE 1  // MAP_ANONYMOUS
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/random_steps.h"
#include "support/narrow.h"
#include "support/run_support.h"
#include "support/sink_support.h"
#include "support/table.h"
#include "support/table_dump.h"
#include "support/table_rows.h"
#include "support/texts.h"
#include <sys/mman.h>

// -- helpers --

static char *table_of(const tl_graph *graph, const tl_plan *plan, const char *name) {
    memory_sink m;
    tl_sink sink = sink_of(&m, -1);
    tl_env env;
    memset(&env, 0, sizeof env);
    if (tl_write_plan_table(&env, graph, plan, name, sink)) fail_msg("%s", env.error.text);
    return m.text;
}

static char *words_of(const tl_graph *graph, const tl_plan *plan) {
    memory_sink m;
    tl_sink sink = sink_of(&m, -1);
    tl_env env;
    memset(&env, 0, sizeof env);
    if (tl_explain_plan(&env, graph, plan, sink)) fail_msg("%s", env.error.text);
    return m.text;
}

static tl_plan plan_of(const tl_graph *graph, const char *text, int inference) {
    tl_env env = silent_env();
    tl_plan plan = schedule_of(text);
    plan.inference = inference;
    if (tl_measure_plan(&env, graph, NULL, &plan)) fail_msg("%s", env.error.text);
    return plan;
}

static const char small_graph[] =
    "tlg 1\n"
    "batch 32\n"
    "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
    "node 1 it's\\ linear fwd=3 bwd=5 out=4294967296,2147483648 needs=in in=0 layer=2 unit=ffn\n"
    "node 2 c conv fwd=18446744073709551000 bwd=2 out=4 needs=in1 in=1.0,1.1 saved=8 keep\n";
static const char small_schedule[] = "F 1\nS 2\nB 2\nD 1.1\nB 1\n";


// -- the text --

static void table_is_what_it_should_be(void **state) {
    tl_graph graph = graph_of(small_graph);
    tl_plan plan = plan_of(&graph, small_schedule, 0);
    char *text;
    (void)state;
    plan.bound_cost = 7;
    plan.base_bytes = UINT64_MAX;
    text = table_of(&graph, &plan, "net");
    assert_string_equal(text,
        "// A graph and a plan as const tables, made by tl_write_plan_table; include tl_strategy.h first.\n//\n"
        "//     desc.graph = &net_graph;\n//     desc.plan  = &net_plan;\n\n"
        "#if !defined(TL_VERSION) || TL_VERSION / 100 != 6\n"
        "#error \"write this table again, with the tl_strategy.h that is included\"\n#endif\n\n"
        "#define NET_PEAK_BYTES UINT64_C(12884901908)\n#define NET_BASE_BYTES UINT64_C(18446744073709551615)\n"
        "#define NET_STEPS 5\n#define NET_NODES 3\n#define NET_TENSORS 4\n#define NET_INPUT_X_BYTES 4\n"
        "#define NET_RESULT_C_BYTES 4\n#define NET_NODE_X 0\n#define NET_NODE_IT_S 1\n#define NET_NODE_C 2\n\n"
        "static const tl_node net_nodes[3] = {\n"
        "    { 1, 3, 0, 0, 0, 0, 1, -1, -1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },  // x: node 0\n"
        "    { 9, 15, 22, 0, 1, 1, 2, -1, 2, 0, 1, 0, 0, 3, 5, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0 },  // it's\\: node 1\n"
        "    { 26, 28, 0, 1, 2, 3, 1, -1, -1, 0, 1, 1, 0, UINT64_C(18446744073709551000), 2, 8, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0 },  // c: node 2\n"
        "};\n\n"
        "static const tl_node_input net_inputs[3] = {\n    { 0, 1 },\n    { 1, 0 },\n    { 2, 1 },\n};\n\n"
        "static const tl_node_output net_outputs[4] = {\n    { 0, 0, 4, 0, 0 },\n"
        "    { 1, 0, UINT64_C(4294967296), 0, 0 },\n    { 1, 1, UINT64_C(2147483648), 0, 0 },\n    { 2, 0, 4, 0, 0 },\n};\n\n"
        "static const char net_text[33] = {\n    0,\n    'x',0,\n    'i','n','p','u','t',0,\n    'i','t','\\'','s','\\\\',0,\n"
        "    'l','i','n','e','a','r',0,\n    'f','f','n',0,\n    'c',0,\n    'c','o','n','v',0,\n};\n\n"
        "static const tl_graph net_graph = {\n    net_nodes, 3,\n    net_inputs, 3,\n    net_outputs, 4,\n    NULL, 0,\n"
        "    net_text, 33,\n    32,  // batch\n    0, 0, 0, 0, 0,  // no room to grow\n    NULL\n};\n\n"
        "static const tl_step net_steps[5] = {\n"
        "    { TL_STEP_FORWARD, 0, 0, 1, -1, 0 },  // it's\\: step 0\n"
        "    { TL_STEP_FORWARD_SAVE, 0, 0, 2, -1, 0 },  // c: step 1\n"
        "    { TL_STEP_BACKWARD, 0, 0, 2, -1, 0 },  // c: step 2\n"
        "    { TL_STEP_DROP, 0, 0, 1, 1, 0 },  // it's\\: step 3\n"
        "    { TL_STEP_BACKWARD, 0, 0, 1, -1, 0 },  // it's\\: step 4\n"
        "};\n\n"
        "static const tl_plan net_plan = {\n    net_steps, 5,\n    0,  // repeat_count\n    NULL, 0,\n    NULL, 0,\n"
        "    0,  // inference\n    0,  // any_order\n"
        "    UINT64_C(12884901908),  // peak_bytes\n    0,  // arena_bytes\n    0,  // host_peak_bytes\n    0,  // host_arena_bytes\n"
        "    UINT64_C(18446744073709551615),  // base_bytes\n    UINT64_C(18446744073709551010),  // cost\n"
        "    UINT64_C(18446744073709551010),  // base_cost\n    7,  // bound_cost\n"
        "    NULL,  // memory: tl_free_plan leaves it alone\n    0,  // alignment_bytes\n    NULL, 0,\n    0,  // slot_count\n    NULL, 0,\n    0,  // in_flight\n    NULL,  // narrow\n};\n");
    free(text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void table_of_utf8_names_is_ascii(void **state) {
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
                              "node 1 gr\xc3\xb6\xc3\x9f\x65 linear fwd=1 bwd=1 out=4 needs=in in=0\n"
                              "node 2 \xe5\xb1\xa4\xf0\x9f\x98\x80 \xc3\xa9 fwd=1 bwd=1 out=4 needs=in in=1\n");
    tl_plan plan = plan_of(&graph, "F 1\nF 2\nB 2\nB 1\n", 0);
    char *text = table_of(&graph, &plan, "net");
    const char *at;
    (void)state;
    for (at = text; *at; at++) assert_true(*at == '\n' || (*at >= ' ' && *at <= '~'));
    must_hold(text, " },  // gr\\u00f6\\u00dfe: node 1\n");
    must_hold(text, " },  // \\u5c64\\U0001f600: node 2\n");
    must_hold(text, "{ TL_STEP_FORWARD, 0, 0, 2, -1, 0 },  // \\u5c64\\U0001f600: step 1\n");
    must_hold(text, "    'g','r','\\303','\\266','\\303','\\237','e',0,\n");
    free(text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// Names that C cannot tell apart, or not spell, are told apart by the number of the node.
static void table_defines_a_name_for_every_node(void **state) {
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=4,8 needs=none in=-\n"
                              "node 1 a.1 op fwd=1 bwd=1 out=4 needs=in in=0\n"
                              "node 2 A__1_ op fwd=1 bwd=1 out=4 needs=in in=1\n"
                              "node 3 --/a_1_n2 op fwd=1 bwd=1 out=4 needs=in in=2\n"
                              "node 4 \xc3\xa9 op fwd=1 bwd=1 out=16,4 needs=in in=3 keep\n"
                              "node 5 7up op fwd=1 bwd=1 out=4 needs=in in=4\n");
    tl_plan plan = plan_of(&graph, "F 1\nF 2\nF 3\nF 4\nF 5\n", 1);
    tl_places_desc places = { 0 };
    tl_device device = { 0 };
    char *text;
    (void)state;
    places.graph = &graph;
    places.device = &device;
    device.alignment_bytes = 32;
    assert_int_equal(tl_plan_places(NULL, &places, &plan, NULL), TL_OK);
    text = table_of(&graph, &plan, "my_Net");
    must_hold(text, "\n#define MY_NET_ARENA_BYTES 256\n#define MY_NET_ALIGNMENT 32\n#define MY_NET_PEAK_BYTES 48\n");
    must_hold(text, "\n#define MY_NET_INPUT_X_o1_OFFSET ");
    must_hold(text, "\n#define MY_NET_INPUT_X_o1_BYTES 8\n");
    must_hold(text, "\n#define MY_NET_RESULT_n4_o0_BYTES 16\n");
    must_hold(text, "\n#define MY_NET_RESULT_n4_o1_BYTES 4\n");
    must_hold(text, "\n#define MY_NET_NODE_X 0\n#define MY_NET_NODE_A_1_n1 1\n#define MY_NET_NODE_A_1_n2 2\n"
                    "#define MY_NET_NODE_A_1_N2 3\n#define MY_NET_NODE_n4 4\n#define MY_NET_NODE_7UP 5\n\n");
    must_hold(text, "    32,  // alignment_bytes\n");
    assert_null(strstr(text, "HOST_PEAK"));
    assert_null(strstr(text, "RESULT_7UP"));
    free(text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// Inputs and results are where the run puts them: written and read in the block itself, beside the run.
static void inputs_and_results_lie_where_the_table_says(void **state) {
    static uint64_t block[512];
    tl_random random = { 5 };
    long round, seen = 0;
    (void)state;
    for (round = 0; round < scaled(100); round++) {
        tl_graph graph;
        tl_plan plan;
        tl_env env;
        tl_lifetimes lifetimes;
        tl_run_desc desc;
        tl_cpu_backend_desc cpu;
        tl_backend backend;
        tl_places_desc places = { 0 };
        tl_device device = { 0 };
        tl_kernel kernels[32];
        tl_run *run;
        mixer m;
        char *text;
        int32_t i;
        int inference = (int)(round % 2);
        memset(&env, 0, sizeof env);
        memset(&desc, 0, sizeof desc);
        memset(&cpu, 0, sizeof cpu);
        if (random_graph(&env, &random, 12, &graph) || tl_plan_keep_all(&env, &graph, inference, &plan)) fail_msg("%s", env.error.text);
        places.graph = &graph;
        places.device = &device;
        device.alignment_bytes = 8;
        assert_int_equal(tl_plan_places(&env, &places, &plan, NULL), TL_OK);
        assert_true(plan.arena_bytes <= sizeof block);
        cpu.memory = block;
        cpu.memory_bytes = plan.arena_bytes;
        cpu.alignment_bytes = 8;
        text = table_of(&graph, &plan, "net");
        if (plan.arena_bytes && !tl_init_cpu_backend(&env, &cpu, &backend)) {
            mixer_init(&m);
            desc.graph = &graph;
            desc.backend = &backend;
            desc.plan = &plan;
            desc.kernels = kernels;
            desc.kernel_count = mixer_kernels(&graph, &m, kernels);
            if (tl_init_run(&env, &desc, &run) || tl_run_plan(run)) fail_msg("%s", env.error.text);
            assert_int_equal(tl_find_lifetimes(&env, &graph, &plan, &lifetimes), TL_OK);
            for (i = 0; i < lifetimes.count; i++) {
                const tl_lifetime *life = &lifetimes.items[i];
                tl_tensor of = { life->node, life->output };
                unsigned char bytes[4096];
                char name[80], line[160];
                const char *at;
                int is_input = life->use == TL_USE_INPUT;
                if (!is_input && (life->use != TL_USE_OUTPUT || life->end_step < plan.step_count)) continue;
                if (tl_read_tensor(run, of, bytes, life->bytes)) continue;  // left over, but no result
                snprintf(name, sizeof name, graph.nodes[of.node].output_count > 1 ? "%d_o%d" : "%d", (int)of.node, (int)of.output);
                snprintf(line, sizeof line, "#define NET_%s_N%s_OFFSET ", is_input ? "INPUT" : "RESULT", name);
                at = strstr(text, line);
                if (!at) fail_msg("%s is missing in\n%s", line, text);
                assert_memory_equal(bytes, (const unsigned char *)block + strtoull(at + strlen(line), NULL, 10), (size_t)life->bytes);
                seen++;
            }
            tl_free_lifetimes(&env, &lifetimes);
            tl_free_run(run);
            assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
        }
        free(text);
        tl_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    assert_true(is_thinned() || seen > 150);
}

// Bytes between the names belong to the text, too, whatever they are.
static void table_holds_every_byte_of_the_text(void **state) {
    static const char junk[] = "\n\377\"?\?/\033";
    tl_graph graph = graph_of(small_graph);
    tl_plan plan = plan_of(&graph, small_schedule, 0);
    char *longer = (char *)malloc(graph.text_bytes + sizeof junk), *text;
    (void)state;
    memcpy(longer, graph.text, graph.text_bytes);
    memcpy(longer + graph.text_bytes, junk, sizeof junk);
    free(TEXT(&graph));
    graph.text = longer;
    graph.text_bytes += (uint32_t)sizeof junk;
    text = table_of(&graph, &plan, "net");
    must_hold(text, "\n    '\\012','\\377','\"','?','?','/','\\033',0,\n};\n");
    free(text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void table_needs_a_name_that_c_takes(void **state) {
    static const char *const good[] = { "n", "Net2", "a_b", "x1_2", "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuv" };
    static const char *const bad[] = { "", "2n", "_n", "n_", "a__b", "a b", "a-b", "n\n", "n\xc3\xa9", "a.b",
                                       "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvw" };
    tl_graph graph = graph_of(small_graph);
    tl_plan plan = plan_of(&graph, small_schedule, 0);
    memory_sink m;
    tl_sink sink;
    tl_env env;
    size_t i;
    (void)state;
    memset(&env, 0, sizeof env);
    for (i = 0; i < sizeof good / sizeof good[0]; i++) free(table_of(&graph, &plan, good[i]));
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        sink = sink_of(&m, -1);
        assert_int_equal(tl_write_plan_table(&env, &graph, &plan, bad[i], sink), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text, "tl_write_plan_table: name: must be 1 to 48 letters, digits and single _, "
                                            "a letter first and no _ at the end");
        assert_int_equal(m.count, 0);
    }
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

typedef tl_result (*writer_fn)(tl_env *env, const tl_graph *graph, const tl_plan *plan, tl_sink sink);

static tl_result write_table(tl_env *env, const tl_graph *graph, const tl_plan *plan, tl_sink sink) {
    return tl_write_plan_table(env, graph, plan, "net", sink);
}

static tl_result write_narrow_table(tl_env *env, const tl_graph *graph, const tl_plan *plan, tl_sink sink) {
    tl_table_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "net";
    desc.is_narrow = desc.omit_names = 1;
    return tl_write_table(env, graph, plan, &desc, sink);
}

static const struct { const char *name; writer_fn write; } writers[] = {
    { "tl_write_plan_table", write_table }, { "tl_write_table", write_narrow_table }, { "tl_explain_plan", tl_explain_plan } };

#define WRITERS (sizeof writers / sizeof writers[0])

static void writers_refuse_plans_that_do_not_hold(void **state) {
    tl_graph graph = graph_of(small_graph), empty;
    tl_plan plan;
    memory_sink m;
    tl_sink sink;
    tl_env env;
    char wanted[200];
    size_t w;
    (void)state;
    memset(&env, 0, sizeof env);
    tl_init_graph(&empty);
    assert_int_equal(tl_parse_schedule(&env, "F 1\nB 2\n", 8, &plan), TL_OK);
    for (w = 0; w < WRITERS; w++) {
        sink = sink_of(&m, -1);
        assert_int_equal(writers[w].write(&env, &graph, &plan, sink), TL_ERROR_INVALID_PLAN);
        snprintf(wanted, sizeof wanted, "%s: step 1 (B 2 c): forward never ran", writers[w].name);
        assert_string_equal(env.error.text, wanted);
        assert_int_equal(writers[w].write(&env, &empty, &plan, sink), TL_ERROR_INVALID_ARG);
        plan.step_count = -1;
        assert_int_equal(writers[w].write(&env, &graph, &plan, sink), TL_ERROR_INVALID_ARG);
        plan.step_count = 2;
        assert_int_equal(m.count, 0);
    }
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void writers_stop_at_each_failing_write(void **state) {
    tl_graph graph = graph_of(small_graph);
    tl_plan plan = plan_of(&graph, small_schedule, 0);
    size_t w;
    (void)state;
    for (w = 0; w < WRITERS; w++) {
        memory_sink m;
        tl_sink sink = sink_of(&m, -1);
        long writes, at;
        assert_int_equal(writers[w].write(NULL, &graph, &plan, sink), TL_OK);
        writes = m.count;
        free(m.text);
        assert_true(writes > 0);
        for (at = 0; at < writes; at++) {
            char wanted[200];
            tl_env env;
            memset(&env, 0, sizeof env);
            sink = sink_of(&m, at);
            assert_int_equal(writers[w].write(&env, &graph, &plan, sink), TL_ERROR_DEVICE_LOST);
            snprintf(wanted, sizeof wanted, "%s: sink: stopped with device lost after %d bytes", writers[w].name, (int)m.length);
            assert_string_equal(env.error.text, wanted);
            assert_int_equal(m.count, at + 1);
            free(m.text);
        }
    }
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void writers_survive_every_failed_allocation(void **state) {
    tl_graph graph = graph_of(small_graph);
    tl_plan plan = plan_of(&graph, small_schedule, 0);
    size_t w;
    long at;
    (void)state;
    for (w = 0; w < WRITERS; w++)
        for (at = 0; ; at++) {
            failing_alloc f = {0};
            tl_env env = failing_env(&f, at);
            memory_sink m;
            tl_result result = writers[w].write(&env, &graph, &plan, sink_of(&m, -1));
            assert_int_equal(f.live, 0);
            free(m.text);
            if (f.count <= at) { assert_int_equal(result, TL_OK); break; }
            assert_int_equal(result, TL_ERROR_NO_MEMORY);
        }
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// A table in one of its forms.
static char *narrow_table_of(const tl_graph *graph, const tl_plan *plan, const char *name, int is_narrow, int omit_names) {
    tl_table_desc desc = { 0 };
    tl_env env = silent_env();
    memory_sink m;
    desc.name = name;
    desc.is_narrow = is_narrow;
    desc.omit_names = omit_names;
    if (tl_write_table(&env, graph, plan, &desc, sink_of(&m, -1))) fail_msg("%s", env.error.text);
    return m.text;
}

// -- the tables, compiled --

// A plan that holds, on a random graph with a view or two; offsets now and then.
// Let up to 4 steps begin a call that the next step ends, where the plan is valid then; its memory has room for these.
static void random_begins(tl_random *random, const tl_graph *graph, tl_plan *plan) {
    tl_step *steps = (tl_step *)plan->memory;
    int32_t tries;
    for (tries = 0; tries < 4 && plan->step_count; tries++) {
        int32_t at = random_count(random, 0, plan->step_count - 1), after = plan->step_count - at - 1;
        tl_simulate_desc desc;
        tl_report report;
        memset(&desc, 0, sizeof desc);
        desc.graph = graph;
        desc.plan = plan;
        if (steps[at].begins || (steps[at].kind != TL_STEP_FORWARD && steps[at].kind != TL_STEP_BACKWARD)) continue;
        memmove(steps + at + 2, steps + at + 1, (size_t)after * sizeof *steps);
        steps[at + 1] = steps[at];
        steps[at + 1].kind = TL_STEP_WAIT;
        steps[at].begins = 1;
        plan->step_count++;
        if (!tl_simulate_plan(NULL, &desc, &report)) continue;
        steps[at].begins = 0;
        plan->step_count--;
        memmove(steps + at + 1, steps + at + 2, (size_t)after * sizeof *steps);
    }
}

static void random_table(tl_random *random, int32_t most_slots, tl_graph *graph, tl_plan *plan) {
    tl_env env;
    tl_report report;
    tl_simulate_desc desc;
    tl_device device;
    memset(&env, 0, sizeof env);
    memset(&device, 0, sizeof device);
    for (;;) {
        tl_tensor of = { 0, 0 };
        if (random_graph(&env, random, 12, graph)) fail_msg("%s", env.error.text);
        if (random_chance(random, 50) && tl_add_view(&env, graph, "a_view", of, NULL)) fail_msg("%s", env.error.text);
        if (random_slot_plan(&env, random, graph, random_count(random, 0, most_slots), plan)) fail_msg("%s", env.error.text);
        memset(&desc, 0, sizeof desc);
        desc.graph = graph;
        desc.plan = plan;
        if (!tl_simulate_plan(NULL, &desc, &report)) {
            random_begins(random, graph, plan);
            if (random_chance(random, 50) && random_offsets(&env, random, graph, &device, plan)) fail_msg("%s", "no memory");
            if (!tl_measure_plan(NULL, graph, NULL, plan)) break;
        }
        random_free_plan(&env, plan);
        tl_free_graph(&env, graph);
    }
    plan->repeat_count = random_count(random, 0, 3);
    plan->base_bytes = tl_next_random(random);
    if (most_slots && plan->offset_count && random_chance(random, 50)) {  // offsets that share a unit, in 32 bits
        uint64_t *offsets = (uint64_t *)(uintptr_t)plan->offsets;
        int32_t i;
        for (i = 0; i < plan->offset_count; i++) offsets[i] *= 96;
        if (random_chance(random, 50)) offsets[random_count(random, 0, plan->offset_count - 1)] += UINT64_C(96) << 20;
        if (tl_measure_plan(NULL, graph, NULL, plan)) fail_msg("%s", "offsets that lie further apart overlap");
    }
    if (!plan->offset_count) plan->alignment_bytes = UINT64_C(1) << random_count(random, 0, 63);
    plan->bound_cost = random_chance(random, 50) ? tl_next_random_below(random, plan->cost + 1) : 0;
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
}

static void dump_file(const char *path, const tl_graph *graph, const tl_plan *plan, int has_names) {
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    dump_tables(file, graph, plan, has_names);
    fclose(file);
}

#define STRICT "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Wcast-qual -Werror"

static void tables_compile_as_c_and_cpp_to_the_same_numbers(void **state) {
    static const char *const compilers[] = { "cc -x c -std=c99 " STRICT, "c++ -x c++ -std=c++11 " STRICT };
    char dir[] = "/tmp/tl_table_XXXXXX", source[64], wanted[64], got[64], command[512], call[256];
    tl_random random = { 4711 };
    int count = 40, i, begins = 0;
    size_t c, length = 0;
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(source, sizeof source, "%s/tables.c", dir);
    snprintf(wanted, sizeof wanted, "%s/wanted", dir);
    snprintf(got, sizeof got, "%s/got", dir);
    write_file(source, "#include \"tl_strategy.h\"\n#include \"tests/support/table_dump.h\"\n");
    for (i = 0; i < count; i++) {
        tl_graph graph;
        tl_plan plan;
        char name[16], *text;
        int32_t k;
        random_table(&random, 3, &graph, &plan);
        for (k = 0; k < plan.step_count; k++) begins += plan.steps[k].begins;
        snprintf(name, sizeof name, "t%d", i);
        text = narrow_table_of(&graph, &plan, name, i % 2, i % 4 >= 2);
        assert_int_equal(strstr(text, "_narrow = {") != NULL, i % 2);
        assert_int_equal(strstr(text, "_views[") != NULL, i % 4 < 2 && graph.view_count);
        write_file(source, text);
        dump_file(wanted, &graph, &plan, i % 4 < 2);
        free(text);
        random_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
    assert_true(begins > 10);
    write_file(source, "int main(void) {\n");
    for (i = 0; i < count; i++) {
        snprintf(call, sizeof call, "    dump_tables(stdout, &t%d_graph, &t%d_plan, %d);\n"
                                    "    if (T%d_STEPS != t%d_plan.step_count || T%d_PEAK_BYTES != t%d_plan.peak_bytes) return 1;\n", i, i, i % 4 < 2, i, i, i, i);
        write_file(source, call);
    }
    write_file(source, "    return 0;\n}\n");
    for (c = 0; c < 2; c++) {
        char *a, *b;
        snprintf(command, sizeof command, "%s -I. -o %s/tables %s && %s/tables > %s", compilers[c], dir, source, dir, got);
        assert_int_equal(system(command), 0);
        a = read_text(wanted, &length);
        b = read_text(got, NULL);
        assert_true(a && b && length > 1000);
        assert_string_equal(a, b);
        free(a);
        free(b);
    }
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

// -- the tables, run --

static void write_or_compare(const char *path, const char *text) {
    char *old;
    if (getenv("WRITE_TABLE")) {  // WRITE_TABLE=1 build/test_5_table table_in_the_tests_is_up_to_date
        remove(path);
        write_file(path, text);
    }
    old = read_text(path, NULL);
    assert_non_null(old);
    assert_string_equal(text, old);
    free(old);
}

// A table has the attributes of its graph, and belongs to nobody: it is copied before it grows.
static void table_has_rows_formats_and_constants(void **state) {
    static const char text[] =
        "tlg 2\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=- rows=16@0 row_unit=2 stream format=i8\n"
        "node 1 a conv fwd=1 bwd=2 out=32 needs=in in=0 rows=8@0 rin=3/2/1 ordered format=f32 stored=400:i8,12:i32\n"
        "node 2 b up fwd=1 bwd=2 out=64,5 needs=none in=1,1 rows=16@7 rin=up2,3/1/4/2 format=none,i16\n"
        "node 3 c add fwd=1 bwd=2 out=4 needs=none in=2.0 stored=1:i4\nend 4\n";
    char one[1024], *table;
    tl_graph graph = graph_of(text), copy = table_rows_graph;
    tl_plan plan = plan_of(&graph, "F 1\nF 2\nF 3\nB 3\nB 2\nB 1\n", 0);
    uint64_t bytes = 4;
    tl_node_desc desc;
    (void)state;
    table = table_of(&graph, &plan, "table_rows");
    write_or_compare("tests/support/table_rows.h", table);
    assert_int_equal(tl_check_graph(NULL, &table_rows_graph), TL_OK);
    assert_int_equal(tl_print_graph(&table_rows_graph, one, sizeof one), sizeof text - 1);
    assert_string_equal(one, text);
    memset(&desc, 0, sizeof desc);
    desc.output_bytes = &bytes; desc.output_count = 1;
    desc.rows = 2;
    assert_int_equal(tl_add_node(NULL, &copy, &desc, NULL), TL_OK);
    assert_int_equal(copy.attributes->row_count, 4);
    assert_int_equal(table_rows_graph.attributes->row_count, 3);
    tl_free_graph(NULL, &copy);
    free(table);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// The tables that stand in the tests are what is written today, and on this machine they hold what they were written
// from.
static void table_in_the_tests_is_up_to_date(void **state) {
    char *graph_text = read_text("tests/support/table.tlg", NULL);
    char *schedule = read_text("tests/support/table.schedule", NULL);
    char *text;
    tl_places_desc places = { 0 };
    tl_device device = { 0 };
    tl_graph graph;
    tl_plan plan, small;
    (void)state;
    assert_true(graph_text && schedule);
    graph = graph_of(graph_text);
    plan = plan_of(&graph, schedule, 0);
    places.graph = &graph;
    device.alignment_bytes = 8;
    places.device = &device;
    assert_int_equal(tl_plan_places(NULL, &places, &plan, NULL), TL_OK);
    text = table_of(&graph, &plan, "table");
    write_or_compare("tests/support/table.h", text);
    free(text);
    text = narrow_table_of(&graph, &plan, "narrow", 1, 1);
    write_or_compare("tests/support/table_narrow.h", text);
    free(text);
    assert_int_equal(tl_plan_keep_all(NULL, &graph, 1, &small), TL_OK);
    assert_int_equal(tl_plan_places(NULL, &places, &small, NULL), TL_OK);
    text = table_of(&graph, &small, "small");
    write_or_compare("tests/support/table_small.h", text);
    tl_free_plan(NULL, &small);
    assert_int_equal(table_plan.step_count, plan.step_count);
    assert_memory_equal(table_plan.steps, plan.steps, (size_t)plan.step_count * sizeof *plan.steps);
    assert_int_equal(table_plan.offset_count, plan.offset_count);
    assert_memory_equal(table_plan.offsets, plan.offsets, (size_t)plan.offset_count * sizeof *plan.offsets);
    assert_int_equal(table_plan.peak_bytes, plan.peak_bytes);
    assert_int_equal(table_plan.arena_bytes, plan.arena_bytes);
    assert_int_equal(table_plan.cost, plan.cost);
    assert_int_equal(tl_check_graph(NULL, &table_graph), TL_OK);
    free(text);
    text = (char *)malloc(4096);
    assert_true(tl_print_graph(&graph, NULL, 0) < 4096);
    tl_print_graph(&graph, text, 4096);
    free(graph_text);
    graph_text = (char *)malloc(4096);
    tl_print_graph(&table_graph, graph_text, 4096);
    assert_string_equal(text, graph_text);
    free(text);
    free(graph_text);
    free(schedule);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// Bytes that nobody may write to any more.
typedef struct rom { char *bytes; size_t size, used; } rom;

static rom rom_of(size_t size) {
    rom r;
    r.size = (size + 65535) / 65536 * 65536;
    r.used = 0;
    r.bytes = (char *)mmap(NULL, r.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(r.bytes != MAP_FAILED);
    return r;
}

static const void *rom_add(rom *r, const void *from, size_t bytes) {
    char *at = r->bytes + r->used;
    if (!bytes) return NULL;
    memcpy(at, from, bytes);
    r->used += (bytes + 15) / 16 * 16;
    assert_true(r->used <= r->size);
    return at;
}

static void rom_burn(rom *r) { assert_int_equal(mprotect(r->bytes, r->size, PROT_READ), 0); }

static const tl_graph *rom_add_graph(rom *r, const tl_graph *graph) {
    tl_graph table;
    memset(&table, 0, sizeof table);
    table.nodes = (const tl_node *)rom_add(r, graph->nodes, (size_t)graph->node_count * sizeof *graph->nodes);
    table.inputs = (const tl_node_input *)rom_add(r, graph->inputs, (size_t)graph->input_count * sizeof *graph->inputs);
    table.outputs = (const tl_node_output *)rom_add(r, graph->outputs, (size_t)graph->tensor_count * sizeof *graph->outputs);
    table.views = (const tl_view *)rom_add(r, graph->views, (size_t)graph->view_count * sizeof *graph->views);
    table.text = (const char *)rom_add(r, graph->text, graph->text_bytes);
    table.node_count = graph->node_count;
    table.input_count = graph->input_count;
    table.tensor_count = graph->tensor_count;
    table.view_count = graph->view_count;
    table.text_bytes = graph->text_bytes;
    table.batch = graph->batch;
    return (const tl_graph *)rom_add(r, &table, sizeof table);
}

static const tl_plan *rom_add_plan(rom *r, const tl_plan *plan) {
    tl_plan table = *plan;
    table.steps = (const tl_step *)rom_add(r, plan->steps, (size_t)plan->step_count * sizeof *plan->steps);
    table.offsets = (const uint64_t *)rom_add(r, plan->offsets, (size_t)plan->offset_count * sizeof *plan->offsets);
    table.memory = NULL;
    return (const tl_plan *)rom_add(r, &table, sizeof table);
}

// Three training steps: what the kernels saw, as one number. With `closed`, the run's env has no memory once the run is
// made, and the backend's none after the first step.
static uint64_t run_of(const tl_graph *graph, const tl_plan *plan, int closed) {
    static char device[1 << 20];
    failing_alloc f = {0}, b = {0};
    tl_env env = failing_env(&f, -1), backend_env = failing_env(&b, -1);
    tl_cpu_backend_desc backend_desc;
    tl_backend backend;
    tl_run_desc desc;
    tl_run_report report;
    tl_run *run;
    mixer m;
    tl_kernel kernels[64];
    uint64_t sum = 0;
    int pass;
    mixer_init(&m);
    memset(&backend_desc, 0, sizeof backend_desc);
    backend_desc.memory = device;
    backend_desc.memory_bytes = sizeof device;
    backend_desc.alignment_bytes = 1;
    if (tl_init_cpu_backend(&backend_env, &backend_desc, &backend)) fail_msg("%s", backend_env.error.text);
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.backend = &backend;
    desc.plan = plan;
    desc.kernels = kernels;
    desc.kernel_count = mixer_kernels(graph, &m, kernels);
    desc.budget_bytes = plan->offset_count ? plan->arena_bytes : plan->peak_bytes;
    desc.seed = 5;
    if (tl_init_run(&env, &desc, &run)) {   // places can take more than the peak of a plan that has none
        assert_true(env.error.code == TL_ERROR_INFEASIBLE && !plan->offset_count);
        desc.budget_bytes = tl_find_least_budget(&env.error);
        if (tl_init_run(&env, &desc, &run)) fail_msg("%s", env.error.text);
    }
    if (closed) f.fail_at = f.count;
    for (pass = 0; pass < 3; pass++) {
        int32_t i;
        if (closed && pass) b.fail_at = b.count;
        mixer_start_pass(&m);
        if (tl_run_plan(run)) fail_msg("%s", env.error.text);
        tl_measure_run(run, &report);
        assert_int_equal(report.measured_peak_bytes, plan->peak_bytes);
        for (i = 0; i < graph->node_count; i++) sum = tl_mix_u64(sum, m.gradients[i]);
    }
    if (closed) assert_true(f.count == f.fail_at && b.count == b.fail_at);
    tl_free_run(run);
    tl_free_cpu_backend(&backend_env, &backend);
    assert_true(!f.live && !b.live);
    return sum;
}

static void tables_run_without_a_write_and_without_an_allocation(void **state) {
    tl_random random = { 99 };
    int i, count = scaled(200), with_offsets = 0;
    (void)state;
    for (i = 0; i < count; i++) {
        tl_graph graph;
        tl_plan plan;
        rom r;
        const tl_graph *graph_table;
        const tl_plan *plan_table;
        int uses_host;
        random_table(&random, 0, &graph, &plan);
        plan.repeat_count = 1;
        uses_host = plan.host_peak_bytes > 0;  // a host block comes from the env
        with_offsets += plan.offset_count > 0;
        r = rom_of(65536);
        graph_table = rom_add_graph(&r, &graph);
        plan_table = rom_add_plan(&r, &plan);
        rom_burn(&r);
        assert_int_equal(run_of(graph_table, plan_table, !uses_host), run_of(&graph, &plan, 0));
        assert_int_equal(munmap(r.bytes, r.size), 0);
        random_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
    assert_true(with_offsets > count / 20);
}

// A graph over tables may be copied and grow: the tables stay as they are, and only what it grew is released.
static void graph_over_tables_grows_and_is_freed_beside_them(void **state) {
    tl_graph graph = graph_of(small_graph), grown;
    tl_random random = { 3 };
    rom r = rom_of(65536);
    long at;
    (void)state;
    grown = *rom_add_graph(&r, &graph);
    rom_burn(&r);
    tl_free_graph(NULL, &grown);
    assert_null(grown.nodes);
    for (at = -1; at < 5; at++) {
        failing_alloc f = {0};
        tl_env env = failing_env(&f, at);
        int32_t i;
        tl_result result = TL_OK;
        grown = *(const tl_graph *)(const void *)(r.bytes + r.used - (sizeof grown + 15) / 16 * 16);
        for (i = 0; i < 20 && !result; i++) result = random_node(&env, &random, 0, &grown);
        assert_int_equal(result, at < 0 ? TL_OK : TL_ERROR_NO_MEMORY);
        assert_int_equal(grown.node_count, at < 0 ? 23 : grown.node_count);
        assert_int_equal(tl_check_graph(NULL, &grown), TL_OK);
        assert_string_equal(tl_name_node(&grown, 1), "it's\\");
        tl_free_graph(&env, &grown);
        assert_int_equal(f.live, 0);
    }
    tl_free_graph(NULL, &graph);
    munmap(r.bytes, r.size);
}

// -- plans in words --

static const char words_graph[] =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
    "node 1 a linear fwd=300 bwd=5 out=2048 needs=in in=0\n"
    "node 2 s split fwd=20 bwd=5 out=1,1048576 needs=none in=1\n"
    "node 3 c conv fwd=1 bwd=2 out=4 needs=in in=2.0,2.1 saved=8 bwork=100 keep\n";

static void words_say_what_the_plan_does(void **state) {
    tl_graph graph = graph_of(words_graph);
    tl_plan plan = plan_of(&graph, "F 1\nF 2\nD 1\nS 3\nF 1\nD 2\nF 2\nB 3\nD 2\nB 2\nD 1\nF 1\nD 1\nB 1\n", 0);
    uint64_t offsets[11], i;
    char *text = words_of(&graph, &plan);
    (void)state;
    assert_string_equal(text,
        "14 steps on 4 nodes, training\n"
        "cost 953: each call once 333, ratio 2.8618\n"
        "peak: 2099322 bytes (2.00 MiB), step 7, backward of c\n"
        "    49.94 %  1048576 bytes (1.00 MiB)  s.1\n"
        "    49.94 %  1048576 bytes (1.00 MiB)  s.1, its gradient\n"
        "     0.09 %  2048 bytes (2.00 KiB)  a\n"
        "     0.00 %  100 bytes  c, scratch\n"
        "     0.00 %  8 bytes  c, saved\n"
        "     0.00 %  4 bytes  x\n"
        "     0.00 %  4 bytes  c\n"
        "     0.00 %  4 bytes  c, its gradient\n"
        "     0.00 %  1 byte  s.0\n"
        "     0.00 %  1 byte  s.0, its gradient\n"
        "made again: 3 forwards of 2 nodes, cost 620\n"
        "    2 times  cost 600  a\n"
        "    1 time   cost 20  s\n");
    free(text);
    plan.bound_cost = 900;
    plan.base_bytes = 1024;
    text = words_of(&graph, &plan);
    must_hold(text, "ratio 2.8618; no plan costs less than 900, at most 5.88 % above\nbase: 1024 bytes (1.00 KiB) beside the plan\n");
    free(text);
    plan.bound_cost = 953;
    text = words_of(&graph, &plan);
    must_hold(text, "; no plan costs less than 953: proven\n");
    free(text);
    tl_free_plan(NULL, &plan);
    plan = plan_of(&graph, "F 1\nF 2\nS 3\nB 3\nB 2\nO 2.0\nB 1\nW 2.0\n", 0);
    text = words_of(&graph, &plan);
    must_hold(text, "nothing is made twice\n1 copy from and to the host, which holds at most 1 byte\n");
    free(text);
    tl_free_plan(NULL, &plan);
    plan = plan_of(&graph, "F 1\nF 2\nC 2.1 q8\nC 2.0 f16\nX 2\nF 3\n", 1);
    text = words_of(&graph, &plan);
    must_hold(text, "6 steps on 4 nodes, forward only\n");
    must_hold(text, "4 conversions\n");
    free(text);
    tl_free_plan(NULL, &plan);
    plan = plan_of(&graph, "F 1\nF 2\nS 3\nB 3\nB 2\nB 1\n", 0);
    for (i = 0; i < 11; i++) offsets[i] = i << 21;
    plan.offsets = offsets;
    plan.offset_count = 11;
    text = words_of(&graph, &plan);
    must_hold(text, "\narena: 20973568 bytes (20.0 MiB)\npeak: ");
    free(text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void words_are_few_whatever_the_plan(void **state) {
    char graph_text[8192] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n", *text;
    tl_graph graph;
    tl_plan plan;
    char *at = graph_text + strlen(graph_text);
    int i;
    (void)state;
    for (i = 1; i <= 40; i++)
        at += sprintf(at, "node %d n%d op fwd=%d bwd=1 out=%d needs=in in=%d\n", i, i, i % 7 + 1, i % 5 + 1, i - 1);
    graph = graph_of(graph_text);
    assert_int_equal(tl_plan_revolve(NULL, &graph, 20, &plan), TL_OK);
    text = words_of(&graph, &plan);
    must_hold(text, " smaller ones\nmade again: ");
    must_hold(text, " nodes more\n");
    assert_true(strlen(text) < 1600);
    free(text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// The tensors that are listed add up to the peak, whatever the steps; and no sum overflows.
static void what_makes_the_peak_adds_up(void **state) {
    tl_random random = { 21 };
    int i, kinds[TL_STEP_COUNT + 1] = {0}, uses[6] = {0};
    (void)state;
    for (i = 0; i < scaled(20000); i++) {
        tl_graph graph;
        tl_plan plan;
        tl_simulate_desc desc;
        tli_peak peak;
        uint64_t sum = 0;
        int32_t k;
        random_table(&random, 3, &graph, &plan);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.plan = &plan;
        assert_int_equal(tli_find_peak(NULL, TLI_IN(EXPLAIN_PLAN), &desc, &peak), TL_OK);
        for (k = 0; k < peak.live_count; k++) { sum += peak.live[k].bytes; uses[peak.live[k].use]++; }
        assert_int_equal(sum, plan.peak_bytes);
        kinds[peak.report.peak_step < 0 ? TL_STEP_COUNT : plan.steps[peak.report.peak_step].kind]++;
        tli_sort_largest(&peak, peak.live_count);
        for (k = 1; k < peak.live_count; k++) assert_true(peak.live[k - 1].bytes >= peak.live[k].bytes);
        free(peak.live);
        free(words_of(&graph, &plan));
        random_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
    for (i = 0; i < TL_STEP_COUNT; i++)  // peaks of every kind that can have one
        if (!is_thinned()) assert_int_equal(kinds[i] > 0, *tli_explain_kind((tl_step_kind)i) != 0);
    assert_true(kinds[TL_STEP_COUNT] > 0);
    for (i = 0; i < 6; i++) assert_true(uses[i] > 0);
}

// -- narrow plans --

static char *svg_of_plan(const tl_graph *graph, const tl_plan *plan) {
    memory_sink m;
    assert_int_equal(tl_write_plan_svg(NULL, graph, plan, NULL, NULL, sink_of(&m, -1)), TL_OK);
    return m.text;
}

static void assert_same_text(char *a, char *b) {
    assert_string_equal(a, b);
    free(a);
    free(b);
}

static char *schedule_text(const tl_plan *plan) {
    size_t length = tl_print_schedule(plan, NULL, 0);
    char *text = (char *)malloc(length + 1);
    tl_print_schedule(plan, text, length + 1);
    return text;
}

// Whatever reads a plan reads a narrow one.
static void narrow_plans_say_what_plain_ones_say(void **state) {
    tl_random random = { 99 };
    int i, placed = 0;
    (void)state;
    for (i = 0; i < 200; i++) {
        tl_graph graph;
        tl_plan plan, copy;
        narrow_form n;
        tl_simulate_desc desc = { 0 };
        tl_report report, narrow_report;
        tl_lifetimes lives, narrow_lives;
        uint64_t unit = 1;
        int32_t k;
        random_table(&random, 3, &graph, &plan);
        for (k = 0; k < plan.offset_count; k++) if (plan.offsets[k] > UINT16_MAX) unit = 0;
        if (!unit) plan.offset_count = 0;
        placed += plan.offset_count > 0;
        plan.alignment_bytes = 0;
        narrow_from(&plan, 1, plan.slot_count > 1 ? 3 : 2 + i % 2, i / 2 % 2, &n);
        desc.graph = &graph;
        desc.plan = &plan;
        assert_int_equal(tl_simulate_plan(NULL, &desc, &report), TL_OK);
        desc.plan = &n.plan;
        assert_int_equal(tl_simulate_plan(NULL, &desc, &narrow_report), TL_OK);
        assert_memory_equal(&report, &narrow_report, sizeof report);
        assert_int_equal(tl_find_lifetimes(NULL, &graph, &plan, &lives), TL_OK);
        assert_int_equal(tl_find_lifetimes(NULL, &graph, &n.plan, &narrow_lives), TL_OK);
        assert_int_equal(lives.count, narrow_lives.count);
        if (lives.count) assert_memory_equal(lives.items, narrow_lives.items, (size_t)lives.count * sizeof *lives.items);
        tl_free_lifetimes(NULL, &lives);
        tl_free_lifetimes(NULL, &narrow_lives);
        assert_same_text(words_of(&graph, &plan), words_of(&graph, &n.plan));
        assert_same_text(svg_of_plan(&graph, &plan), svg_of_plan(&graph, &n.plan));
        assert_same_text(table_of(&graph, &plan, "net"), table_of(&graph, &n.plan, "net"));
        assert_same_text(narrow_table_of(&graph, &plan, "net", 1, 0), narrow_table_of(&graph, &n.plan, "net", 1, 0));
        assert_same_text(schedule_text(&plan), schedule_text(&n.plan));
        assert_int_equal(tl_copy_plan(NULL, &n.plan, &copy), TL_OK);
        assert_null(copy.narrow);
        if (plan.step_count) assert_memory_equal(copy.steps, plan.steps, (size_t)plan.step_count * sizeof *plan.steps);
        if (plan.offset_count) assert_memory_equal(copy.offsets, plan.offsets, (size_t)plan.offset_count * sizeof *plan.offsets);
        tl_free_plan(NULL, &copy);
        narrow_free(&n);
        random_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
    assert_true(placed > 20);
}

static void narrow_parts_that_cannot_be_read_are_errors(void **state) {
    tl_graph graph = graph_of(small_graph);
    tl_plan plan = schedule_of(small_schedule);
    tl_places_desc places = { 0 };
    tl_table_desc desc = { 0 };
    tl_simulate_desc simulate = { 0 };
    tl_report report;
    narrow_form n;
    memory_sink m;
    int i;
    (void)state;
    places.graph = &graph;
    assert_int_equal(tl_plan_places(NULL, &places, &plan, NULL), TL_OK);
    simulate.graph = &graph;
    simulate.plan = &n.plan;
    for (i = 0; i < 9; i++) {
        tl_env env = silent_env();
        tl_plan copy;
        narrow_from(&plan, 1, 2, 1, &n);
        if (i == 0) n.narrow.step_words = 1;
        if (i == 1) n.narrow.step_words = 4;
        if (i == 2) n.narrow.offset_bytes = 3;
        if (i == 3) n.narrow.offset_bytes = 8;
        if (i == 4) n.narrow.unit_bytes = 0;
        if (i == 5) n.narrow.steps = NULL;
        if (i == 6) n.narrow.offsets = NULL;
        if (i == 7) n.plan.narrow = NULL;
        if (i == 8) n.narrow.unit_bytes = UINT64_MAX;
        assert_int_equal(tl_simulate_plan(&env, &simulate, &report), i == 8 ? TL_ERROR_OVERFLOW : TL_ERROR_INVALID_ARG);
        if (i < 5) assert_string_equal(env.error.text, "tl_simulate_plan: narrow: step_words must be 2 or 3, offset_bytes 2 or 4, unit_bytes > 0");
        if (i < 8) assert_int_equal(tl_copy_plan(&env, &n.plan, &copy), TL_ERROR_INVALID_ARG);
        narrow_free(&n);
    }
    for (i = 0; i < 3; i++) {
        tl_env env = silent_env();
        desc.name = i == 2 ? "9" : "net";
        desc.is_narrow = i == 0 ? 2 : 0;
        desc.omit_names = i == 1 ? -1 : 0;
        assert_int_equal(tl_write_table(&env, &graph, &plan, &desc, sink_of(&m, -1)), TL_ERROR_INVALID_ARG);
        assert_int_equal(m.count, 0);
        if (i < 2) assert_string_equal(env.error.text, "tl_write_table: is_narrow, omit_names: must be 0 or 1");
    }
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// What does not fit is refused, and what just fits is written.
static void narrow_tables_of_what_does_not_fit_are_refused(void **state) {
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n"
                              "node 1 a op fwd=1 bwd=1 out=1 needs=in in=0\n");
    tl_plan plan = plan_of(&graph, "F 1\n", 1);
    tl_node_desc many = { 0 };
    uint64_t offsets[2] = { 3, UINT64_C(3) << 32 }, bytes[256];
    tl_table_desc desc = { 0 };
    memory_sink m;
    tl_env env = silent_env();
    int32_t i;
    (void)state;
    desc.name = "net";
    desc.is_narrow = 1;
    plan.offsets = offsets;
    plan.offset_count = 2;
    assert_int_equal(tl_write_table(&env, &graph, &plan, &desc, sink_of(&m, -1)), TL_ERROR_UNSUPPORTED);
    assert_string_equal(env.error.text, "tl_write_table: is_narrow: in no unit that offsets have in common do all fit 32 bits");
    offsets[1] -= 3;
    assert_int_equal(tl_write_table(&env, &graph, &plan, &desc, sink_of(&m, -1)), TL_OK);
    must_hold(m.text, "static const uint32_t net_offsets[2] = {\n    1, UINT64_C(4294967295),\n};\n");
    must_hold(m.text, "    3,  // unit_bytes\n    2,  // step_words\n    4,  // offset_bytes\n");
    free(m.text);
    plan.offset_count = 0;
    for (i = 0; i < 256; i++) bytes[i] = 1;
    many.output_bytes = bytes;
    many.op = "op";
    many.no_grad = 1;
    many.output_count = 254;
    assert_int_equal(tl_add_node(&env, &graph, &many, NULL), TL_OK);
    tl_free_plan(NULL, &plan);
    plan = plan_of(&graph, "F 1\nF 2\n", 1);
    free(narrow_table_of(&graph, &plan, "net", 1, 1));
    many.output_count = 255;
    assert_int_equal(tl_add_node(&env, &graph, &many, NULL), TL_OK);
    tl_free_plan(NULL, &plan);
    plan = plan_of(&graph, "F 1\nF 2\nF 3\n", 1);
    assert_int_equal(tl_write_table(&env, &graph, &plan, &desc, sink_of(&m, -1)), TL_ERROR_UNSUPPORTED);
    assert_string_equal(env.error.text, "tl_write_table: is_narrow: node 3 has more than 254 outputs");
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// -- copies --

static void copy_is_owned_and_equal(void **state) {
    tl_random random = { 8 };
    int i;
    (void)state;
    for (i = 0; i < 100; i++) {
        tl_graph graph;
        tl_plan plan, copy, table;
        failing_alloc f = {0};
        tl_env env = failing_env(&f, -1);
        random_table(&random, 3, &graph, &plan);
        table = plan;
        table.memory = NULL;
        assert_int_equal(tl_copy_plan(&env, &table, &copy), TL_OK);
        assert_int_equal(f.count, 1);
        assert_non_null(copy.memory);
        assert_true(copy.steps != plan.steps || !plan.step_count);
        if (plan.step_count) assert_memory_equal(copy.steps, plan.steps, (size_t)plan.step_count * sizeof *plan.steps);
        if (plan.offset_count) assert_memory_equal(copy.offsets, plan.offsets, (size_t)plan.offset_count * sizeof *plan.offsets);
        table.steps = copy.steps;
        table.offsets = copy.offsets;
        table.entry = copy.entry;
        if (plan.entry_count) assert_memory_equal(copy.entry, plan.entry, (size_t)plan.entry_count * sizeof *plan.entry);
        table.memory = copy.memory;
        if (!plan.offset_count) table.offsets = NULL;
        assert_memory_equal(&table, &copy, sizeof copy);
        tl_free_plan(&env, &copy);
        assert_int_equal(f.live, 0);
        env = failing_env(&f, 0);
        f.count = 0;
        assert_int_equal(tl_copy_plan(&env, &plan, &copy), TL_ERROR_NO_MEMORY);
        assert_string_equal(env.error.text, "tl_copy_plan: no memory for the steps");
        assert_null(copy.steps);
        random_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
}

static void copy_of_a_plan_without_arrays_is_refused(void **state) {
    tl_plan plan, copy;
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&plan, 0, sizeof plan);
    plan.step_count = 2;
    memset(&copy, 1, sizeof copy);
    assert_int_equal(tl_copy_plan(&env, &plan, &copy), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_copy_plan: step_count: must be the number of steps");
    assert_int_equal(copy.step_count, 0);
    plan.step_count = 0;
    plan.offset_count = 1;
    assert_int_equal(tl_copy_plan(&env, &plan, &copy), TL_ERROR_INVALID_ARG);
    plan.offset_count = 0;
    assert_int_equal(tl_copy_plan(&env, &plan, &copy), TL_OK);
    assert_null(copy.steps);
    tl_free_plan(&env, &copy);
    plan.alignment_bytes = 4;
    assert_int_equal(tl_copy_plan(&env, &plan, &plan), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_copy_plan: copy: must not be the plan itself");
    assert_int_equal(plan.alignment_bytes, 4);  // as it was
}

// -- the record of an online run --

// What two training steps under a plan, or online under a budget, computed; the record of the second where it is asked for.
static uint64_t train(const tl_graph *graph, const tl_plan *plan, uint64_t budget, uint64_t host_budget, tl_plan *record,
                      tl_run_report *report) {
    tl_env env, backend_env;
    spy s;
    tl_backend backend;
    tl_run_desc desc;
    tl_run *run;
    static mixer m;
    tl_kernel kernels[64];
    uint64_t sum = 1;
    int32_t i;
    int pass;
    memset(&env, 0, sizeof env);
    memset(&backend_env, 0, sizeof backend_env);
    memset(&desc, 0, sizeof desc);
    mixer_init(&m);
    backend = spy_open(&backend_env, 0, 0, 1, &s);
    desc.graph = graph;
    desc.plan = plan;
    desc.backend = &backend;
    desc.kernels = kernels;
    desc.kernel_count = mixer_kernels(graph, &m, kernels);
    desc.budget_bytes = budget;
    desc.host_budget_bytes = host_budget;
    desc.seed = 7;
    if (record) memset(record, 0, sizeof *record);
    if (tl_init_run(&env, &desc, &run)) {
        assert_int_equal(env.error.code, TL_ERROR_INFEASIBLE);
        spy_close(&backend_env, &s);
        return 0;
    }
    for (pass = 0; pass < 2; pass++) {
        mixer_start_pass(&m);
        if (tl_run_plan(run)) fail_msg("%s", env.error.text);
        for (i = 0; i < graph->node_count; i++) sum = tl_mix_u64(sum, m.gradients[i]);
    }
    tl_measure_run(run, report);
    if (record) {
        tl_plan found;
        tl_find_run_plan(run, &found);
        if (tl_copy_plan(&env, &found, record)) fail_msg("%s", env.error.text);
    }
    tl_free_run(run);
    spy_close(&backend_env, &s);
    return sum ? sum : 1;
}

// The plan, as text and back, is the same steps.
static void must_survive_text(const tl_plan *plan) {
    size_t length = tl_print_schedule(plan, NULL, 0);
    char *text = (char *)malloc(length + 1);
    tl_plan back;
    tl_print_schedule(plan, text, length + 1);
    assert_int_equal(tl_parse_schedule(NULL, text, length, &back), TL_OK);
    assert_int_equal(back.step_count, plan->step_count);
    if (plan->step_count) assert_memory_equal(back.steps, plan->steps, (size_t)plan->step_count * sizeof *plan->steps);
    tl_free_plan(NULL, &back);
    free(text);
}

// A plan that tl_plan_remat finds within the peak of the record costs no more than it, and computes the same.
static int must_improve(const tl_graph *graph, const tl_plan *record, uint64_t outcome) {
    tl_remat_desc desc;
    tl_remat_report report;
    tl_run_report run_report;
    tl_plan plan;
    tl_env env;
    int better;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.live = 1;
    desc.budget_bytes = record->peak_bytes ? record->peak_bytes : 1;
    desc.work_limit = 20000000;
    if (tl_plan_remat(&env, &desc, &plan, &report)) fail_msg("%s", env.error.text);
    assert_true(plan.peak_bytes <= record->peak_bytes && plan.cost <= record->cost && report.bound_cost <= record->cost);
    assert_int_equal(train(graph, &plan, 0, 0, NULL, &run_report), outcome);
    better = plan.cost < record->cost;
    tl_free_plan(&env, &plan);
    return better;
}

static void recorded_run_is_a_plan_that_runs_again(void **state) {
    tl_random random = { 31 };
    int i, tight = 0, hosted = 0, better = 0, compared = 0, count = scaled(300);
    (void)state;
    for (i = 0; i < count; i++) {
        tl_env env;
        tl_graph graph;
        tl_plan keep_all, record;
        tl_report report;
        tl_simulate_desc desc;
        tl_run_report online, replayed;
        uint64_t expected, outcome, budget, host = random_chance(&random, 20) ? 1000 : 0;
        memset(&env, 0, sizeof env);
        memset(&desc, 0, sizeof desc);
        if (random_graph(&env, &random, 16, &graph)) fail_msg("%s", env.error.text);
        if (tl_plan_keep_all(&env, &graph, 0, &keep_all)) fail_msg("%s", env.error.text);
        expected = train(&graph, &keep_all, 0, 0, NULL, &online);
        budget = keep_all.peak_bytes * (uint64_t)random_count(&random, 55, 100) / 100;
        outcome = train(&graph, NULL, budget ? budget : 1, host, &record, &online);
        if (outcome) {
            assert_int_equal(outcome, expected);
            desc.graph = &graph;
            desc.plan = &record;
            if (tl_simulate_plan(&env, &desc, &report)) fail_msg("%s", env.error.text);
            assert_int_equal(report.peak_bytes, record.peak_bytes);
            assert_int_equal(report.peak_bytes, online.measured_peak_bytes);
            assert_int_equal(report.cost, record.cost);
            assert_int_equal(report.recompute_count, online.recompute_count);
            must_survive_text(&record);
            free(table_of(&graph, &record, "record"));
            assert_int_equal(train(&graph, &record, record.peak_bytes, host, NULL, &replayed), outcome);
            assert_int_equal(replayed.measured_peak_bytes, online.measured_peak_bytes);
            assert_int_equal(replayed.measured_host_peak_bytes, online.measured_host_peak_bytes);
            assert_int_equal(replayed.planned_cost, online.planned_cost);
            assert_int_equal(replayed.recompute_count, online.recompute_count);
            tight += record.peak_bytes < keep_all.peak_bytes;
            hosted += record.host_peak_bytes > 0;
            if (!host) { compared++; better += must_improve(&graph, &record, outcome); }
        }
        tl_free_plan(&env, &record);
        tl_free_plan(&env, &keep_all);
        tl_free_graph(&env, &graph);
    }
    printf("%d graphs, %d records below the peak of keep-all, %d with host copies, %d of %d improved\n", count, tight, hosted,
           better, compared);
    assert_true(is_thinned() || (tight > count / 5 && hosted > 0 && better > 0));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_what_it_should_be),
        cmocka_unit_test(table_holds_every_byte_of_the_text),
        cmocka_unit_test(table_defines_a_name_for_every_node),
        cmocka_unit_test(inputs_and_results_lie_where_the_table_says),
        cmocka_unit_test(table_of_utf8_names_is_ascii),
        cmocka_unit_test(table_needs_a_name_that_c_takes),
        cmocka_unit_test(writers_refuse_plans_that_do_not_hold),
        cmocka_unit_test(writers_stop_at_each_failing_write),
        cmocka_unit_test(writers_survive_every_failed_allocation),
        cmocka_unit_test(tables_compile_as_c_and_cpp_to_the_same_numbers),
        cmocka_unit_test(table_in_the_tests_is_up_to_date),
        cmocka_unit_test(table_has_rows_formats_and_constants),
        cmocka_unit_test(tables_run_without_a_write_and_without_an_allocation),
        cmocka_unit_test(graph_over_tables_grows_and_is_freed_beside_them),
        cmocka_unit_test(words_say_what_the_plan_does),
        cmocka_unit_test(words_are_few_whatever_the_plan),
        cmocka_unit_test(what_makes_the_peak_adds_up),
        cmocka_unit_test(narrow_plans_say_what_plain_ones_say),
        cmocka_unit_test(narrow_parts_that_cannot_be_read_are_errors),
        cmocka_unit_test(narrow_tables_of_what_does_not_fit_are_refused),
        cmocka_unit_test(copy_is_owned_and_equal),
        cmocka_unit_test(copy_of_a_plan_without_arrays_is_refused),
        cmocka_unit_test(recorded_run_is_a_plan_that_runs_again),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
