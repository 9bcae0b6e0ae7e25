// [5] REMAT, policies: schedules made by a rule, for comparison and for old habits.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support.h"
#include "random_graph.h"

#define SOAK_TIMES(count) ((count) * (getenv("SOAK") ? 20 : 1))

// -- what the tests share --

static tl_policy_desc desc_of(const tl_graph *graph, tl_policy policy, uint64_t budget) {
    tl_policy_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.policy = policy;
    desc.budget_bytes = budget;
    return desc;
}

static int is_zero(const void *memory, size_t bytes) {
    const unsigned char *at = (const unsigned char *)memory;
    while (bytes && !at[bytes - 1]) bytes--;
    return !bytes;
}

// "... needs 340 bytes ..." -> 340
static uint64_t least_of(const tl_env *env) {
    const char *at = strstr(env->error.text, " needs ");
    if (!at) fail_msg("\"%s\" names no least budget", env->error.text);
    return strtoull(at + 7, NULL, 10);
}

// What every answer must hold, whatever the graph.
static tl_result plan_checked(const tl_policy_desc *desc, tl_env *env, tl_plan *plan) {
    uint64_t budget = desc->budget_bytes ? desc->budget_bytes : UINT64_MAX;
    tl_simulate_desc replay;
    tl_report report;
    tl_result result;
    memset(env, 0, sizeof *env);
    result = tl_plan_policy(env, desc, plan);
    assert_int_equal(env->error.code, result);
    if (result) {
        assert_true(is_zero(plan, sizeof *plan));
        assert_int_equal(strncmp(env->error.text, "tl_", 3), 0);
        if (result == TL_ERROR_INFEASIBLE) assert_true(least_of(env) > budget);
        return result;
    }
    memset(&replay, 0, sizeof replay);
    replay.graph = desc->graph;
    replay.plan = plan;
    if (tl_simulate_plan(env, &replay, &report)) fail_msg("%s: %s", tl_name_policy(desc->policy), env->error.text);
    assert_int_equal(plan->peak_bytes, report.peak_bytes);
    assert_int_equal(plan->cost, report.cost);
    assert_int_equal(plan->base_cost, report.base_cost);
    assert_int_equal(plan->base_bytes, desc->base_bytes);
    assert_int_equal(plan->inference, desc->inference);
    assert_true(plan->base_bytes <= budget && plan->peak_bytes <= budget - plan->base_bytes);
    return TL_OK;
}

static tl_graph graph_of(const char *text) {
    tl_env env;
    tl_graph graph;
    memset(&env, 0, sizeof env);
    if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
    return graph;
}

// A chain of equal layers of one byte.
static tl_graph chain_of(int32_t layers, const char *needs) {
    tl_chain_desc chain;
    tl_graph graph;
    memset(&chain, 0, sizeof chain);
    chain.layer_count = layers;
    chain.input_bytes = 1;
    chain.needs = needs;
    if (tl_add_chain(NULL, &graph, &chain)) fail_msg("no chain");
    return graph;
}

static uint64_t keep_all_peak(const tl_graph *graph) {
    tl_plan all;
    uint64_t peak;
    if (tl_plan_keep_all(NULL, graph, 0, &all)) fail_msg("no plan");
    peak = all.peak_bytes;
    tl_free_plan(NULL, &all);
    return peak;
}

// The steps as one line; drops, which follow from the calls, only where asked for.
static const char *steps_of(const tl_plan *plan, int with_drops) {
    static char line[4096];
    size_t at = 0;
    int32_t i;
    line[0] = 0;
    for (i = 0; i < plan->step_count; i++)
        if (with_drops || plan->steps[i].kind != TL_STEP_DROP)
            at += (size_t)snprintf(line + at, sizeof line - at, "%s%s%d", at ? " " : "",
                                   tl_name_step((tl_step_kind)plan->steps[i].kind), (int)plan->steps[i].node);
    return line;
}

