// [5] PLAN: several micro-batches under way together. A plan with slots is the same plan on as many copies of the graph:
// differential_plan.py says so with the independent checker, here the two are compared in everything that the simulator
// reports; beside that, schedules by hand, texts, and everything that is refused.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/texts.h"
#include "support/sink_support.h"
#include "support/random_graph.h"
#include "support/random_steps.h"

static const char *const two =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
    "node 1 a conv fwd=3 bwd=5 out=16 needs=in in=0 saved=4 fwork=2 bwork=6\n"
    "node 2 b relu fwd=1 bwd=2 out=16 needs=out in=1 inplace=0\n"
    "node 3 c ce fwd=1 bwd=1 out=4 needs=in in=2 keep\n";

// One micro-batch begins before the one before it has ended.
static const char *const pipelined =
    "S 1\nF 2\nF 3\nS 1@1\nB 3\nF 2@1\nB 2\nD 2\nB 1\nF 3@1\nD 1\nB 3@1\nB 2@1\nB 1@1\nD 1@1\nD 2@1\n";

// -- the same on copies of the graph --

// The graph slot_count times side by side; release it with free_copies.
static tl_graph copies_of(const tl_graph *graph, int32_t slot_count) {
    tl_graph wide = *graph;
    tl_node *nodes = (tl_node *)malloc((size_t)(graph->node_count * slot_count) * sizeof *nodes);
    tl_node_input *inputs = (tl_node_input *)malloc((size_t)(graph->input_count * slot_count + 1) * sizeof *inputs);
    tl_node_output *outputs = (tl_node_output *)malloc((size_t)(graph->tensor_count * slot_count + 1) * sizeof *outputs);
    char *text = (char *)malloc(graph->text_bytes + 16 * (size_t)(graph->node_count * slot_count));
    int32_t i;
    memcpy(text, graph->text, graph->text_bytes);
    for (i = 0; i < graph->node_count * slot_count; i++) {
        nodes[i] = graph->nodes[i % graph->node_count];
        nodes[i].first_input += i / graph->node_count * graph->input_count;
        nodes[i].first_output += i / graph->node_count * graph->tensor_count;
        nodes[i].name = wide.text_bytes;  // names are unique
        wide.text_bytes += (uint32_t)sprintf(text + wide.text_bytes, "n%d", (int)i) + 1;
    }
    for (i = 0; i < graph->input_count * slot_count; i++) {
        inputs[i] = graph->inputs[i % graph->input_count];
        inputs[i].tensor += i / graph->input_count * graph->tensor_count;
    }
    for (i = 0; i < graph->tensor_count * slot_count; i++) {
        outputs[i] = graph->outputs[i % graph->tensor_count];
        outputs[i].node += i / graph->tensor_count * graph->node_count;
    }
    wide.text = text;
    wide.nodes = nodes;
    wide.inputs = inputs;
    wide.outputs = outputs;
    wide.node_count *= slot_count;
    wide.input_count *= slot_count;
    wide.tensor_count *= slot_count;
    wide.view_count = 0;
    return wide;
}

static void free_copies(tl_graph *wide) {
    free((void *)(uintptr_t)wide->nodes);
    free((void *)(uintptr_t)wide->inputs);
    free((void *)(uintptr_t)wide->outputs);
    free((void *)(uintptr_t)wide->text);
}

// The steps on the copies: node v of slot s is node v of copy s, and no node where there is no such node or slot.
static tl_step *steps_on_copies(const tl_plan *plan, const tl_graph *graph) {
    tl_step *steps = (tl_step *)malloc(((size_t)plan->step_count + 1) * sizeof *steps);
    int32_t i;
    for (i = 0; i < plan->step_count; i++) {
        tl_step *step = &steps[i];
        *step = plan->steps[i];
        if (step->node < 0 || step->node >= graph->node_count || step->slot >= plan->slot_count) step->node = INT32_MAX;
        else step->node += step->slot * graph->node_count;
        step->slot = 0;
    }
    return steps;
}

