// [5], [12]: calls that one step begins and another ends. What the simulator allows is compared with a replay of its own
// and, rule by rule, with schedules by hand; what a run computes, with the same plan in which every call ends at once.
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
#include "support/run_support.h"
#include "support/run_bed.h"
#include "support/begun_replay.h"
#include "support/sink_support.h"
#include "support/narrow.h"


static tl_result simulate(tl_env *env, const tl_graph *graph, const tl_plan *plan, tl_report *report) {
    tl_simulate_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    return tl_simulate_plan(env, &desc, report);
}

// -- the rules, by hand --

static const char *const rules_text =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
    "node 1 a conv fwd=3 bwd=5 out=16 needs=in in=0\n"
    "node 2 b relu fwd=1 bwd=2 out=16 needs=out in=1 inplace=0\n"
    "node 3 s split fwd=4 bwd=3 out=4,8 needs=in0 in=1\n"
    "node 4 w work fwd=2 bwd=2 out=8 needs=none in=1 fwork=4 bwork=4\n"
    "node 5 v save fwd=2 bwd=2 out=8 needs=none in=1 saved=4\n"
    "node 6 g relu fwd=1 bwd=1 out=16 needs=none in=2 inplace=0\n"
    "node 7 f work fwd=1 bwd=1 out=4 needs=none in=1 bwork=4\n";

// All forwards, and backwards down to the node.
#define FORWARDS "F 1\nF 2\nF 3\nF 4\nS 5\nF 6\nF 7\n"

typedef struct rule_case { const char *schedule, *text; int any_order; } rule_case;

static const rule_case broken_rules[] = {
    { "F 1\nF 3 begin\nD 1\n", "step 2 (D 1 a): a call under way reads 1.0", 0 },
    { "F 1\nF 3 begin\nO 1.0\n", "step 2 (O 1.0 a): a call under way reads 1.0", 0 },
    { "F 1\nF 3 begin\nC 1 f16\n", "step 2 (C 1 a): a call under way reads 1.0", 0 },
    { "F 1\nF 3 begin\nI 2\n", "step 2 (I 2 b): a call under way reads 1.0", 0 },
    { "F 1\nO 1\nF 3 begin\nW 1\n", "step 3 (W 1 a): a call under way reads 1.0", 0 },
    { "F 1\nF 3 begin\nF 2 begin\nW 3\nD 1\n", "step 4 (D 1 a): a call under way reads 1.0", 0 },
    { "F 1 begin\nF 2\n", "step 1 (F 2 b): input 1.0 is not resident", 0 },
    { "F 1 begin\nI 2\n", "step 1 (I 2 b): input 1.0 is not resident", 0 },
    { "F 1 begin\nF 2 begin\n", "step 1 (F 2 b): input 1.0 is not resident", 0 },
    { "F 1 begin\nD 1\n", "step 1 (D 1 a): a call of this node is under way", 0 },
    { "F 1 begin\nF 1\n", "step 1 (F 1 a): a call of this node is under way", 0 },
    { "F 1 begin\nB 1\n", "step 1 (B 1 a): a call of this node is under way", 0 },
    { "F 1 begin\nL 1\n", "step 1 (L 1 a): a call of this node is under way", 0 },
    { "F 1 begin\nF 1 begin\n", "step 1 (F 1 a): a call of this node is under way", 0 },
    { "F 1\nO 1\nW 1\nF 1 begin\nDH 1\n", "step 4 (DH 1 a): a call of this node is under way", 0 },
    { "F 1\nF 3 begin\nW 3.0\n", "step 2 (W 3.0 s): output: a call ends for the whole node", 0 },
    { "F 1\nF 3 begin\nW 3.1\n", "step 2 (W 3.1 s): output: a call ends for the whole node", 0 },
    { "W 1\n", "step 0 (W 1 a): no output is in a state to act on", 0 },
    { "F 1 begin\nW 1\nW 1\n", "step 2 (W 1 a): no output is in a state to act on", 0 },
    { "F 1@1 begin\nW 1\n", "step 1 (W 1 a): no output is in a state to act on", 0 },
    { "F 1\nF 4 begin\n", "step 1 (F 4 w): a call that is begun has no scratch, and no saved bytes", 0 },
    { "F 1\nF 5 begin\n", "step 1 (F 5 v): a call that is begun has no scratch, and no saved bytes", 0 },
    { "F 1\nF 3\nD 3.0\nF 3 begin\n", "step 3 (F 3 s): a call that is begun makes all outputs, and none of them again", 0 },
    { "F 1\nF 3\nF 3 begin\n", "step 2 (F 3 s): all outputs are already resident", 0 },
    { "F 1\nF 3\nO 3.0\nF 3 begin\n", "step 3 (F 3 s): all outputs are already resident", 0 },
    { "K 2\nF 1 begin\nW 1\n", "step 0 (F 1 a): begins: in_flight must be 0 or 1", 0 },
    { FORWARDS "B 7 begin\n", "step 7 (B 7 f): a call that is begun has no scratch, and no saved bytes", 0 },
    { FORWARDS "B 7\nB 6\nB 5 begin\n", "step 9 (B 5 v): a call that is begun has no scratch, and no saved bytes", 0 },
    { FORWARDS "B 7\nB 6\nB 5\nB 4\nB 3 begin\nB 2\n", "step 12 (B 2 b): a call under way writes the gradient of 1.0", 0 },
    { FORWARDS "B 7\nB 6\nB 5\nB 4\nB 3 begin\nB 2 begin\n", "step 12 (B 2 b): a call under way writes the gradient of 1.0", 0 },
    { FORWARDS "B 7\nB 6\nB 5\nB 4\nB 3 begin\nD 1\n", "step 12 (D 1 a): a call under way reads 1.0", 0 },
    { FORWARDS "B 7\nB 6\nB 5\nB 4\nB 3\nD 6\nB 2 begin\nI 6\n", "step 14 (I 6 g): a call under way reads 2.0", 0 },
    { FORWARDS "B 7\nB 6\nB 5\nB 4\nB 3\nB 2 begin\nB 1\n", "step 13 (B 1 a): consumer 2 (b) has not run backward", 0 },
    { FORWARDS "B 7\nB 6\nB 5\nB 4\nB 3\nB 2 begin\nB 1 begin\n", "step 13 (B 1 a): consumer 2 (b) has not run backward", 0 },
    { FORWARDS "B 6\nB 2\nD 2\nF 2 begin\nB 1\n", "step 11 (B 1 a): consumer 3 (s) has not run backward", 1 },
    { FORWARDS "B 7\nB 6 begin\nB 4\n", "step 9 (B 4 w): backward out of order: node 5 (v) is next", 0 },
    { FORWARDS "B 7\nB 6 begin\nB 6\n", "step 9 (B 6 g): a call of this node is under way", 0 },
    { FORWARDS "B 7\nB 6 begin\nW 6\nB 6\n", "step 10 (B 6 g): backward already ran", 0 },
    { FORWARDS "B 7\nB 6\nB 5\nB 4\nB 3\nB 2\nB 1 begin\n", "after the last step: no W ends the call of 1 (a)", 0 },
};

static const char *const kept_rules[] = {
    FORWARDS "B 7\nB 6 begin\nB 5\nB 4\nW 6\nB 3 begin\nW 3\nB 2 begin\nW 2\nB 1 begin\nW 1\n",
    "F 1 begin\nW 1\nF 2 begin\nF 3 begin\nF 4\nW 3\nS 5\nF 7\nW 2\nF 6\nB 7\nB 6\nB 5\nB 4\nB 3\nB 2\nB 1\n",
    "F 1\nF 3 begin\nF 2\nI 6\nS 5\nF 4\nF 7\nW 3\nB 7\nB 6\nB 5\nB 4\nB 3\nF 2\nB 2\nB 1\n",     // 2.0 is read by none
    FORWARDS "O 1\nW 1\nL 1\nW 1\nB 7\nB 6\nB 5\nB 4\nB 3 begin\nDH 1\nW 3\nB 2\nD 1\nB 1\n",       // the copy on the host
    FORWARDS "O 1\nB 7\nB 6\nB 5\nB 4\nB 3 begin\nW 3\nW 1\nB 2\nB 1\n",                              // reads what leaves
};