static void assert_steps(const tl_policy_desc *desc, const char *steps) {
    tl_env env;
    tl_plan plan;
    if (plan_checked(desc, &env, &plan)) fail_msg("%s", env.error.text);
    if (strcmp(steps_of(&plan, 0), steps)) fail_msg("%s: %s, not %s", tl_name_policy(desc->policy), steps_of(&plan, 0), steps);
    tl_free_plan(&env, &plan);
}

static void assert_refused(const tl_policy_desc *desc, tl_result expected, const char *text) {
    tl_env env;
    tl_plan plan;
    if (plan_checked(desc, &env, &plan) != expected || strcmp(env.error.text, text))
        fail_msg("\"%s\", not \"%s\"", env.error.text, text);
}

// -- names --

static void every_policy_has_a_name_that_parses_back(void **state) {
    int value;
    tl_policy parsed;
    (void)state;
    for (value = 0; value < TL_POLICY_COUNT; value++) {
        assert_true(tl_parse_policy(tl_name_policy((tl_policy)value), &parsed));
        assert_int_equal(parsed, value);
        assert_true(strlen(tl_explain_policy((tl_policy)value)) > 10);
    }
    assert_string_equal(tl_name_policy(TL_POLICY_COUNT), "?");
    assert_string_equal(tl_explain_policy(TL_POLICY_COUNT), "?");
    assert_false(tl_parse_policy("chen", &parsed));
    assert_int_equal(parsed, 0);
}

// -- hand-worked --

// Nine layers of one byte; the fourth costs most. What is made again shows which nodes each policy keeps.
static tl_graph nine_layers(void) {
    tl_graph graph = chain_of(9, "in");
    int32_t id;
    for (id = 1; id <= 9; id++) graph.nodes[id].fwd_cost = (uint64_t)(id == 4 ? 9 : id == 7 ? 5 : 2);
    return graph;
}

static void each_policy_makes_other_steps(void **state) {
    static const char *const steps[] = {
        "F1 F2 F3 F4 F5 F6 F7 F8 F9 B9 B8 B7 B6 B5 B4 B3 B2 B1",
        "F1 F2 F3 F4 F5 F6 F7 F8 F9 F8 B9 B8 F5 F6 B7 B6 B5 F2 F3 B4 B3 B2 B1",         // keeps 1, 4, 7
        "F1 F2 F3 F4 F5 F6 F7 F8 F9 F7 F8 B9 B8 B7 F4 F5 B6 B5 B4 F1 F2 B3 B2 B1",      // 3, 6, 9
        "F1 F2 F3 F4 F5 F6 F7 F8 F9 B9 F7 B8 B7 F5 B6 B5 F3 B4 B3 F1 B2 B1",            // 2, 4, 6, 8
        "F1 F2 F3 F4 F5 F6 F7 F8 F9 F8 B9 B8 F5 F6 B7 B6 B5 F1 F2 F3 B4 B3 B2 B1",      // 4, 7
        "F1 F2 F3 F4 F5 F6 F7 F8 F9 B9 B8 B7 B6 F1 F2 F3 F4 B5 B4 B3 B2 B1",            // slots: 0, 5, 6, 7
    };
    tl_graph graph = nine_layers();
    int value;
    (void)state;
    assert_int_equal(sizeof steps / sizeof steps[0], TL_POLICY_COUNT);
    for (value = 0; value < TL_POLICY_COUNT; value++) {
        tl_policy_desc desc = desc_of(&graph, (tl_policy)value, 0);
        if (value == TL_POLICY_SELECTIVE) desc.cost_threshold = 5;
        if (value == TL_POLICY_REVOLVE) desc.slot_count = 4;
        assert_steps(&desc, steps[value]);
    }
    tl_free_graph(NULL, &graph);
}

