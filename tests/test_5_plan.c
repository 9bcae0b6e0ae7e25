// [5] PLAN: steps, the simulator, keep all, kept sets, revolve, schedules as text.
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
#include "support/texts.h"


// One graph with everything that a rule speaks of. Bytes by hand: x 8, a 8 (saved 4, fwork 2, bwork 6), b 8, s 3 and 5,
// c 4, frozen 2.
static const char *const everything =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
    "node 1 a conv fwd=3 bwd=5 out=8 needs=in in=0 saved=4 fwork=2 bwork=6\n"
    "node 2 b relu fwd=1 bwd=2 out=8 needs=out in=1 inplace=0\n"
    "node 3 s split fwd=4 bwd=3 out=3,5 needs=none in=2\n"
    "node 4 c add fwd=2 bwd=2 out=4 needs=in0 in=3.0,3.1 keep\n"
    "node 5 frozen mask fwd=7 bwd=0 out=2 needs=none in=1 grad=no\n";

static tl_plan plan_of(const char *text, int inference) {
    tl_plan plan = schedule_of(text);
    plan.inference = inference;
    return plan;
}

static tl_result simulate(tl_env *env, const tl_graph *graph, const tl_plan *plan, const tl_device *device, tl_report *report) {
    tl_simulate_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    desc.device = device;
    return tl_simulate_plan(env, &desc, report);
}

// The report of a schedule that must be valid; "; " separates steps.
static tl_report report_of(const tl_graph *graph, const char *text, int inference, const tl_device *device) {
    tl_env env;
    tl_report report;
    tl_plan plan = plan_of(text, inference);
    memset(&env, 0, sizeof env);
    if (simulate(&env, graph, &plan, device, &report)) fail_msg("%s: %s", text, env.error.text);
    tl_free_plan(NULL, &plan);
    assert_int_equal(report.broken_step, -1);
    return report;
}

typedef struct rule {
    const char *schedule;
    int32_t     step;      // the broken one
    const char *sentence;  // after "tl_simulate_plan: "
} rule;

static void assert_rules(const rule *rules, size_t count, int inference) {
    tl_graph graph = graph_of(everything);
    tl_report report, zero;
    tl_env env;
    size_t i;
    memset(&env, 0, sizeof env);
    for (i = 0; i < count; i++) {
        tl_plan plan = plan_of(rules[i].schedule, inference);
        if (simulate(&env, &graph, &plan, NULL, &report) != TL_ERROR_INVALID_PLAN)
            fail_msg("%s is not answered: %s", rules[i].schedule, rules[i].sentence);
        assert_int_equal(env.error.code, TL_ERROR_INVALID_PLAN);
        assert_int_equal(report.broken_step, rules[i].step);
        if (strncmp(env.error.text, "tl_simulate_plan: ", 18)) fail_msg("%s", env.error.text);
        assert_string_equal(env.error.text + 18, rules[i].sentence);
        memset(&zero, 0, sizeof zero);
        zero.broken_step = report.broken_step;
        assert_memory_equal(&report, &zero, sizeof report);
        tl_free_plan(NULL, &plan);
    }
    tl_free_graph(NULL, &graph);
}
#define ASSERT_RULES(rules, inference) assert_rules(rules, sizeof rules / sizeof *rules, inference)

// -- rules: each broken once --

static void forward_rules_are_held(void **state) {
    static const rule rules[] = {
        { "F 0", 0, "step 0 (F 0 x): input nodes take no steps" },
        { "F 6", 0, "step 0 (F 6): no such node" },
        { "F 2", 0, "step 0 (F 2 b): input 1.0 is not resident" },
        { "F 1\nF 1", 1, "step 1 (F 1 a): all outputs are already resident" },
        { "F 1\nO 1\nW 1\nL 1\nF 1", 4, "step 4 (F 1 a): output 1.0 is being fetched" },
        { "F 1\nC 1 f16\nF 1", 2, "step 2 (F 1 a): output 1.0 is compressed" },
        { "F 1\nC 1 f16\nF 2", 2, "step 2 (F 2 b): input 1.0 is not resident" },
        { "F 1\nO 1\nW 1\nL 1\nF 2", 4, "step 4 (F 2 b): input 1.0 is not resident" },
        { "F 1\nO 1\nF 1", 2, "step 2 (F 1 a): all outputs are already resident" },
        { "F 1\nF 2\nF 3\nD 3.0\nC 3.1 q8\nF 3", 5, "step 5 (F 3 s): output 3.1 is compressed" },
    };
    (void)state;
    ASSERT_RULES(rules, 1);
}

static void forward_in_place_rules_are_held(void **state) {
    static const rule rules[] = {
        { "I 1", 0, "step 0 (I 1 a): may not run in place" },
        { "I 2", 0, "step 0 (I 2 b): input 1.0 is not resident" },
        { "F 1\nO 1\nI 2", 2, "step 2 (I 2 b): input 1.0 cannot be overwritten: it is being spilled" },
        { "F 1\nF 2\nI 2", 2, "step 2 (I 2 b): all outputs are already resident" },
        { "F 1\nI 2\nF 5", 2, "step 2 (F 5 frozen): input 1.0 is not resident" },
    };
    (void)state;
    ASSERT_RULES(rules, 1);
}

#define ONCE_TEXT                                                                                  \
    "tlg 1\n"                                                                                     \
    "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"                                          \
    "node 1 a op fwd=3 bwd=5 out=8,4 needs=in in=0 saved=4 fwork=100 swork=10 once\n"             \
    "node 2 b op fwd=1 bwd=2 out=8 needs=in in=1 inplace=0 once\n"

// A second forward of any kind is refused, also one that would make saved bytes alone, or an output that is gone.
static void what_may_run_once_only_does(void **state) {
    static const rule rules[] = {
        { "F 1\nS 1", 1, "step 1 (S 1 a): may run once only" },
        { "S 1\nDS 1\nS 1", 2, "step 2 (S 1 a): may run once only" },
        { "F 1\nD 1.1\nF 1", 2, "step 2 (F 1 a): may run once only" },
        { "F 1\nF 2\nD 2\nI 2", 3, "step 3 (I 2 b): may run once only" },
        { "F 1\nF 1", 1, "step 1 (F 1 a): may run once only" },
    };
    tl_graph graph = graph_of(ONCE_TEXT);
    tl_report report;
    tl_env env;
    size_t i;
    (void)state;
    memset(&env, 0, sizeof env);
    for (i = 0; i < sizeof rules / sizeof *rules; i++) {
        tl_plan plan = plan_of(rules[i].schedule, 1);
        assert_int_equal(simulate(&env, &graph, &plan, NULL, &report), TL_ERROR_INVALID_PLAN);
        assert_int_equal(report.broken_step, rules[i].step);
        assert_string_equal(env.error.text + 18, rules[i].sentence);
        tl_free_plan(NULL, &plan);
    }
    report = report_of(&graph, "S 1\nO 1.0\nC 1.1 f16\nW 1.0\nL 1.0\nW 1.0\nX 1.1\nF 2\nB 2\nB 1", 0, NULL);
    assert_int_equal(report.recompute_count, 0);
    tl_free_graph(NULL, &graph);
}

// Each micro-batch runs it for itself.
static void once_counts_in_each_slot(void **state) {
    tl_graph graph = graph_of(ONCE_TEXT);
    tl_plan plan = plan_of("F 1\nF 1@1\nF 2@1\nF 2\nF 2@1", 1);
    tl_report report;
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
    assert_int_equal(simulate(&env, &graph, &plan, NULL, &report), TL_ERROR_INVALID_PLAN);
    assert_string_equal(env.error.text, "tl_simulate_plan: step 4 (F 2@1 b): may run once only");
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// swork in the place of fwork, in peaks and in the places that the library finds.
static void scratch_of_a_save_is_swork(void **state) {
    tl_graph graph = graph_of(ONCE_TEXT);
    tl_places_desc places;
    tl_places_report found;
    tl_plan plan = plan_of("S 1", 1);
    (void)state;
    NODES(&graph)[1].keep = 1;      // node 2 is no result then
    assert_int_equal(report_of(&graph, "F 1", 1, NULL).peak_bytes, 8 + 12 + 100);
    assert_int_equal(report_of(&graph, "S 1", 1, NULL).peak_bytes, 8 + 12 + 4 + 10);
    memset(&places, 0, sizeof places);
    places.graph = &graph;
    assert_int_equal(tl_plan_places(NULL, &places, &plan, &found), TL_OK);
    assert_int_equal(found.arena_bytes, 8 + 12 + 4 + 10);
    tl_free_plan(NULL, &plan);
    NODES(&graph)[1].swork_bytes = 200;
    assert_int_equal(report_of(&graph, "S 1", 1, NULL).peak_bytes, 8 + 12 + 4 + 200);
    tl_free_graph(NULL, &graph);
}

// Plans of one pass: a kept set that lacks what a node made that runs once keeps it; Revolve, which makes everything again, is
// refused.
static void plans_of_one_pass_run_it_once(void **state) {
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
                              "node 1 a op fwd=1 bwd=1 out=8 needs=in in=0 saved=2 once\n"
                              "node 2 b op fwd=1 bwd=1 out=8 needs=in in=1\n"
                              "node 3 c op fwd=1 bwd=1 out=8 needs=in in=2\n");
    static const uint8_t none[4] = { 0 };
    tl_plan plan;
    tl_env env;
    char text[256];
    (void)state;
    memset(&env, 0, sizeof env);
    assert_int_equal(tl_plan_kept_set(&env, &graph, none, &plan), TL_OK);
    tl_print_schedule(&plan, text, sizeof text);
    assert_string_equal(text, "S 1\nF 2\nF 3\nD 2.0\nD 3.0\nF 2\nB 3\nD 2.0\nB 2\nD 1.0\nB 1\n");
    tl_free_plan(&env, &plan);
    assert_int_equal(tl_plan_revolve(&env, &graph, 2, &plan), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_plan_revolve: graph: a node may run once only, and this schedule runs nodes again");
    NODES(&graph)[1].once = 0;
    assert_int_equal(tl_plan_kept_set(&env, &graph, none, &plan), TL_OK);
    tl_print_schedule(&plan, text, sizeof text);
    assert_non_null(strstr(text, "F 1\n"));     // without the attribute it runs again, and saves then
    tl_free_plan(&env, &plan);
    tl_free_graph(NULL, &graph);
}

static void in_place_needs_one_reader_slot_and_a_missing_output(void **state) {
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
                              "node 1 a op fwd=1 bwd=1 out=4 needs=none in=0\n"
                              "node 2 twice add fwd=1 bwd=1 out=4 needs=none in=1,1 inplace=0\n"
                              "node 3 two op fwd=1 bwd=1 out=4,2 needs=none in=1 inplace=0\n");
    static const char *const schedules[] = { "F 1\nI 2", "F 1\nF 3\nD 3.1\nI 3" };
    static const char *const sentences[] = {
        "tl_simulate_plan: step 1 (I 2 twice): reads the overwritten tensor 1.0 twice",
        "tl_simulate_plan: step 3 (I 3 two): output 0 is already resident" };
    tl_report report;
    tl_env env;
    int i;
    (void)state;
    memset(&env, 0, sizeof env);
    for (i = 0; i < 2; i++) {
        tl_plan plan = plan_of(schedules[i], 1);
        assert_int_equal(simulate(&env, &graph, &plan, NULL, &report), TL_ERROR_INVALID_PLAN);
        assert_string_equal(env.error.text, sentences[i]);
        tl_free_plan(NULL, &plan);
    }
    tl_free_graph(NULL, &graph);
}

static void save_rules_are_held(void **state) {
    static const rule rules[] = {
        { "F 1\nS 2", 1, "step 1 (S 2 b): has no saved bytes" },
        { "S 1\nS 1", 1, "step 1 (S 1 a): saved bytes are already resident" },
        { "S 1\nC 1 f16\nDS 1\nS 1", 3, "step 3 (S 1 a): output 1.0 is compressed" },
        { "DS 1", 0, "step 0 (DS 1 a): saved bytes are not resident" },
        { "F 1\nDS 1", 1, "step 1 (DS 1 a): saved bytes are not resident" },
        { "S 1\nDS 1\nDS 1", 2, "step 2 (DS 1 a): saved bytes are not resident" },
    };
    (void)state;
    ASSERT_RULES(rules, 1);
}

static void backward_rules_are_held(void **state) {
    static const rule rules[] = {
        { "F 1\nB 5", 1, "step 1 (B 5 frozen): has no gradient" },
        { "B 4", 0, "step 0 (B 4 c): forward never ran" },
        { "S 1\nF 2\nF 3\nF 4\nB 4\nB 4", 5, "step 5 (B 4 c): backward already ran" },
        { "S 1\nF 2\nF 3\nF 4\nB 3", 4, "step 4 (B 3 s): backward out of order: node 4 (c) is next" },
        { "S 1\nF 2\nF 3\nF 4\nD 3.0\nB 4", 5, "step 5 (B 4 c): needs 3.0, which is not resident" },
        { "S 1\nF 2\nF 3\nF 4\nB 4\nB 3\nD 2\nB 2", 7, "step 7 (B 2 b): needs 2.0, which is not resident" },
        { "S 1\nF 2\nF 3\nF 4\nB 4\nB 3\nC 2 bf16\nB 2", 7, "step 7 (B 2 b): needs 2.0, which is not resident" },
        { "F 1\nF 2\nF 3\nF 4\nB 4\nB 3\nB 2\nB 1", 7, "step 7 (B 1 a): needs its saved bytes" },
        { "S 1\nF 2\nF 3\nF 4\nB 4\nB 3\nDS 1\nB 2\nB 1", 8, "step 8 (B 1 a): needs its saved bytes" },
    };
    static const rule inference[] = {{ "F 1\nB 1", 1, "step 1 (B 1 a): no backward in inference" }};
    (void)state;
    ASSERT_RULES(rules, 0);
    ASSERT_RULES(inference, 1);
}