static tl_entry *entry_on_copies(const tl_plan *plan, const tl_graph *graph) {
    tl_entry *entry = (tl_entry *)malloc(((size_t)plan->entry_count + 1) * sizeof *entry);
    int32_t i;
    for (i = 0; i < plan->entry_count; i++) {
        entry[i] = plan->entry[i];
        if (entry[i].node < 0 || entry[i].node >= graph->node_count || entry[i].slot < 0 || entry[i].slot >= plan->slot_count)
            entry[i].node = -1;
        else entry[i].node += entry[i].slot * graph->node_count;
        entry[i].slot = 0;
    }
    return entry;
}

// The first backward that is not the next one of its copy in reverse order; the number of steps if there is none.
static int32_t first_out_of_order(const tl_plan *plan, const tl_graph *graph) {
    int32_t next[RANDOM_SLOTS], i;
    for (i = 0; i < RANDOM_SLOTS; i++) next[i] = graph->node_count - 1;
    for (i = 0; i < plan->step_count; i++) {
        const tl_step *step = &plan->steps[i];
        int32_t *at = &next[step->slot < RANDOM_SLOTS ? step->slot : 0];
        if (step->kind != TL_STEP_BACKWARD || plan->any_order) continue;
        while (*at >= 0 && !graph->nodes[*at].has_grad) --*at;
        if (step->node != *at) return i;
        --*at;
    }
    return i;
}

static void assert_same_lifetimes(tl_env *env, const tl_graph *graph, const tl_plan *plan, const tl_graph *wide,
                                  const tl_plan *wide_plan) {
    tl_lifetimes slots, all;
    int32_t i;
    assert_int_equal(tl_find_lifetimes(env, graph, plan, &slots), TL_OK);
    assert_int_equal(tl_find_lifetimes(env, wide, wide_plan, &all), TL_OK);
    assert_int_equal(slots.count, all.count);
    for (i = 0; i < all.count; i++) {
        tl_lifetime expected = all.items[i];
        expected.slot = expected.node / graph->node_count;
        expected.node %= graph->node_count;
        assert_memory_equal(&slots.items[i], &expected, sizeof expected);
    }
    tl_free_lifetimes(env, &slots);
    tl_free_lifetimes(env, &all);
}

