// [6] REMAT, policies: schedules made by a rule, for comparison and for old habits.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/layered_graph.h"
#include "support/texts.h"
#include "support/keep_all.h"


// -- what the tests share --

static tl_policy_desc desc_of(const tl_graph *graph, tl_policy_kind policy, uint64_t budget) {
    tl_policy_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.live = 1;
    desc.policy.kind = policy;
    desc.budget_bytes = budget;
    return desc;
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
    if (tl_simulate_plan(env, &replay, &report)) fail_msg("%s: %s", tl_name_policy(desc->policy.kind), env->error.text);
    assert_int_equal(plan->peak_bytes, report.peak_bytes);
    assert_int_equal(plan->cost, report.cost);
    assert_int_equal(plan->base_cost, report.base_cost);
    assert_int_equal(plan->base_bytes, desc->base_bytes);
    assert_int_equal(plan->inference, desc->inference);
    assert_true(plan->base_bytes <= budget && plan->peak_bytes <= budget - plan->base_bytes);
    return TL_OK;
}

// With every attribute, or layered: small byte counts, so that all of Algorithm 3's budgets can be tried.
static void any_graph(tl_random *random, int is_wild, int32_t most, tl_graph *graph) {
    int32_t i;
    tl_result result = is_wild ? random_effect_graph(NULL, random, most, (int)(random->state % 3) * 15, graph)
                               : layered_graph(NULL, random, random_count(random, 2, most), graph);
    if (result) fail_msg("%s", "no graph");
    if (is_wild) return;
    for (i = 0; i < graph->tensor_count; i++) OUTPUTS(graph)[i].bytes /= 2048;
    for (i = 0; i < graph->node_count; i++) NODES(graph)[i].saved_bytes /= 2048;
    for (i = 0; i < graph->node_count; i++) NODES(graph)[i].fwork_bytes /= 2048;
}

// A chain of equal layers of one byte.
static tl_graph chain_of(int32_t layers, const char *needs) {
    tl_chain_desc chain;
    tl_graph graph;
    memset(&chain, 0, sizeof chain);
    chain.layer_count = layers;
    chain.input_bytes = 1;
    chain.needs = needs;
    if (tl_add_chain(NULL, &graph, &chain)) fail_msg("%s", "no chain");
    return graph;
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
    if (strcmp(steps_of(&plan, 0), steps)) fail_msg("%s: %s, not %s", tl_name_policy(desc->policy.kind), steps_of(&plan, 0), steps);
    tl_free_plan(&env, &plan);
}

static void assert_refused(const tl_policy_desc *desc, tl_result expected, const char *text) {
    tl_env env;
    tl_plan plan;
    if (plan_checked(desc, &env, &plan) != expected || strcmp(env.error.text, text))
        fail_msg("\"%s\", not \"%s\"", env.error.text, text);
}

// Give a policy its number, if the kind has one.
static void set_number(tl_policy *policy, uint64_t number) {
    if (policy->kind == TL_POLICY_EVERY_N) policy->as.every_n.interval = number;
    if (policy->kind == TL_POLICY_CHEN_SQRT) policy->as.chen_sqrt.interval = number;
    if (policy->kind == TL_POLICY_SELECTIVE) policy->as.selective.cost_threshold = number;
    if (policy->kind == TL_POLICY_REVOLVE) policy->as.revolve.slot_count = number;
}

// -- hand-worked --

// Nine layers of one byte; the fourth costs most. What is made again shows which nodes each policy keeps.
static tl_graph nine_layers(void) {
    tl_graph graph = chain_of(9, "in");
    int32_t id;
    for (id = 1; id <= 9; id++) NODES(&graph)[id].fwd_cost = (uint64_t)(id == 4 ? 9 : id == 7 ? 5 : 2);
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
        "F1 F2 F3 F4 F5 F6 F7 F8 F9 B9 B8 F5 F6 B7 B6 B5 F3 B4 B3 B2 B1",               // 4 and 7 stay: the dear ones
    };
    tl_graph graph = nine_layers();
    int value;
    (void)state;
    assert_int_equal(sizeof steps / sizeof steps[0], TL_POLICY_CHAIN + 1);
    for (value = 0; value <= TL_POLICY_CHAIN; value++) {
        tl_policy_desc desc = desc_of(&graph, (tl_policy_kind)value, value == TL_POLICY_CHAIN ? 8 : 0);
        int other = value;
        if (value == TL_POLICY_SELECTIVE) desc.policy = tl_policy_selective(5);
        if (value == TL_POLICY_REVOLVE) desc.policy.as.revolve.slot_count = 4;
        assert_steps(&desc, steps[value]);
        while (other-- > 0) assert_string_not_equal(steps[other], steps[value]);
    }
    tl_free_graph(NULL, &graph);
}