static void backward_in_any_order_still_waits_for_its_consumers(void **state) {
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n"
                              "node 1 a op fwd=1 bwd=1 out=1 needs=none in=0\n"
                              "node 2 left op fwd=1 bwd=1 out=1 needs=none in=1,1\n"
                              "node 3 right op fwd=1 bwd=1 out=1 needs=none in=1\n"
                              "node 4 free op fwd=1 bwd=0 out=1 needs=none in=1 grad=no\n");
    tl_plan plan = plan_of("F 1\nF 2\nF 3\nB 2\nB 3\nB 1", 0), wrong = plan_of("F 1\nF 2\nF 3\nB 2\nB 1", 0);
    tl_report report;
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
    assert_int_equal(simulate(&env, &graph, &plan, NULL, &report), TL_ERROR_INVALID_PLAN);
    assert_string_equal(env.error.text, "tl_simulate_plan: step 3 (B 2 left): backward out of order: node 3 (right) is next");
    plan.any_order = wrong.any_order = 1;
    assert_int_equal(simulate(&env, &graph, &plan, NULL, &report), TL_OK);
    assert_int_equal(report.backward_count, 3);
    assert_int_equal(simulate(&env, &graph, &wrong, NULL, &report), TL_ERROR_INVALID_PLAN);
    assert_string_equal(env.error.text, "tl_simulate_plan: step 4 (B 1 a): consumer 3 (right) has not run backward");
    tl_free_plan(NULL, &plan);
    tl_free_plan(NULL, &wrong);
    tl_free_graph(NULL, &graph);
}

static void drop_rules_are_held(void **state) {
    static const rule rules[] = {
        { "D 1", 0, "step 0 (D 1 a): no output is in a state to act on" },
        { "D 1.0", 0, "step 0 (D 1.0 a): the tensor is absent" },
        { "D 1.1", 0, "step 0 (D 1.1 a): no such output" },
        { "D 0", 0, "step 0 (D 0 x): input nodes take no steps" },
        { "F 1\nO 1\nD 1.0", 2, "step 2 (D 1.0 a): the tensor is being spilled" },
        { "F 1\nO 1\nW 1\nL 1\nD 1.0", 4, "step 4 (D 1.0 a): the tensor is being fetched" },
    };
    (void)state;
    ASSERT_RULES(rules, 1);
}

static void copy_rules_are_held(void **state) {
    static const rule rules[] = {
        { "O 1", 0, "step 0 (O 1 a): no output is in a state to act on" },
        { "O 1.0", 0, "step 0 (O 1.0 a): the tensor is absent" },
        { "F 1\nO 1\nO 1.0", 2, "step 2 (O 1.0 a): the tensor is being spilled" },
        { "F 1\nO 1\nW 1\nF 1\nO 1", 4, "step 4 (O 1 a): the host has 1.0 already" },
        { "F 1\nC 1 f16\nO 1.0", 2, "step 2 (O 1.0 a): the tensor is compressed" },
        { "L 1", 0, "step 0 (L 1 a): the host has no copy of 1.0" },
        { "F 1\nO 1\nL 1.0", 2, "step 2 (L 1.0 a): the tensor is being spilled" },
        { "F 1\nO 1\nW 1\nDH 1\nL 1.0", 4, "step 4 (L 1.0 a): the host has no copy of 1.0" },
        { "F 1\nF 2\nF 3\nO 3.0\nW 3.0\nD 3.1\nL 3", 6, "step 6 (L 3 s): the host has no copy of 3.1" },
        { "W 1", 0, "step 0 (W 1 a): no output is in a state to act on" },
        { "F 1\nW 1.0", 1, "step 1 (W 1.0 a): the tensor is resident" },
        { "F 1\nO 1\nW 1\nW 1.0", 3, "step 3 (W 1.0 a): the tensor is absent" },
        { "F 1\nDH 1.0", 1, "step 1 (DH 1.0 a): the host has no copy of 1.0" },
        { "F 1\nO 1\nDH 1", 2, "step 2 (DH 1 a): a copy of 1.0 is under way" },
        { "F 1\nO 1\nW 1\nL 1\nDH 1.0", 4, "step 4 (DH 1.0 a): a copy of 1.0 is under way" },
    };
    (void)state;
    ASSERT_RULES(rules, 1);
}

static void codec_rules_are_held(void **state) {
    static const rule rules[] = {
        { "C 1 f16", 0, "step 0 (C 1 a): no output is in a state to act on" },
        { "F 1\nO 1\nC 1.0 f16", 2, "step 2 (C 1.0 a): the tensor is being spilled" },
        { "F 1\nC 1 f16\nC 1.0 q8", 2, "step 2 (C 1.0 a): the tensor is compressed" },
        { "F 1\nX 1.0", 1, "step 1 (X 1.0 a): the tensor is resident" },
        { "X 1", 0, "step 0 (X 1 a): no output is in a state to act on" },
    };
    (void)state;
    ASSERT_RULES(rules, 1);
}

static void rules_of_the_end_are_held(void **state) {
    static const rule training[] = {
        { "", 0, "before the first step: node 1 (a) never ran backward" },
        { "S 1\nF 2\nF 3\nF 4\nB 4\nB 3\nB 2", 7, "after the last step: node 1 (a) never ran backward" },
        { "S 1\nF 2\nF 3\nF 4\nB 4\nB 3\nB 2\nB 1\nD 4", 9, "after the last step: result 4.0 is not resident" },
    };
    static const rule inference[] = {
        { "F 1\nF 2\nF 3", 3, "after the last step: result 4.0 is not resident" },
        { "F 1\nF 2\nF 3\nF 4\nC 4 q8", 5, "after the last step: result 4.0 is not resident" },
    };
    (void)state;
    ASSERT_RULES(training, 0);
    ASSERT_RULES(inference, 1);
}

// The backward of its reader updates a weight in pieces: nothing reads it behind that.
static void a_weight_in_pieces_is_updated_with_its_reader(void **state) {
    tl_graph graph = graph_of("tlg 2\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\nstate 1 w sgd w=8 wrows=4 piece=1\n"
                              "node 2 y op fwd=1 bwd=1 out=8 needs=none in=0,1 bwork=2\nnode 3 l op fwd=1 bwd=1 out=4 needs=none in=2\nend 4\n");
    tl_plan plan = plan_of("F 2\nF 3\nB 3\nB 2\nD 2\nF 2", 0), fits = plan_of("F 2\nF 3\nD 2\nF 2\nB 3\nB 2\nD 2", 0);
    tl_env env = silent_env();
    tl_report report;
    (void)state;
    assert_int_equal(simulate(&env, &graph, &fits, NULL, &report), TL_OK);
    assert_int_equal(simulate(&env, &graph, &plan, NULL, &report), TL_ERROR_INVALID_PLAN);
    assert_string_equal(env.error.text, "tl_simulate_plan: step 5 (F 2 y): reads 1.0 of a state that was updated in this pass");
    tl_free_plan(NULL, &plan);
    tl_free_plan(NULL, &fits);
    tl_free_graph(NULL, &graph);
}

static void inference_without_keep_ends_with_the_nodes_that_nobody_reads(void **state) {
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n"
                              "node 1 unread input fwd=0 bwd=0 out=1 needs=none in=-\n"
                              "node 2 a op fwd=1 bwd=1 out=1 needs=none in=0\n"
                              "node 3 b op fwd=1 bwd=1 out=1,1 needs=none in=2\n"
                              "node 4 c op fwd=1 bwd=0 out=1 needs=none in=2 grad=no\n");
    static const char *const broken[] = { "F 2\nF 3", "F 2\nF 4", "F 2\nF 3\nF 4\nD 3.1" };
    tl_report report;
    int i;
    (void)state;
    report = report_of(&graph, "F 2\nF 3\nF 4\nD 2", 1, NULL);
    assert_int_equal(report.end_bytes, 5);
    for (i = 0; i < 3; i++) {
        tl_plan plan = plan_of(broken[i], 1);
        assert_int_equal(simulate(NULL, &graph, &plan, NULL, &report), TL_ERROR_INVALID_PLAN);
        assert_int_equal(report.broken_step, plan.step_count);
        tl_free_plan(NULL, &plan);
    }
    tl_free_graph(NULL, &graph);
}

static void steps_that_are_no_steps_are_errors(void **state) {
    static const tl_step good = { TL_STEP_FORWARD, 0, 0, 1, -1, 0 };
    static const struct { tl_step step; const char *sentence; } rows[] = {
        { { TL_STEP_COUNT, 0, 0, 1, -1, 0 }, "step 1 (? 1 a): no such kind of step" },
        { { 255, 0, 0, 1, -1, 0 }, "step 1 (? 1 a): no such kind of step" },
        { { TL_STEP_DROP, 0, 1, 1, -1, 0 }, "step 1 (D 1@1 a): no such micro-batch slot" },
        { { TL_STEP_DROP, 0, 65535, 1, -1, 0 }, "step 1 (D 1@65535 a): no such micro-batch slot" },
        { { TL_STEP_DROP, 0, 0, 1, -1, 1 }, "step 1 (D 1 a): begins: must be 0, or 1 of F and B" },
        { { TL_STEP_FORWARD, 0, 0, 2, -1, -1 }, "step 1 (F 2 b): begins: must be 0, or 1 of F and B" },
        { { TL_STEP_DROP, 0, 0, -1, -1, 0 }, "step 1 (D -1): no such node" },
        { { TL_STEP_DROP, 0, 0, INT32_MAX, -1, 0 }, "step 1 (D 2147483647): no such node" },
        { { TL_STEP_DROP, 0, 0, 1, -2, 0 }, "step 1 (D 1.-2 a): no such output" },
        { { TL_STEP_DROP, 0, 0, 1, INT32_MAX, 0 }, "step 1 (D 1.2147483647 a): no such output" },
        { { TL_STEP_DROP, TL_CODEC_Q8, 0, 1, -1, 0 }, "step 1 (D 1 a): codec is for COMPRESS only" },
        { { TL_STEP_COMPRESS, TL_CODEC_NONE, 0, 1, -1, 0 }, "step 1 (C 1 a): codec must be f16, bf16 or q8" },
        { { TL_STEP_COMPRESS, TL_CODEC_COUNT, 0, 1, -1, 0 }, "step 1 (C 1 a): codec must be f16, bf16 or q8" },
        { { TL_STEP_FORWARD, 0, 0, 2, 0, 0 }, "step 1 (F 2.0 b): acts on a node: output must be TL_ALL_OUTPUTS" },
        { { TL_STEP_DROP_SAVED, 0, 0, 1, 0, 0 }, "step 1 (DS 1.0 a): acts on a node: output must be TL_ALL_OUTPUTS" },
    };
    tl_graph graph = graph_of(everything);
    tl_step steps[2];
    tl_report report;
    tl_plan plan;
    tl_env env;
    size_t i;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&plan, 0, sizeof plan);
    plan.steps = steps;
    plan.step_count = 2;
    steps[0] = good;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        steps[1] = rows[i].step;
        assert_int_equal(simulate(&env, &graph, &plan, NULL, &report), TL_ERROR_INVALID_PLAN);
        assert_string_equal(env.error.text + 18, rows[i].sentence);
        assert_int_equal(report.broken_step, 1);
    }
    tl_free_graph(NULL, &graph);
}

static void plans_with_wrong_counts_or_flags_are_errors(void **state) {
    tl_graph graph = graph_of(everything), empty;
    tl_plan plan;
    tl_report report;
    tl_device device;
    tl_env env;
    int i;
    (void)state;
    for (i = 0; i < 8; i++) {
        memset(&env, 0, sizeof env);
        memset(&plan, 0, sizeof plan);
        if (i == 0) plan.step_count = -1;
        if (i == 1) plan.step_count = 1;
        if (i == 2) plan.offset_count = -1;
        if (i == 3) plan.offset_count = 1;
        if (i == 4) plan.repeat_count = -1;
        if (i == 5) plan.inference = 2;
        if (i == 6) plan.any_order = -1;
        memset(&device, 0, sizeof device);
        if (i == 7) device.alignment_bytes = 3;
        assert_int_equal(simulate(&env, &graph, &plan, &device, &report), TL_ERROR_INVALID_ARG);
        assert_int_equal(report.broken_step, -1);
        assert_true(strlen(env.error.text) > 10);
    }
    tl_init_graph(&empty);
    memset(&plan, 0, sizeof plan);
    assert_int_equal(simulate(&env, &empty, &plan, NULL, &report), TL_ERROR_INVALID_ARG);
    tl_free_graph(NULL, &graph);
}

// -- numbers by hand --

static const char *const everything_steps =
    "S 1\nF 2\nD 1\nF 3\nF 4\nD 3.1\nB 4\nD 3.0\nB 3\nB 2\nD 2\nB 1\n";