static void slots_are_what_copies_of_the_graph_are(void **state) {
    int32_t round, valid = 0, placed = 0, late = 0, entries = 0;
    (void)state;
    for (round = 0; round < scaled(3000); round++) {
        tl_env env = silent_env();
        tl_random random = { 77000 + (uint64_t)round };
        tl_graph graph, wide;
        tl_plan plan, wide_plan;
        tl_device device;
        tl_simulate_desc desc;
        tl_report report, wide_report;
        tl_result result, wide_result;
        int32_t ordered;
        memset(&desc, 0, sizeof desc);
        memset(&device, 0, sizeof device);
        device.link_bytes_per_second = random_chance(&random, 50) ? 300000000 : 0;
        device.codec_bytes_per_second = random_chance(&random, 50) ? 70000000 : 0;
        device.alignment_bytes = (uint64_t)1 << random_count(&random, 0, 4);
        assert_int_equal(random_graph(&env, &random, 10, &graph), TL_OK);
        assert_int_equal(random_slot_plan(&env, &random, &graph, random_count(&random, 1, RANDOM_SLOTS), &plan), TL_OK);
        if (random_chance(&random, 60)) assert_int_equal(random_offsets(&env, &random, &graph, &device, &plan), TL_OK);
        wide = copies_of(&graph, plan.slot_count);
        wide_plan = plan;
        wide_plan.steps = steps_on_copies(&plan, &graph);
        wide_plan.entry = entry_on_copies(&plan, &graph);
        wide_plan.slot_count = 0;
        wide_plan.any_order = 1;
        desc.device = &device;
        desc.graph = &graph;
        desc.plan = &plan;
        result = tl_simulate_plan(&env, &desc, &report);
        desc.graph = &wide;
        desc.plan = &wide_plan;
        wide_result = tl_simulate_plan(&env, &desc, &wide_report);
        ordered = first_out_of_order(&plan, &graph);
        if (ordered < plan.step_count && (!wide_result || ordered < wide_report.broken_step)) {
            assert_int_equal(result, TL_ERROR_INVALID_PLAN);
            assert_int_equal(report.broken_step, ordered);
            late++;
        } else {
            if (result != wide_result) fail_msg("%s", env.error.text);
            assert_memory_equal(&report, &wide_report, sizeof report);
        }
        if (!result) assert_same_lifetimes(&env, &graph, &plan, &wide, &wide_plan);
        valid += !result;
        placed += !result && plan.offset_count;
        entries += !result && plan.entry_count;
        free((void *)(uintptr_t)wide_plan.steps);
        free((void *)(uintptr_t)wide_plan.entry);
        free_copies(&wide);
        random_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    print_message("%d of %d plans hold, %d of them with offsets, %d with an entry; %d run a backward out of order\n", (int)valid,
                  (int)round, (int)placed, (int)entries, (int)late);
    assert_true(valid > round / 4 && placed > round / 16 && entries > round / 20 && (late > 0 || round < 1000));
}

// -- by hand --

static void slots_of_a_pipeline_share_no_bytes(void **state) {
    tl_graph graph = graph_of(two);
    tl_plan plan = schedule_of(pipelined);
    tl_env env = silent_env();
    tl_places_desc places;
    tl_simulate_desc desc;
    tl_report report;
    tl_lifetimes lives;
    int32_t i, of_slot[2] = { 0, 0 }, inputs = 0;
    (void)state;
    assert_int_equal(plan.slot_count, 2);
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.plan = &plan;
    assert_int_equal(tl_simulate_plan(&env, &desc, &report), TL_OK);
    assert_int_equal(report.base_cost, 2 * (3 + 5 + 1 + 2 + 1 + 1));
    assert_int_equal(report.forward_count, 6);
    assert_int_equal(report.recompute_count, 0);
    assert_int_equal(report.end_bytes, 2 * (8 + 4));
    memset(&places, 0, sizeof places);
    places.graph = &graph;
    assert_int_equal(tl_plan_places(&env, &places, &plan, NULL), TL_OK);
    assert_int_equal(plan.slot_count, 2);
    assert_int_equal(plan.peak_bytes, report.peak_bytes);
    assert_int_equal(tl_find_lifetimes(&env, &graph, &plan, &lives), TL_OK);
    for (i = 0; i < lives.count; i++) of_slot[lives.items[i].slot]++, inputs += lives.items[i].use == TL_USE_INPUT;
    assert_int_equal(of_slot[0], of_slot[1]);
    assert_int_equal(inputs, 2);
    assert_int_equal(lives.items[0].slot, 0);
    assert_int_equal(lives.items[1].slot, 1);
    assert_int_equal(lives.items[1].number, 1);
    tl_free_lifetimes(&env, &lives);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// Both slots spill the same tensor: two host copies, in an arena of the host.
static void host_copies_of_slots_have_places_of_their_own(void **state) {
    tl_graph graph = graph_of(two);
    tl_plan plan = schedule_of("F 1\nF 1@1\nO 1\nO 1@1\nW 1\nW 1@1\nDH 1\nF 1\nO 1\nF 2\nW 1\nF 3\nD 2\nL 1@1\nW 1@1\nF 2@1\nF 3@1\n");
    tl_env env = silent_env();
    tl_places_desc places = { 0 };
    tl_lifetimes lives;
    int32_t i, hosts[2] = { 0, 0 };
    (void)state;
    plan.inference = 1;
    places.graph = &graph;
    if (tl_plan_places(&env, &places, &plan, NULL)) fail_msg("%s", env.error.text);
    assert_int_equal(plan.host_offset_count, 3);
    assert_int_equal(plan.host_peak_bytes, 32);
    assert_int_equal(plan.host_arena_bytes, 32);
    assert_int_equal(tl_find_lifetimes(&env, &graph, &plan, &lives), TL_OK);
    for (i = 0; i < lives.count; i++) hosts[lives.items[i].slot] += lives.items[i].use == TL_USE_HOST;
    assert_true(hosts[0] == 2 && hosts[1] == 1);
    tl_free_lifetimes(&env, &lives);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

static void every_slot_holds_every_rule(void **state) {
    static const struct { const char *schedule; int inference; int32_t step; const char *sentence; } rows[] = {
        { "F 1@1\nF 2", 1, 1, "step 1 (F 2 b): input 1.0 is not resident" },
        { "F 1\nF 2@1", 1, 1, "step 1 (F 2@1 b): input 1.0 is not resident" },
        { "F 1@1\nD 1.0@1\nD 1.0@1", 1, 2, "step 2 (D 1.0@1 a): the tensor is absent" },
        { "F 1@1\nO 1@1\nW 1\n", 1, 2, "step 2 (W 1 a): no output is in a state to act on" },
        { "F 1@1\nC 1 f16@1\nX 1", 1, 2, "step 2 (X 1 a): no output is in a state to act on" },
        { "S 1\nF 2\nF 3\nS 1@1\nF 2@1\nF 3@1\nB 3\nB 2@1", 0, 7, "step 7 (B 2@1 b): backward out of order: node 3 (c) is next" },
        { "F 1\nF 2\nF 3\nF 1@1\nF 2@1", 1, 5, "after the last step of slot 1: result 3.0 is not resident" },
        { "S 1\nF 2\nF 3\nB 3\nB 2\nB 1\nF 1@2", 0, 7, "after the last step of slot 1: node 1 (a) never ran backward" },
    };
    tl_graph graph = graph_of(two);
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        tl_env env = silent_env();
        tl_plan plan = schedule_of(rows[i].schedule);
        tl_simulate_desc desc;
        tl_report report;
        plan.inference = rows[i].inference;
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.plan = &plan;
        assert_int_equal(tl_simulate_plan(&env, &desc, &report), TL_ERROR_INVALID_PLAN);
        assert_int_equal(report.broken_step, rows[i].step);
        assert_string_equal(env.error.text + strlen("tl_simulate_plan: "), rows[i].sentence);
        tl_free_plan(&env, &plan);
    }
    tl_free_graph(NULL, &graph);
}

static void slot_counts_out_of_range_and_sums_that_do_not_fit_are_errors(void **state) {
    static const int32_t counts[] = { -1, 65537, INT32_MAX, INT32_MIN };
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
                              "node 1 a op fwd=9223372036854775808 bwd=0 out=8 needs=none in=0\n");
    tl_plan plan = schedule_of("F 1\nF 1@1\n"), copy;
    tl_simulate_desc desc;
    tl_report report;
    tl_env env = silent_env();
    size_t i;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.plan = &plan;
    plan.inference = 1;
    assert_int_equal(tl_simulate_plan(&env, &desc, &report), TL_ERROR_OVERFLOW);
    assert_string_equal(env.error.text, "tl_simulate_plan: before the first step of slot 1: cost does not fit 64 bits");
    for (i = 0; i < sizeof counts / sizeof *counts; i++) {
        plan.slot_count = counts[i];
        assert_int_equal(tl_simulate_plan(&env, &desc, &report), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text, "tl_simulate_plan: slot_count: must be 0 to 65536");
        assert_int_equal(tl_copy_plan(&env, &plan, &copy), TL_ERROR_INVALID_ARG);
    }
    tl_free_plan(&env, &plan);
    tl_free_graph(NULL, &graph);
}

// -- text --

static void schedules_name_slots_as_they_were_read(void **state) {
    static const char *const text = "F 1\nF 1@1\nD 1.0@1\nC 3 q8@65535\nDH 2@7\n";
    static const struct { const char *text, *sentence; } rows[] = {
        { "F 3@", "line 1: slot: must be a number up to 65535, as in F 3@1" },
        { "F 1\nF 3@x", "line 2: slot: must be a number up to 65535, as in F 3@1" },
        { "D 3.1@-1", "line 1: slot: must be a number up to 65535, as in F 3@1" },
        { "D 3.1@65536", "line 1: slot: must be a number up to 65535, as in F 3@1" },
        { "D 3.1@99999999999999999999", "line 1: slot: must be a number up to 65535, as in F 3@1" },
        { "D 3@1@2", "line 1: slot: must be a number up to 65535, as in F 3@1" },
        { "C 3 q8@", "line 1: slot: must be a number up to 65535, as in F 3@1" },
        { "C 3@1 q8", "line 1: target: must be a node number or an output, as in D 3.1" },
        { "C 3 @1", "line 1: codec: must be f16, bf16 or q8" },
        { "F @1", "line 1: target: must be a node number, as in F 3" },
        { "F 3 @1", "line 1: the last word of F and B may be begin" },
        { "F@1 3", "line 1: step: must be F, I, S, B, D, DS, O, L, W, DH, C or X" },
    };
    tl_plan plan = schedule_of(text);
    char back[200];
    size_t i;
    (void)state;
    assert_int_equal(plan.slot_count, 65536);
    assert_int_equal(plan.steps[2].slot, 1);
    assert_int_equal(plan.steps[2].output, 0);
    assert_int_equal(tl_print_schedule(&plan, back, sizeof back), strlen(text));
    assert_string_equal(back, text);
    tl_free_plan(NULL, &plan);
    plan = schedule_of("E 1.0@3\nF 1\n");
    assert_int_equal(plan.slot_count, 4);
    tl_free_plan(NULL, &plan);
    plan = schedule_of("F 1@0\n");
    assert_int_equal(plan.slot_count, 0);
    tl_free_plan(NULL, &plan);
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        tl_env env = silent_env();
        assert_int_equal(tl_parse_schedule(&env, rows[i].text, strlen(rows[i].text), &plan), TL_ERROR_PARSE);
        assert_string_equal(env.error.text + strlen("tl_parse_schedule: "), rows[i].sentence);
    }
}