static void numbers_of_a_policy_change_its_steps(void **state) {
    tl_graph graph = nine_layers();
    tl_policy_desc desc = desc_of(&graph, TL_POLICY_EVERY_N, 0);
    (void)state;
    desc.policy = tl_policy_every_n(4);
    assert_steps(&desc, "F1 F2 F3 F4 F5 F6 F7 F8 F9 F6 F7 F8 B9 B8 B7 B6 F2 F3 F4 B5 B4 B3 B2 B1");
    desc.policy.kind = TL_POLICY_CHEN_SQRT;
    desc.policy.as.chen_sqrt.interval = 4;
    assert_steps(&desc, "F1 F2 F3 F4 F5 F6 F7 F8 F9 B9 F5 F6 F7 B8 B7 B6 B5 F1 F2 F3 B4 B3 B2 B1");
    desc.policy.as.chen_sqrt.interval = 1;
    assert_steps(&desc, "F1 F2 F3 F4 F5 F6 F7 F8 F9 B9 B8 B7 B6 B5 B4 B3 B2 B1");
    desc.policy = tl_policy_selective(6);
    assert_steps(&desc, "F1 F2 F3 F4 F5 F6 F7 F8 F9 F5 F6 F7 F8 B9 B8 B7 B6 B5 F1 F2 F3 B4 B3 B2 B1");
    desc.policy.kind = TL_POLICY_REVOLVE;
    desc.policy.as.revolve.slot_count = 1;
    assert_steps(&desc, "F1 F2 F3 F4 F5 F6 F7 F8 F9 B9 F1 F2 F3 F4 F5 F6 F7 B8 F1 F2 F3 F4 F5 F6 B7 F1 F2 F3 F4 F5 B6 "
                        "F1 F2 F3 F4 B5 F1 F2 F3 B4 F1 F2 B3 F1 B2 B1");
    desc.policy.as.revolve.slot_count = 1000;
    assert_steps(&desc, "F1 F2 F3 F4 F5 F6 F7 F8 F9 B9 B8 B7 B6 B5 B4 B3 B2 B1");
    tl_free_graph(NULL, &graph);
}

static void without_a_budget_the_interval_is_the_root_rounded_up(void **state) {
    int32_t layers;
    (void)state;
    for (layers = 1; layers < 30; layers++) {
        tl_graph graph = chain_of(layers, "in");
        tl_policy_desc desc = desc_of(&graph, TL_POLICY_EVERY_N, 0);
        tl_env env;
        tl_plan plan;
        char steps[1024];
        uint64_t root;
        if (plan_checked(&desc, &env, &plan)) fail_msg("%s", env.error.text);
        snprintf(steps, sizeof steps, "%s", steps_of(&plan, 1));
        tl_free_plan(&env, &plan);
        for (root = 1; root * root < (uint64_t)layers;) root++;
        desc.policy = tl_policy_every_n(root);
        if (plan_checked(&desc, &env, &plan)) fail_msg("%s", env.error.text);
        assert_string_equal(steps, steps_of(&plan, 1));
        tl_free_plan(&env, &plan);
        tl_free_graph(NULL, &graph);
    }
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
    desc.policy.as.chen_sqrt.interval = 1;
    assert_steps(&desc, "F1 F2 F3 F4 F5 B5 B4 F3 B3 F2 B2 B1");
    tl_free_graph(NULL, &graph);
}

static void cut_nodes_of_random_graphs_are_those_of_the_definition(void **state) {
    tl_random random = { 60 };
    int i, many = 0;
    (void)state;
    for (i = 0; i < scaled(300); i++) {
        tl_graph graph;
        tl_policy_desc desc;
        const tli_budget no_limit = tli_find_budget(0, 0, 0, NULL, NULL, 0);
        tl_remat_pool pool;
        tli_policy p;
        int32_t id, k, reader, at = 0;
        if (random_graph(NULL, &random, 40, &graph)) fail_msg("%s", "no graph");
        desc = desc_of(&graph, TL_POLICY_CHEN_SQRT, 0);
        tli_pool_init(&pool, NULL, 0);
        assert_int_equal(tli_policy_init(NULL, &desc, &no_limit, &pool, &p), TL_OK);
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
        tli_policy_free(&p);
        tl_free_graph(NULL, &graph);
    }
    assert_true(is_thinned() || many > 50);
}