static void a_training_plan_has_the_bytes_and_costs_worked_by_hand(void **state) {
    static const uint64_t live[] = { 22, 28, 28, 28, 32, 32, 39, 35, 40, 40, 32, 30 };
    tl_graph graph = graph_of(everything);
    tl_plan plan = plan_of(everything_steps, 0);
    tl_simulate_desc desc;
    tl_report report;
    uint64_t live_bytes[12], host_bytes[12];
    int i;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.plan = &plan;
    desc.live_bytes = live_bytes;
    desc.host_bytes = host_bytes;
    assert_int_equal(plan.step_count, 12);
    assert_int_equal(tl_simulate_plan(NULL, &desc, &report), TL_OK);
    for (i = 0; i < 12; i++) { assert_int_equal(live_bytes[i], live[i]); assert_int_equal(host_bytes[i], 0); }
    assert_int_equal(report.peak_bytes, 40);
    assert_int_equal(report.peak_step, 8);
    assert_int_equal(report.end_bytes, 12);  // x and c
    assert_int_equal(report.cost, 22);
    assert_int_equal(report.compute_cost, 22);
    assert_int_equal(report.base_cost, 29);  // with the frozen node, which no step runs
    assert_int_equal(report.forward_count, 4);
    assert_int_equal(report.recompute_count, 0);
    assert_int_equal(report.backward_count, 4);
    assert_int_equal(report.copy_count + report.codec_count, 0);
    // x; a saved fwork; b; 3.0 3.1; c; grads of c, 3.0, 3.1; grad b; grad a; bwork
    assert_int_equal(report.allocation_count, 1 + 3 + 1 + 2 + 1 + 3 + 1 + 1 + 1);
    assert_int_equal(report.arena_bytes, 0);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void an_empty_inference_of_inputs_alone_peaks_before_the_first_step(void **state) {
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=8,4 needs=none in=-\n");
    tl_report report = report_of(&graph, "", 1, NULL);
    (void)state;
    assert_int_equal(report.peak_bytes, 12);
    assert_int_equal(report.peak_step, -1);
    assert_int_equal(report.end_bytes, 12);
    assert_int_equal(report.allocation_count, 2);
    tl_free_graph(NULL, &graph);
}

static void outputs_that_are_resident_are_made_twice_for_the_call(void **state) {
    tl_graph graph = graph_of(everything);
    tl_report report;
    (void)state;
    // x 8, b 8, 3.0 3, then F 3 again: 3.1 missing (5), 3.0 made twice (3)
    report = report_of(&graph, "F 1\nF 2\nD 1\nF 3\nF 4\nD 3.1\nF 3", 1, NULL);
    assert_int_equal(report.end_bytes, 8 + 8 + 3 + 5 + 4);
    assert_int_equal(report.peak_bytes, 8 + 8 + 3 + 4 + 5 + 3);
    assert_int_equal(report.peak_step, 6);
    assert_int_equal(report.recompute_count, 1);
    assert_int_equal(report.allocation_count, 1 + 2 + 1 + 2 + 1 + 2);
    assert_int_equal(report.cost, 3 + 1 + 4 + 2 + 4);
    tl_free_graph(NULL, &graph);
}

static void a_save_makes_outputs_twice_only_where_one_is_missing(void **state) {
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n"
                              "node 1 a op fwd=5 bwd=1 out=10,20 needs=none in=0 saved=100 fwork=1000\n");
    tl_report report;
    (void)state;
    report = report_of(&graph, "F 1\nS 1", 1, NULL);  // all resident: saved alone
    assert_int_equal(report.peak_bytes, 1 + 30 + 100 + 1000);
    assert_int_equal(report.end_bytes, 131);
    assert_int_equal(report.cost, 10);
    assert_int_equal(report.recompute_count, 1);
    report = report_of(&graph, "F 1\nD 1.0\nS 1", 1, NULL);  // one missing: the other twice
    assert_int_equal(report.peak_bytes, 1 + 20 + 10 + 20 + 100 + 1000);
    assert_int_equal(report.end_bytes, 131);
    report = report_of(&graph, "S 1\nDS 1", 1, NULL);
    assert_int_equal(report.peak_bytes, 1 + 30 + 100 + 1000);
    assert_int_equal(report.end_bytes, 31);
    tl_free_graph(NULL, &graph);
}

static void in_place_takes_over_the_bytes_and_the_offset_of_its_input(void **state) {
    // x at 0; a at 8, saved and fwork after it; b gets no number: 3.0 and 3.1 are allocations 4 and 5
    static const uint64_t offsets[] = { 0, 8, 16, 24, 17 };
    static const uint64_t on_top[] = { 0, 8, 16, 15, 17 };
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
                              "node 1 a conv fwd=3 bwd=5 out=8 needs=in in=0 fwork=2\n"
                              "node 2 b relu fwd=1 bwd=2 out=8 needs=out in=1 inplace=0\n"
                              "node 3 s split fwd=4 bwd=3 out=3,5 needs=none in=2\n");
    tl_plan plan = plan_of("F 1\nI 2\nF 3", 1);
    tl_report report;
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
    report = report_of(&graph, "F 1\nI 2\nF 3", 1, NULL);
    assert_int_equal(report.peak_bytes, 24);
    assert_int_equal(report.allocation_count, 5);
    assert_int_equal(report.forward_count, 3);
    plan.offsets = offsets;
    plan.offset_count = 5;
    assert_int_equal(simulate(&env, &graph, &plan, NULL, &report), TL_OK);
    assert_int_equal(report.arena_bytes, 27);
    plan.offsets = on_top;  // 3.0 at 15 meets b, which lies where a was: 8 .. 15
    assert_int_equal(simulate(&env, &graph, &plan, NULL, &report), TL_ERROR_INVALID_PLAN);
    assert_int_equal(report.broken_step, 2);
    assert_string_equal(env.error.text, "tl_simulate_plan: step 2 (F 3 s): offsets: two live allocations overlap");
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void gradients_are_made_on_the_first_contribution_and_once(void **state) {
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n"
                              "node 1 a op fwd=1 bwd=1 out=10,100 needs=none in=0\n"
                              "node 2 b op fwd=1 bwd=1 out=1000 needs=none in=1.0,1.0,0\n"
                              "node 3 c op fwd=1 bwd=1 out=10000 needs=none in=1.0\n");
    tl_plan plan = plan_of("F 1\nF 2\nF 3\nD 1\nD 2\nD 3\nB 3\nB 2\nB 1", 0);
    static const uint64_t live[] = { 10011, 1011, 111 };
    uint64_t live_bytes[9];
    tl_simulate_desc desc;
    tl_report report;
    int i;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.plan = &plan;
    desc.live_bytes = live_bytes;
    assert_int_equal(tl_simulate_plan(NULL, &desc, &report), TL_OK);
    for (i = 0; i < 3; i++) assert_int_equal(live_bytes[6 + i], live[i]);  // 1.1 has a gradient though nobody reads it
    assert_int_equal(report.end_bytes, 1);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void copies_hold_their_bytes_until_the_wait(void **state) {
    tl_graph graph = graph_of(everything);
    tl_plan plan = plan_of("F 1\nO 1\nF 2\nW 1\nL 1\nW 1\nF 5\nDH 1\nF 3\nF 4", 1);
    static const uint64_t live[] = { 18, 16, 24, 24, 24, 24, 26, 26, 34, 38 }, host[] = { 0, 8, 8, 8, 8, 8, 8, 0, 0, 0 };
    uint64_t live_bytes[10], host_bytes[10];
    tl_simulate_desc desc;
    tl_report report;
    int i;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.plan = &plan;
    desc.live_bytes = live_bytes;
    desc.host_bytes = host_bytes;
    assert_int_equal(tl_simulate_plan(NULL, &desc, &report), TL_OK);
    for (i = 0; i < 10; i++) { assert_int_equal(live_bytes[i], live[i]); assert_int_equal(host_bytes[i], host[i]); }
    assert_int_equal(report.host_peak_bytes, 8);
    assert_int_equal(report.end_host_bytes, 0);
    assert_int_equal(report.copy_count, 2);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static tl_device device_of(uint64_t link, uint64_t latency, uint64_t codec) {
    tl_device device;
    memset(&device, 0, sizeof device);
    device.link_bytes_per_second = link;
    device.link_latency_ns = latency;
    device.codec_bytes_per_second = codec;
    return device;
}

static void copies_overlap_compute_and_wait_for_the_link(void **state) {
    tl_graph graph = graph_of(everything);
    tl_device device = device_of(1000000000, 2, 0);  // 1 ns a byte, 2 ns each
    tl_device none = device_of(0, 100, 0);
    (void)state;
    // a is ready at 3; its copy runs 3 .. 13 beside F 2 (3 .. 4)
    assert_int_equal(report_of(&graph, "F 1\nO 1\nF 2\nF 3\nF 4", 1, &device).cost, 10);
    assert_int_equal(report_of(&graph, "F 1\nO 1\nF 2\nW 1\nF 3\nF 4", 1, &device).cost, 13 + 4 + 2);
    assert_int_equal(report_of(&graph, "F 1\nF 2\nF 3\nF 4\nO 1\nW 1", 1, &device).cost, 20);
    // the second copy starts when the link is free: 13 .. 23
    assert_int_equal(report_of(&graph, "F 1\nO 1\nF 2\nO 2\nF 3\nW 2\nF 4", 1, &device).cost, 25);
    // there and back: 3 .. 13, 13 .. 23
    assert_int_equal(report_of(&graph, "F 1\nO 1\nW 1\nL 1\nW 1\nF 2\nF 3\nF 4", 1, &device).cost, 23 + 1 + 4 + 2);
    assert_int_equal(report_of(&graph, "F 1\nO 1\nW 1\nL 1\nW 1\nF 2\nF 3\nF 4", 1, &none).cost, 10);
    assert_int_equal(report_of(&graph, "F 1\nO 1\nW 1\nL 1\nW 1\nF 2\nF 3\nF 4", 1, NULL).cost, 10);
    assert_int_equal(report_of(&graph, "F 1\nO 1\nW 1\nL 1\nW 1\nF 2\nF 3\nF 4", 1, &device).compute_cost, 10);
    tl_free_graph(NULL, &graph);
}

static void copies_share_a_link_or_have_one_each_way_or_take_turns(void **state) {
    static const char *const both_ways = "F 1\nF 2\nO 1\nW 1\nO 2\nL 1\nW 1\nW 2\nL 2\nW 2\nF 3\nF 4";
    static const struct { int32_t channels; uint64_t both_ways, out; } rows[] = {
        { 0, 50, 10 }, { 1, 50, 10 },   // O 1 4 .. 14, O 2 14 .. 24, L 1 24 .. 34, L 2 34 .. 44, then 4 and 2
        { 2, 40, 10 },                  // L 1 beside O 2, L 2 24 .. 34
        { TL_COPIES_IN_TURN, 50, 20 }   // F 1 3, O 1 10, F 2 1, F 3 4, F 4 2
    };
    tl_graph graph = graph_of(everything);
    tl_device device = device_of(1000000000, 2, 0);  // 1 ns a byte, 2 ns each
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        device.copy_channels = rows[i].channels;
        assert_int_equal(report_of(&graph, both_ways, 1, &device).cost, rows[i].both_ways);
        assert_int_equal(report_of(&graph, "F 1\nO 1\nF 2\nF 3\nF 4", 1, &device).cost, rows[i].out);
    }
    tl_free_graph(NULL, &graph);
}

// Of 8 bytes, a copy to the host takes 8 + 2 ns, one back at half the rate 16 + 2.
static void each_way_has_its_rate(void **state) {
    tl_graph graph = graph_of(everything);
    tl_device device = device_of(1000000000, 2, 0);
    (void)state;
    assert_int_equal(report_of(&graph, "F 1\nO 1\nF 2\nF 3\nF 4\nW 1\nL 1\nW 1", 1, &device).cost, 3 + 10 + 10);
    device.upload_bytes_per_second = 500000000;
    assert_int_equal(report_of(&graph, "F 1\nO 1\nF 2\nF 3\nF 4\nW 1\nL 1\nW 1", 1, &device).cost, 3 + 10 + 18);
    device.link_bytes_per_second = 0;   // copies to the host take no time
    assert_int_equal(report_of(&graph, "F 1\nO 1\nF 2\nF 3\nF 4\nW 1\nL 1\nW 1", 1, &device).cost, 10 + 18);
    tl_free_graph(NULL, &graph);
}

static void the_first_wait_after_a_call_takes_its_latency(void **state) {
    tl_graph graph = graph_of(everything);
    tl_device device = device_of(1000000000, 2, 0), none = device_of(0, 0, 0);
    (void)state;
    device.wait_latency_ns = none.wait_latency_ns = 5;
    // the copy ends at 13, the calls at 10
    assert_int_equal(report_of(&graph, "F 1\nO 1\nF 2\nF 3\nF 4\nW 1", 1, &device).cost, 15);
    // the copy ends at 13, the calls at 4: no time is added
    assert_int_equal(report_of(&graph, "F 1\nO 1\nF 2\nW 1\nF 3\nF 4", 1, &device).cost, 13 + 4 + 2);
    assert_int_equal(report_of(&graph, "F 1\nF 2\nO 1\nO 2\nF 3\nF 4\nW 1\nW 2", 1, &none).cost, 10 + 5);
    assert_int_equal(report_of(&graph, "F 1\nO 1\nF 2\nW 1\nF 3\nO 2\nW 2\nF 4", 1, &none).cost, 10 + 2 * 5);
    tl_free_graph(NULL, &graph);
}