static void numbers_of_a_policy_change_its_steps(void **state) {
    tl_graph graph = nine_layers();
    tl_policy_desc desc = desc_of(&graph, TL_POLICY_EVERY_N, 0);
    (void)state;
    desc.interval = 4;
    assert_steps(&desc, "F1 F2 F3 F4 F5 F6 F7 F8 F9 F6 F7 F8 B9 B8 B7 B6 F2 F3 F4 B5 B4 B3 B2 B1");
    desc.policy = TL_POLICY_CHEN_SQRT;
    assert_steps(&desc, "F1 F2 F3 F4 F5 F6 F7 F8 F9 B9 F5 F6 F7 B8 B7 B6 B5 F1 F2 F3 B4 B3 B2 B1");
    desc.interval = 1;
    assert_steps(&desc, "F1 F2 F3 F4 F5 F6 F7 F8 F9 B9 B8 B7 B6 B5 B4 B3 B2 B1");
    desc.policy = TL_POLICY_SELECTIVE;
    desc.cost_threshold = 6;
    assert_steps(&desc, "F1 F2 F3 F4 F5 F6 F7 F8 F9 F5 F6 F7 F8 B9 B8 B7 B6 B5 F1 F2 F3 B4 B3 B2 B1");
    desc.policy = TL_POLICY_REVOLVE;
    desc.slot_count = 1;
    assert_steps(&desc, "F1 F2 F3 F4 F5 F6 F7 F8 F9 B9 F1 F2 F3 F4 F5 F6 F7 B8 F1 F2 F3 F4 F5 F6 B7 F1 F2 F3 F4 F5 B6 "
                        "F1 F2 F3 F4 B5 F1 F2 F3 B4 F1 F2 B3 F1 B2 B1");
    desc.slot_count = 1000;
    assert_steps(&desc, "F1 F2 F3 F4 F5 F6 F7 F8 F9 B9 B8 B7 B6 B5 B4 B3 B2 B1");
    tl_free_graph(NULL, &graph);
}

// -- cut nodes --

// Kept alone, each cut node is not made again, and every other node is.
static void cut_nodes_are_what_nothing_passes_by(void **state) {
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
                              "node 1 a conv fwd=3 bwd=5 out=8 needs=out in=0\n"
                              "node 2 b conv fwd=3 bwd=5 out=8 needs=out in=1\n"
                              "node 3 c conv fwd=3 bwd=5 out=8 needs=out in=1\n"
                              "node 4 d add fwd=1 bwd=2 out=8 needs=out in=2,3,0\n"
                              "node 5 e conv fwd=1 bwd=2 out=4 needs=out in=4\n");
    tl_policy_desc desc = desc_of(&graph, TL_POLICY_CHEN_SQRT, 0);
    (void)state;
    desc.interval = 1;
    assert_steps(&desc, "F1 F2 F3 F4 F5 B5 B4 F3 B3 F2 B2 B1");
    tl_free_graph(NULL, &graph);
}

static void cut_nodes_of_random_graphs_are_those_of_the_definition(void **state) {
    tl_random random = { 60 };
    int i, many = 0;
    (void)state;
    for (i = 0; i < SOAK_TIMES(300); i++) {
        tl_graph graph;
        tl_policy_desc desc;
        tli_policy p;
        int32_t id, k, reader, at = 0;
        if (random_graph(NULL, &random, 40, &graph)) fail_msg("no graph");
        desc = desc_of(&graph, TL_POLICY_CHEN_SQRT, 0);
        assert_int_equal(tli_policy_init(NULL, &desc, &p), TL_OK);
        for (id = 0; id < graph.node_count; id++) {
            int is_cut = !graph.nodes[id].is_input;
            for (reader = id + 1; reader < graph.node_count; reader++)
                for (k = graph.nodes[reader].first_input; k < graph.nodes[reader].first_input + graph.nodes[reader].input_count; k++) {
                    int32_t maker = graph.outputs[graph.inputs[k].tensor].node;
                    if (maker < id && !graph.nodes[maker].is_input) is_cut = 0;
                }
            if (is_cut) assert_int_equal(p.cuts[at++], id);
        }
        assert_int_equal(at, p.cut_count);
        many += p.cut_count > 2;
        tli_release(NULL, p.keep);
        tli_release(NULL, p.cuts);
        tli_release(NULL, p.last);
        tl_free_graph(NULL, &graph);
    }
    assert_true(many > 50);
}