// Candidates are left out by this price alone: it is the cost, and never more bytes than the peak.
static void a_price_is_the_cost_and_no_more_than_the_peak(void **state) {
    tl_random random = { 5 };
    int i, share, exact = 0, count = 0;
    (void)state;
    for (i = 0; i < scaled(600); i++) {
        tl_graph graph;
        tl_policy_desc desc;
        const tli_budget no_limit = tli_find_budget(0, 0, 0, NULL, NULL, 0);
        tl_remat_pool pool;
        tli_policy p;
        if (random_graph(NULL, &random, 30, &graph)) fail_msg("%s", "no graph");
        desc = desc_of(&graph, TL_POLICY_EVERY_N, 0);
        tli_pool_init(&pool, NULL, 0);
        assert_int_equal(tli_policy_init(NULL, &desc, &no_limit, &pool, &p), TL_OK);
        for (share = 0; share < 8; share++) {
            tl_plan plan;
            uint64_t bytes, cost;
            int32_t k;
            for (k = 0; k < graph.tensor_count; k++) p.keep[k] = (uint8_t)(tl_next_random_below(&random, 8) < (uint64_t)share);
            cost = tli_policy_price(&p, &bytes);
            assert_int_equal(tl_plan_kept_set(NULL, &graph, p.keep, &plan), TL_OK);
            assert_int_equal(cost, plan.cost);
            assert_true(bytes <= plan.peak_bytes);
            exact += bytes >= plan.peak_bytes - plan.peak_bytes / 10;
            count++;
            tl_free_plan(NULL, &plan);
        }
        tli_policy_free(&p);
        tl_free_graph(NULL, &graph);
    }
    assert_true(exact > count / 2);
}

// -- the reference data --

// What a row of the reference data is here: 1 and the desc, or 0.
static int read_method(const char *method, uint64_t budget, tl_policy_desc *desc) {
    memset(desc, 0, sizeof *desc);
    desc->policy.kind = TL_POLICY_CHEN_SQRT;
    if (!strcmp(method, "chen_sqrtn_ap")) return 1;
    desc->policy.as.chen_sqrt.interval = 1;
    if (!strcmp(method, "all_ap")) return 1;
    desc->policy.as.chen_sqrt.interval = UINT64_MAX;
    if (!strcmp(method, "checkpoint_none")) return 1;
    desc->policy.as.chen_sqrt.interval = 0;
    desc->policy.kind = TL_POLICY_KEEP_ALL;
    if (!strcmp(method, "store_all")) return 1;
    desc->policy.kind = TL_POLICY_CHEN_GREEDY;
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
        desc.live = 1;
        if (plan_checked(&desc, &env, &plan)) fail_msg("%s %s: %s", name, method, env.error.text);
        cost = (double)plan.cost / (double)plan.base_cost;
        if (cost > ratio + 1e-9 || plan.peak_bytes > budget)
            fail_msg("%s %s: %.9f at %llu bytes, reference %.9f at %llu", name, method, cost,
                     (unsigned long long)plan.peak_bytes, ratio, budget);
        if (desc.policy.kind != TL_POLICY_CHEN_GREEDY && cost < ratio - 1e-9) fail_msg("%s %s: not the same plan", name, method);
        cheaper += cost < ratio - 1e-9;
        rows++;
        tl_free_plan(&env, &plan);
    }
    tl_free_graph(NULL, &graph);
    print_message("%d rows reached, %d of them for less\n", rows, cheaper);
    assert_true(rows > 250);
    free(csv);
}

// -- what is searched: every value tried by hand --

typedef struct best { uint64_t cost, peak, least; int found; } best;

static void try_kept(const tl_graph *graph, const uint8_t *keep, uint64_t budget, best *b) {
    tl_plan plan;
    if (tl_plan_kept_set(NULL, graph, keep, &plan)) fail_msg("%s", "no plan");
    if (plan.peak_bytes < b->least) b->least = plan.peak_bytes;
    if (plan.peak_bytes <= budget && (!b->found || plan.cost < b->cost)) {
        b->cost = plan.cost;
        b->found = 1;
    }
    tl_free_plan(NULL, &plan);
}