static void steps_begin_when_compute_ends_and_copies_when_the_link_is_free_too(void **state) {
    static const char *const text = "F 1\nO 1\nF 2\nO 2\nF 3\nW 1\nW 2\nF 4\nDH 1\nL 2\nW 2\nO 3.1\nDH 2\nW 3.1\n";
    static const uint64_t starts[] = { 0, 3, 3, 13, 4, 8, 13, 23, 25, 25, 25, 35, 35, 35 };
    static const uint64_t ends[] = { 3, 13, 4, 23, 8, 13, 23, 25, 25, 35, 35, 42, 35, 42 };
    tl_device device = device_of(1000000000, 2, 0);  // 1 ns a byte, 2 ns each
    tl_graph graph = graph_of(everything);
    tl_plan plan = plan_of(text, 1);
    uint64_t start[14], end[14];
    tl_simulate_desc desc;
    tl_report report;
    int32_t i;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph; desc.plan = &plan; desc.device = &device;
    desc.start_cost = start; desc.end_cost = end;
    assert_int_equal(plan.step_count, 14);
    assert_int_equal(tl_simulate_plan(NULL, &desc, &report), TL_OK);
    for (i = 0; i < 14; i++)
        if (start[i] != starts[i] || end[i] != ends[i]) fail_msg("step %d: %d to %d", i, (int)start[i], (int)end[i]);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void conversions_count_both_copies_and_take_compute_time(void **state) {
    tl_graph graph = graph_of(everything);
    tl_device device = device_of(0, 0, 3000000000u);  // 8 bytes: 2.67 ns, rounded up
    tl_report report;
    (void)state;
    report = report_of(&graph, "F 1\nC 1 f16\nX 1\nF 2\nF 3\nF 4", 1, &device);
    assert_int_equal(report.cost, 3 + 3 + 3 + 1 + 4 + 2);
    assert_int_equal(report.compute_cost, 10);
    assert_int_equal(report.codec_count, 2);
    assert_int_equal(report_of(&graph, "F 1\nC 1 f16\nX 1\nF 2\nF 3\nF 4", 1, NULL).cost, 10);
    report = report_of(&graph, "F 1\nC 1 f16\nX 1\nF 2\nD 1\nF 3\nF 4", 1, &device);
    assert_int_equal(report.peak_bytes, 8 + 8 + 3 + 5 + 4);
    tl_free_graph(NULL, &graph);
    graph = graph_of("tlg 1\n"
                     "node 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n"
                     "node 1 a op fwd=1 bwd=0 out=128,256 needs=none in=0 grad=no\n");
    // one after the other: 128 and its 36 and 256, then 36 and 256 and its 72
    report = report_of(&graph, "F 1\nC 1 q8\nX 1", 1, NULL);
    assert_int_equal(report.peak_bytes, 1 + 128 + 256 + 72);
    assert_int_equal(report.peak_step, 2);  // X 1.1: 128 and 72 and 256
    report = report_of(&graph, "F 1\nC 1 q8\nX 1.0\nD 1.1\nF 1", 1, NULL);
    assert_int_equal(report.peak_bytes, 1 + 128 + 256 + 128);  // 1.0 made twice
    tl_free_graph(NULL, &graph);
}

static void copy_times_are_rounded_up_exactly(void **state) {
    static const struct { uint64_t bytes, rate, ns; int fits; } rows[] = {
        { 0, 7, 0, 1 }, { 1, 1, 1000000000, 1 }, { 3, 2000000000, 2, 1 }, { 4, 2000000000, 2, 1 },
        { 7, 3000000000u, 3, 1 }, { 1, UINT64_MAX, 1, 1 }, { UINT64_MAX, UINT64_MAX, 1000000000, 1 },
        { UINT64_MAX, UINT64_MAX - 1, 1000000001, 1 }, { UINT64_MAX - 1, UINT64_MAX, 1000000000, 1 },
        { UINT64_MAX, 1000000000, UINT64_MAX, 1 }, { UINT64_MAX, 999999999, 0, 0 }, { UINT64_MAX, 1, 0, 0 },
        { 18446744073u, 1, UINT64_C(18446744073000000000), 1 }, { 18446744074u, 1, 0, 0 },
        { 123456789123u, 987654321, UINT64_C(124999998986), 1 } };
    size_t i;
    uint64_t ns;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(tli_find_time(rows[i].bytes, rows[i].rate, &ns), rows[i].fits);
        if (rows[i].fits) assert_int_equal(ns, rows[i].ns);
    }
}

static void codec_bytes_follow_the_blocks(void **state) {
    (void)state;
    assert_int_equal(tl_find_codec_bytes(TL_CODEC_NONE, 7), 7);
    assert_int_equal(tl_find_codec_bytes(TL_CODEC_F16, 128), 64);
    assert_int_equal(tl_find_codec_bytes(TL_CODEC_BF16, 129), 66);
    assert_int_equal(tl_find_codec_bytes(TL_CODEC_Q8, 128), 36);
    assert_int_equal(tl_find_codec_bytes(TL_CODEC_Q8, 129), 33 + 8);
    assert_int_equal(tl_find_codec_bytes(TL_CODEC_Q8, 1), 5);
    assert_int_equal(tl_find_codec_bytes(TL_CODEC_Q8, 125), 36);
    assert_int_equal(tl_find_codec_bytes(TL_CODEC_Q8, 124), 31 + 4);
    assert_int_equal(tl_find_codec_bytes(TL_CODEC_Q8, 0), 0);
    assert_int_equal(tl_find_codec_bytes(TL_CODEC_F16, UINT64_MAX), (uint64_t)1 << 63);
    assert_int_equal(tl_find_codec_bytes(TL_CODEC_COUNT, 7), 7);
}

// -- offsets --

static tl_result simulate_offsets(tl_env *env, const tl_graph *graph, const char *steps, const uint64_t *offsets, int32_t count,
                                  uint64_t alignment, tl_report *report) {
    tl_plan plan = plan_of(steps, 1);
    tl_device device = device_of(0, 0, 0);
    tl_result result;
    device.alignment_bytes = alignment;
    plan.offsets = offsets;
    plan.offset_count = count;
    result = simulate(env, graph, &plan, &device, report);
    plan.offsets = NULL;
    tl_free_plan(NULL, &plan);
    return result;
}

static void offsets_place_allocations_in_the_order_that_is_documented(void **state) {
    // x 8 | 1.0 missing, 1.1 made twice, saved, fwork: all of different size, so any other order overlaps
    static const uint64_t exact[] = { 0, 1, 11, 31, 1131, 131, 31, 1, 11, 131, 231 };
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n"
                              "node 1 a op fwd=5 bwd=1 out=10,20 needs=none in=0 saved=100 fwork=1000\n");
    tl_report report;
    tl_env env;
    uint64_t offsets[9];
    (void)state;
    memset(&env, 0, sizeof env);
    memcpy(offsets, exact, sizeof offsets);
    // S 1: 1.0 at 1, 1.1 at 11, saved at 31, fwork at 1131; D 1.0, DS 1, S 1: 1.0, 1.1 twice, saved, fwork
    offsets[5] = 1; offsets[6] = 131; offsets[7] = 31; offsets[8] = 151;
    assert_int_equal(simulate_offsets(&env, &graph, "S 1\nD 1.0\nDS 1\nS 1", offsets, 9, 0, &report), TL_OK);
    assert_int_equal(report.allocation_count, 9);
    assert_int_equal(report.arena_bytes, 2131);
    assert_int_equal(report.peak_bytes, 1 + 30 + 20 + 100 + 1000);
    offsets[7] = 131; offsets[6] = 31;  // saved beside the copy that is made twice: apart
    assert_int_equal(simulate_offsets(&env, &graph, "S 1\nD 1.0\nDS 1\nS 1", offsets, 9, 0, &report), TL_ERROR_INVALID_PLAN);
    assert_int_equal(report.broken_step, 3);  // fwork at 151 meets saved at 131 .. 231
    offsets[8] = 231;
    assert_int_equal(simulate_offsets(&env, &graph, "S 1\nD 1.0\nDS 1\nS 1", offsets, 9, 0, &report), TL_OK);
    tl_free_graph(NULL, &graph);
}

static void offsets_may_be_used_again_once_freed(void **state) {
    static const uint64_t offsets[] = { 0, 8, 16, 18, 8, 11 };  // a, fwork, b; 3.0 and 3.1 where a was
    tl_graph graph = graph_of(everything);
    tl_report report;
    tl_env env;
    uint64_t more[7];
    (void)state;
    memset(&env, 0, sizeof env);
    memcpy(more, offsets, sizeof offsets);
    more[6] = 26;
    assert_int_equal(simulate_offsets(&env, &graph, "F 1\nF 2\nD 1\nF 3\nF 4", more, 7, 0, &report), TL_OK);
    assert_int_equal(report.arena_bytes, 30);
    more[3] = 16;  // b where fwork was: it is gone
    more[6] = 24;
    assert_int_equal(simulate_offsets(&env, &graph, "F 1\nF 2\nD 1\nF 3\nF 4", more, 7, 0, &report), TL_OK);
    assert_int_equal(report.arena_bytes, 28);
    assert_int_equal(simulate_offsets(&env, &graph, "F 1\nF 2\nF 3\nD 1\nF 4", more, 7, 0, &report), TL_ERROR_INVALID_PLAN);
    assert_int_equal(report.broken_step, 2);
    assert_int_equal(report.arena_bytes, 0);
    tl_free_graph(NULL, &graph);
}

static void touching_offsets_are_apart_and_one_byte_more_overlaps(void **state) {
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
                              "node 1 a op fwd=1 bwd=1 out=8 needs=none in=0\n");
    uint64_t offsets[2] = { 8, 0 };
    tl_report report;
    (void)state;
    assert_int_equal(simulate_offsets(NULL, &graph, "F 1", offsets, 2, 8, &report), TL_OK);
    assert_int_equal(report.arena_bytes, 16);
    offsets[1] = 16;
    assert_int_equal(simulate_offsets(NULL, &graph, "F 1", offsets, 2, 16, &report), TL_ERROR_INVALID_PLAN);  // 8 is not aligned
    assert_int_equal(report.broken_step, 0);
    assert_int_equal(simulate_offsets(NULL, &graph, "F 1", offsets, 2, 4, &report), TL_OK);
    assert_int_equal(report.arena_bytes, 24);
    offsets[0] = 0; offsets[1] = 7;
    assert_int_equal(simulate_offsets(NULL, &graph, "F 1", offsets, 2, 0, &report), TL_ERROR_INVALID_PLAN);
    offsets[0] = 7; offsets[1] = 0;
    assert_int_equal(simulate_offsets(NULL, &graph, "F 1", offsets, 2, 0, &report), TL_ERROR_INVALID_PLAN);
    offsets[0] = 16; offsets[1] = 0;
    assert_int_equal(simulate_offsets(NULL, &graph, "F 1", offsets, 2, 16, &report), TL_OK);
    assert_int_equal(report.arena_bytes, 32);  // 16 + 8, rounded up
    tl_free_graph(NULL, &graph);
}

static void broken_offsets_have_their_sentences(void **state) {
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
                              "node 1 a op fwd=1 bwd=1 out=8 needs=none in=0\n");
    static const struct { uint64_t offsets[3]; int32_t count; uint64_t alignment; tl_result result; int32_t step; const char *text; } rows[] = {
        { { 0, 8, 16 }, 1, 1, TL_ERROR_INVALID_PLAN, 0, "step 0 (F 1 a): offsets: fewer than allocations" },
        { { 0, 8, 16 }, 3, 1, TL_ERROR_INVALID_PLAN, 1, "after the last step: offsets: more than allocations" },
        { { 1, 8, 0 }, 2, 8, TL_ERROR_INVALID_PLAN, 0, "before the first step: offsets: not a multiple of the alignment" },
        { { 0, 12, 0 }, 2, 8, TL_ERROR_INVALID_PLAN, 0, "step 0 (F 1 a): offsets: not a multiple of the alignment" },
        { { 0, 7, 0 }, 2, 1, TL_ERROR_INVALID_PLAN, 0, "step 0 (F 1 a): offsets: two live allocations overlap" },
        { { 0, UINT64_MAX - 6, 0 }, 2, 1, TL_ERROR_OVERFLOW, -1, "step 0 (F 1 a): offsets: offset + bytes does not fit 64 bits" },
        { { 0, UINT64_MAX - 15, 0 }, 2, 16, TL_ERROR_OVERFLOW, -1, "step 0 (F 1 a): offsets: offset + bytes does not fit 64 bits" },
    };
    tl_report report;
    tl_env env;
    size_t i;
    (void)state;
    memset(&env, 0, sizeof env);
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(simulate_offsets(&env, &graph, "F 1", rows[i].offsets, rows[i].count, rows[i].alignment, &report), rows[i].result);
        assert_string_equal(env.error.text + 18, rows[i].text);
        assert_int_equal(report.broken_step, rows[i].step);
    }
    tl_free_graph(NULL, &graph);
}