static void explanations_tables_and_pictures_name_slots(void **state) {
    tl_graph graph = graph_of(two);
    tl_plan plan = schedule_of("S 1\nF 2\nF 3\nS 1@1\nF 1\nF 2@1\nB 3\nB 2\nD 2\nB 1\nF 3@1\nD 1\nB 3@1\nB 2@1\nB 1@1\nD 1@1\nD 2@1\n");
    tl_env env = silent_env();
    memory_sink m;
    (void)state;
    tl_free_plan(&env, &plan);
    plan = schedule_of("S 1\nF 2\nF 3\nS 1@1\nD 1\nF 1\nF 2@1\nB 3\nB 2\nD 2\nB 1\nF 3@1\nD 1\nB 3@1\nB 2@1\nB 1@1\nD 1@1\nD 2@1\n");
    assert_int_equal(tl_explain_plan(&env, &graph, &plan, sink_of(&m, -1)), TL_OK);
    must_hold(m.text, "18 steps on 4 nodes, training, 2 micro-batches under way together\n");
    must_hold(m.text, "a@1");
    must_hold(m.text, "made again: 1 forward of 1 node, cost 3\n    1 time   cost 3  a\n");
    free(m.text);
    assert_int_equal(tl_write_plan_table(&env, &graph, &plan, "net", sink_of(&m, -1)), TL_OK);
    must_hold(m.text, "{ TL_STEP_FORWARD_SAVE, 0, 1, 1, -1, 0 },  // a: step 3\n");
    must_hold(m.text, "    2,  // slot_count\n");
    must_hold(m.text, "#define NET_INPUT_X_BYTES 8\n#define NET_INPUT_X_s1_BYTES 8\n");
    must_hold(m.text, "#define NET_RESULT_C_BYTES 4\n#define NET_RESULT_C_s1_BYTES 4\n");
    must_hold(m.text, "#define NET_SLOTS 2\n");
    free(m.text);
    assert_int_equal(tl_write_plan_svg(&env, &graph, &plan, NULL, NULL, sink_of(&m, -1)), TL_OK);
    must_hold(m.text, "<title>a@1\nforward, step 3\n");
    free(m.text);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// -- states --

static tl_result allocate_nothing(const tl_lifetime *life, void **memory, void *user) {
    (void)life; (void)memory; (void)user;
    return TL_ERROR_IO;
}

static tl_result call_nothing(const tl_replay_call *call, void *user) { (void)call; (void)user; return TL_ERROR_IO; }

static void release_nothing(const tl_lifetime *life, void *memory, void *user) { (void)life; (void)memory; (void)user; }

// What each function that takes a plan with its graph says of it.
static tl_result ask(tl_env *env, const tl_graph *graph, tl_plan *plan, int which) {
    tl_result result = TL_OK;
    tl_simulate_desc simulate = { 0 };
    tl_table_desc table = { 0 };
    tl_places_desc places = { 0 };
    tl_code_desc code = { 0 };
    tl_replay_desc replay = { 0 };
    tl_report report;
    tl_lifetimes lives;
    memory_sink m, other;
    tl_sink sink = sink_of(&m, -1), second = sink_of(&other, -1);
    simulate.graph = places.graph = replay.graph = graph;
    simulate.plan = replay.plan = plan;
    table.name = code.name = "net";
    table.is_narrow = 1;
    replay.allocate = allocate_nothing;
    replay.release = release_nothing;
    replay.call = call_nothing;
    if (which == 0) result = tl_simulate_plan(env, &simulate, &report);
    if (which == 1) result = tl_measure_plan(env, graph, NULL, plan);
    if (which == 2) result = tl_find_lifetimes(env, graph, plan, &lives);
    if (which == 2 && !result) tl_free_lifetimes(env, &lives);
    if (which == 3) result = tl_plan_places(env, &places, plan, NULL);
    if (which == 4) result = tl_explain_plan(env, graph, plan, sink);
    if (which == 5) result = tl_write_plan_table(env, graph, plan, "net", sink);
    if (which == 6) result = tl_write_table(env, graph, plan, &table, sink);
    if (which == 7) result = tl_write_plan_code(env, graph, plan, &code, sink, second);
    if (which == 8) result = tl_write_plan_svg(env, graph, plan, NULL, NULL, sink);
    if (which == 9) result = tl_replay_plan(env, &replay);
    free(m.text);
    free(other.text);
    return result;
}

// A state is the same for all micro-batches: no function takes a plan in which each slot has one of its own.
static void a_state_is_the_same_in_all_slots(void **state) {
    static const char *const kinds[] = { "", " m=8", " hold", " frozen", " stat" };
    int kind, inference, slots, which;
    (void)state;
    for (kind = 0; kind < 5; kind++)
        for (inference = 0; inference < 2; inference++)
            for (slots = 1; slots <= 2; slots++)
                for (which = 0; which < 10; which++) {
                    char text[400], steps[200];
                    int has_update = kind < 3 && !inference;
                    tl_env env = silent_env();
                    tl_graph graph;
                    tl_plan plan;
                    tl_result result;
                    snprintf(text, sizeof text, "tlg 2\nstate 0 v adam w=8%s\nnode 1 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
                             "node 2 a op fwd=1 bwd=1 keep out=8 needs=in in=1,0\nend 3\n", kinds[kind]);
                    snprintf(steps, sizeof steps, "F 2\n%s%s%s%s%s", slots > 1 ? "F 2@1\n" : "", inference ? "" : "B 2\n",
                             inference || slots < 2 ? "" : "B 2@1\n", has_update ? "B 0\n" : "", has_update && slots > 1 ? "B 0@1\n" : "");
                    graph = graph_of(text);
                    plan = schedule_of(steps);
                    plan.inference = inference;
                    if (which == 7 && slots == 1) {     // code needs places
                        tl_places_desc places = { 0 };
                        places.graph = &graph;
                        assert_int_equal(tl_plan_places(&env, &places, &plan, NULL), TL_OK);
                    }
                    result = ask(&env, &graph, &plan, which);
                    assert_int_equal(result, slots > 1 ? TL_ERROR_INVALID_PLAN : which == 9 ? TL_ERROR_IO : TL_OK);
                    if (slots > 1)
                        must_hold(env.error.text, "slot_count: above 1, and state v is the same for all micro-batches, which needs one slot");
                    tl_free_plan(&env, &plan);
                    tl_free_graph(&env, &graph);
                }
}

// -- what is resident at the start --

static void entry_is_resident_from_the_start(void **state) {
    static const char *const text = "E 1.0@1\nE 1.0\nE 2.0\nF 3\nD 2\nD 1\nI 2@1\nF 3@1\nD 2@1\n";
    tl_graph graph = graph_of(two);
    tl_plan plan = schedule_of(text), copy;
    tl_env env = silent_env();
    tl_places_desc places = { 0 };
    tl_simulate_desc desc = { 0 };
    tl_report report;
    tl_lifetimes lives;
    memory_sink m;
    char back[200];
    int32_t i;
    (void)state;
    assert_int_equal(plan.entry_count, 3);
    assert_int_equal(plan.slot_count, 2);
    assert_int_equal(tl_print_schedule(&plan, back, sizeof back), strlen(text));
    assert_string_equal(back, text);
    plan.inference = 1;
    desc.graph = &graph;
    desc.plan = &plan;
    assert_int_equal(tl_simulate_plan(&env, &desc, &report), TL_OK);
    assert_int_equal(report.peak_bytes, 2 * 8 + 3 * 16 + 4);   // x x@1 a@1 a b c
    assert_int_equal(report.peak_step, 0);
    assert_int_equal(report.forward_count, 3);
    assert_int_equal(report.allocation_count, 7);
    assert_int_equal(tl_copy_plan(&env, &plan, &copy), TL_OK);
    tl_free_plan(&env, &plan);
    places.graph = &graph;
    assert_int_equal(tl_plan_places(&env, &places, &copy, NULL), TL_OK);
    assert_int_equal(copy.entry_count, 3);
    assert_int_equal(copy.entry[2].node, 2);
    assert_int_equal(tl_find_lifetimes(&env, &graph, &copy, &lives), TL_OK);
    for (i = 2; i < 5; i++) {
        const tl_lifetime *life = &lives.items[i];
        assert_true(life->use == TL_USE_OUTPUT && life->first_step == 0 && life->number == i && life->occurrence == 0);
        assert_true(life->node == copy.entry[i - 2].node && life->slot == copy.entry[i - 2].slot);
    }
    assert_int_equal(tl_explain_plan(&env, &graph, &copy, sink_of(&m, -1)), TL_OK);
    must_hold(m.text, "3 tensors are there from the start\n");
    free(m.text);
    assert_int_equal(tl_write_plan_table(&env, &graph, &copy, "net", sink_of(&m, -1)), TL_OK);
    must_hold(m.text, "\nstatic const tl_entry net_entry[3] = {\n    { 1, 0, 1 },  // a\n    { 1, 0, 0 },  // a\n    { 2, 0, 0 },  // b\n};\n");
    must_hold(m.text, "    net_entry, 3,\n    2,  // slot_count\n");
    must_hold(m.text, "#define NET_ENTRY_A_s1_BYTES 16\n");
    must_hold(m.text, "#define NET_ENTRY_B_OFFSET ");
    free(m.text);
    tl_free_lifetimes(&env, &lives);
    tl_free_plan(&env, &copy);
    tl_free_graph(&env, &graph);
}

// A node that was there from the start with all its outputs has run: its backward needs no forward.
static void backward_of_a_node_in_the_entry_needs_no_forward(void **state) {
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
                              "node 1 a op fwd=3 bwd=5 out=4,4 needs=in in=0\nnode 2 c ce fwd=1 bwd=1 out=4 needs=in in=1\n");
    static const struct { const char *schedule; int32_t step; } rows[] = {
        { "E 1.0\nE 1.1\nF 2\nB 2\nB 1\n", -1 }, { "E 1.0\nF 2\nB 2\nB 1\n", 2 }, { "E 1.0\nE 1.1\nF 2\nF 1\n", 1 },
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        tl_plan plan = schedule_of(rows[i].schedule);
        tl_simulate_desc desc = { 0 };
        tl_report report;
        desc.graph = &graph;
        desc.plan = &plan;
        assert_int_equal(tl_simulate_plan(NULL, &desc, &report), rows[i].step < 0 ? TL_OK : TL_ERROR_INVALID_PLAN);
        assert_int_equal(report.broken_step, rows[i].step);
        tl_free_plan(NULL, &plan);
    }
    tl_free_graph(NULL, &graph);
}