static void keep_node(const tl_graph *graph, uint8_t *keep, int32_t id, int kept) {
    int32_t i;
    for (i = 0; i < graph->nodes[id].output_count; i++) keep[graph->nodes[id].first_output + i] = (uint8_t)kept;
}

static uint64_t bytes_of(const tl_graph *graph, int32_t id) {
    uint64_t sum = 0;
    int32_t i;
    for (i = 0; i < graph->nodes[id].output_count; i++) sum += graph->outputs[graph->nodes[id].first_output + i].bytes;
    return sum;
}

static void try_intervals(const tl_graph *graph, uint64_t budget, uint8_t *keep, best *b) {
    int32_t interval, id;
    for (interval = 1; interval <= graph->node_count; interval++) {
        for (id = 0; id < graph->node_count; id++) {
            int32_t number = graph->nodes[id].layer >= 0 ? graph->nodes[id].layer : id;
            if (!graph->nodes[id].is_input) keep_node(graph, keep, id, number % interval == 0);
        }
        try_kept(graph, keep, budget, b);
    }
}

static void try_algorithm_3(const tl_graph *graph, uint64_t budget, uint8_t *keep, best *b) {
    uint64_t bytes, sum, all = 0;
    tl_policy_desc desc = desc_of(graph, TL_POLICY_CHEN_GREEDY, 0);
    const tli_budget no_limit = tli_find_budget(0, 0, 0, NULL, NULL, 0);
    tl_remat_pool pool;
    tli_policy p;
    int32_t id, at;
    tli_pool_init(&pool, NULL, 0);
    if (tli_policy_init(NULL, &desc, &no_limit, &pool, &p)) fail_msg("%s", "no memory");
    for (id = 0; id < graph->node_count; id++) all += bytes_of(graph, id);
    for (bytes = 0; bytes <= all; bytes++) {
        for (id = at = 0, sum = 0; id < graph->node_count; id++) {
            int is_cut = at < p.cut_count && p.cuts[at] == id;
            keep_node(graph, keep, id, 0);
            if (graph->nodes[id].is_input) continue;
            at += is_cut;
            sum += bytes_of(graph, id);
            if (is_cut && sum > bytes) { keep_node(graph, keep, id, 1); sum = 0; }
        }
        try_kept(graph, keep, budget, b);
    }
    tli_policy_free(&p);
}

// Those at least as dear as some node, by cost and by cost per byte (in whole units for each MiB), and none.
static void try_thresholds(const tl_graph *graph, uint64_t budget, uint8_t *keep, best *b) {
    int32_t id, at;
    int per_byte;
    for (per_byte = 0; per_byte < 2; per_byte++)
        for (at = 0; at <= graph->node_count; at++) {
            for (id = 0; id < graph->node_count; id++) {
                uint64_t worth[2];
                int k;
                for (k = 0; k < 2; k++) {
                    int32_t node = k && at < graph->node_count ? at : id;
                    uint64_t bytes = bytes_of(graph, node) + graph->nodes[node].saved_bytes;
                    worth[k] = graph->nodes[node].fwd_cost;
                    if (per_byte) worth[k] = bytes ? worth[k] * 1048576 / bytes : UINT64_MAX;
                }
                keep_node(graph, keep, id, at < graph->node_count ? worth[0] >= worth[1] : per_byte && worth[0] == UINT64_MAX);
            }
            try_kept(graph, keep, budget, b);
        }
}