static void each_rule_is_named(void **state) {
    tl_env env;
    tl_graph graph;
    tl_plan plan;
    tl_report report;
    size_t i;
    (void)state;
    memset(&env, 0, sizeof env);
    if (tl_parse_graph(&env, rules_text, strlen(rules_text), &graph)) fail_msg("%s", env.error.text);
    for (i = 0; i < sizeof broken_rules / sizeof *broken_rules; i++) {
        const rule_case *c = &broken_rules[i];
        if (tl_parse_schedule(&env, c->schedule, strlen(c->schedule), &plan)) fail_msg("%s", env.error.text);
        plan.any_order = c->any_order;
        if (simulate(&env, &graph, &plan, &report) != TL_ERROR_INVALID_PLAN) fail_msg("valid: %s", c->schedule);
        assert_memory_equal(env.error.text, "tl_simulate_plan: ", 18);
        if (strcmp(env.error.text + 18, c->text)) fail_msg("%s for\n%s", env.error.text, c->schedule);
        tl_free_plan(&env, &plan);
    }
    for (i = 0; i < sizeof kept_rules / sizeof *kept_rules; i++) {
        if (tl_parse_schedule(&env, kept_rules[i], strlen(kept_rules[i]), &plan)) fail_msg("%s", env.error.text);
        if (simulate(&env, &graph, &plan, &report)) fail_msg("%s: %s", env.error.text, kept_rules[i]);
        tl_free_plan(&env, &plan);
    }
    tl_free_graph(&env, &graph);
}

// A weight is read by calls under way, and a gradient that its state holds is added to by one at a time.
static void a_call_under_way_keeps_states_as_they_are(void **state) {
    static const char text[] = "tlg 2\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\nstate 1 w sgd w=24 %s\n"
        "node 2 a op fwd=1 bwd=2 out=8 needs=in in=0,1.0\nnode 3 b op fwd=1 bwd=2 out=8 needs=in in=0,1.0\n"
        "node 4 c op fwd=1 bwd=0 out=8 needs=none in=0,1.0 grad=no\nend 5\n";
    static const rule_case cases[] = {
        { "F 2\nF 3\nF 4\nB 3 begin\nB 2\n", "step 4 (B 2 a): a call under way writes the gradient of 1.0", 0 },
        { "F 2\nF 3\nF 4\nB 3 begin\nB 2 begin\n", "step 4 (B 2 a): a call under way writes the gradient of 1.0", 0 },
        { "F 2\nF 3\nF 4\nB 3\nB 2 begin\nB 1\n", "step 5 (B 1 w): consumer 2 (a) has not run backward", 0 },
        { "F 2\nF 3\nF 4 begin\nB 3\nB 2\nB 1\n", "step 5 (B 1 w): a call under way reads 1.0", 0 },
        { "F 2\nF 3\nF 4\nB 3\nB 2\nB 1 begin\n", "step 5 (B 1 w): a state takes no step but its update, B", 0 },
        { "F 2\nF 3\nF 4 begin\nB 3 begin\nW 3\nB 2 begin\nW 4\nW 2\nB 1\n", NULL, 0 },
    };
    size_t i, holds;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        for (holds = 0; holds < 2; holds++) {
            char whole[600];
            tl_env env;
            tl_graph graph;
            tl_plan plan;
            tl_report report;
            memset(&env, 0, sizeof env);
            snprintf(whole, sizeof whole, text, holds ? "hold" : "m=24");
            if (tl_parse_graph(&env, whole, strlen(whole), &graph)) fail_msg("%s", env.error.text);
            if (tl_parse_schedule(&env, cases[i].schedule, strlen(cases[i].schedule), &plan)) fail_msg("%s", env.error.text);
            if (simulate(&env, &graph, &plan, &report) != (cases[i].text ? TL_ERROR_INVALID_PLAN : TL_OK)) fail_msg("%s: %s", cases[i].schedule, env.error.text);
            if (cases[i].text) assert_string_equal(env.error.text + 18, cases[i].text);
            tl_free_plan(&env, &plan);
            tl_free_graph(&env, &graph);
        }
}

// What a text cannot say.
static void begins_is_1_and_of_two_kinds(void **state) {
    tl_env env;
    tl_graph graph;
    int32_t kind, begins;
    (void)state;
    memset(&env, 0, sizeof env);
    if (tl_parse_graph(&env, rules_text, strlen(rules_text), &graph)) fail_msg("%s", env.error.text);
    for (kind = 0; kind < TL_STEP_COUNT; kind++)
        for (begins = -1; begins <= 2; begins++) {
            static const char *const text = ": begins: must be 0, or 1 of F and B";
            tl_plan plan;
            tl_report report;
            tl_step step;
            int may = begins == 0 || (begins == 1 && (kind == TL_STEP_FORWARD || kind == TL_STEP_BACKWARD));
            size_t length;
            memset(&plan, 0, sizeof plan);
            memset(&step, 0, sizeof step);
            step.kind = (uint8_t)kind;
            step.node = 1;
            step.output = TL_ALL_OUTPUTS;
            step.codec = kind == TL_STEP_COMPRESS ? TL_CODEC_F16 : TL_CODEC_NONE;
            step.begins = begins;
            plan.steps = &step;
            plan.step_count = 1;
            assert_int_equal(simulate(&env, &graph, &plan, &report), TL_ERROR_INVALID_PLAN);    // no plan is that short
            length = strlen(env.error.text);
            assert_int_equal(length > strlen(text) && !strcmp(env.error.text + length - strlen(text), text), !may);
        }
    tl_free_graph(&env, &graph);
}