static void entries_that_are_none_are_errors(void **state) {
    static const struct { tl_entry entry[2]; const char *sentence; } rows[] = {
        { { { 1, 0, 0 }, { -1, 0, 0 } }, "entry: number 1 names no node of the graph" },
        { { { 1, 0, 0 }, { 4, 0, 0 } }, "entry: number 1 names no node of the graph" },
        { { { 0, 0, 0 }, { 2, 0, 0 } }, "entry: number 0 names a graph input, which is resident anyway" },
        { { { 1, 0, 0 }, { 2, 1, 0 } }, "entry: number 1 names no output of its node" },
        { { { 1, 0, 0 }, { 2, -1, 0 } }, "entry: number 1 names no output of its node" },
        { { { 1, 0, 0 }, { 2, 0, 2 } }, "entry: number 1 names no micro-batch slot of the plan" },
        { { { 1, 0, -1 }, { 2, 0, 0 } }, "entry: number 0 names no micro-batch slot of the plan" },
        { { { 1, 0, 1 }, { 1, 0, 1 } }, "entry: number 1 names a tensor that is in it already" },
    };
    static const struct { const char *text, *sentence; } texts[] = {
        { "E", "line 1: entry: must be an output, as in E 3.0" }, { "E 3", "line 1: entry: must be an output, as in E 3.0" },
        { "E x.0", "line 1: entry: must be an output, as in E 3.0" }, { "E 3.0@", "line 1: slot: must be a number up to 65535, as in F 3@1" },
        { "E 3.0 q8", "line 1: more words than the step takes" }, { "F 1\nE 3.0", "line 2: entry: must stand before the first step" },
        { "E 3.", "line 1: entry: must be an output, as in E 3.0" },
    };
    tl_graph graph = graph_of(two);
    tl_plan plan = schedule_of("F 1\nF 1@1\n"), copy;
    tl_simulate_desc desc = { 0 };
    tl_report report;
    size_t i;
    (void)state;
    desc.graph = &graph;
    desc.plan = &plan;
    plan.entry_count = 2;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        tl_env env = silent_env();
        plan.entry = rows[i].entry;
        assert_int_equal(tl_simulate_plan(&env, &desc, &report), TL_ERROR_INVALID_PLAN);
        assert_string_equal(env.error.text + strlen("tl_simulate_plan: "), rows[i].sentence);
        assert_int_equal(report.broken_step, 0);
    }
    plan.entry = NULL;
    assert_int_equal(tl_simulate_plan(NULL, &desc, &report), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_copy_plan(NULL, &plan, &copy), TL_ERROR_INVALID_ARG);
    plan.entry_count = -1;
    assert_int_equal(tl_simulate_plan(NULL, &desc, &report), TL_ERROR_INVALID_ARG);
    tl_free_plan(NULL, &plan);
    for (i = 0; i < sizeof texts / sizeof *texts; i++) {
        tl_env env = silent_env();
        assert_int_equal(tl_parse_schedule(&env, texts[i].text, strlen(texts[i].text), &plan), TL_ERROR_PARSE);
        assert_string_equal(env.error.text + strlen("tl_parse_schedule: "), texts[i].sentence);
    }
    tl_free_graph(NULL, &graph);
}