static void searches_find_the_best_of_all_values(void **state) {
    tl_random random = { 61 };
    int i, fit = 0, policy;
    (void)state;
    for (i = 0; i < scaled(60); i++) {
        tl_graph graph;
        uint8_t *keep;
        uint64_t all;
        any_graph(&random, i % 4 == 0, 25, &graph);
        keep = (uint8_t *)calloc((size_t)graph.tensor_count, 1);
        assert_non_null(keep);
        all = keep_all_peak(&graph, 0);
        for (policy = TL_POLICY_EVERY_N; policy <= TL_POLICY_SELECTIVE; policy++) {
            tl_policy_desc desc = desc_of(&graph, (tl_policy_kind)policy, 1 + all - tl_next_random_below(&random, all / 2 + 1));
            tl_env env;
            tl_plan plan;
            tl_result result;
            best b;
            memset(&b, 0, sizeof b);
            b.least = UINT64_MAX;
            if (policy == TL_POLICY_EVERY_N) try_intervals(&graph, desc.budget_bytes, keep, &b);
            if (policy == TL_POLICY_CHEN_GREEDY) try_algorithm_3(&graph, desc.budget_bytes, keep, &b);
            if (policy == TL_POLICY_SELECTIVE) try_thresholds(&graph, desc.budget_bytes, keep, &b);
            if (b.least == UINT64_MAX) continue;
            result = plan_checked(&desc, &env, &plan);
            assert_int_equal(result, b.found ? TL_OK : TL_ERROR_INFEASIBLE);
            if (result) assert_int_equal(least_of(&env), b.least);
            else assert_int_equal(plan.cost, b.cost);
            fit += b.found;
            tl_free_plan(&env, &plan);
            desc.budget_bytes = 0;      // the least peak
            if (policy == TL_POLICY_CHEN_GREEDY) {
                assert_int_equal(plan_checked(&desc, &env, &plan), TL_OK);
                assert_int_equal(plan.peak_bytes, b.least);
                tl_free_plan(&env, &plan);
            }
        }
        free(keep);
        tl_free_graph(NULL, &graph);
    }
    assert_true(fit > i / 2);
}

// -- revolve --

static void revolve_on_equal_layers_is_tl_plan_revolve(void **state) {
    static const int32_t layers[] = { 1, 2, 3, 10, 37, 100 };
    size_t k;
    int32_t slots;
    (void)state;
    for (k = 0; k < sizeof layers / sizeof layers[0]; k++) {
        tl_graph graph = chain_of(layers[k], "in");
        for (slots = 1; slots <= layers[k] + 1; slots++) {
            tl_policy_desc desc = desc_of(&graph, TL_POLICY_REVOLVE, 0);
            tl_env env;
            tl_plan plan, revolve;
            uint64_t advances;
            desc.policy.as.revolve.slot_count = (uint64_t)slots;
            assert_int_equal(plan_checked(&desc, &env, &plan), TL_OK);
            assert_int_equal(tl_plan_revolve(&env, &graph, slots, &revolve), TL_OK);
            assert_int_equal(tli_find_revolve_advances(&env, (uint64_t)layers[k], (uint64_t)slots, &advances), TL_OK);
            assert_int_equal(plan.cost, advances + 1 + (uint64_t)layers[k]);
            assert_int_equal(plan.step_count, revolve.step_count);
            assert_memory_equal(plan.steps, revolve.steps, (size_t)plan.step_count * sizeof *plan.steps);
            tl_free_plan(&env, &revolve);
            tl_free_plan(&env, &plan);
        }
        tl_free_graph(NULL, &graph);
    }
}

static void revolve_takes_the_most_slots_that_fit(void **state) {
    tl_graph graph = chain_of(50, "in");
    uint64_t budget;
    (void)state;
    for (budget = 5; budget < 55; budget++) {
        tl_policy_desc desc = desc_of(&graph, TL_POLICY_REVOLVE, budget), more;
        tl_env env;
        tl_plan plan, same;
        assert_int_equal(plan_checked(&desc, &env, &plan), TL_OK);
        more = desc;
        more.policy.as.revolve.slot_count = budget - 2;   // one checkpoint too many; the last two layers need no more than the others
        if (budget < 52) assert_int_equal(plan_checked(&more, &env, &same), TL_ERROR_INFEASIBLE);
        more.policy.as.revolve.slot_count = budget - 3;
        assert_int_equal(plan_checked(&more, &env, &same), TL_OK);
        assert_int_equal(plan.cost, same.cost);
        tl_free_plan(&env, &same);
        tl_free_plan(&env, &plan);
    }
    tl_free_graph(NULL, &graph);
}

// What a backward reads of its own node's output was made as a checkpoint: it is not made twice for that.
static void revolve_needs_no_second_forward_for_an_output(void **state) {
    tl_graph graph = chain_of(6, "out");
    tl_policy_desc desc = desc_of(&graph, TL_POLICY_REVOLVE, 0);
    (void)state;
    desc.policy.as.revolve.slot_count = 6;
    assert_steps(&desc, "F1 F2 F3 F4 F5 F6 B6 B5 B4 B3 B2 B1");
    NODES(&graph)[2].saved_bytes = 1;     // these are: only a forward before its backward makes them
    assert_steps(&desc, "F1 F2 F3 F4 F5 F6 B6 B5 B4 B3 S2 B2 B1");
    tl_free_graph(NULL, &graph);
}