// More readers than 16 bits count: each of them holds the tensor.
static void a_call_reads_a_tensor_as_often_as_it_likes(void **state) {
    static tl_tensor inputs[65536];
    tl_env env;
    tl_graph graph;
    tl_node_desc desc;
    tl_plan plan;
    tl_report report;
    uint64_t bytes = 4;
    int32_t count;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(inputs, 0, sizeof inputs);
    for (count = 65535; count <= 65536; count++) {
        static const char text[] = "F 1\nF 2 begin\nD 1\nW 2\n";
        int32_t i;
        tl_init_graph(&graph);
        memset(&desc, 0, sizeof desc);
        desc.op = "input";
        desc.output_bytes = &bytes;
        desc.output_count = 1;
        if (tl_add_node(&env, &graph, &desc, NULL)) fail_msg("%s", env.error.text);
        desc.op = "conv";
        desc.needs = "none";
        desc.inputs = inputs;
        desc.input_count = 1;
        if (tl_add_node(&env, &graph, &desc, NULL)) fail_msg("%s", env.error.text);
        for (i = 0; i < count; i++) inputs[i].node = 1;
        desc.input_count = count;
        if (tl_add_node(&env, &graph, &desc, NULL)) fail_msg("%s", env.error.text);
        memset(inputs, 0, sizeof inputs);
        if (tl_parse_schedule(&env, text, strlen(text), &plan)) fail_msg("%s", env.error.text);
        plan.inference = 1;
        assert_int_equal(simulate(&env, &graph, &plan, &report), TL_ERROR_INVALID_PLAN);
        assert_string_equal(env.error.text, "tl_simulate_plan: step 2 (D 1 n1): a call under way reads 1.0");
        tl_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
}

// -- random plans --

enum { MOST_STEPS = 4000 };

typedef struct begun_plan {
    tl_plan plan;               // steps are these
    tl_step steps[MOST_STEPS];
    int32_t begins;             // how many
} begun_plan;

static void copy_plan(const tl_plan *plan, begun_plan *b) {
    assert_true(plan->step_count < MOST_STEPS);
    b->plan = *plan;
    b->plan.memory = NULL;
    if (plan->step_count) memcpy(b->steps, plan->steps, (size_t)plan->step_count * sizeof *b->steps);
    b->plan.steps = b->steps;
    b->begins = 0;
}

static void insert_wait(begun_plan *b, int32_t at, const tl_step *of) {
    tl_step step = *of;
    assert_true(b->plan.step_count < MOST_STEPS - 1);
    step.kind = TL_STEP_WAIT;
    step.begins = 0;
    memmove(b->steps + at + 1, b->steps + at, (size_t)(b->plan.step_count - at) * sizeof *b->steps);
    b->steps[at] = step;
    b->plan.step_count++;
}

static void remove_step(begun_plan *b, int32_t at) {
    b->plan.step_count--;
    memmove(b->steps + at, b->steps + at + 1, (size_t)(b->plan.step_count - at) * sizeof *b->steps);
}

// Let a step begin its call, and end it at a random later place at which the plan is still valid, the last one now and
// then. Where there is none, the plan stays as it was.
static void begin_at(tl_random *random, begun_replay *r, const tl_graph *graph, begun_plan *b, int32_t at) {
    int32_t places[MOST_STEPS], count = 0, w;
    b->steps[at].begins = 1;
    for (w = at + 1; w <= b->plan.step_count; w++) {
        int32_t broken;
        insert_wait(b, w, &b->steps[at]);
        broken = begun_replay_plan(r, graph, &b->plan);
        remove_step(b, w);
        if (broken < 0) places[count++] = w;
        else if (broken <= w) break;        // it stays broken where W is later
    }
    if (!count) { b->steps[at].begins = 0; return; }
    insert_wait(b, random_chance(random, 30) ? places[count - 1] : places[random_count(random, 0, count - 1)], &b->steps[at]);
    b->begins++;
}

// Let some steps of a valid plan begin their calls; it stays valid.
static void begin_some(tl_random *random, begun_replay *r, const tl_graph *graph, int percent, begun_plan *b) {
    int32_t at;
    for (at = 0; at < b->plan.step_count; at++)
        if ((b->steps[at].kind == TL_STEP_FORWARD || b->steps[at].kind == TL_STEP_BACKWARD) && random_chance(random, percent))
            begin_at(random, r, graph, b, at);
}

static void print_plan(const tl_graph *graph, const tl_plan *plan) {
    static char text[100000];
    (void)tl_print_graph(graph, text, sizeof text);
    printf("%s", text);
    (void)tl_print_schedule(plan, text, sizeof text);
    printf("%s", text);
}

// What [5] finds is what the replay finds. Returns whether the plan is valid.
static int compare(const tl_graph *graph, const tl_plan *plan, begun_replay *r) {
    tl_env env;
    tl_report report;
    tl_lifetimes lifetimes;
    int32_t broken = begun_replay_plan(r, graph, plan), i, allocations = 0;
    tl_result result;
    memset(&env, 0, sizeof env);
    result = simulate(&env, graph, plan, &report);
    if ((result == TL_OK) != (broken < 0)) {
        print_plan(graph, plan);
        fail_msg("step %d, but %s", (int)broken, result ? env.error.text : "the simulator takes it");
    }
    assert_int_equal(report.broken_step, broken);
    assert_int_equal(tl_find_lifetimes(&env, graph, plan, &lifetimes), result);
    if (result) { assert_int_equal(result, TL_ERROR_INVALID_PLAN); return 0; }
    assert_int_equal(report.peak_bytes, r->peak[0]);
    assert_int_equal(report.host_peak_bytes, r->peak[1]);
    assert_int_equal(report.end_bytes, r->live[0]);
    assert_int_equal(report.end_host_bytes, r->live[1]);
    assert_int_equal(report.forward_count, r->forwards);
    assert_int_equal(report.backward_count, r->backwards);
    assert_int_equal(report.recompute_count, r->recomputed);
    assert_int_equal(lifetimes.count, r->count);
    for (i = 0; i < lifetimes.count; i++) {
        const tl_lifetime *l = &lifetimes.items[i];
        const begun_life *own = &r->lives[i];
        assert_int_equal(l->use, own->use);
        assert_int_equal(l->bytes, own->bytes);
        assert_int_equal(l->node, own->node);
        assert_int_equal(l->output, own->output);
        assert_int_equal(l->slot, own->slot);
        assert_int_equal(l->first_step, own->first);
        if (l->end_step != own->end) fail_msg("lifetime %d ends at %d, not %d", (int)i, (int)l->end_step, (int)own->end);
        allocations += l->use != TL_USE_HOST && l->over < 0;
    }
    assert_int_equal(report.allocation_count, allocations);
    tl_free_lifetimes(&env, &lifetimes);
    return 1;
}

static int32_t some_slots(tl_random *random) { return random_chance(random, 30) ? random_count(random, 2, 3) : 0; }

// Without scratch and saved bytes, so that a call can be begun, most of the time.
static void make_bare(tl_random *random, tl_graph *graph) {
    tl_node *nodes = (tl_node *)(uintptr_t)graph->nodes;
    int32_t i;
    for (i = 0; i < graph->node_count; i++)
        if (random_chance(random, 70)) nodes[i].fwork_bytes = nodes[i].swork_bytes = nodes[i].bwork_bytes = nodes[i].saved_bytes = 0;
}

static void make_graph(tl_env *env, tl_random *random, int32_t most, tl_graph *graph) {
    memset(env, 0, sizeof *env);
    if (random_graph(env, random, most, graph)) fail_msg("%s", env->error.text);
    make_bare(random, graph);
    if (tl_check_graph(env, graph)) fail_msg("%s", env->error.text);
}

static void valid_plans_are_those_of_the_replay(void **state) {
    static begun_replay r;
    static begun_plan b;
    tl_random random;
    long round, rounds = scaled(400), valid = 0, begun = 0, higher = 0, together = 0;
    (void)state;
    random.state = 21;
    for (round = 0; round < rounds; round++) {
        tl_env env;
        tl_graph graph;
        tl_plan plan;
        make_graph(&env, &random, 16, &graph);
        if (random_slot_plan(&env, &random, &graph, some_slots(&random), &plan)) fail_msg("%s", "out of memory");
        copy_plan(&plan, &b);
        if (compare(&graph, &b.plan, &r)) {
            uint64_t peak = r.peak[0];
            begin_some(&random, &r, &graph, random_count(&random, 10, 90), &b);
            assert_true(compare(&graph, &b.plan, &r));
            valid++;
            begun += b.begins;
            higher += r.peak[0] > peak;
            together += r.most_calls > 1;
            assert_true(r.peak[0] >= peak);
        }
        random_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    printf("%ld graphs, %ld valid plans, %ld calls begun, several in %ld, %ld peaks rise\n", rounds, valid, begun, together, higher);
    assert_true(is_thinned() || (valid > rounds / 4 && begun > 3 * valid && together > valid / 4 && higher > 0));
}

// Calls begin and W stands anywhere, most of the time where it may not; valid ones are broken on purpose.
static void verdicts_are_those_of_the_replay(void **state) {
    static begun_replay r;
    static begun_plan b;
    tl_random random;
    long round, rounds = scaled(6000), valid = 0, broken = 0, by_calls = 0;
    (void)state;
    random.state = 22;
    for (round = 0; round < rounds; round++) {
        tl_env env;
        tl_graph graph;
        tl_plan plan;
        int32_t changes = random_count(&random, 1, 4);
        int was_valid;
        make_graph(&env, &random, 12, &graph);
        if (random_slot_plan(&env, &random, &graph, some_slots(&random), &plan)) fail_msg("%s", "out of memory");
        copy_plan(&plan, &b);
        was_valid = compare(&graph, &b.plan, &r);
        while (changes-- > 0 && b.plan.step_count) {
            int32_t at = random_count(&random, 0, b.plan.step_count - 1), left = b.plan.step_count - at - 1;
            tl_step *step = &b.steps[at];
            int computes = step->kind == TL_STEP_FORWARD || step->kind == TL_STEP_BACKWARD;
            if (!computes && random_chance(&random, 90)) continue;
            step->begins = random_chance(&random, 2) ? random_count(&random, -1, 2) : 1;
            if (random_chance(&random, 3)) step->output = 0;
            if (random_chance(&random, 95))
                insert_wait(&b, at + 1 + random_count(&random, 0, random_chance(&random, 50) && left > 3 ? 3 : left), step);
            if (random_chance(&random, 5)) random_mutate(&random, &graph, plan.slot_count, b.steps, &b.plan.step_count);
        }
        if (compare(&graph, &b.plan, &r)) valid++;
        else broken++;
        by_calls += was_valid && r.is_broken;
        random_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    printf("%ld valid, %ld broken, %ld of these only by calls that are begun\n", valid, broken, by_calls);
    assert_true(valid > rounds / 10 && by_calls > rounds / 10);
}

// -- kernels that take their time --

enum { SLOW_CALLS = 256 };

// A call that has answered that it is not ready.
typedef struct slow_call {
    int32_t     node, micro_batch, times, works_at;     // polls until it is ready, and that in which it does its work
    const void *hosts[64];
    tl_range    ranges[64];
    int32_t     operands;
    uint64_t    reads, writes;      // what they held at the last poll
} slow_call;

// What a kernel sums over calls is added, so that it does not depend on their order.
typedef struct slow {
    tl_random random;
    int       percent;              // of the calls that are not ready at once
    int32_t   fail_node;            // its kernel fails, -1 = none ..
    int32_t   fail_polled;          // .. when it is asked for that time
    uint64_t  gradients[MIXER_NODES];
    slow_call calls[SLOW_CALLS];
    int32_t   count;                // of these
    long      polled, worked_late;
} slow;

static slow_call *slow_find(slow *s, const tl_kernel_call *call) {
    int32_t i;
    for (i = 0; i < s->count; i++)
        if (s->calls[i].node == call->node && s->calls[i].micro_batch == call->micro_batch) return &s->calls[i];
    return NULL;
}

static void slow_note(slow_call *c, const tl_operand *operand, int is_new) {
    assert_true(c->operands < 64);
    if (is_new) {
        c->hosts[c->operands] = operand->host;
        c->ranges[c->operands] = operand->range;
    }
    assert_ptr_equal(c->hosts[c->operands], operand->host);
    assert_memory_equal(&c->ranges[c->operands], &operand->range, sizeof operand->range);
    assert_int_equal(!operand->host, !operand->range.bytes);
    c->operands++;
}

// All operands are where they were. reads, writes: hashes of what the call reads and of what it writes.
static void slow_look(slow_call *c, const tl_kernel_call *call, int is_new, uint64_t *reads, uint64_t *writes) {
    const tl_node *node = &call->graph->nodes[call->node];
    int backward = call->kind == TL_STEP_BACKWARD;
    int32_t i;
    c->operands = 0;
    *reads = *writes = 1;
    for (i = 0; i < node->input_count; i++) {
        slow_note(c, &call->inputs[i], is_new);
        *reads = mix_bytes(*reads, &call->inputs[i]);
        if (backward) slow_note(c, &call->input_grads[i], is_new);
        if (backward) *writes = mix_bytes(*writes, &call->input_grads[i]);
    }
    for (i = 0; i < node->output_count; i++) {
        slow_note(c, &call->outputs[i], is_new);
        if (backward) slow_note(c, &call->output_grads[i], is_new);
        if (backward) *reads = mix_bytes(mix_bytes(*reads, &call->outputs[i]), &call->output_grads[i]);
        else *writes = mix_bytes(*writes, &call->outputs[i]);
    }
    if (backward) *reads = mix_bytes(*reads, &call->saved);
    else *writes = mix_bytes(*writes, &call->saved);
}

static void slow_work(slow *s, const tl_kernel_call *call) {
    const tl_node *node = &call->graph->nodes[call->node];
    int backward = call->kind == TL_STEP_BACKWARD;
    uint64_t sum = tl_mix_u64(call->seed, (uint64_t)call->node);
    int32_t i;
    for (i = 0; i < node->input_count; i++) sum = mix_bytes(sum, &call->inputs[i]);
    for (i = 0; i < node->output_count && backward; i++) sum = mix_bytes(mix_bytes(sum, &call->outputs[i]), &call->output_grads[i]);
    if (backward) sum = mix_bytes(sum, &call->saved);
    mix_into(sum, &call->scratch, 1);
    if (backward) s->gradients[call->node] += sum;
    for (i = 0; i < node->input_count && backward; i++) mix_into(sum + (uint64_t)i, &call->input_grads[i], 1);
    for (i = 0; i < node->output_count && !backward && !call->outputs_ready; i++) mix_into(sum + (uint64_t)i, &call->outputs[i], 0);
    if (!backward) mix_into(sum + 77, &call->saved, 0);
}

static tl_result slow_kernel(const tl_kernel_call *call, void *user) {
    slow *s = (slow *)user;
    slow_call *c = slow_find(s, call), fresh;
    int is_new = !call->polled, is_ready;
    uint64_t reads, writes;
    assert_true(is_new == !c);
    if (call->node == s->fail_node && call->polled == s->fail_polled) return TL_ERROR_CORRUPT;
    if (is_new) {
        memset(&fresh, 0, sizeof fresh);
        fresh.node = call->node;
        fresh.micro_batch = call->micro_batch;
        if (call->kind != TL_STEP_FORWARD_INPLACE && random_chance(&s->random, s->percent)) fresh.times = random_count(&s->random, 1, 4);
        if (call->node == s->fail_node) fresh.times = s->fail_polled;
        fresh.works_at = random_count(&s->random, 0, fresh.times);
        c = &fresh;
    }
    slow_look(c, call, is_new, &reads, &writes);
    if (!is_new) assert_true(reads == c->reads && writes == c->writes);
    if (call->polled == c->works_at) {
        slow_work(s, call);
        s->worked_late += c->works_at > 0;
    } else if (call->polled < c->works_at && call->kind != TL_STEP_BACKWARD && !call->outputs_ready) {
        int32_t i;      // what it has of its work so far
        for (i = 0; i < call->graph->nodes[call->node].output_count; i++) mix_into((uint64_t)call->polled, &call->outputs[i], 0);
    }
    is_ready = call->polled >= c->times;
    slow_look(c, call, is_new, &c->reads, &c->writes);
    if (is_new && !is_ready) {
        assert_true(s->count < SLOW_CALLS);
        s->calls[s->count++] = fresh;
    } else if (!is_new && is_ready) {
        *c = s->calls[--s->count];
    }
    s->polled += !is_ready;
    return is_ready ? TL_OK : TL_NOT_READY;
}

static void make_slow(bed *b, slow *s, uint64_t seed, int percent) {
    int32_t k;
    memset(s, 0, sizeof *s);
    s->random.state = seed;
    s->percent = percent;
    s->fail_node = -1;
    for (k = 0; k < b->desc.kernel_count; k++) {
        b->kernels[k].forward = b->kernels[k].backward = slow_kernel;
        b->kernels[k].user = s;
    }
}

// -- runs --

static uint64_t slow_outcome(bed *b, slow *s, const tl_plan *plan) {
    int32_t slots = plan->slot_count ? plan->slot_count : 1, slot;
    uint64_t sum = 0;
    memcpy(b->mixer.gradients, s->gradients, sizeof s->gradients);
    for (slot = 0; slot < slots; slot++) {
        if (tl_choose_slot(b->run, slot)) fail_msg("%s", b->env.error.text);
        sum = tl_mix_u64(sum, bed_outcome(b, plan->inference));
    }
    (void)tl_choose_slot(b->run, 0);
    return sum;
}

static void load_slots(bed *b, const tl_plan *plan) {
    int32_t slots = plan->slot_count ? plan->slot_count : 1, slot;
    for (slot = 0; slot < slots; slot++)
        if (tl_choose_slot(b->run, slot) || bed_load(b->run, slot, b)) fail_msg("%s", b->env.error.text);
    (void)tl_choose_slot(b->run, 0);
}

// The next step by hand. Where it cannot be had yet, at most the step before is closed, and asked again nothing changes.
static tl_result pull_step(bed *b, slow *s, tl_run_step *step, int32_t *done, long *waits) {
    tl_backend_counters before, after;
    long polled = s->polled;
    tl_result result = tl_next_step(b->run, step, done);
    if (result != TL_NOT_READY) return result;
    before = spy_count(&b->spy);
    *waits += s->polled > polled;
    result = tl_next_step(b->run, step, done);
    if (result != TL_NOT_READY) return result;
    after = spy_count(&b->spy);
    assert_int_equal(before.live_bytes[TL_TIER_DEVICE], after.live_bytes[TL_TIER_DEVICE]);
    assert_int_equal(before.claim_count[TL_TIER_DEVICE], after.claim_count[TL_TIER_DEVICE]);
    assert_int_equal(step->is_compute, 0);
    return result;
}

// Carry out a compute step: by the run, or by the caller up to its end.
static void carry_out(bed *b, slow *s, const tl_run_step *step) {
    tl_result result;
    if (random_chance(&s->random, 70)) {
        while ((result = tl_run_step_kernel(b->run, step)) == TL_NOT_READY) assert_int_equal(step->step.begins, 0);
    } else {
        tl_run_step own = *step;
        while ((result = slow_kernel(&own.call, s)) == TL_NOT_READY) own.call.polled++;
        if (!result) result = tl_finish_step(b->run, step);
    }
    if (result) fail_msg("%s", b->env.error.text);
    assert_int_equal(tl_finish_step(b->run, step), TL_ERROR_STALE);
}

static void run_by_hand(bed *b, slow *s, const tl_plan *plan, long *waits) {
    tl_run_step step;
    int32_t done = 0, index = 0;
    load_slots(b, plan);
    if (tl_start_pass(b->run, 0)) fail_msg("%s", b->env.error.text);
    while (!done) {
        tl_result result = pull_step(b, s, &step, &done, waits);
        if (result == TL_NOT_READY) continue;
        if (result) fail_msg("%s", b->env.error.text);
        if (done) break;
        assert_int_equal(step.index, index++);
        if (step.is_compute) carry_out(b, s, &step);
    }
    assert_int_equal(index, plan->step_count);
}

static void run_by_itself(bed *b, slow *s, long *waits) {
    tl_result result;
    while ((result = tl_run_plan(b->run)) == TL_NOT_READY) {
        assert_true(s->count > 0);
        ++*waits;
    }
    if (result) fail_msg("%s", b->env.error.text);
}

typedef enum how { BY_ITSELF, BY_HAND } how;

static void check_report(bed *b, const tl_graph *graph, const tl_plan *plan) {
    tl_run_report report = bed_report(b);
    tl_report simulated;
    tl_plan bare = *plan;
    tl_env env;
    memset(&env, 0, sizeof env);
    bare.offsets = bare.host_offsets = NULL;
    bare.offset_count = bare.host_offset_count = 0;
    if (simulate(&env, graph, &bare, &simulated)) fail_msg("%s", env.error.text);
    assert_int_equal(report.planned_peak_bytes, simulated.peak_bytes);
    assert_int_equal(report.measured_peak_bytes, simulated.peak_bytes);
    assert_int_equal(report.measured_host_peak_bytes, simulated.host_peak_bytes);
    assert_int_equal(report.measured_arena_bytes, report.planned_arena_bytes);
    assert_int_equal(report.forward_count, simulated.forward_count);
    assert_int_equal(report.recompute_count, simulated.recompute_count);
    assert_int_equal(report.backward_count, simulated.backward_count);
    assert_int_equal(report.step_count, plan->step_count);
    assert_int_equal(report.end_bytes, simulated.end_bytes);
}

// Two training steps; the outcome of both.
static uint64_t run_plan(const tl_graph *graph, const tl_plan *plan, int kind, how way, int percent, uint64_t seed, long *waits) {
    static bed b;
    static slow s;
    uint64_t sum = 0;
    int32_t step;
    bed_open(&b, graph, kind, seed, 4);
    make_slow(&b, &s, seed, percent);
    b.desc.plan = plan;
    bed_must_init(&b);
    for (step = 0; step < 2; step++) {
        if (way == BY_HAND) run_by_hand(&b, &s, plan, waits);
        else run_by_itself(&b, &s, waits);
        assert_int_equal(s.count, 0);
        check_report(&b, graph, plan);
        sum = tl_mix_u64(sum, slow_outcome(&b, &s, plan));
    }
    bed_close(&b);
    return sum;
}

// A valid plan in which calls begin, and the one it was before. 0 = the random one is not valid.
static int make_begun(tl_env *env, tl_random *random, const tl_graph *graph, int32_t slots, begun_replay *r, tl_plan *plan, begun_plan *b) {
    if (random_slot_plan(env, random, graph, slots, plan)) fail_msg("%s", "out of memory");
    copy_plan(plan, b);
    if (begun_replay_plan(r, graph, &b->plan) < 0) {
        begin_some(random, r, graph, random_count(random, 20, 90), b);
        if (b->begins) return 1;
    }
    random_free_plan(env, plan);
    return 0;
}

static void runs_compute_what_they_compute_without(void **state) {
    static begun_replay r;
    static begun_plan b;
    tl_random random;
    long round, rounds = scaled(500), ran = 0, slots = 0, waits[2] = { 0, 0 }, none = 0;
    (void)state;
    random.state = 23;
    for (round = 0; round < rounds; round++) {
        tl_env env;
        tl_graph graph;
        tl_plan plan;
        make_graph(&env, &random, 20, &graph);
        if (make_begun(&env, &random, &graph, some_slots(&random), &r, &plan, &b)) {
            uint64_t expected = run_plan(&graph, &plan, 0, BY_ITSELF, 0, 1, &none);
            int k;
            for (k = 0; k < 2; k++) {
                int percent = random_count(&random, 20, 100), kind = (int)tl_next_random_below(&random, BACKEND_KINDS);
                if (run_plan(&graph, &b.plan, kind, k ? BY_HAND : BY_ITSELF, percent, tl_next_random(&random), &waits[k]) != expected)
                    fail_msg("round %ld: another outcome, backend %d, %s", round, kind, k ? "by hand" : "by itself");
            }
            ran++;
            slots += plan.slot_count > 1;
            random_free_plan(&env, &plan);
        }
        tl_free_graph(&env, &graph);
    }
    printf("%ld plans, %ld with slots, %ld waits by itself, %ld by hand\n", ran, slots, waits[BY_ITSELF], waits[BY_HAND]);
    assert_int_equal(none, 0);
    assert_true(ran > rounds / 5 && slots > ran / 10 && waits[0] > ran && waits[1] > ran);
}

// -- what goes wrong --

// Begin a pass by hand and go on until a call of the node, or of any if it is -1, is under way. 0 = none was.
static int go_until_begun(bed *b, slow *s, const tl_plan *plan, int32_t node, int32_t skips) {
    int32_t done = 0;
    load_slots(b, plan);
    if (tl_start_pass(b->run, 0)) fail_msg("%s", b->env.error.text);
    while (!done) {
        tl_run_step step;
        tl_result result = tl_next_step(b->run, &step, &done);
        if (result == TL_NOT_READY) continue;
        if (result) fail_msg("%s", b->env.error.text);
        if (done || !step.is_compute) continue;
        while ((result = tl_run_step_kernel(b->run, &step)) == TL_NOT_READY) { }
        if (result) fail_msg("%s", b->env.error.text);
        if (!step.step.begins || (node >= 0 && step.step.node != node)) continue;
        if (s->count && skips-- <= 0) return 1;
    }
    return 0;
}

static void forget_calls(slow *s) {
    s->count = 0;
    s->fail_node = -1;
    memset(s->gradients, 0, sizeof s->gradients);
}

// The pass was given up: nothing but inputs is held, and the next one is as if it had never been.
static void check_next_pass(bed *b, slow *s, const tl_plan *plan, uint64_t expected) {
    tl_result result;
    assert_int_equal(spy_count(&b->spy).live_bytes[TL_TIER_DEVICE], input_bytes(b->graph));
    assert_int_equal(spy_count(&b->spy).live_bytes[TL_TIER_HOST], 0);
    forget_calls(s);
    while ((result = tl_run_plan(b->run)) == TL_NOT_READY) { }
    if (result) fail_msg("%s", b->env.error.text);
    assert_int_equal(slow_outcome(b, s, plan), expected);
}

typedef enum end_of_pass { RESET, FREED, OWN_KERNEL, OTHER_KERNEL, ENDS } end_of_pass;

static uint64_t first_pass(const tl_graph *graph, const tl_plan *plan) {
    static bed b;
    static slow s;
    uint64_t sum;
    bed_open(&b, graph, 0, 1, 4);
    make_slow(&b, &s, 1, 0);
    b.desc.plan = plan;
    bed_must_init(&b);
    if (tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);
    sum = slow_outcome(&b, &s, plan);
    bed_close(&b);
    return sum;
}

// Let the kernel of the call that began last fail when it is asked again, or any other that is called before. Returns the
// node; -1 = none was called, the pass has ended.
static int32_t fail_pass(bed *b, slow *s, int is_own) {
    tl_result result = TL_NOT_READY;
    int32_t done = 0;
    s->fail_node = is_own ? s->calls[s->count - 1].node : -1;
    s->fail_polled = is_own;
    while (result == TL_NOT_READY || (!result && !done)) {
        tl_run_step step;
        result = tl_next_step(b->run, &step, &done);
        if (result || done || !step.is_compute) continue;
        if (!is_own) s->fail_node = step.step.node;
        while ((result = tl_run_step_kernel(b->run, &step)) == TL_NOT_READY) { }
    }
    if (done) { assert_int_equal(is_own, 0); return -1; }
    assert_int_equal(result, TL_ERROR_KERNEL);
    assert_int_equal(b->env.error.values[0], s->fail_node);
    return s->fail_node;
}

static void a_pass_with_calls_under_way_can_be_given_up(void **state) {
    static begun_replay r;
    static begun_plan p;
    static bed b;
    static slow s;
    tl_random random;
    long round, rounds = scaled(600), ends[ENDS] = { 0 };
    (void)state;
    random.state = 24;
    for (round = 0; round < rounds; round++) {
        tl_env env;
        tl_graph graph;
        tl_plan plan;
        end_of_pass end = (end_of_pass)(round % ENDS);
        make_graph(&env, &random, 16, &graph);
        if (!make_begun(&env, &random, &graph, 0, &r, &plan, &p)) { tl_free_graph(&env, &graph); continue; }
        bed_open(&b, &graph, (int)tl_next_random_below(&random, BACKEND_KINDS), 3, 4);
        make_slow(&b, &s, tl_next_random(&random), 100);
        b.desc.plan = &p.plan;
        bed_must_init(&b);
        if (!go_until_begun(&b, &s, &p.plan, -1, random_count(&random, 0, 3))) {
            end = ENDS;
        } else if (end == RESET) {
            if (tl_reset_run(b.run)) fail_msg("%s", b.env.error.text);
        } else if (end != FREED) {
            char text[64];
            int32_t node = fail_pass(&b, &s, end == OWN_KERNEL);
            snprintf(text, sizeof text, "ward of node %d (%s): the kernel returned: ", (int)node, tl_name_node(&graph, node));
            if (node < 0) end = ENDS;       // no other kernel was called any more
            else if (!strstr(b.env.error.text, text)) fail_msg("%s", b.env.error.text);
        }
        if (end != ENDS) ends[end]++;
        if (end < ENDS && end != FREED) check_next_pass(&b, &s, &p.plan, first_pass(&graph, &plan));
        bed_close(&b);      // checks that nothing is held, with a call under way as well
        random_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    printf("given up: %ld, freed: %ld, by the kernel under way: %ld, by another: %ld\n", ends[RESET], ends[FREED], ends[OWN_KERNEL],
           ends[OTHER_KERNEL]);
    assert_true(is_thinned() || (ends[RESET] > 30 && ends[FREED] > 30 && ends[OWN_KERNEL] > 30 && ends[OTHER_KERNEL] > 20));
}

static const char *const chain_text =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=16 needs=none in=-\n"
    "node 1 a conv fwd=3 bwd=5 out=16 needs=in in=0\n"
    "node 2 b conv fwd=1 bwd=2 out=16 needs=in in=1\n"
    "node 3 c conv fwd=4 bwd=3 out=16 needs=in in=2\n"
    "node 4 d conv fwd=4 bwd=3 out=16 needs=in in=1\n";

// Two under way together, in both directions. DH changes nothing: a place to stand.
static const char *const chain_steps =
    "F 1\nDH 1\nDH 1\nF 2 begin\nF 4 begin\nDH 1\nW 2\nF 3\nW 4\nB 4\nDH 1\nB 3 begin\nDH 1\nW 3\nB 2\nB 1\n";

static void open_chain(tl_env *env, tl_graph *graph, tl_plan *plan) {
    memset(env, 0, sizeof *env);
    if (tl_parse_graph(env, chain_text, strlen(chain_text), graph)) fail_msg("%s", env->error.text);
    if (tl_parse_schedule(env, chain_steps, strlen(chain_steps), plan)) fail_msg("%s", env->error.text);
}

static void each_allocation_of_init_may_fail(void **state) {
    static bed b;
    static slow s;
    tl_env env;
    tl_graph graph;
    tl_plan plan;
    long at, failures = 0;
    tl_result result;
    (void)state;
    open_chain(&env, &graph, &plan);
    for (at = 0; ; at++) {
        failing_alloc f;
        memset(&f, 0, sizeof f);
        bed_open(&b, &graph, 1, 0, 4);
        make_slow(&b, &s, 5, 100);
        b.env = failing_env(&f, at);
        b.desc.plan = &plan;
        result = bed_init(&b);
        failures += result == TL_ERROR_NO_MEMORY;
        if (result) {
            assert_int_equal(result, TL_ERROR_NO_MEMORY);
            assert_null(b.run);
            assert_int_equal(f.live, 0);
        } else {        // by itself it needs no more
            long count = f.count;
            f.fail_at = count;
            while ((result = tl_run_plan(b.run)) == TL_NOT_READY) { }
            assert_int_equal(result, TL_OK);
            assert_int_equal(f.count, count);
        }
        bed_close(&b);
        assert_int_equal(f.live, 0);
        if (!result) break;
    }
    assert_true(failures > 30);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// -- saved runs --

typedef struct data { unsigned char bytes[20000]; size_t length; } data;

static tl_result keep_data(void *user, const char *text, size_t length) {
    data *d = (data *)user;
    assert_true(d->length + length <= sizeof d->bytes);
    memcpy(d->bytes + d->length, text, length);
    d->length += length;
    return TL_OK;
}

static tl_result save(bed *b, data *d) {
    tl_sink sink;
    memset(d, 0, sizeof *d);
    sink.write = keep_data;
    sink.user = d;
    return tl_save_run(b->run, sink);
}

static void open_saved(bed *b, slow *s, const tl_graph *graph, const tl_plan *plan) {
    bed_open(b, graph, 1, 0, 4);
    make_slow(b, s, 5, 100);
    b->desc.plan = plan;
    bed_must_init(b);
}

// Carry out so many steps; a W that is not ready is asked again.
static void carry_out_steps(bed *b, int32_t count) {
    int32_t done = 0;
    while (count > 0 && !done) {
        tl_run_step step;
        tl_result result = tl_next_step(b->run, &step, &done);
        if (result == TL_NOT_READY) continue;
        if (result) fail_msg("%s", b->env.error.text);
        count--;
        if (!step.is_compute) continue;
        while ((result = tl_run_step_kernel(b->run, &step)) == TL_NOT_READY) { }
        if (result) fail_msg("%s", b->env.error.text);
    }
}

// Between calls a pass can be saved and loaded; with one under way neither.
static void a_pass_is_saved_between_calls(void **state) {
    static bed b, other;
    static slow s, own;
    static data d, next;
    tl_env env;
    tl_graph graph;
    tl_plan plan;
    uint64_t expected;
    size_t at = 0, i;
    int32_t steps;
    (void)state;
    open_chain(&env, &graph, &plan);
    expected = first_pass(&graph, &plan);
    for (steps = 0; steps < plan.step_count; steps++) {
        int is_under_way = (steps > 3 && steps < 9) || (steps > 11 && steps < 14);
        open_saved(&b, &s, &graph, &plan);
        load_slots(&b, &plan);
        if (tl_start_pass(b.run, 0)) fail_msg("%s", b.env.error.text);
        carry_out_steps(&b, steps);
        if (is_under_way) {
            assert_int_equal(save(&b, &d), TL_ERROR_INVALID_ARG);
            assert_string_equal(b.env.error.text, "tl_save_run: run: a step or a copy is under way");
        } else {
            if (save(&b, &d)) fail_msg("%s", b.env.error.text);
            open_saved(&other, &own, &graph, &plan);
            if (tl_load_run(other.run, d.bytes, d.length)) fail_msg("%s", other.env.error.text);
            memcpy(own.gradients, s.gradients, sizeof own.gradients);
            carry_out_steps(&other, 1000);
            assert_int_equal(slow_outcome(&other, &own, &plan), expected);
            bed_close(&other);
        }
        carry_out_steps(&b, 1000);      // what was refused has not hurt
        assert_int_equal(slow_outcome(&b, &s, &plan), expected);
        bed_close(&b);
    }

    open_saved(&b, &s, &graph, &plan);      // the position is the first byte in which two places differ
    load_slots(&b, &plan);
    if (tl_start_pass(b.run, 0)) fail_msg("%s", b.env.error.text);
    carry_out_steps(&b, 1);
    if (save(&b, &d)) fail_msg("%s", b.env.error.text);
    carry_out_steps(&b, 1);
    if (save(&b, &next)) fail_msg("%s", b.env.error.text);
    while (d.bytes[at] == next.bytes[at]) at++;
    assert_int_equal(d.bytes[at], 1);
    assert_int_equal(next.bytes[at], 2);
    for (steps = 0; steps < plan.step_count; steps++) {
        uint64_t sum;
        int is_under_way = (steps > 3 && steps < 9) || (steps > 11 && steps < 14);
        if (!is_under_way) continue;
        d.bytes[at] = (unsigned char)steps;
        sum = tli_checksum_bytes(0, d.bytes, d.length - 8);
        for (i = 0; i < 8; i++) d.bytes[d.length - 8 + i] = (unsigned char)(sum >> (8 * i));
        open_saved(&other, &own, &graph, &plan);
        assert_int_equal(tl_load_run(other.run, d.bytes, d.length), TL_ERROR_INVALID_ARG);
        assert_string_equal(other.env.error.text, "tl_load_run: run: a step or a copy is under way");
        bed_close(&other);
    }
    bed_close(&b);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// Two plans of the same steps and places: in one of them W ends the call, and in the other the copy.
static void a_pass_is_loaded_where_the_same_calls_begin(void **state) {
    static const char *const texts[] = { "F 1\nF 2\nF 3\nF 4\nB 4\nB 3\nB 2\nO 1\nB 1 begin\nW 1\n",
                                         "F 1\nF 2\nF 3\nF 4\nB 4\nB 3\nB 2\nO 1\nB 1\nW 1\n" };
    static bed b, other;
    static slow s, own;
    static data d;
    tl_env env;
    tl_graph graph;
    tl_plan plans[2], chain;
    int from, to;
    (void)state;
    open_chain(&env, &graph, &chain);
    for (to = 0; to < 2; to++)
        if (tl_parse_schedule(&env, texts[to], strlen(texts[to]), &plans[to])) fail_msg("%s", env.error.text);
    for (from = 0; from < 2; from++)
        for (to = 0; to < 2; to++) {
            open_saved(&b, &s, &graph, &plans[from]);
            open_saved(&other, &own, &graph, &plans[to]);
            load_slots(&b, &plans[from]);
            if (tl_start_pass(b.run, 0)) fail_msg("%s", b.env.error.text);
            carry_out_steps(&b, 3);
            if (save(&b, &d)) fail_msg("%s", b.env.error.text);
            assert_int_equal(tl_load_run(other.run, d.bytes, d.length), from == to ? TL_OK : TL_ERROR_INVALID_ARG);
            if (from != to) assert_string_equal(other.env.error.text, "tl_load_run: data: saved in a pass of another plan");
            bed_close(&other);
            bed_close(&b);
        }
    for (to = 0; to < 2; to++) tl_free_plan(&env, &plans[to]);
    tl_free_plan(&env, &chain);
    tl_free_graph(&env, &graph);
}

// -- what a run refuses --

static void refuse(bed *b, const char *schedule, tl_result code, const char *text) {
    tl_env env;
    tl_plan plan;
    memset(&env, 0, sizeof env);
    if (tl_parse_schedule(&env, schedule, strlen(schedule), &plan)) fail_msg("%s", env.error.text);
    plan.inference = 1;
    b->desc.plan = &plan;
    if (bed_init(b) != code) fail_msg("%s", b->env.error.text);
    if (code) assert_string_equal(b->env.error.text, text);
    if (code == TL_ERROR_UNSUPPORTED) assert_int_equal(b->env.error.values[0], 1);
    bed_close(b);
    tl_free_plan(&env, &plan);
}

// A backward that is begun goes on beside others, which may use the bytes of the same range: its gradient has no shard.
static void a_backward_that_is_begun_has_no_shard(void **state) {
    static const char text[] =
        "tlg 1\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=-\nnode 1 a conv fwd=1 bwd=1 out=64 needs=none in=0\n"
        "node 2 b conv fwd=1 bwd=1 out=64 needs=none in=1\nnode 3 s loss fwd=1 bwd=1 out=4 needs=none in=2\n";
    static const char *const schedules[] = { "F 1\nF 2\nF 3\nB 3\nB 2\nB 1\n", "F 1\nF 2 begin\nW 2\nF 3\nB 3\nB 2\nB 1\n",
                                             "F 1\nF 2\nF 3\nB 3\nB 2 begin\nW 2\nB 1\n" };
    static float gradient[4], shard[4];
    static bed b;
    tl_env env;
    tl_graph graph;
    int32_t k, node;
    (void)state;
    memset(&env, 0, sizeof env);
    if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
    for (k = 0; k < 3; k++)
        for (node = 1; node < 3; node++) {
            tl_variable variable = { 0, TL_VARIABLE_GRADIENT, gradient, sizeof gradient, shard };
            int is_refused = k == 2 && node == 2;
            tl_plan plan;
            variable.node = node;
            if (tl_parse_schedule(&env, schedules[k], strlen(schedules[k]), &plan)) fail_msg("%s", env.error.text);
            bed_open(&b, &graph, 0, 0, 4);
            b.desc.plan = &plan;
            b.desc.variables = &variable;
            b.desc.variable_count = 1;
            assert_int_equal(bed_init(&b), is_refused ? TL_ERROR_UNSUPPORTED : TL_OK);
            if (is_refused) assert_string_equal(b.env.error.text, "tl_init_run: plan: step 4 begins a backward whose gradient has a shard");
            bed_close(&b);
            tl_free_plan(&env, &plan);
        }
    tl_free_graph(&env, &graph);
}

static void a_run_refuses_what_is_not_one_call_of_one_kernel(void **state) {
    static const char text[] =
        "tlg 1\nnode 0 x input fwd=0 bwd=0 out=1024 needs=none in=-\n"
        "node 1 a conv fwd=1 bwd=0 out=1024 needs=none in=0 grad=no takes_blocks\n"
        "node 2 b relu fwd=1 bwd=0 out=1024 needs=none in=1 grad=no takes_blocks\n"
        "node 3 c copy fwd=1 bwd=0 out=512 needs=none in=2 grad=no keep\n";
    static const char begins[] = "F 1\nF 2 begin\nW 2\nF 3\n", plain[] = "F 1\nF 2\nF 3\n";
    static const char converts[] =
        "tlg 1\nnode 0 x input fwd=0 bwd=0 out=1024 needs=none in=-\n"
        "node 1 a conv fwd=1 bwd=0 out=1024 needs=none in=0 grad=no\n"
        "node 2 b convert fwd=1 bwd=0 out=512 needs=none in=1 grad=no keep\n";
    static const uint8_t formats[] = { TL_FORMAT_F32, TL_FORMAT_F32, TL_FORMAT_F16 };
    static const char *const none = "";
    static bed b;
    tl_env env;
    tl_graph graph;
    tl_node *nodes;
    int k;
    (void)state;
    memset(&env, 0, sizeof env);
    if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
    nodes = (tl_node *)(uintptr_t)graph.nodes;
    for (k = 0; k < 2; k++) {
        const char *schedule = k ? begins : plain;
        bed_open(&b, &graph, 0, 0, 4);
        refuse(&b, schedule, TL_OK, none);
        bed_open(&b, &graph, 0, 0, 4);
        b.spy.binding = 256;
        nodes[3].takes_blocks = 1;
        ((tl_node_output *)(uintptr_t)graph.outputs)[3].bytes = 1024;
        refuse(&b, schedule, k ? TL_ERROR_UNSUPPORTED : TL_OK, "tl_init_run: plan: step 1 begins what is not one call of one kernel");
        nodes[3].takes_blocks = 0;
        ((tl_node_output *)(uintptr_t)graph.outputs)[3].bytes = 512;
        bed_open(&b, &graph, 0, 0, 4);
        b.desc.random = mixer_random_hook;
        b.desc.random_user = &b.mixer;
        refuse(&b, schedule, k ? TL_ERROR_UNSUPPORTED : TL_OK,
               "tl_init_run: plan: begins calls, but the random hook is for one call at a time");
        bed_open(&b, &graph, 0, 0, 4);
        b.desc.in_flight = 2;
        refuse(&b, schedule, k ? TL_ERROR_INVALID_PLAN : TL_OK, "tl_init_run: plan: step 1 (F 2 b): begins: in_flight must be 0 or 1");
        for (nodes[1].takes_blocks = nodes[2].takes_blocks = 0, nodes[3].dynamic = 1; nodes[3].dynamic; nodes[3].dynamic = 0) {
            bed_open(&b, &graph, 0, 0, 4);
            refuse(&b, schedule, k ? TL_ERROR_UNSUPPORTED : TL_OK,
                   "tl_init_run: plan: begins calls, but dynamic nodes report one call at a time");
        }
        nodes[1].takes_blocks = nodes[2].takes_blocks = 1;
    }
    tl_free_graph(&env, &graph);
    if (tl_parse_graph(&env, converts, strlen(converts), &graph)) fail_msg("%s", env.error.text);
    for (k = 0; k < 2; k++) {       // the run converts by itself: no kernel has this op
        bed_open(&b, &graph, 0, 0, 4);
        b.desc.kernel_count = 1;
        b.desc.formats = formats;
        b.desc.kernel_precisions = 1u << TL_PRECISION_MIXED;
        if (!k) refuse(&b, "F 1\nF 2\n", TL_OK, none);
        else refuse(&b, "F 1\nF 2 begin\nW 2\n", TL_ERROR_UNSUPPORTED, "tl_init_run: plan: step 1 begins what is not one call of one kernel");
    }
    tl_free_graph(&env, &graph);
}

// -- texts and tables --

static void a_schedule_says_which_calls_begin(void **state) {
    static const char text[] = "E 3.0\nF 1@2 begin\nW 1@2\nB 2 begin\nW 2\nF 7\n";
    static const struct { const char *text, *why; } bad[] = {
        { "F 1 begins\n", "line 1: the last word of F and B may be begin" },
        { "F 1\nB 1 1\n", "line 2: the last word of F and B may be begin" },
        { "F 1 Begin\n", "line 1: the last word of F and B may be begin" },
        { "F 1 begin begin\n", "line 1: more words than the step takes" },
        { "S 1 begin\n", "line 1: more words than the step takes" },
        { "I 1 begin\n", "line 1: more words than the step takes" },
        { "D 1 begin\n", "line 1: more words than the step takes" },
        { "W 1 begin\n", "line 1: more words than the step takes" },
        { "C 1 f16 begin\n", "line 1: more words than the step takes" },
        { "F begin\n", "line 1: target: must be a node number, as in F 3" },
    };
    tl_env env;
    tl_plan plan;
    char printed[100];
    size_t i;
    (void)state;
    memset(&env, 0, sizeof env);
    if (tl_parse_schedule(&env, text, strlen(text), &plan)) fail_msg("%s", env.error.text);
    assert_int_equal(plan.step_count, 5);
    for (i = 0; i < 5; i++) assert_int_equal(plan.steps[i].begins, i == 0 || i == 2);
    assert_int_equal(plan.steps[0].slot, 2);
    assert_int_equal(tl_print_schedule(&plan, printed, sizeof printed), strlen(text));
    assert_string_equal(printed, text);
    tl_free_plan(&env, &plan);
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(tl_parse_schedule(&env, bad[i].text, strlen(bad[i].text), &plan), TL_ERROR_PARSE);
        if (!strstr(env.error.text, bad[i].why)) fail_msg("%s for %s", env.error.text, bad[i].text);
    }
}

// Narrow steps have begins in the place of the codec: any other value there is refused, not taken for 1.
static void narrow_plans_begin_the_same_calls(void **state) {
    static begun_replay r;
    static begun_plan b;
    tl_random random;
    long round, rounds = scaled(200), narrow = 0, wrong = 0;
    (void)state;
    random.state = 25;
    for (round = 0; round < rounds; round++) {
        tl_env env;
        tl_graph graph;
        tl_plan plan, copy;
        tl_report report, same;
        int32_t slots = some_slots(&random), k;
        narrow_form n;
        make_graph(&env, &random, 12, &graph);
        if (make_begun(&env, &random, &graph, slots, &r, &plan, &b)) {
            if (simulate(&env, &graph, &b.plan, &report)) fail_msg("%s", env.error.text);
            narrow_from(&b.plan, 1, slots > 1 ? 3 : 2, 0, &n);
            if (simulate(&env, &graph, &n.plan, &same)) fail_msg("%s", env.error.text);
            assert_memory_equal(&report, &same, sizeof report);
            if (tl_copy_plan(&env, &n.plan, &copy)) fail_msg("%s", env.error.text);
            for (k = 0; k < copy.step_count; k++) {
                const tl_step step = tl_find_step(&copy, k), found = tl_find_step(&n.plan, k);
                assert_memory_equal(&step, &b.steps[k], sizeof step);
                assert_memory_equal(&found, &b.steps[k], sizeof found);
            }
            tl_free_plan(&env, &copy);
            narrow++;
            k = random_count(&random, 0, b.plan.step_count - 1);
            if (b.steps[k].kind <= TL_STEP_BACKWARD) {
                uint16_t *word = &n.steps[k * (slots > 1 ? 3 : 2)];
                *word = (uint16_t)((*word & ~0xF0) | random_count(&random, 2, 15) << 4);
                assert_int_equal(simulate(&env, &graph, &n.plan, &same), TL_ERROR_INVALID_PLAN);
                assert_int_equal(same.broken_step, k);
                if (!strstr(env.error.text, "begins: must be 0, or 1 of F and B")) fail_msg("%s", env.error.text);
                wrong++;
            }
            narrow_free(&n);
            random_free_plan(&env, &plan);
        }
        tl_free_graph(&env, &graph);
    }
    assert_true(narrow > rounds / 5 && wrong > narrow / 4);
}

static tl_result no_memory_for(const tl_lifetime *life, void **memory, void *user) {
    (void)life;
    (void)memory;
    ++*(int *)user;
    return TL_ERROR_NO_MEMORY;
}

static void no_release(const tl_lifetime *life, void *memory, void *user) { (void)life; (void)memory; (void)user; }
static tl_result no_call(const tl_replay_call *call, void *user) { (void)call; (void)user; return TL_OK; }

static void what_has_no_calls_under_way_refuses_them(void **state) {
    tl_env env;
    tl_graph graph;
    tl_plan plan;
    tl_replay_desc replay;
    tl_code_desc code;
    tl_places_desc places;
    memory_sink header, source;
    tl_sink sinks[2];
    int calls = 0;
    (void)state;
    open_chain(&env, &graph, &plan);
    memset(&replay, 0, sizeof replay);
    replay.graph = &graph;
    replay.plan = &plan;
    replay.allocate = no_memory_for;
    replay.release = no_release;
    replay.call = no_call;
    replay.user = &calls;
    assert_int_equal(tl_replay_plan(&env, &replay), TL_ERROR_UNSUPPORTED);
    assert_string_equal(env.error.text, "tl_replay_plan: plan: begins calls that other steps end");
    assert_int_equal(env.error.values[0], 3);
    assert_int_equal(env.error.values[1], 2);
    assert_int_equal(calls, 0);
    memset(&places, 0, sizeof places);
    places.graph = &graph;
    if (tl_plan_places(&env, &places, &plan, NULL)) fail_msg("%s", env.error.text);
    memset(&code, 0, sizeof code);
    code.name = "net";
    sinks[0] = sink_of(&header, -1);
    sinks[1] = sink_of(&source, -1);
    assert_int_equal(tl_write_plan_code(&env, &graph, &plan, &code, sinks[0], sinks[1]), TL_ERROR_UNSUPPORTED);
    assert_string_equal(env.error.text, "tl_write_plan_code: plan: begins calls that other steps end");
    assert_int_equal(header.count + source.count, 0);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// -- what a run tells --

typedef struct events { tl_run_event items[64]; int32_t count; } events;

static void keep_event(const tl_run_event *event, void *user) {
    events *e = (events *)user;
    assert_true(e->count < 64);
    e->items[e->count++] = *event;
}

// A call is observed when its W closes it, from the time at which it began to the end of its work.
static void a_call_is_observed_when_it_ends(void **state) {
    static bed b;
    static slow s;
    static events e;
    tl_env env;
    tl_graph graph;
    tl_plan plan;
    int32_t i, k, steps = 0, seen[64] = { 0 };
    (void)state;
    open_chain(&env, &graph, &plan);
    bed_open(&b, &graph, 1, 0, 4);
    make_slow(&b, &s, 6, 100);
    b.desc.plan = &plan;
    b.desc.observe = keep_event;
    b.desc.observe_user = &e;
    b.desc.profiling = 1;
    bed_must_init(&b);
    e.count = 0;
    while (tl_run_plan(b.run) == TL_NOT_READY) { }
    assert_int_equal(e.count, plan.step_count);
    for (i = 0; i < e.count; i++) {
        const tl_run_event *event = &e.items[i];
        assert_memory_equal(&event->step, &plan.steps[event->index], sizeof event->step);
        assert_int_equal(seen[event->index]++, 0);
        assert_true(event->start_ns < event->end_ns);
        if (!event->step.begins) {
            assert_true(event->index >= steps);
            steps = event->index;
            continue;
        }
        assert_int_equal(e.items[i + 1].step.kind, TL_STEP_WAIT);
        assert_int_equal(e.items[i + 1].step.node, event->step.node);
        for (k = 0; k < e.count; k++) {
            const tl_run_event *other = &e.items[k];
            if (other->index < event->index && !other->step.begins) assert_true(other->end_ns <= event->start_ns);
            if (other->index > event->index && other->index < e.items[i + 1].index) assert_true(other->start_ns > event->start_ns);
            if (other->index > event->index && other->index < e.items[i + 1].index && !other->step.begins)
                assert_true(other->end_ns <= event->end_ns);
            if (other->index > e.items[i + 1].index) assert_true(other->start_ns >= event->end_ns);
        }
    }
    bed_close(&b);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule_is_named),
        cmocka_unit_test(a_call_under_way_keeps_states_as_they_are),
        cmocka_unit_test(begins_is_1_and_of_two_kinds),
        cmocka_unit_test(a_call_reads_a_tensor_as_often_as_it_likes),
        cmocka_unit_test(valid_plans_are_those_of_the_replay),
        cmocka_unit_test(verdicts_are_those_of_the_replay),
        cmocka_unit_test(runs_compute_what_they_compute_without),
        cmocka_unit_test(a_pass_with_calls_under_way_can_be_given_up),
        cmocka_unit_test(each_allocation_of_init_may_fail),
        cmocka_unit_test(a_pass_is_saved_between_calls),
        cmocka_unit_test(a_pass_is_loaded_where_the_same_calls_begin),
        cmocka_unit_test(a_backward_that_is_begun_has_no_shard),
        cmocka_unit_test(a_run_refuses_what_is_not_one_call_of_one_kernel),
        cmocka_unit_test(a_schedule_says_which_calls_begin),
        cmocka_unit_test(narrow_plans_begin_the_same_calls),
        cmocka_unit_test(what_has_no_calls_under_way_refuses_them),
        cmocka_unit_test(a_call_is_observed_when_it_ends),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