// -- failing allocations --

static void plans_with_slots_survive_every_failure(void **state) {
    static const char *const schedule = "E 2.0@1\nE 3.0\nS 1\nF 2\nB 3\nB 2\nD 2\nB 1\nF 3@1\nD 1\nB 3@1\nB 2@1\nS 1@1\nB 1@1\n";
    tl_graph graph = graph_of(two);
    long at;
    (void)state;
    for (at = 0; at < 1000; at++) {
        failing_alloc f = { 0 };
        tl_env env = failing_env(&f, at);
        tl_plan plan;
        tl_lifetimes lives;
        tl_places_desc places;
        memory_sink m;
        tl_result result = tl_parse_schedule(&env, schedule, strlen(schedule), &plan);
        memset(&places, 0, sizeof places);
        places.graph = &graph;
        if (!result) result = tl_plan_places(&env, &places, &plan, NULL);
        if (!result) result = tl_find_lifetimes(&env, &graph, &plan, &lives);
        if (!result) tl_free_lifetimes(&env, &lives);
        sink_of(&m, -1);
        if (!result) result = tl_explain_plan(&env, &graph, &plan, sink_of(&m, -1));
        if (!result) free(m.text);
        tl_free_plan(&env, &plan);
        assert_int_equal(f.live, 0);
        if (!result) break;
        assert_int_equal(result, TL_ERROR_NO_MEMORY);
    }
    assert_true(at > 5 && at < 1000);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_what_copies_of_the_graph_are),
        cmocka_unit_test(slots_of_a_pipeline_share_no_bytes),
        cmocka_unit_test(host_copies_of_slots_have_places_of_their_own),
        cmocka_unit_test(every_slot_holds_every_rule),
        cmocka_unit_test(slot_counts_out_of_range_and_sums_that_do_not_fit_are_errors),
        cmocka_unit_test(schedules_name_slots_as_they_were_read),
        cmocka_unit_test(explanations_tables_and_pictures_name_slots),
        cmocka_unit_test(a_state_is_the_same_in_all_slots),
        cmocka_unit_test(entry_is_resident_from_the_start),
        cmocka_unit_test(backward_of_a_node_in_the_entry_needs_no_forward),
        cmocka_unit_test(entries_that_are_none_are_errors),
        cmocka_unit_test(plans_with_slots_survive_every_failure),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