static void revolve_makes_again_what_backwards_read_alone(void **state) {
    tl_graph graph = graph_of("tlg 1\n"
                              "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
                              "node 1 a conv fwd=3 bwd=5 out=8 needs=in in=0\n"
                              "node 2 b conv fwd=3 bwd=5 out=8 needs=in in=1\n"
                              "node 3 c relu fwd=3 bwd=5 out=8 needs=out in=1\n"
                              "node 4 d add fwd=1 bwd=2 out=8 needs=none in=2,3\n"
                              "node 5 e conv fwd=1 bwd=2 out=4 needs=in in=4\n");
    tl_policy_desc desc = desc_of(&graph, TL_POLICY_REVOLVE, 0);
    (void)state;
    desc.policy.as.revolve.slot_count = 1;
    assert_steps(&desc, "F1 F2 F3 F4 F5 B5 F1 F3 B4 B3 B2 B1");     // the sum reads nothing: 2 is not made again
    tl_free_graph(NULL, &graph);
}

// -- chain --

static void chain_is_tl_plan_chain(void **state) {
    tl_random random = { 65 };
    int i, fit = 0;
    (void)state;
    for (i = 0; i < 60; i++) {
        tl_graph graph;
        tl_chain_plan_desc chain;
        tl_policy_desc desc;
        tl_remat_report report;
        tl_env env;
        tl_plan plan, same;
        uint64_t all;
        any_graph(&random, i % 3 == 0, 30, &graph);
        all = keep_all_peak(&graph, 0);
        desc = desc_of(&graph, TL_POLICY_CHAIN, 17 + all - tl_next_random_below(&random, all / 2 + 1));
        desc.base_bytes = 16;
        memset(&chain, 0, sizeof chain);
        chain.graph = &graph;
        chain.live = 1;
        chain.budget_bytes = desc.budget_bytes;
        chain.base_bytes = desc.base_bytes;
        if (plan_checked(&desc, &env, &plan) == TL_OK) {
            assert_int_equal(tl_plan_chain(NULL, &chain, &same, &report), TL_OK);
            assert_int_equal(plan.step_count, same.step_count);
            if (plan.step_count) assert_memory_equal(plan.steps, same.steps, (size_t)plan.step_count * sizeof *plan.steps);
            tl_free_plan(NULL, &same);
            fit++;
        } else {
            assert_int_equal(tl_plan_chain(NULL, &chain, &same, &report), TL_ERROR_INFEASIBLE);
            assert_int_equal(report.least_budget_bytes, least_of(&env));
        }
        tl_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
    assert_true(fit > 5 && fit < i - 5);
}

// -- any graph --

static void plans_on_random_graphs_are_valid(void **state) {
    tl_random random = { 62 };
    int i, policy, fit = 0, refused = 0;
    (void)state;
    for (i = 0; i < scaled(200); i++) {
        tl_graph graph;
        uint64_t all;
        any_graph(&random, i % 3 == 0, i % 10 ? 40 : 200, &graph);
        all = keep_all_peak(&graph, 0);
        for (policy = 0; policy <= TL_POLICY_CHAIN; policy++) {
            tl_policy_desc desc = desc_of(&graph, (tl_policy_kind)policy, 0);
            tl_env env;
            tl_plan plan;
            if (random_chance(&random, 80)) desc.budget_bytes = 1 + all - tl_next_random_below(&random, all * 2 / 3 + 1);
            if (random_chance(&random, 30)) desc.base_bytes = tl_next_random_below(&random, 50);
            if (random_chance(&random, 20)) set_number(&desc.policy, 1 + tl_next_random_below(&random, 20));
            if (plan_checked(&desc, &env, &plan) == TL_OK) {
                fit++;
            } else {
                uint64_t least = least_of(&env);
                refused++;
                assert_int_equal(env.error.code, TL_ERROR_INFEASIBLE);
                desc.budget_bytes = least - 1;
                if (desc.budget_bytes) assert_int_equal(plan_checked(&desc, &env, &plan), TL_ERROR_INFEASIBLE);
                if (desc.budget_bytes) assert_int_equal(least_of(&env), least);
                desc.budget_bytes = least;
                assert_int_equal(plan_checked(&desc, &env, &plan), TL_OK);
                assert_int_equal(plan.peak_bytes + plan.base_bytes, least);
            }
            tl_free_plan(&env, &plan);
        }
        tl_free_graph(NULL, &graph);
    }
    assert_true(fit > i && refused > i);
}

static void inference_keeps_all(void **state) {
    tl_random random = { 63 };
    int i;
    (void)state;
    for (i = 0; i < 50; i++) {
        tl_graph graph;
        tl_policy_desc desc;
        tl_env env;
        tl_plan plan, all;
        if (random_graph(NULL, &random, 40, &graph)) fail_msg("%s", "no graph");
        desc = desc_of(&graph, TL_POLICY_KEEP_ALL, 0);
        desc.inference = 1;
        assert_int_equal(plan_checked(&desc, &env, &plan), TL_OK);
        assert_int_equal(tl_plan_keep_all(&env, &graph, 1, &all), TL_OK);
        assert_int_equal(plan.step_count, all.step_count);
        assert_int_equal(plan.peak_bytes, all.peak_bytes);
        tl_free_plan(&env, &all);
        tl_free_plan(&env, &plan);
        tl_free_graph(NULL, &graph);
    }
}

static void graphs_without_forwards_have_empty_plans(void **state) {
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n");
    int policy;
    (void)state;
    for (policy = 0; policy <= TL_POLICY_CHAIN; policy++) {
        tl_policy_desc desc = desc_of(&graph, (tl_policy_kind)policy, 8);
        tl_env env;
        tl_plan plan;
        assert_int_equal(plan_checked(&desc, &env, &plan), TL_OK);
        assert_int_equal(plan.step_count, 0);
        tl_free_plan(&env, &plan);
        desc.budget_bytes = 7;
        assert_int_equal(plan_checked(&desc, &env, &plan), TL_ERROR_INFEASIBLE);
        assert_int_equal(least_of(&env), 8);
        OUTPUTS(&graph)[0].bytes = 0;     // nothing to hold, and yet the base alone is too much
        desc.base_bytes = 8;
        assert_int_equal(plan_checked(&desc, &env, &plan), TL_ERROR_INFEASIBLE);
        assert_int_equal(least_of(&env), 8);
        OUTPUTS(&graph)[0].bytes = 8;
    }
    tl_free_graph(NULL, &graph);
}

// -- what is refused --

static void errors_name_the_rule(void **state) {
    tl_graph graph = nine_layers();
    tl_policy_desc desc = desc_of(&graph, TL_POLICY_KEEP_ALL, 10);
    int kind;
    (void)state;
    assert_refused(&desc, TL_ERROR_INFEASIBLE, "tl_plan_policy: budget_bytes: keep-all needs 11 bytes, at node 9 (n9)");
    desc.base_bytes = 100;
    assert_refused(&desc, TL_ERROR_INFEASIBLE, "tl_plan_policy: budget_bytes: keep-all needs 111 bytes, at node 9 (n9)");
    desc.base_bytes = UINT64_MAX;
    assert_refused(&desc, TL_ERROR_OVERFLOW,
                   "tl_plan_policy: base_bytes: with what a plan takes they do not fit 64 bits");
    desc.base_bytes = 0;
    desc.budget_bytes = 6;
    desc.policy.kind = TL_POLICY_CHEN_SQRT;
    assert_refused(&desc, TL_ERROR_INFEASIBLE, "tl_plan_policy: budget_bytes: chen-sqrt needs 7 bytes, at node 9 (n9)");
    desc.policy.kind = TL_POLICY_CHAIN;      // the base leaves nothing: not the same as no limit
    desc.base_bytes = 6;
    assert_refused(&desc, TL_ERROR_INFEASIBLE, "tl_plan_policy: budget_bytes: chain needs 10 bytes, at node 9 (n9)");
    desc.inference = 1;
    assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_plan_policy: policy: must be keep-all for inference: without backwards "
                                                "there is nothing to keep");
    desc.inference = 2;
    assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_plan_policy: inference: must be 0 or 1");
    for (kind = TL_POLICY_NONE; kind <= TL_POLICY_COUNT; kind++) {
        desc.policy.kind = (tl_policy_kind)kind;
        assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_plan_policy: policy: must be keep-all, every-n, chen-sqrt, chen-greedy, "
                                                    "selective, revolve or chain");
    }
    desc = desc_of(&graph, TL_POLICY_REVOLVE, 0);
    INPUTS(&graph)[1].tensor = 9;
    assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_check_graph: node 2 (n2): inputs: each must be made by a node above it");
    tl_free_graph(NULL, &graph);
}