// Host copies have an arena of their own, in which the bytes of a copy that is dropped are free again.
static void host_offsets_place_copies_and_have_their_sentences(void **state) {
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
                              "node 1 a op fwd=1 bwd=1 out=8,4 needs=none in=0\n"
                              "node 2 b op fwd=1 bwd=1 out=6 needs=none in=1\n");
    static const char steps[] = "F 1\nF 2\nO 1\nW 1\nL 1\nW 1\nDH 1.0\nO 2\nW 2\nL 2\nW 2\nDH 2";
    static const struct { uint64_t offsets[4]; int32_t count; uint64_t alignment; tl_result result; const char *text; } rows[] = {
        { { 0, 8, 0 }, 3, 1, TL_OK, "" },       // b lies where a.0 was
        { { 4, 0, 4 }, 3, 4, TL_OK, "" },
        { { 0, 8, 2 }, 3, 1, TL_OK, "" },
        { { 0, 8, 3 }, 3, 1, TL_ERROR_INVALID_PLAN, "step 7 (O 2 b): offsets: two live allocations overlap" },
        { { 0, 7, 8 }, 3, 1, TL_ERROR_INVALID_PLAN, "step 2 (O 1 a): offsets: two live allocations overlap" },
        { { 0, 8, 0 }, 3, 16, TL_ERROR_INVALID_PLAN, "step 2 (O 1 a): offsets: not a multiple of the alignment" },
        { { 0, 8, 0 }, 2, 1, TL_ERROR_INVALID_PLAN, "step 7 (O 2 b): host_offsets: fewer than host copies" },
        { { 0, 8, 0, 0 }, 4, 1, TL_ERROR_INVALID_PLAN, "after the last step: host_offsets: more than host copies" },
        { { 0, 8, UINT64_MAX }, 3, 1, TL_ERROR_OVERFLOW, "step 7 (O 2 b): offsets: offset + bytes does not fit 64 bits" },
    };
    tl_plan plan = plan_of(steps, 1);
    tl_device device;
    tl_report report;
    tl_env env;
    size_t i;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&device, 0, sizeof device);
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        device.alignment_bytes = rows[i].alignment;
        plan.host_offsets = rows[i].offsets;
        plan.host_offset_count = rows[i].count;
        assert_int_equal(simulate(&env, &graph, &plan, &device, &report), rows[i].result);
        if (rows[i].result) assert_string_equal(env.error.text + 18, rows[i].text);
        else assert_int_equal(report.host_arena_bytes, 12);
    }
    plan.host_offset_count = -1;
    assert_int_equal(simulate(&env, &graph, &plan, NULL, &report), TL_ERROR_INVALID_ARG);
    plan.host_offsets = NULL;
    plan.host_offset_count = 0;
    assert_int_equal(simulate(&env, &graph, &plan, NULL, &report), TL_OK);
    assert_int_equal(report.host_allocation_count, 3);
    assert_int_equal(report.host_peak_bytes, 12);
    assert_int_equal(report.host_arena_bytes, 0);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void what_has_no_bytes_has_no_number(void **state) {
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=0,4 needs=none in=-\n"
                              "node 1 a op fwd=1 bwd=1 out=0 needs=none in=0\n"
                              "node 2 b op fwd=1 bwd=1 out=0,2 needs=none in=1,1.0\n"
                              "node 3 c op fwd=1 bwd=1 out=0 needs=out in=2.0 inplace=0\n");
    static const uint64_t offsets[] = { 0, 4 };
    tl_report report;
    (void)state;
    assert_int_equal(simulate_offsets(NULL, &graph, "F 1\nF 2\nO 1\nW 1\nL 1\nW 1\nC 2.0 q8\nX 2.0\nI 3\nD 2.1", offsets, 2, 0, &report), TL_OK);
    assert_int_equal(report.allocation_count, 2);
    assert_int_equal(report.arena_bytes, 6);
    assert_int_equal(report.copy_count, 2);
    assert_int_equal(report.codec_count, 2);
    tl_free_graph(NULL, &graph);
}

// -- overflow, allocation failures --

static void sums_that_do_not_fit_are_errors(void **state) {
    static const struct { const char *steps; uint64_t link, latency, codec; } rows[] = {
        { "F 1\nF 2\nD 1.1\nB 2\nF 1\nB 1", 0, 0, 0 },                      // 1.0, its gradient, and 1.0 made twice
        { "F 1\nO 1.1\nW 1\nF 2\nB 2\nB 1", 1, UINT64_MAX, 0 },             // latency + time
        { "F 1\nO 1.1\nO 1.2\nF 2\nB 2\nB 1", 1000000000, UINT64_MAX - 1, 0 },  // the second copy ends too late
        { "F 1\nO 1.0\nW 1\nF 2\nB 2\nB 1", 1, 0, 0 },                      // bytes * 10^9 / 1
        { "F 1\nC 1.0 f16\nF 2\nB 2\nB 1", 0, 0, 1 },
        { "F 1\nO 1.1\nW 1\nC 1.2 f16\nF 2\nB 2\nB 1", 1000000000, UINT64_MAX - 1, 1000000000 },
        { "F 1\nD 1\nF 1\nF 2\nB 2\nB 1", 1, 0, 0 },                        // costs
    };
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n"
                              "node 1 a op fwd=0 bwd=0 out=9223372036854775000,1,1 needs=none in=0\n"
                              "node 2 b op fwd=0 bwd=0 out=1 needs=none in=1.0\n");
    tl_report report, zero;
    tl_env env;
    size_t i;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&zero, 0, sizeof zero);
    zero.broken_step = -1;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        tl_device device = device_of(rows[i].link, rows[i].latency, rows[i].codec);
        tl_plan plan = plan_of(rows[i].steps, 0);
        if (i == 6) NODES(&graph)[1].fwd_cost = (uint64_t)1 << 63;
        if (simulate(&env, &graph, &plan, &device, &report) != TL_ERROR_OVERFLOW) fail_msg("row %d", (int)i);
        assert_non_null(strstr(env.error.text, "64 bits"));
        assert_memory_equal(&report, &zero, sizeof report);
        tl_free_plan(NULL, &plan);
    }
    tl_free_graph(NULL, &graph);
}

static void counts_that_do_not_fit_are_errors(void **state) {
    tl_graph graph = graph_of(everything), huge;
    tl_step step = tli_step_of(TL_STEP_FORWARD, 1, TL_ALL_OUTPUTS);
    tl_plan plan;
    tli_sim sim;
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&plan, 0, sizeof plan);
    assert_int_equal(tli_init_sim(&env, &sim, TLI_IN(SIMULATE_PLAN), &graph, NULL, &plan, NULL), TL_OK);
    sim.step_count = INT32_MAX;
    assert_int_equal(tli_sim_step(&sim, &step), TL_ERROR_OVERFLOW);
    sim.step_count = 0;
    sim.report.allocation_count = INT32_MAX;
    assert_int_equal(tli_sim_step(&sim, &step), TL_ERROR_OVERFLOW);
    tli_free_sim(&sim);
    huge = graph;
    huge.tensor_count = INT32_MAX;
    assert_int_equal(tli_init_sim(&env, &sim, TLI_IN(SIMULATE_PLAN), &huge, NULL, &plan, NULL), TL_ERROR_OVERFLOW);
    tli_free_sim(&sim);
    tl_free_graph(NULL, &graph);
}