// -- the reference data --

// What a row of the reference data is here: 1 and the desc, or 0.
static int read_method(const char *method, uint64_t budget, tl_policy_desc *desc) {
    memset(desc, 0, sizeof *desc);
    desc->policy = TL_POLICY_CHEN_SQRT;
    if (!strcmp(method, "chen_sqrtn_ap")) return 1;
    desc->interval = 1;
    if (!strcmp(method, "all_ap")) return 1;
    desc->interval = UINT64_MAX;
    if (!strcmp(method, "checkpoint_none")) return 1;
    desc->interval = 0;
    desc->policy = TL_POLICY_KEEP_ALL;
    if (!strcmp(method, "store_all")) return 1;
    desc->policy = TL_POLICY_CHEN_GREEDY;
    desc->budget_bytes = budget;
    return !strncmp(method, "chen_greedy_", 12);
}

// Cut nodes are those of the reference, so its rows are reached: the same cost, within the same bytes. A search over
// Algorithm 3's budget finds what sixteen of its values do, and more. Its rows of every n-th node (noap) start to count elsewhere: they are not ours.
static void rows_of_the_reference_are_reached(void **state) {
    const char *test = "rows_of_the_reference_are_reached";
    char name[64], method[64], last[64] = "", path[256];
    char *csv = read_reference(test, "remat_reference.csv", NULL), *line;
    unsigned long long budget;
    double ratio;
    int rows = 0, cheaper = 0;
    tl_graph graph;
    (void)state;
    if (!csv) skip();
    tl_init_graph(&graph);
    for (line = strchr(csv, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        tl_policy_desc desc;
        tl_env env;
        tl_plan plan;
        double cost;
        if (sscanf(line + 1, "%63[^,],%llu,%*[^,],%*[^,],%63[^,],%lf", name, &budget, method, &ratio) != 4) continue;
        if (!read_method(method, budget, &desc)) continue;
        if (strcmp(last, name)) {
            char *text;
            snprintf(path, sizeof path, "models/%s.tlg", name);
            text = read_reference(test, path, NULL);
            assert_non_null(text);
            tl_free_graph(NULL, &graph);
            graph = graph_of(text);
            free(text);
            snprintf(last, sizeof last, "%s", name);
        }
        desc.graph = &graph;
        if (plan_checked(&desc, &env, &plan)) fail_msg("%s %s: %s", name, method, env.error.text);
        cost = (double)plan.cost / (double)plan.base_cost;
        if (cost > ratio + 1e-9 || plan.peak_bytes > budget)
            fail_msg("%s %s: %.9f at %llu bytes, reference %.9f at %llu", name, method, cost,
                     (unsigned long long)plan.peak_bytes, ratio, budget);
        if (desc.policy != TL_POLICY_CHEN_GREEDY && cost < ratio - 1e-9) fail_msg("%s %s: not the same plan", name, method);
        cheaper += cost < ratio - 1e-9;
        rows++;
        tl_free_plan(&env, &plan);
    }
    tl_free_graph(NULL, &graph);
    print_message("%d rows reached, %d of them for less\n", rows, cheaper);
    assert_true(rows > 250);
    free(csv);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_has_a_name_that_parses_back),
        cmocka_unit_test(each_policy_makes_other_steps),
        cmocka_unit_test(numbers_of_a_policy_change_its_steps),
        cmocka_unit_test(cut_nodes_are_what_nothing_passes_by),
        cmocka_unit_test(cut_nodes_of_random_graphs_are_those_of_the_definition),
        cmocka_unit_test(rows_of_the_reference_are_reached),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