// Twice the forwards is more than 64 bits: what costs that much is left out, and an error where nothing else is tried.
static void costs_beyond_64_bits_are_left_out(void **state) {
    tl_graph graph = chain_of(6, "in");
    int policy, refused = 0;
    int32_t id;
    (void)state;
    for (id = 1; id <= 6; id++) NODES(&graph)[id].fwd_cost = UINT64_MAX / 7;
    for (policy = 0; policy <= TL_POLICY_CHAIN; policy++) {
        tl_policy_desc desc = desc_of(&graph, (tl_policy_kind)policy, 100);
        tl_env env;
        tl_plan plan;
        tl_result result = plan_checked(&desc, &env, &plan);
        set_number(&desc.policy, policy == TL_POLICY_REVOLVE ? 1 : policy == TL_POLICY_SELECTIVE ? UINT64_MAX : 6);
        if (policy != TL_POLICY_CHEN_SQRT) assert_int_equal(result, TL_OK);
        if (result == TL_OK) assert_int_equal(plan.cost, plan.base_cost);
        tl_free_plan(&env, &plan);
        if (plan_checked(&desc, &env, &plan) == TL_ERROR_OVERFLOW) {
            assert_string_equal(env.error.text, "tl_plan_policy: graph: the cost of the plan does not fit 64 bits");
            refused++;
        }
        tl_free_plan(&env, &plan);
    }
    assert_int_equal(refused, 4);   // not keep-all; chen-greedy and chain have no number of their own
    tl_free_graph(NULL, &graph);
}