static void simulations_survive_a_failing_allocator(void **state) {
    static const uint64_t offsets[] = { 0, 8, 16, 18, 26, 29, 34 };
    tl_graph graph = graph_of(everything);
    tl_plan plan = plan_of("F 1\nF 2\nF 3\nF 4", 1);
    tl_report report, zero;
    long at;
    (void)state;
    plan.offsets = offsets;
    plan.offset_count = 7;
    memset(&zero, 0, sizeof zero);
    zero.broken_step = -1;
    for (at = 0;; at++) {
        failing_alloc f = {0};
        tl_env env = failing_env(&f, at);
        tl_result result = simulate(&env, &graph, &plan, NULL, &report);
        assert_int_equal(f.live, 0);
        if (f.count <= at) { assert_int_equal(result, TL_OK); break; }
        assert_int_equal(result, TL_ERROR_NO_MEMORY);
        assert_memory_equal(&report, &zero, sizeof report);
        assert_true(strlen(env.error.text) > 10);
    }
    assert_true(at >= 5);
    for (at = 0;; at++) {
        failing_alloc f = {0};
        tl_env env = failing_env(&f, at);
        plan.cost = 77;
        if (tl_measure_plan(&env, &graph, NULL, &plan) == TL_OK) break;
        assert_int_equal(f.live, 0);
        assert_int_equal(plan.cost, 0);
        assert_int_equal(plan.step_count, 4);
    }
    plan.offsets = NULL;
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

typedef tl_result planner(tl_env *env, const tl_graph *graph, tl_plan *plan);

static tl_result plan_all(tl_env *env, const tl_graph *graph, tl_plan *plan) { return tl_plan_keep_all(env, graph, 0, plan); }
static tl_result plan_none(tl_env *env, const tl_graph *graph, tl_plan *plan) {
    static const uint8_t keep[8];
    return tl_plan_kept_set(env, graph, keep, plan);
}
static tl_result plan_three_slots(tl_env *env, const tl_graph *graph, tl_plan *plan) { return tl_plan_revolve(env, graph, 3, plan); }
static tl_result plan_text(tl_env *env, const tl_graph *graph, tl_plan *plan) {
    (void)graph;
    return tl_parse_schedule(env, "F 1\nF 2\nD 1\nF 3\nF 4\nD 1\nF 1\nF 2\nF 3\nF 4\nF 5\n", 44, plan);
}

static void planners_survive_a_failing_allocator(void **state) {
    static planner *const planners[] = { plan_all, plan_none, plan_three_slots, plan_text };
    tl_graph graph;
    tl_chain_desc desc;
    tl_plan plan, zero;
    size_t i;
    long at;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.layer_count = 7;
    desc.input_bytes = 1;
    memset(&zero, 0, sizeof zero);
    assert_int_equal(tl_add_chain(NULL, &graph, &desc), TL_OK);
    for (i = 0; i < sizeof planners / sizeof *planners; i++) {
        for (at = 0;; at++) {
            failing_alloc f = {0};
            tl_env env = failing_env(&f, at);
            tl_result result = planners[i](&env, &graph, &plan);
            if (!result) { assert_true(f.count <= at && f.live == 1); tl_free_plan(&env, &plan); assert_int_equal(f.live, 0); break; }
            assert_int_equal(result, TL_ERROR_NO_MEMORY);
            assert_int_equal(f.live, 0);
            assert_memory_equal(&plan, &zero, sizeof plan);
            assert_true(strlen(env.error.text) > 10);
        }
        assert_true(at >= 2);
    }
    tl_free_graph(NULL, &graph);
}

static void planners_answer_a_broken_graph(void **state) {
    static planner *const planners[] = { plan_all, plan_none, plan_three_slots };
    tl_graph graph;
    tl_plan plan, zero;
    size_t i;
    (void)state;
    memset(&zero, 0, sizeof zero);
    tl_init_graph(&graph);
    for (i = 0; i < 3; i++) {
        assert_int_equal(planners[i](NULL, &graph, &plan), TL_ERROR_INVALID_ARG);
        assert_memory_equal(&plan, &zero, sizeof plan);
    }
}

static void a_const_table_is_a_plan_and_freeing_it_does_nothing(void **state) {
    static const tl_step steps[] = { { TL_STEP_FORWARD, 0, 0, 1, -1, 0 }, { TL_STEP_FORWARD_INPLACE, 0, 0, 2, -1, 0 },
                                     { TL_STEP_FORWARD, 0, 0, 3, -1, 0 }, { TL_STEP_FORWARD, 0, 0, 4, -1, 0 } };
    tl_graph graph = graph_of(everything);
    tl_plan plan;
    (void)state;
    memset(&plan, 0, sizeof plan);
    plan.steps = steps;
    plan.step_count = 4;
    plan.inference = 1;
    assert_int_equal(tl_measure_plan(NULL, &graph, NULL, &plan), TL_OK);
    assert_int_equal(plan.peak_bytes, 8 + 8 + 8 + 4);
    assert_int_equal(plan.cost, 10);
    assert_int_equal(plan.base_cost, 17);
    tl_free_plan(NULL, &plan);
    assert_null(plan.steps);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void measure_answers_a_broken_plan_and_keeps_its_steps(void **state) {
    tl_graph graph = graph_of(everything);
    tl_plan plan = plan_of("F 1\nF 3", 1);
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
    assert_int_equal(tl_measure_plan(&env, &graph, NULL, &plan), TL_ERROR_INVALID_PLAN);
    assert_string_equal(env.error.text, "tl_measure_plan: step 1 (F 3 s): input 2.0 is not resident");
    assert_int_equal(plan.step_count, 2);
    assert_int_equal(plan.peak_bytes, 0);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// -- keep all, kept sets --

static char *written(const tl_plan *plan) {
    size_t length = tl_print_schedule(plan, NULL, 0);
    char *text = (char *)malloc(length + 1);
    assert_int_equal(tl_print_schedule(plan, text, length + 1), length);
    return text;
}

static void assert_schedule(const tl_plan *plan, const char *text) {
    char *printed = written(plan);
    assert_string_equal(printed, text);
    free(printed);
}

static void keep_all_drops_right_after_the_last_use(void **state) {
    tl_graph graph = graph_of(everything);
    tl_plan plan;
    (void)state;
    assert_int_equal(tl_plan_keep_all(NULL, &graph, 0, &plan), TL_OK);
    assert_schedule(&plan, "S 1\nF 2\nF 3\nF 4\nD 3.1\nF 5\nD 1.0\nD 5.0\nB 4\nD 3.0\nB 3\nB 2\nD 2.0\nB 1\n");
    assert_int_equal(plan.cost, 29);
    assert_int_equal(plan.base_cost, 29);
    assert_int_equal(plan.peak_bytes, 40);
    assert_int_equal(plan.repeat_count, 1);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void keep_all_in_inference_ends_with_the_results(void **state) {
    tl_graph graph = graph_of(everything);
    tl_plan plan;
    (void)state;
    assert_int_equal(tl_plan_keep_all(NULL, &graph, 1, &plan), TL_OK);
    assert_schedule(&plan, "F 1\nF 2\nF 3\nD 2.0\nF 4\nD 3.0\nD 3.1\nF 5\nD 1.0\nD 5.0\n");
    assert_int_equal(plan.inference, 1);
    assert_int_equal(plan.cost, 17);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void a_kept_set_makes_again_what_backward_wants(void **state) {
    static const uint8_t none[7], some[7] = { 0, 1, 0, 0, 0, 0, 0 };
    tl_graph graph = graph_of(everything);
    tl_plan plan;
    (void)state;
    // B 4 wants 3.0: 1 (with its saved bytes), 2, 3; b stays for B 2, a goes after F 2
    assert_int_equal(tl_plan_kept_set(NULL, &graph, none, &plan), TL_OK);
    assert_schedule(&plan, "F 1\nF 2\nF 3\nD 2.0\nF 4\nD 3.0\nD 3.1\nF 5\nD 1.0\nD 5.0\n"
                           "S 1\nF 2\nD 1.0\nF 3\nD 3.1\nB 4\nD 3.0\nB 3\nB 2\nD 2.0\nB 1\n");
    assert_int_equal(plan.cost, 29 + 3 + 1 + 4);
    assert_int_equal(plan.base_cost, 29);
    tl_free_plan(NULL, &plan);
    // a is kept, and with it its saved bytes
    assert_int_equal(tl_plan_kept_set(NULL, &graph, some, &plan), TL_OK);
    assert_schedule(&plan, "S 1\nF 2\nF 3\nD 2.0\nF 4\nD 3.0\nD 3.1\nF 5\nD 5.0\n"
                           "F 2\nD 1.0\nF 3\nD 3.1\nB 4\nD 3.0\nB 3\nB 2\nD 2.0\nB 1\n");
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void saved_bytes_alone_are_made_again_from_a_kept_output(void **state) {
    static const uint8_t keep[5] = { 0, 1, 0, 1, 1 };
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n"
                              "node 1 a op fwd=1 bwd=1 out=10,20 needs=out0 in=0 saved=5\n"
                              "node 2 b op fwd=1 bwd=1 out=7 needs=in in=1.0\n"
                              "node 3 c op fwd=1 bwd=1 out=7 needs=none in=1.1,2\n");
    tl_plan plan;
    (void)state;
    // 1.0 is kept and 1.1 is not: F 1 first; S 1 makes 1.1 again, and 1.0 twice for the call
    assert_int_equal(tl_plan_kept_set(NULL, &graph, keep, &plan), TL_OK);
    assert_schedule(&plan, "F 1\nF 2\nF 3\nD 1.1\nD 2.0\nD 3.0\nB 3\nB 2\nS 1\nD 1.1\nB 1\nD 1.0\n");
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void a_kept_output_that_nobody_reads_later_goes_after_its_own_last_use(void **state) {
    static const uint8_t keep[5] = { 0, 1, 0, 0, 0 };
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n"
                              "node 1 a op fwd=1 bwd=1 out=10,20 needs=none in=0\n"
                              "node 2 b op fwd=1 bwd=1 out=7 needs=none in=1.0\n"
                              "node 3 c op fwd=1 bwd=1 out=7 needs=in in=1.1\n");
    tl_plan plan;
    (void)state;
    assert_int_equal(tl_plan_kept_set(NULL, &graph, keep, &plan), TL_OK);
    assert_schedule(&plan, "F 1\nF 2\nD 1.0\nD 2.0\nF 3\nD 1.1\nD 3.0\nF 1\nD 1.0\nB 3\nD 1.1\nB 2\nB 1\n");
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void results_are_never_made_again(void **state) {
    static const uint8_t keep[3] = { 0, 0, 0 };
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n"
                              "node 1 a op fwd=1 bwd=1 out=10 needs=out in=0 saved=2 keep\n"
                              "node 2 b op fwd=1 bwd=1 out=7 needs=in in=1\n");
    tl_plan plan;
    (void)state;
    assert_int_equal(tl_plan_kept_set(NULL, &graph, keep, &plan), TL_OK);
    assert_schedule(&plan, "S 1\nF 2\nD 2.0\nB 2\nB 1\n");
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// Every drop stands right after a call that reads or makes its tensor, so nothing is held longer than it is read.
static void assert_tight(const tl_graph *graph, const tl_plan *plan) {
    int32_t at, i, call = -1;
    for (at = 0; at < plan->step_count; at++) {
        const tl_step *step = &plan->steps[at];
        const tl_node *node;
        int uses = 0;
        if (step->kind != TL_STEP_DROP) { call = at; continue; }
        assert_true(call >= 0);
        node = &graph->nodes[plan->steps[call].node];
        for (i = node->first_input; i < node->first_input + node->input_count; i++)
            uses |= graph->inputs[i].tensor == graph->nodes[step->node].first_output + step->output;
        uses |= plan->steps[call].node == step->node;
        assert_true(uses);
    }
}

static void every_kept_set_of_every_graph_is_a_valid_plan(void **state) {
    uint64_t seed;
    (void)state;
    for (seed = 1; seed <= (uint64_t)scaled(4000); seed++) {
        tl_random random;
        tl_graph graph;
        tl_plan plan, all;
        tl_report report;
        tl_env env;
        int32_t i, forwards, percent;
        uint8_t keep[128];
        uint64_t results = 0;
        random.state = seed;
        memset(&env, 0, sizeof env);
        if (random_effect_graph(&env, &random, 14, (int)(seed % 3) * 20, &graph)) fail_msg("seed %d: %s", (int)seed, env.error.text);
        percent = random_chance(&random, 20) ? 0 : random_count(&random, 0, 100);
        for (i = 0; i < graph.tensor_count; i++) keep[i] = random_chance(&random, percent);
        if (tl_plan_kept_set(&env, &graph, keep, &plan)) fail_msg("seed %d: %s", (int)seed, env.error.text);
        if (tl_plan_keep_all(&env, &graph, 0, &all)) fail_msg("seed %d: %s", (int)seed, env.error.text);
        assert_int_equal(all.cost, all.base_cost);
        assert_true(plan.cost >= all.cost && plan.base_cost == all.base_cost);
        assert_tight(&graph, &plan);
        assert_tight(&graph, &all);
        for (i = 0, forwards = 0; i < graph.node_count; i++) forwards += !graph.nodes[i].is_input;
        assert_int_equal(simulate(&env, &graph, &plan, NULL, &report), TL_OK);
        assert_true(report.forward_count >= forwards && report.forward_count <= 2 * forwards);
        assert_int_equal(report.forward_count - report.recompute_count, forwards);
        for (i = 0; i < graph.tensor_count; i++)
            if (graph.nodes[graph.outputs[i].node].keep || graph.nodes[graph.outputs[i].node].is_input) results += graph.outputs[i].bytes;
        assert_int_equal(report.end_bytes, results);
        tl_free_plan(&env, &plan);
        memset(keep, 1, sizeof keep);
        assert_int_equal(tl_plan_kept_set(&env, &graph, keep, &plan), TL_OK);
        assert_int_equal(plan.step_count, all.step_count);  // all kept = keep all
        assert_memory_equal(plan.steps, all.steps, (size_t)all.step_count * sizeof(tl_step));
        tl_free_plan(&env, &plan);
        tl_free_plan(&env, &all);
        assert_int_equal(tl_plan_keep_all(&env, &graph, 1, &all), TL_OK);
        assert_tight(&graph, &all);
        tl_free_plan(&env, &all);
        tl_free_graph(&env, &graph);
    }
}

static void deep_chains_are_made_again_without_recursion(void **state) {
    tl_graph graph;
    tl_chain_desc desc;
    tl_plan plan;
    uint8_t *keep = (uint8_t *)calloc(20001, 1);
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.layer_count = 20000;
    desc.input_bytes = 1;
    assert_int_equal(tl_add_chain(NULL, &graph, &desc), TL_OK);
    assert_int_equal(tl_plan_kept_set(NULL, &graph, keep, &plan), TL_OK);
    assert_int_equal(plan.cost, 40000 + 19999);
    assert_int_equal(plan.peak_bytes, 20001 + 1);  // all tensors but the last, made again: 0 .. 19999, two gradients
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
    free(keep);
}

static void random_walks_agree_with_themselves(void **state) {
    uint64_t seed, valid = 0;
    (void)state;
    for (seed = 1; seed <= (uint64_t)scaled(2000); seed++) {
        tl_random random;
        tl_graph graph;
        tl_plan plan;
        tl_report with, without;
        tl_device device = device_of(1000000000, 3, 500000000);
        tl_env env;
        memset(&env, 0, sizeof env);
        random.state = seed;
        assert_int_equal(random_graph(&env, &random, 10, &graph), TL_OK);
        assert_int_equal(random_plan(&env, &random, &graph, &plan), TL_OK);
        if (!simulate(&env, &graph, &plan, &device, &without)) {
            assert_int_equal(random_offsets(&env, &random, &graph, &device, &plan), TL_OK);
            if (!simulate(&env, &graph, &plan, &device, &with)) {
                assert_true(!plan.offset_count || with.arena_bytes >= with.peak_bytes);
                assert_int_equal(with.peak_bytes, without.peak_bytes);
                assert_int_equal(with.allocation_count, without.allocation_count);
                assert_int_equal(with.end_bytes, without.end_bytes);
                valid++;
            }
        }
        random_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    assert_true(valid > seed / 4);
}

// -- what steps allocate and free: the table of the header, replayed with an allocator that counts --

typedef struct block { void *memory; uint64_t bytes; } block;

typedef struct counts { uint64_t live, peak, step, allocations; } counts;

static void take(counts *c, block *b, uint64_t bytes) {
    assert_null(b->memory);
    if (!bytes) return;
    b->memory = malloc((size_t)bytes);  // ASan finds what is never freed
    assert_non_null(b->memory);
    memset(b->memory, 0x5A, (size_t)bytes);
    b->bytes = bytes;
    c->live += bytes;
    c->allocations++;
    if (c->live > c->step) c->step = c->live;
    if (c->live > c->peak) c->peak = c->live;
}

static void give(counts *c, block *b) {
    c->live -= b->bytes;
    free(b->memory);
    memset(b, 0, sizeof *b);
}

enum { ABSENT, RESIDENT, LEAVING, COMING, COMPRESSED };

typedef struct replay {
    const tl_graph *graph;
    counts  device, host;
    uint8_t *state, *has_gradient, *on_host;      // [tensors]
    block   *bytes, *gradients, *packed, *copies;  // [tensors]
    block   *saved;                                // [nodes]
} replay;

static void replay_forward(replay *r, const tl_step *step) {
    const tl_node *node = &r->graph->nodes[step->node];
    block second[8], work;
    int32_t end = node->first_output + node->output_count, i, count = 0, absent = 0;
    int in_place = step->kind == TL_STEP_FORWARD_INPLACE;
    uint8_t was[8];
    memset(second, 0, sizeof second);
    memset(&work, 0, sizeof work);
    if (in_place) {
        int32_t from = r->graph->inputs[node->first_input + node->inplace].tensor;
        r->bytes[node->first_output] = r->bytes[from];
        memset(&r->bytes[from], 0, sizeof r->bytes[from]);
        r->state[from] = ABSENT;
        r->state[node->first_output] = RESIDENT;
        absent = 1;
    }
    for (i = node->first_output; i < end; i++) {
        was[i - node->first_output] = r->state[i];
        if (r->state[i] != ABSENT) continue;
        take(&r->device, &r->bytes[i], r->graph->outputs[i].bytes);
        r->state[i] = RESIDENT;
        absent = 1;
    }
    for (i = node->first_output; i < end && absent; i++)
        if (was[i - node->first_output] != ABSENT && !(in_place && i == node->first_output))
            take(&r->device, &second[count++], r->graph->outputs[i].bytes);
    if (step->kind == TL_STEP_FORWARD_SAVE) take(&r->device, &r->saved[step->node], node->saved_bytes);
    take(&r->device, &work, step->kind == TL_STEP_FORWARD_SAVE ? node->swork_bytes : node->fwork_bytes);
    give(&r->device, &work);
    while (count > 0) give(&r->device, &second[--count]);
}

static void replay_gradient(replay *r, int32_t tensor) {
    if (r->has_gradient[tensor] || !r->graph->nodes[r->graph->outputs[tensor].node].has_grad) return;
    r->has_gradient[tensor] = 1;
    take(&r->device, &r->gradients[tensor], r->graph->outputs[tensor].bytes);
}

static void replay_backward(replay *r, const tl_step *step) {
    const tl_node *node = &r->graph->nodes[step->node];
    block work;
    int32_t i;
    memset(&work, 0, sizeof work);
    for (i = node->first_output; i < node->first_output + node->output_count; i++) replay_gradient(r, i);
    for (i = node->first_input; i < node->first_input + node->input_count; i++) replay_gradient(r, r->graph->inputs[i].tensor);
    take(&r->device, &work, node->bwork_bytes);
    give(&r->device, &work);
    for (i = node->first_output; i < node->first_output + node->output_count; i++) {
        give(&r->device, &r->gradients[i]);
        r->has_gradient[i] = 0;
    }
    give(&r->device, &r->saved[step->node]);
}

static int replay_acts(const replay *r, const tl_step *step, int32_t i) {
    switch (step->kind) {
    case TL_STEP_DROP: return r->state[i] == RESIDENT || r->state[i] == COMPRESSED;
    case TL_STEP_SPILL: case TL_STEP_COMPRESS: return r->state[i] == RESIDENT;
    case TL_STEP_FETCH: return r->state[i] == ABSENT;
    case TL_STEP_WAIT: return r->state[i] == LEAVING || r->state[i] == COMING;
    case TL_STEP_DROP_HOST: return r->on_host[i];
    default: return r->state[i] == COMPRESSED;
    }
}

static void replay_tensor(replay *r, const tl_step *step, int32_t i) {
    uint64_t bytes = r->graph->outputs[i].bytes;
    switch (step->kind) {
    case TL_STEP_DROP:
        give(&r->device, r->state[i] == COMPRESSED ? &r->packed[i] : &r->bytes[i]);
        r->state[i] = ABSENT;
        break;
    case TL_STEP_SPILL:
        take(&r->host, &r->copies[i], bytes);
        r->on_host[i] = 1;
        r->state[i] = LEAVING;
        break;
    case TL_STEP_FETCH:
        take(&r->device, &r->bytes[i], bytes);
        r->state[i] = COMING;
        break;
    case TL_STEP_WAIT:
        if (r->state[i] == LEAVING) give(&r->device, &r->bytes[i]);
        r->state[i] = r->state[i] == LEAVING ? ABSENT : RESIDENT;
        break;
    case TL_STEP_DROP_HOST:
        give(&r->host, &r->copies[i]);
        r->on_host[i] = 0;
        break;
    case TL_STEP_COMPRESS:
        take(&r->device, &r->packed[i], tl_find_codec_bytes((tl_codec)step->codec, bytes));
        give(&r->device, &r->bytes[i]);
        r->state[i] = COMPRESSED;
        break;
    default:
        take(&r->device, &r->bytes[i], bytes);
        give(&r->device, &r->packed[i]);
        r->state[i] = RESIDENT;
        break;
    }
}

static void replay_step(replay *r, const tl_step *step) {
    const tl_node *node = &r->graph->nodes[step->node];
    int32_t i;
    r->device.step = r->device.live;
    if (step->kind < TL_STEP_BACKWARD) replay_forward(r, step);
    else if (step->kind == TL_STEP_BACKWARD) replay_backward(r, step);
    else if (step->kind == TL_STEP_DROP_SAVED) give(&r->device, &r->saved[step->node]);
    else
        for (i = node->first_output; i < node->first_output + node->output_count; i++)
            if (step->output == TL_ALL_OUTPUTS ? replay_acts(r, step, i) : i - node->first_output == step->output)
                replay_tensor(r, step, i);
}

// What is left is what the table says, and nothing else: after these are freed, nothing is live.
static void replay_end(replay *r, int inference) {
    int32_t i;
    for (i = 0; i < r->graph->tensor_count; i++) {
        if (!inference) assert_null(r->gradients[i].memory);
        give(&r->device, &r->bytes[i]);
        give(&r->device, &r->packed[i]);
        give(&r->host, &r->copies[i]);
    }
    for (i = 0; i < r->graph->node_count; i++) give(&r->device, &r->saved[i]);
    assert_true(r->device.live == 0 && r->host.live == 0);
    free(r->state); free(r->has_gradient); free(r->on_host);
    free(r->bytes); free(r->gradients); free(r->packed); free(r->copies); free(r->saved);
}

static replay replay_of(const tl_graph *graph) {
    size_t tensors = (size_t)graph->tensor_count, nodes = (size_t)graph->node_count;
    replay r;
    int32_t i;
    memset(&r, 0, sizeof r);
    r.graph = graph;
    r.state = (uint8_t *)calloc(tensors, 1);
    r.has_gradient = (uint8_t *)calloc(tensors, 1);
    r.on_host = (uint8_t *)calloc(tensors, 1);
    r.bytes = (block *)calloc(tensors, sizeof *r.bytes);
    r.gradients = (block *)calloc(tensors, sizeof *r.bytes);
    r.packed = (block *)calloc(tensors, sizeof *r.bytes);
    r.copies = (block *)calloc(tensors, sizeof *r.bytes);
    r.saved = (block *)calloc(nodes, sizeof *r.saved);
    for (i = 0; i < graph->tensor_count; i++)
        if (graph->nodes[graph->outputs[i].node].is_input) {
            take(&r.device, &r.bytes[i], graph->outputs[i].bytes);
            r.state[i] = RESIDENT;
        }
    return r;
}

static void a_replay_by_the_table_of_the_header_leaks_nothing_and_has_the_same_peak(void **state) {
    int32_t round, valid = 0, kinds[TL_STEP_COUNT] = { 0 }, k;
    (void)state;
    for (round = 0; round < scaled(600); round++) {
        tl_env env = silent_env();
        tl_random random = { 4100 + (uint64_t)round };
        tl_simulate_desc desc;
        tl_report report;
        tl_graph graph;
        tl_plan plan;
        assert_int_equal(random_effect_graph(&env, &random, 12, round % 3 * 15, &graph), TL_OK);
        assert_int_equal(random_plan(&env, &random, &graph, &plan), TL_OK);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.plan = &plan;
        desc.live_bytes = (uint64_t *)calloc((size_t)plan.step_count + 1, sizeof(uint64_t));
        desc.host_bytes = (uint64_t *)calloc((size_t)plan.step_count + 1, sizeof(uint64_t));
        if (!tl_simulate_plan(&env, &desc, &report)) {
            replay r = replay_of(&graph);
            valid++;
            for (k = 0; k < plan.step_count; k++) {
                replay_step(&r, &plan.steps[k]);
                kinds[plan.steps[k].kind]++;
                if (r.device.step != desc.live_bytes[k] || r.host.live != desc.host_bytes[k])
                    fail_msg("seed %d, step %d: %d and %d bytes, the simulator has %d and %d", 4100 + round, k, (int)r.device.step,
                             (int)r.host.live, (int)desc.live_bytes[k], (int)desc.host_bytes[k]);
            }
            assert_true(r.device.peak == report.peak_bytes && r.host.peak == report.host_peak_bytes);
            assert_true(r.device.live == report.end_bytes && r.host.live == report.end_host_bytes);
            assert_int_equal(r.device.allocations, report.allocation_count);
            replay_end(&r, plan.inference);
        }
        free(desc.live_bytes);
        free(desc.host_bytes);
        random_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    assert_true(is_thinned() || valid > 150);
    for (k = 0; k < TL_STEP_COUNT; k++)
        if (!is_thinned() && kinds[k] < 10) fail_msg("only %d steps %s", kinds[k], tl_name_step((tl_step_kind)k));
}

static void keep_all_peaks_agree_with_the_reference(void **state) {
    char *csv = read_reference("keep_all_peaks_agree_with_the_reference", "remat_reference.csv", NULL), *line;
    int rows = 0;
    (void)state;
    if (!csv) { skip(); return; }
    for (line = strtok(csv, "\n"); line; line = strtok(NULL, "\n")) {
        char name[64], path[128], *text, *comma = strchr(line, ',');
        unsigned long long peak;
        tl_env env;
        tl_graph graph;
        tl_plan plan;
        size_t length;
        if (!strstr(line, ",store_all,") || !comma || (size_t)(comma - line) >= sizeof name) continue;
        memcpy(name, line, (size_t)(comma - line));
        name[comma - line] = 0;
        snprintf(path, sizeof path, "models/%s.tlg", name);
        if (!strchr(comma + 1, ',') || sscanf(comma + 1, "%*[^,],%*[^,],%llu", &peak) != 1) fail_msg("%s", line);
        text = read_reference("keep_all_peaks_agree_with_the_reference", path, &length);
        if (!text) continue;
        memset(&env, 0, sizeof env);
        if (tl_parse_graph(&env, text, length, &graph)) fail_msg("%s: %s", path, env.error.text);
        assert_int_equal(tl_plan_keep_all(&env, &graph, 0, &plan), TL_OK);
        if (plan.peak_bytes != peak) fail_msg("%s: peak %llu, reference %llu", name, (unsigned long long)plan.peak_bytes, peak);
        assert_int_equal(plan.cost, plan.base_cost);
        rows++;
        tl_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
        free(text);
    }
    free(csv);
    print_message("%d models agree\n", rows);
    assert_true(rows >= 10);
}

// -- revolve --

static tl_graph unit_chain(int32_t layers, uint64_t saved, const char *needs) {
    tl_graph graph;
    tl_chain_desc desc;
    uint64_t *bytes = (uint64_t *)calloc((size_t)layers, sizeof *bytes);
    int32_t i;
    for (i = 0; i < layers; i++) bytes[i] = saved;
    memset(&desc, 0, sizeof desc);
    desc.layer_count = layers;
    desc.input_bytes = 1;
    desc.saved_bytes = bytes;
    desc.needs = needs;
    assert_int_equal(tl_add_chain(NULL, &graph, &desc), TL_OK);
    free(bytes);
    return graph;
}

// The least number of forwards by definition: advance m, reverse the rest with one slot less, then the first m.
static void revolve_advances_are_the_optimum_of_the_recurrence(void **state) {
    static uint64_t best[61][10];
    int n, c, m;
    (void)state;
    for (c = 1; c < 10; c++)
        for (n = 1; n <= 60; n++) {
            uint64_t advances;
            best[n][c] = n == 1 ? 0 : (uint64_t)n * (uint64_t)(n - 1) / 2;
            for (m = 1; m < n && c > 1; m++) {
                uint64_t cost = (uint64_t)m + best[m][c] + best[n - m][c - 1];
                if (cost < best[n][c]) best[n][c] = cost;
            }
            assert_int_equal(tli_find_revolve_advances(NULL, (uint64_t)n, (uint64_t)c, &advances), TL_OK);
            assert_int_equal(advances, best[n][c]);
        }
}

static void revolve_advances_have_known_values_and_limits(void **state) {
    static const struct { uint64_t n, c, advances; } rows[] = {
        { 10, 1, 45 }, { 10, 3, 15 }, { 50, 3, 180 }, { 100, 5, 316 }, { 1000, 10, 3636 }, { 10000, 2, 932820 },
        { 10000, 5000, 14998 }, { 1, 1, 0 }, { 2, 1, 1 }, { 5, UINT64_MAX, 4 },
        { UINT64_MAX, UINT64_MAX, UINT64_MAX - 1 }, { UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 1 },
        { (uint64_t)1 << 63, ((uint64_t)1 << 63) - 2, ((uint64_t)1 << 63) },
        { (uint64_t)1 << 32, 1, UINT64_C(9223372034707292160) } };
    tl_env env;
    uint64_t advances;
    size_t i;
    (void)state;
    memset(&env, 0, sizeof env);
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(tli_find_revolve_advances(NULL, rows[i].n, rows[i].c, &advances), TL_OK);
        assert_int_equal(advances, rows[i].advances);
    }
    assert_int_equal(tli_find_revolve_advances(&env, 0, 1, &advances), TL_ERROR_INVALID_ARG);
    assert_int_equal(tli_find_revolve_advances(NULL, 1, 0, &advances), TL_ERROR_INVALID_ARG);
    for (i = 1; i < 40; i++) {
        advances = 1;
        assert_int_equal(tli_find_revolve_advances(NULL, UINT64_MAX, i, &advances), TL_ERROR_OVERFLOW);
        assert_int_equal(advances, 0);
    }
    assert_int_equal(tli_find_revolve_advances(NULL, (uint64_t)1 << 40, 2, &advances), TL_OK);
    assert_int_equal(tli_find_revolve_advances(NULL, (uint64_t)1 << 44, 2, &advances), TL_ERROR_OVERFLOW);
}

static void assert_revolve(int32_t n, int32_t c, uint64_t saved) {
    tl_graph graph = unit_chain(n, saved, "in");
    tl_plan plan;
    tl_report report;
    tl_env env;
    uint64_t advances;
    memset(&env, 0, sizeof env);
    assert_int_equal(tli_find_revolve_advances(NULL, (uint64_t)n, (uint64_t)c, &advances), TL_OK);
    if (tl_plan_revolve(&env, &graph, c, &plan)) fail_msg("n %d c %d: %s", (int)n, (int)c, env.error.text);
    assert_int_equal(simulate(&env, &graph, &plan, NULL, &report), TL_OK);
    assert_int_equal(report.forward_count, advances + (saved ? (uint64_t)n : 1));
    assert_int_equal(report.backward_count, n);
    assert_true(report.peak_bytes <= (uint64_t)c + 3 + saved);
    assert_int_equal(plan.peak_bytes, report.peak_bytes);
    if (!saved) assert_int_equal(plan.cost, advances + 1 + (uint64_t)n);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

static void revolve_reverses_unit_chains_in_the_closed_form(void **state) {
    int32_t n, c;
    (void)state;
    for (n = 1; n <= 40; n++)
        for (c = 1; c <= n + 2; c++) { assert_revolve(n, c, 0); assert_revolve(n, c, 5); }
    for (n = 41; n <= 300; n += 37)
        for (c = 1; c <= 12; c++) { assert_revolve(n, c, 0); assert_revolve(n, c, 1); }
    assert_revolve(10000, 10, 0);
    assert_revolve(10000, INT32_MAX, 0);
}

static void revolve_with_exactly_the_bytes_of_its_slots_is_met(void **state) {
    tl_graph graph = unit_chain(50, 0, "in");
    tl_plan plan;
    (void)state;
    assert_int_equal(tl_plan_revolve(NULL, &graph, 3, &plan), TL_OK);
    assert_int_equal(plan.peak_bytes, 6);  // c + 3: all slots, two buffers and a gradient
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void revolve_prints_the_schedule_of_a_small_chain(void **state) {
    tl_graph graph = unit_chain(4, 0, "in");
    tl_plan plan;
    (void)state;
    assert_int_equal(tl_plan_revolve(NULL, &graph, 2, &plan), TL_OK);
    assert_schedule(&plan, "F 1\nF 2\nD 1.0\nF 3\nF 4\nD 4.0\nB 4\nD 3.0\nB 3\nD 2.0\nF 1\nB 2\nD 1.0\nB 1\n");
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void revolve_serves_other_needs_and_results(void **state) {
    static const char *const needs[] = { "none", "in", "out", "in,out" };
    tl_graph graph;
    tl_plan plan;
    int i, c, keep;
    (void)state;
    for (i = 0; i < 4; i++)
        for (keep = 0; keep < 64; keep++)
            for (c = 1; c < 8; c++) {
                tl_env env;
                int32_t id;
                memset(&env, 0, sizeof env);
                graph = unit_chain(6, (uint64_t)(keep & 1) * 3, needs[i]);
                for (id = 1; id <= 6; id++) NODES(&graph)[id].keep = (uint8_t)(keep >> (id - 1) & 1);
                if (tl_plan_revolve(&env, &graph, c, &plan)) fail_msg("needs %s keep %d c %d: %s", needs[i], keep, c, env.error.text);
                tl_free_plan(NULL, &plan);
                tl_free_graph(NULL, &graph);
            }
}

static void revolve_refuses_what_is_no_chain(void **state) {
    static const char *const graphs[] = {
        "tlg 1\nnode 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n",
        "tlg 1\nnode 0 x input fwd=0 bwd=0 out=1,1 needs=none in=-\nnode 1 a op fwd=1 bwd=1 out=1 needs=in in=0\n",
        "tlg 1\nnode 0 x input fwd=0 bwd=0 out=1 needs=none in=-\nnode 1 a op fwd=1 bwd=1 out=1,1 needs=in in=0\n",
        "tlg 1\nnode 0 x input fwd=0 bwd=0 out=1 needs=none in=-\nnode 1 a op fwd=1 bwd=1 out=1 needs=in in=0,0\n",
        "tlg 1\nnode 0 x input fwd=0 bwd=0 out=1 needs=none in=-\nnode 1 a op fwd=1 bwd=0 out=1 needs=none in=0 grad=no\n",
        "tlg 1\nnode 0 x op fwd=0 bwd=0 out=1 needs=none in=-\nnode 1 a op fwd=1 bwd=1 out=1 needs=in in=0\n",
        ("tlg 1\nnode 0 x input fwd=0 bwd=0 out=1 needs=none in=-\nnode 1 a op fwd=1 bwd=1 out=1 needs=in in=0\n"
         "node 2 b op fwd=1 bwd=1 out=1 needs=in in=0\n") };
    tl_graph graph;
    tl_plan plan;
    tl_env env;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        memset(&env, 0, sizeof env);
        graph = graph_of(graphs[i]);
        assert_int_equal(tl_plan_revolve(&env, &graph, 2, &plan), TL_ERROR_INVALID_ARG);
        assert_non_null(strstr(env.error.text, "tl_plan_revolve: graph: must be a chain"));
        assert_null(plan.memory);
        tl_free_graph(NULL, &graph);
    }
    graph = unit_chain(3, 0, "in");
    assert_int_equal(tl_plan_revolve(&env, &graph, 0, &plan), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_plan_revolve: slot_count: must be > 0");
    assert_int_equal(tl_plan_revolve(&env, &graph, -1, &plan), TL_ERROR_INVALID_ARG);
    tl_free_graph(NULL, &graph);
}

static void revolve_agrees_with_the_reference_rows(void **state) {
    char *csv = read_reference("revolve_agrees_with_the_reference_rows", "unit_revolve.csv", NULL), *line;
    int rows = 0, plans = 0;
    (void)state;
    if (!csv) { skip(); return; }
    strtok(csv, "\n");
    while ((line = strtok(NULL, "\n")) != NULL) {
        unsigned long long n, c, r, want;
        uint64_t advances;
        if (sscanf(line, "%llu,%llu,%llu,%llu", &n, &c, &r, &want) != 4) fail_msg("%s", line);
        assert_int_equal(tli_find_revolve_advances(NULL, n, c, &advances), TL_OK);
        assert_int_equal(advances, want);
        rows++;
        if (n > 1000 || (c != 2 && c != 3 && c != 5 && c != 10 && !(c == 1 && n <= 100))) continue;
        assert_revolve((int32_t)n, (int32_t)c, 0);
        assert_revolve((int32_t)n, (int32_t)c, 2);
        plans++;
    }
    free(csv);
    print_message("%d rows, %d of them as plans\n", rows, plans);
    assert_true(rows >= 79 && plans >= 20);
}

// -- names and text --

static void every_step_and_codec_has_a_name_that_parses_back(void **state) {
    tl_step_kind kind;
    tl_codec codec;
    int i;
    (void)state;
    for (i = 0; i < TL_STEP_COUNT; i++) {
        assert_int_equal(tl_parse_step(tl_name_step((tl_step_kind)i), &kind), 1);
        assert_int_equal(kind, i);
        assert_true(strlen(tl_explain_step((tl_step_kind)i)) > 10);
    }
    for (i = 0; i < TL_CODEC_COUNT; i++) {
        assert_int_equal(tl_parse_codec(tl_name_codec((tl_codec)i), &codec), 1);
        assert_int_equal(codec, i);
    }
    assert_int_equal(tl_parse_step("f", &kind), 0);
    assert_int_equal(tl_parse_step("", &kind), 0);
    assert_int_equal(kind, 0);
    assert_int_equal(tl_parse_codec("q", &codec), 0);
    assert_string_equal(tl_name_step(TL_STEP_COUNT), "?");
    assert_string_equal(tl_explain_step(TL_STEP_COUNT), "?");
    assert_string_equal(tl_name_codec(TL_CODEC_COUNT), "?");
}

static void schedules_print_and_parse_back(void **state) {
    static const char text[] = "F 1\nI 2\nS 3\nB 4\nD 1\nD 1.0\nDS 3\nO 5\nO 5.1\nL 5\nW 5.1\nDH 5\nC 3 q8\nC 3.2 f16\nC 4 bf16\nX 3\n";
    tl_plan plan = plan_of(text, 0);
    char buf[16];
    (void)state;
    assert_int_equal(plan.step_count, 16);
    assert_int_equal(plan.peak_bytes + plan.cost, 0);
    assert_schedule(&plan, text);
    assert_int_equal(tl_print_schedule(&plan, buf, sizeof buf), sizeof text - 1);
    assert_string_equal(buf, "F 1\nI 2\nS 3\nB 4");
    tl_free_plan(NULL, &plan);
}

static void schedules_may_have_comments_blank_lines_and_no_last_line_end(void **state) {
    tl_plan plan = plan_of("# a schedule\n\n  F 1   # first\r\n\tD 1.0\n#", 0);
    (void)state;
    assert_schedule(&plan, "F 1\nD 1.0\n");
    tl_free_plan(NULL, &plan);
    plan = plan_of("\xEF\xBB\xBF" "F 1\n", 0);  // with a byte order mark
    assert_schedule(&plan, "F 1\n");
    tl_free_plan(NULL, &plan);
    assert_int_equal(tl_parse_schedule(NULL, NULL, 0, &plan), TL_OK);
    assert_int_equal(plan.step_count, 0);
    tl_free_plan(NULL, &plan);
}

static void schedules_with_an_error_name_the_line(void **state) {
    static const struct { const char *text, *sentence; } rows[] = {
        { "\xEF\xBB\xBF\xEF\xBB\xBF" "F 1\n", "line 1: step: must be F, I, S, B, D, DS, O, L, W, DH, C or X" },
        { "\xEF\xBB\xBF" "F 1\nG 2\n", "line 2: step: must be F, I, S, B, D, DS, O, L, W, DH, C or X" },
        { "F 1\nG 2\n", "line 2: step: must be F, I, S, B, D, DS, O, L, W, DH, C or X" },
        { "F", "line 1: target: must be a node number, as in F 3" },
        { "F 1.0", "line 1: target: must be a node number, as in F 3" },
        { "DS 1.0", "line 1: target: must be a node number, as in F 3" },
        { "F -1", "line 1: target: must be a node number, as in F 3" },
        { "F 2147483648", "line 1: target: must be a node number, as in F 3" },
        { "D 1.", "line 1: target: must be a node number or an output, as in D 3.1" },
        { "D .1", "line 1: target: must be a node number or an output, as in D 3.1" },
        { "D 1.0.0", "line 1: target: must be a node number or an output, as in D 3.1" },
        { "D 1.4294967296", "line 1: target: must be a node number or an output, as in D 3.1" },
        { "\n\nC 1", "line 3: codec: must be f16, bf16 or q8" },
        { "C 1 none", "line 1: codec: must be f16, bf16 or q8" },
        { "C 1 f32", "line 1: codec: must be f16, bf16 or q8" },
        { "D 1 q8", "line 1: more words than the step takes" },
        { "C 1 q8 q8", "line 1: more words than the step takes" },
        { "K 4 4", "line 1: more words than the step takes" },
        { "E 3.0 3.0", "line 1: more words than the step takes" } };
    tl_plan plan, zero;
    tl_env env;
    volatile size_t too_long = TLI_TEXT_LIMIT + 1;  // what compilers cannot see they do not warn of
    size_t i;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&zero, 0, sizeof zero);
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(tl_parse_schedule(&env, rows[i].text, strlen(rows[i].text), &plan), TL_ERROR_PARSE);
        assert_int_equal(strncmp(env.error.text, "tl_parse_schedule: ", 19), 0);
        assert_string_equal(env.error.text + 19, rows[i].sentence);
        assert_memory_equal(&plan, &zero, sizeof plan);
    }
    assert_int_equal(tl_parse_schedule(&env, "", too_long, &plan), TL_ERROR_PARSE);
}

int main(int argc, char **argv) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_rules_are_held),
        cmocka_unit_test(forward_in_place_rules_are_held),
        cmocka_unit_test(what_may_run_once_only_does),
        cmocka_unit_test(once_counts_in_each_slot),
        cmocka_unit_test(scratch_of_a_save_is_swork),
        cmocka_unit_test(plans_of_one_pass_run_it_once),
        cmocka_unit_test(in_place_needs_one_reader_slot_and_a_missing_output),
        cmocka_unit_test(save_rules_are_held),
        cmocka_unit_test(backward_rules_are_held),
        cmocka_unit_test(backward_in_any_order_still_waits_for_its_consumers),
        cmocka_unit_test(drop_rules_are_held),
        cmocka_unit_test(copy_rules_are_held),
        cmocka_unit_test(codec_rules_are_held),
        cmocka_unit_test(rules_of_the_end_are_held),
        cmocka_unit_test(a_weight_in_pieces_is_updated_with_its_reader),
        cmocka_unit_test(inference_without_keep_ends_with_the_nodes_that_nobody_reads),
        cmocka_unit_test(steps_that_are_no_steps_are_errors),
        cmocka_unit_test(plans_with_wrong_counts_or_flags_are_errors),
        cmocka_unit_test(a_training_plan_has_the_bytes_and_costs_worked_by_hand),
        cmocka_unit_test(an_empty_inference_of_inputs_alone_peaks_before_the_first_step),
        cmocka_unit_test(outputs_that_are_resident_are_made_twice_for_the_call),
        cmocka_unit_test(a_save_makes_outputs_twice_only_where_one_is_missing),
        cmocka_unit_test(in_place_takes_over_the_bytes_and_the_offset_of_its_input),
        cmocka_unit_test(gradients_are_made_on_the_first_contribution_and_once),
        cmocka_unit_test(copies_hold_their_bytes_until_the_wait),
        cmocka_unit_test(copies_overlap_compute_and_wait_for_the_link),
        cmocka_unit_test(copies_share_a_link_or_have_one_each_way_or_take_turns),
        cmocka_unit_test(each_way_has_its_rate),
        cmocka_unit_test(the_first_wait_after_a_call_takes_its_latency),
        cmocka_unit_test(steps_begin_when_compute_ends_and_copies_when_the_link_is_free_too),
        cmocka_unit_test(conversions_count_both_copies_and_take_compute_time),
        cmocka_unit_test(copy_times_are_rounded_up_exactly),
        cmocka_unit_test(codec_bytes_follow_the_blocks),
        cmocka_unit_test(offsets_place_allocations_in_the_order_that_is_documented),
        cmocka_unit_test(offsets_may_be_used_again_once_freed),
        cmocka_unit_test(touching_offsets_are_apart_and_one_byte_more_overlaps),
        cmocka_unit_test(broken_offsets_have_their_sentences),
        cmocka_unit_test(host_offsets_place_copies_and_have_their_sentences),
        cmocka_unit_test(what_has_no_bytes_has_no_number),
        cmocka_unit_test(sums_that_do_not_fit_are_errors),
        cmocka_unit_test(counts_that_do_not_fit_are_errors),
        cmocka_unit_test(simulations_survive_a_failing_allocator),
        cmocka_unit_test(planners_survive_a_failing_allocator),
        cmocka_unit_test(planners_answer_a_broken_graph),
        cmocka_unit_test(a_const_table_is_a_plan_and_freeing_it_does_nothing),
        cmocka_unit_test(measure_answers_a_broken_plan_and_keeps_its_steps),
        cmocka_unit_test(keep_all_drops_right_after_the_last_use),
        cmocka_unit_test(keep_all_in_inference_ends_with_the_results),
        cmocka_unit_test(a_kept_set_makes_again_what_backward_wants),
        cmocka_unit_test(saved_bytes_alone_are_made_again_from_a_kept_output),
        cmocka_unit_test(a_kept_output_that_nobody_reads_later_goes_after_its_own_last_use),
        cmocka_unit_test(results_are_never_made_again),
        cmocka_unit_test(every_kept_set_of_every_graph_is_a_valid_plan),
        cmocka_unit_test(deep_chains_are_made_again_without_recursion),
        cmocka_unit_test(random_walks_agree_with_themselves),
        cmocka_unit_test(a_replay_by_the_table_of_the_header_leaks_nothing_and_has_the_same_peak),
        cmocka_unit_test(keep_all_peaks_agree_with_the_reference),
        cmocka_unit_test(revolve_advances_are_the_optimum_of_the_recurrence),
        cmocka_unit_test(revolve_advances_have_known_values_and_limits),
        cmocka_unit_test(revolve_reverses_unit_chains_in_the_closed_form),
        cmocka_unit_test(revolve_with_exactly_the_bytes_of_its_slots_is_met),
        cmocka_unit_test(revolve_prints_the_schedule_of_a_small_chain),
        cmocka_unit_test(revolve_serves_other_needs_and_results),
        cmocka_unit_test(revolve_refuses_what_is_no_chain),
        cmocka_unit_test(revolve_agrees_with_the_reference_rows),
        cmocka_unit_test(every_step_and_codec_has_a_name_that_parses_back),
        cmocka_unit_test(schedules_print_and_parse_back),
        cmocka_unit_test(schedules_may_have_comments_blank_lines_and_no_last_line_end),
        cmocka_unit_test(schedules_with_an_error_name_the_line),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