static void every_allocation_of_a_policy_fails_in_turn(void **state) {
    tl_random random = { 64 };
    int i, policy, once;
    (void)state;
    for (i = 0; i < scaled(6); i++) {
        tl_graph graph;
        uint64_t all;
        if (i == 0) graph = nine_layers();
        else if (random_graph(NULL, &random, 15, &graph)) fail_msg("%s", "no graph");
        all = keep_all_peak(&graph, 0);
        for (policy = 0; policy <= TL_POLICY_CHAIN; policy++)
            for (once = 0; once < 2; once++) {
                long at;
                for (at = 0; ; at++) {
                    failing_alloc f = { 0, 0, 0, 0 };
                    tl_env env = failing_env(&f, at);
                    tl_policy_desc desc = desc_of(&graph, (tl_policy_kind)policy, all * 3 / 4 + 1);
                    tl_plan plan;
                    tl_result result;
                    f.fails_once = once;
                    result = tl_plan_policy(&env, &desc, &plan);
                    if (f.count > at && result != TL_ERROR_NO_MEMORY) fail_msg("%s at %ld: %d", tl_name_policy(desc.policy.kind), at, result);
                    if (result) assert_true(is_zero(&plan, sizeof plan));
                    assert_int_equal(env.error.code, result);
                    tl_free_plan(&env, &plan);
                    assert_int_equal(f.live, 0);
                    if (f.count <= at) break;
                }
            }
        tl_free_graph(NULL, &graph);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_policy_makes_other_steps),
        cmocka_unit_test(numbers_of_a_policy_change_its_steps),
        cmocka_unit_test(without_a_budget_the_interval_is_the_root_rounded_up),
        cmocka_unit_test(cut_nodes_are_what_nothing_passes_by),
        cmocka_unit_test(cut_nodes_of_random_graphs_are_those_of_the_definition),
        cmocka_unit_test(a_price_is_the_cost_and_no_more_than_the_peak),
        cmocka_unit_test(rows_of_the_reference_are_reached),
        cmocka_unit_test(searches_find_the_best_of_all_values),
        cmocka_unit_test(revolve_on_equal_layers_is_tl_plan_revolve),
        cmocka_unit_test(revolve_takes_the_most_slots_that_fit),
        cmocka_unit_test(revolve_needs_no_second_forward_for_an_output),
        cmocka_unit_test(revolve_makes_again_what_backwards_read_alone),
        cmocka_unit_test(chain_is_tl_plan_chain),
        cmocka_unit_test(plans_on_random_graphs_are_valid),
        cmocka_unit_test(inference_keeps_all),
        cmocka_unit_test(graphs_without_forwards_have_empty_plans),
        cmocka_unit_test(errors_name_the_rule),
        cmocka_unit_test(costs_beyond_64_bits_are_left_out),
        cmocka_unit_test(every_allocation_of_a_policy_fails_in_turn),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
