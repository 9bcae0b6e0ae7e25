// [6] REMAT: chains: the optimum over persistent schedules, Revolve's closed form, and what tl_plan_remat
// takes from both.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/shape_graph.h"
#include "support/random_graph.h"
#include "support/texts.h"
#include "support/keep_all.h"
#include "support/counting_alloc.h"
#include "support/walks.h"

static tl_chain_plan_desc desc_of(const tl_graph *graph, uint64_t budget, uint64_t work_limit) {
    tl_chain_plan_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.live = 1;
    desc.budget_bytes = budget;
    desc.work_limit = work_limit;
    return desc;
}

static void check_plan(const tl_graph *graph, const tl_plan *plan, uint64_t budget) {
    tl_simulate_desc replay;
    tl_report simulated;
    memset(&replay, 0, sizeof replay);
    replay.graph = graph;
    replay.plan = plan;
    if (tl_simulate_plan(NULL, &replay, &simulated)) fail_msg("%s", "the plan is not valid");
    assert_true(plan->peak_bytes <= budget && plan->base_bytes <= budget - plan->peak_bytes);
    assert_int_equal(plan->peak_bytes, simulated.peak_bytes);
    assert_int_equal(plan->cost, simulated.cost);
    assert_int_equal(plan->base_cost, simulated.base_cost);
    assert_int_equal(plan->inference, 0);
}

// Plan, and hold what every answer must hold.
static tl_result plan_checked(const tl_chain_plan_desc *desc, tl_env *env, tl_plan *plan,
                              tl_remat_report *report) {
    uint64_t budget = desc->budget_bytes ? desc->budget_bytes : UINT64_MAX;
    tl_result result;
    memset(env, 0, sizeof *env);
    result = tl_plan_chain(env, desc, plan, report);
    if (result) {
        assert_true(is_zero(plan, sizeof *plan));
        assert_int_equal(env->error.code, result);
        assert_int_equal(strncmp(env->error.text, "tl_plan_chain: ", 15), 0);
    }
    if (result == TL_ERROR_INFEASIBLE) {
        assert_true(report->least_budget_bytes > budget);
        assert_true(report->bound_budget_bytes <= report->least_budget_bytes);
        assert_true(!report->proven || report->bound_budget_bytes > budget);
        assert_true(report->limiting_node >= 0 && report->limiting_node < desc->graph->node_count);
    }
    if (result) return result;
    check_plan(desc->graph, plan, budget);
    assert_int_equal(env->error.code, TL_OK);
    assert_int_equal(plan->base_bytes, desc->base_bytes);
    assert_int_equal(report->cost, plan->cost);
    assert_int_equal(report->bound_cost, plan->bound_cost);
    assert_true(report->bound_cost <= report->cost);
    assert_int_equal(report->proven, report->cost == report->bound_cost);
    assert_int_equal(report->least_budget_bytes + report->bound_budget_bytes, 0);
    assert_int_equal(report->limiting_node, -1);
    return result;
}

static tl_graph equal_chain(int32_t layers, uint64_t input, uint64_t bytes, uint64_t work, uint64_t fwd) {
    uint64_t *arrays = (uint64_t *)malloc(3 * (size_t)layers * sizeof *arrays);
    tl_chain_desc chain;
    tl_graph graph;
    int32_t i;
    memset(&chain, 0, sizeof chain);
    for (i = 0; i < layers; i++) {
        arrays[i] = bytes;
        arrays[layers + i] = work;
        arrays[2 * layers + i] = fwd;
    }
    chain.layer_count = layers;
    chain.input_bytes = input;
    chain.output_bytes = arrays;
    chain.fwork_bytes = chain.bwork_bytes = arrays + layers;
    chain.fwd_costs = arrays + 2 * layers;
    if (tl_add_chain(NULL, &graph, &chain)) fail_msg("%s", "no chain");
    free(arrays);
    return graph;
}

// -- brute force: every persistent schedule of a layer chain, by the definition --
//
// solve(i, t, m): reverse layers i..t with m bytes beside the output of layer i-1, which stays.

#define MOST_LAYERS 9
#define MOST_BYTES 400
#define NEVER 1000000000

typedef struct layers {
    int count, out[MOST_LAYERS + 1], saved[MOST_LAYERS + 1], fwork[MOST_LAYERS + 1], bwork[MOST_LAYERS + 1];
    int fwd[MOST_LAYERS + 1], bwd[MOST_LAYERS + 1], reads_in[MOST_LAYERS + 1], reads_out[MOST_LAYERS + 1];
    int best[MOST_LAYERS + 1][MOST_LAYERS + 1][MOST_BYTES + 1];   // -1 = not known
} layers;

static int most_of(int a, int b) { return a > b ? a : b; }

static int gradient_of(const layers *c, int layer) { return layer > 0 ? c->out[layer] : 0; }

// During its backward: both gradients, and what it reads of its own.
static int back_bytes(const layers *c, int i) {
    int own = c->saved[i] + (c->reads_out[i] ? c->out[i] : 0);
    return own + gradient_of(c, i) + gradient_of(c, i - 1) + c->bwork[i];
}

static int solve(layers *c, int i, int t, int m) {
    int held = t < c->count ? gradient_of(c, t) : 0, *best, k, l;
    if (m < 0) return NEVER;
    best = &c->best[i][t][m];
    if (*best >= 0) return *best;
    *best = NEVER;
    if (i == t) {
        int runs = c->saved[i] || c->reads_out[i] || i == c->count, bytes = back_bytes(c, i);
        if (runs) bytes = most_of(bytes, c->out[i] + c->saved[i] + c->fwork[i] + held);
        if (bytes <= m) *best = (runs ? c->fwd[i] : 0) + c->bwd[i];
        return *best;
    }
    if (most_of(back_bytes(c, i), c->out[i] + c->saved[i] + c->fwork[i] + held) <= m)
        *best = c->fwd[i] + c->bwd[i] + solve(c, i + 1, t, m - c->out[i] - c->saved[i]);
    for (k = i + 1; k <= t; k++) {
        int bytes = 0, cost = 0;
        for (l = i; l < k; l++) {
            bytes = most_of(bytes, (l > i ? c->out[l - 1] : 0) + c->out[l] + c->fwork[l] + held);
            cost += c->fwd[l];
        }
        if (bytes > m) break;
        cost += solve(c, k, t, m - c->out[k - 1]);
        cost += cost < NEVER ? solve(c, i, k - 1, m) : 0;
        if (cost < *best) *best = cost;
    }
    if (*best > NEVER) *best = NEVER;
    return *best;
}

static int brute_force(layers *c, uint64_t budget) {
    int m = budget < (uint64_t)c->out[0] ? -1 : (int)(budget - (uint64_t)c->out[0]);
    return solve(c, 1, c->count, m < MOST_BYTES ? m : MOST_BYTES);
}

static tl_graph random_layers(tl_random *random, layers *c) {
    static const char *const needs[] = { "none", "in", "out", "in,out" };
    int32_t wide = random_count(random, 1, 9), need = random_count(random, 0, 3), i;
    int works = random_chance(random, 50), saves = random_chance(random, 30), equal = random_chance(random, 10);
    int mixes = random_chance(random, 50);
    tl_graph graph;
    memset(c->best, -1, sizeof c->best);
    tl_init_graph(&graph);
    c->count = random_count(random, 1, MOST_LAYERS - 1);
    for (i = 0; i <= c->count; i++) {
        tl_node_desc node;
        tl_tensor input;
        uint64_t bytes;
        c->out[i] = random_count(random, 0, wide);
        c->saved[i] = saves && i ? random_count(random, 0, wide) : 0;
        c->fwork[i] = works && i ? random_count(random, 0, 4) : 0;
        c->bwork[i] = works && i ? random_count(random, 0, 4) : 0;
        c->fwd[i] = i ? random_count(random, 0, 9) : 0;
        c->bwd[i] = i ? random_count(random, 0, 9) : 0;
        if (mixes) need = random_count(random, 0, 3);
        if (equal && i > 1) {
            c->out[i] = c->out[1]; c->saved[i] = c->saved[1]; c->fwork[i] = c->fwork[1];
            c->bwork[i] = c->bwork[1]; c->fwd[i] = c->fwd[1]; c->bwd[i] = c->bwd[1];
        }
        c->reads_in[i] = i && need % 2;
        c->reads_out[i] = i && need / 2;
        memset(&node, 0, sizeof node);
        input.node = i - 1;
        input.output = 0;
        bytes = (uint64_t)c->out[i];
        node.op = i ? NULL : "input";
        node.inputs = &input;
        node.input_count = i > 0;
        node.output_bytes = &bytes;
        node.output_count = 1;
        node.needs = i ? needs[need] : NULL;
        node.fwd_cost = (uint64_t)c->fwd[i];
        node.bwd_cost = (uint64_t)c->bwd[i];
        node.saved_bytes = (uint64_t)c->saved[i];
        node.fwork_bytes = (uint64_t)c->fwork[i];
        node.bwork_bytes = (uint64_t)c->bwork[i];
        if (tl_add_node(NULL, &graph, &node, NULL)) fail_msg("%s", "no chain");
    }
    return graph;
}

static void random_chains_cost_what_brute_force_says(void **state) {
    static layers chain;
    tl_random random = { 501 };
    int times = scaled(12000), fits = 0;
    (void)state;
    for (; times > 0; times--) {
        tl_graph graph = random_layers(&random, &chain);
        tl_env env;
        tl_plan plan;
        tl_remat_report report;
        tl_chain_plan_desc desc = desc_of(&graph, 1 + (uint64_t)random_count(&random, 0, 80), 0);
        int cost = brute_force(&chain, desc.budget_bytes);
        tl_result result = plan_checked(&desc, &env, &plan, &report);
        if (result && result != TL_ERROR_INFEASIBLE) fail_msg("%s", env.error.text);
        assert_true(report.proven);
        assert_int_equal(result ? NEVER : (int)plan.cost, cost);
        fits += !result;
        if (result) {
            uint64_t least = report.least_budget_bytes;
            assert_int_equal(brute_force(&chain, least - 1), NEVER);
            assert_true(brute_force(&chain, least) < NEVER);
            desc.budget_bytes = least;
            if (plan_checked(&desc, &env, &plan, &report)) fail_msg("%s", env.error.text);
        }
        tl_free_plan(&env, &plan);
        tl_free_graph(NULL, &graph);
    }
    assert_true(fits > 0);
}

static void with_little_work_chains_are_valid_and_bounded(void **state) {
    static layers chain;
    tl_random random = { 502 };
    int times = scaled(1500), equal = 0, all = 0;
    (void)state;
    for (; times > 0; times--) {
        tl_graph graph = random_layers(&random, &chain);
        tl_env env;
        tl_plan plan;
        tl_remat_report report;
        tl_chain_plan_desc desc = desc_of(&graph, 1 + (uint64_t)random_count(&random, 0, 80), 1);
        uint64_t cost = (uint64_t)brute_force(&chain, desc.budget_bytes);
        tl_result result = plan_checked(&desc, &env, &plan, &report);
        if (result && result != TL_ERROR_INFEASIBLE) fail_msg("%s", env.error.text);
        if (!result) {
            assert_true(plan.cost >= cost);
            assert_true(report.bound_cost <= cost);
            equal += plan.cost == cost;
            all++;
        }
        if (result) assert_true(!report.proven || cost == NEVER);
        tl_free_plan(&env, &plan);
        tl_free_graph(NULL, &graph);
    }
    assert_true(equal * 10 >= all * 8);
}

// -- graphs --

static void random_graphs_are_valid_and_not_below_the_bound(void **state) {
    tl_random random = { 503 };
    int times = scaled(400), fits = 0;
    (void)state;
    for (; times > 0; times--) {
        tl_graph graph;
        tl_env env;
        tl_plan all, plan;
        tl_remat_report report, exact;
        tl_chain_plan_desc desc;
        tl_remat_desc remat;
        tl_result result;
        if (random_graph(NULL, &random, 14, &graph) || tl_plan_keep_all(NULL, &graph, 0, &all))
            fail_msg("%s", "no graph");
        desc = desc_of(&graph, all.peak_bytes * (uint64_t)random_count(&random, 3, 11) / 10 + 8, 0);
        desc.base_bytes = 7;
        result = plan_checked(&desc, &env, &plan, &report);
        if (result && result != TL_ERROR_INFEASIBLE) fail_msg("%s", env.error.text);
        memset(&remat, 0, sizeof remat);
        remat.graph = &graph;
        remat.live = 1;
        remat.budget_bytes = desc.budget_bytes;
        remat.base_bytes = desc.base_bytes;
        remat.work_limit = 3000000;
        if (!result) {
            uint64_t cost = plan.cost;
            tl_free_plan(&env, &plan);
            if (tl_plan_remat(&env, &remat, &plan, &exact)) fail_msg("%s", env.error.text);
            assert_true(plan.cost <= cost);
            assert_true(exact.bound_cost <= cost);
            fits++;
        }
        tl_free_plan(&env, &plan);
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
    assert_true(fits > 0);
}

static void no_row_of_the_stage_optimum_is_cheaper(void **state) {
    char name[64], last[64] = "", method[64], ratio[32], path[512];
    unsigned long long budget;
    char *csv = read_reference("no_row_of_the_stage_optimum_is_cheaper", "remat_reference.csv", NULL);
    char *line, *text;
    int rows = 0;
    tl_graph graph;
    (void)state;
    if (!csv) skip();
    tl_init_graph(&graph);
    for (line = strchr(csv, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        tl_env env;
        tl_plan plan;
        tl_remat_report report;
        tl_chain_plan_desc desc;
        tl_result result;
        if (sscanf(line + 1, "%63[^,],%llu,%*[^,],%*[^,],%63[^,],%31[^,],", name, &budget, method, ratio) != 4)
            break;
        if (strncmp(method, "rotor_dp", 8)) continue;
        if (rows++ % (is_slow() ? 4 : 1)) continue;
        if (strcmp(name, last)) {
            snprintf(last, sizeof last, "%s", name);
            snprintf(path, sizeof path, "models/%s.tlg", name);
            text = read_reference("no_row_of_the_stage_optimum_is_cheaper", path, NULL);
            assert_non_null(text);
            tl_free_graph(NULL, &graph);
            graph = graph_of(text);
            free(text);
        }
        desc = desc_of(&graph, budget, 0);
        result = plan_checked(&desc, &env, &plan, &report);
        if (!strcmp(method, "rotor_dp_skip") && ratio[0] == 'i') assert_int_equal(result, TL_ERROR_INFEASIBLE);
        if (ratio[0] != 'i') assert_int_equal(result, TL_OK);
        if (!result && ratio[0] != 'i' && ratio[0] != '-')
            assert_true((double)plan.cost <= atof(ratio) * (double)plan.base_cost * (1 + 1e-8));
        assert_true(report.proven);
        tl_free_plan(&env, &plan);
    }
    assert_true(rows > 250);
    tl_free_graph(NULL, &graph);
    free(csv);
}

static void results_and_branches_are_joined_into_stages(void **state) {
    // the residual is one stage: nothing else reads past 4; the result 5 stays beside the backwards before it
    tl_graph graph = graph_of("tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
        "node 1 a op fwd=3 bwd=1 out=5 needs=in in=0\n"
        "node 2 b op fwd=3 bwd=1 out=7 needs=in in=1\n"
        "node 3 c op fwd=3 bwd=1 out=5 needs=in in=2\n"
        "node 4 add op fwd=1 bwd=1 out=5 needs=none in=1,3\n"
        "node 5 d op fwd=2 bwd=1 out=2 needs=in in=4 keep\n"
        "node 6 loss op fwd=1 bwd=1 out=1 needs=in in=5\n");
    tl_env env;
    tl_plan plan;
    tl_remat_report report;
    tl_chain_plan_desc desc = desc_of(&graph, 0, 0);
    (void)state;
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
    assert_int_equal(plan.cost, plan.base_cost);
    tl_free_plan(&env, &plan);
    desc.budget_bytes = 1;
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_ERROR_INFEASIBLE);
    assert_true(report.proven);
    desc.budget_bytes = report.least_budget_bytes;
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
    assert_int_equal(plan.peak_bytes, desc.budget_bytes);
    assert_int_equal(plan.cost, plan.base_cost);
    tl_free_plan(&env, &plan);
    tl_free_graph(NULL, &graph);
}

// -- equal layers --

static void equal_layers_cost_the_closed_form(void **state) {
    static const int32_t counts[] = { 2, 3, 10, 100, 1000, 10000 };
    size_t k;
    (void)state;
    for (k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        uint64_t n = (uint64_t)counts[k], slots, most = n < 200 ? n + 1 : 40;
        tl_graph graph = equal_chain(counts[k], 11, 6, 2, 3);
        for (slots = n > 2000 ? 4 : n > 200 ? 2 : 1; slots <= most; slots++) {
            uint64_t taken = slots == most && n > 200 ? n / 3 : slots, advances;
            tl_chain_plan_desc desc = desc_of(&graph, 11 + 2 + 6 * (taken + 2) + slots % 6, 0);
            tl_env env;
            tl_plan plan;
            tl_remat_report report;
            assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
            assert_true(report.proven);
            assert_int_equal(tli_find_revolve_advances(NULL, n, taken, &advances), TL_OK);
            assert_int_equal(plan.cost, 3 * (advances + 1) + n);
            tl_free_plan(&env, &plan);
        }
        tl_free_graph(NULL, &graph);
    }
}

// Equal layers after so many graph inputs, which the first layer alone reads.
static tl_graph layers_after(int32_t inputs, int32_t layers, uint64_t bytes, uint64_t work) {
    tl_graph graph;
    int32_t i, k;
    tl_init_graph(&graph);
    for (i = 0; i < inputs + layers; i++) {
        tl_tensor reads[4];
        tl_node_desc node;
        memset(&node, 0, sizeof node);
        for (k = 0; k < 4; k++) { reads[k].node = i > inputs ? i - 1 : k; reads[k].output = 0; }
        node.op = i < inputs ? "input" : "op";
        node.inputs = reads;
        node.input_count = i < inputs ? 0 : i > inputs ? 1 : inputs;
        node.output_bytes = &bytes;
        node.output_count = 1;
        node.needs = i >= inputs ? "in" : NULL;
        node.fwd_cost = i < inputs ? 0 : 3;
        node.bwd_cost = i < inputs ? 0 : 1;
        node.fwork_bytes = node.bwork_bytes = i < inputs ? 0 : work;
        if (tl_add_node(NULL, &graph, &node, NULL)) fail_msg("%s", "no chain");
    }
    return graph;
}

// What every entry must find for equal layers.
static void check_entries(const tl_graph *graph, uint64_t budget, uint64_t cost) {
    tl_chain_plan_desc chain = desc_of(graph, budget, 0);
    tl_policy_desc policy;
    tl_remat_desc remat;
    tl_remat_report report;
    tl_plan plans[4];
    tl_env env;
    int k;
    memset(&env, 0, sizeof env);
    memset(&policy, 0, sizeof policy);
    memset(&remat, 0, sizeof remat);
    policy.graph = remat.graph = graph;
    policy.live = remat.live = 1;
    policy.budget_bytes = remat.budget_bytes = budget;
    assert_int_equal(plan_checked(&chain, &env, &plans[0], &report), TL_OK);
    assert_true(report.proven);
    policy.policy.kind = TL_POLICY_REVOLVE;
    assert_int_equal(tl_plan_policy(&env, &policy, &plans[1]), TL_OK);
    policy.policy.kind = TL_POLICY_CHAIN;
    assert_int_equal(tl_plan_policy(&env, &policy, &plans[2]), TL_OK);
    assert_int_equal(tl_plan_remat(&env, &remat, &plans[3], &report), TL_OK);
    assert_true(report.proven);
    for (k = 0; k < 4; k++) {
        check_plan(graph, &plans[k], budget);
        assert_int_equal(plans[k].cost, cost);
        tl_free_plan(&env, &plans[k]);
    }
}

static void every_entry_plans_equal_layers_in_closed_form(void **state) {
    static const int32_t counts[] = { 2, 7, 60, 500, 2000, 4000, 10000 };
    static const uint64_t slots[] = { 1, 2, 3, 5, 27, 700, 9000 };
    size_t k, c;
    int32_t inputs;
    (void)state;
    for (k = 0; k < (is_slow() ? 4 : sizeof counts / sizeof counts[0]); k++) for (inputs = 0; inputs <= 2; inputs++) {
        tl_graph graph = layers_after(inputs, counts[k], 4, 1);
        uint64_t n = (uint64_t)counts[k], advances;
        for (c = counts[k] > 1000 ? 1 : 0; c < sizeof slots / sizeof slots[0]; c += is_thinned() ? 3 : 1) {
            assert_int_equal(tli_find_revolve_advances(NULL, n, slots[c], &advances), TL_OK);
            check_entries(&graph, 4 * (uint64_t)inputs + 1 + 4 * (slots[c] + 2) + c % 4, 3 * (advances + 1) + n);
        }
        tl_free_graph(NULL, &graph);
    }
}

// -- equal layers, with places --

enum { ENTRIES = 4 };

// Ask one of the entries for a plan with places; *least: what a refusal names, by tl_plan_policy in its sentence.
static tl_result ask_entry(tl_env *env, int entry, const tl_graph *graph, const tl_device *device, uint64_t budget,
                           tl_plan *plan, uint64_t *least) {
    tl_chain_plan_desc chain = desc_of(graph, budget, 0);
    tl_policy_desc policy;
    tl_remat_desc remat;
    tl_remat_report report;
    const char *text;
    tl_result result;
    memset(&report, 0, sizeof report);
    memset(&policy, 0, sizeof policy);
    memset(&remat, 0, sizeof remat);
    chain.live = 0;
    policy.policy.kind = entry == 1 ? TL_POLICY_REVOLVE : TL_POLICY_CHAIN;
    policy.graph = remat.graph = graph;
    policy.device = remat.device = chain.device = device;
    policy.alignment_bytes = remat.alignment_bytes = chain.alignment_bytes = device->alignment_bytes;
    policy.budget_bytes = remat.budget_bytes = budget;
    if (!entry) result = tl_plan_remat(env, &remat, plan, &report);
    else result = entry < 3 ? tl_plan_policy(env, &policy, plan) : tl_plan_chain(env, &chain, plan, &report);
    *least = report.least_budget_bytes;
    text = entry == 1 || entry == 2 ? strstr(env->error.text, "needs ") : NULL;
    if (result && text) *least = strtoull(text + 6, NULL, 10);
    return result;
}

// The least budget is a closed form, of live bytes; within it every entry finds places, and below it none a plan.
static void the_least_of_equal_layers_holds_its_places(void **state) {
    tl_random random = { 71 };
    int i, entry;
    (void)state;
    for (i = 0; i < scaled(60); i++) {
        int32_t inputs = (int32_t)tl_next_random_below(&random, 3), layers = 2 + (int32_t)tl_next_random_below(&random, 70);
        uint64_t bytes = 1 + tl_next_random_below(&random, 200);
        uint64_t work = tl_next_random_below(&random, 2) * bytes * (uint64_t)(i % 5);
        uint64_t named = 0, least;
        tl_graph graph = layers_after(inputs, layers, bytes, work + work % 3);
        tl_device device;
        memset(&device, 0, sizeof device);
        device.alignment_bytes = (uint64_t)1 << 3 * tl_next_random_below(&random, 3);
        for (entry = 0; entry < ENTRIES; entry++) {
            tl_env env;
            tl_plan plan;
            memset(&env, 0, sizeof env);
            assert_int_equal(ask_entry(&env, entry, &graph, &device, 1, &plan, &least), TL_ERROR_INFEASIBLE);
            assert_true(least > 1 && (!named || named == least));
            named = least;
            assert_int_equal(ask_entry(&env, entry, &graph, &device, named, &plan, &least), TL_OK);
            assert_true(plan.arena_bytes <= named && plan.offset_count > 0);
            tl_free_plan(&env, &plan);
            assert_int_equal(ask_entry(&env, entry, &graph, &device, named - 1, &plan, &least), TL_ERROR_INFEASIBLE);
            assert_int_equal(least, named);
        }
        tl_free_graph(NULL, &graph);
    }
}

// A refusal makes no plan: in one slot it has as many steps as the square of the layers. One of more than 2^22 steps
// is not made at all, so that the least budget of long chains has more slots.
static void a_long_equal_chain_is_refused_in_little_memory(void **state) {
    static const struct { int32_t layers; uint64_t budget, least; } rows[] = {
        { 2000, 1, 3 }, { 2000, 2, 3 }, { 10000, 2, 4 }, { 100000, 1, 8 }, { 100000, 7, 8 }
    };
    size_t k;
    int entry;
    (void)state;
    for (k = 0; k < sizeof rows / sizeof rows[0] - (is_thinned() != 0); k++) {
        tl_graph graph = layers_after(0, rows[k].layers, 1, 0);
        tl_device device;
        memset(&device, 0, sizeof device);
        device.alignment_bytes = 1;
        for (entry = 0; entry < ENTRIES; entry++) {
            counting_alloc counter = { 0, 0 };
            tl_env env = counting_env(&counter);
            tl_plan plan;
            uint64_t least;
            assert_int_equal(ask_entry(&env, entry, &graph, &device, rows[k].budget, &plan, &least), TL_ERROR_INFEASIBLE);
            assert_int_equal(least, rows[k].least);
            if (counter.peak > 1024 * (uint64_t)rows[k].layers)
                fail_msg("entry %d, row %d: %.0f bytes a node", entry, (int)k, (double)counter.peak / rows[k].layers);
        }
        tl_free_graph(NULL, &graph);
    }
}

// A last layer that is larger than the others: the binomial schedule is found, though it is not known to be the best.
static void revolve_over_stages_takes_the_most_slots_that_fit(void **state) {
    tl_graph graph = layers_after(1, 3000, 4, 0);
    tl_policy_desc policy;
    tl_plan plan;
    tl_env env;
    uint64_t advances, slots;
    (void)state;
    OUTPUTS(&graph)[3000].bytes = 8;
    memset(&env, 0, sizeof env);
    memset(&policy, 0, sizeof policy);
    policy.graph = &graph;
    policy.live = 1;
    policy.policy.kind = TL_POLICY_REVOLVE;
    for (slots = is_slow() ? 1531 : 2; slots < 2000; slots = 5 * slots + 1) {
        policy.budget_bytes = 4 * (slots + 4);
        assert_int_equal(tl_plan_policy(&env, &policy, &plan), TL_OK);
        check_plan(&graph, &plan, policy.budget_bytes);
        assert_int_equal(tli_find_revolve_advances(NULL, 3000, slots, &advances), TL_OK);
        assert_true(plan.cost <= 3 * (advances + 1) + 3000);
        tl_free_plan(&env, &plan);
    }
    tl_free_graph(NULL, &graph);
}

static void every_row_of_revolve_is_reached(void **state) {
    unsigned long long n, slots, advances;
    char *csv = read_reference("every_row_of_revolve_is_reached", "unit_revolve.csv", NULL), *line;
    int rows = 0;
    (void)state;
    if (!csv) skip();
    for (line = strchr(csv, '\n'); line && line[1]; line = strchr(line + 1, '\n'), rows++) {
        tl_env env;
        tl_graph graph;
        tl_plan plan;
        tl_remat_report report;
        tl_chain_plan_desc desc;
        assert_int_equal(sscanf(line + 1, "%llu,%llu,%*u,%llu,", &n, &slots, &advances), 3);
        if (advances > (is_slow() ? 100000 : 2000000)) continue;
        graph = equal_chain((int32_t)n, 1, 1, 0, 1);
        desc = desc_of(&graph, slots + 3, 0);
        assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
        assert_int_equal(plan.cost, advances + 1 + n);
        assert_true(report.proven);
        tl_free_plan(&env, &plan);
        tl_free_graph(NULL, &graph);
    }
    assert_true(rows > 50);
    free(csv);
}

// Equal layers need no search: that their closed form is the optimum, the exact search says.
static void closed_form_is_the_optimum_of_the_exact_search(void **state) {
    int32_t n;
    uint64_t bytes, work, budget;
    (void)state;
    for (n = 2; n <= 9; n++) for (bytes = 1; bytes <= 3; bytes++) for (work = 0; work <= 4; work++) {
        int32_t inputs = (n + (int32_t)work) % 4;
        tl_graph graph = inputs == 1 ? equal_chain(n, 2, bytes, work, 2) : layers_after(inputs, n, bytes, work);
        for (budget = 2; budget <= 2 + work + bytes * (uint64_t)(n + 2 + inputs); budget++) {
            tl_remat_desc desc;
            tli_remat_watch watch;
            tli_steps steps = tli_steps_of(NULL);
            tl_remat_report report;
            tl_plan plan;
            uint64_t cost, bound, spent = 0;
            int32_t proven;
            tl_result exact, result;
            memset(&desc, 0, sizeof desc);
            memset(&watch, 0, sizeof watch);
            desc.graph = &graph;
            desc.live = 1;
            desc.budget_bytes = budget;
            watch.desc = &desc;
            exact = tli_remat_exact(NULL, &graph, budget, 0, &watch, 1 << 20, &steps, &cost, &bound, &proven,
                                    &spent);
            result = tl_plan_remat(NULL, &desc, &plan, &report);
            assert_true(proven && report.proven);
            assert_int_equal(result, exact);
            if (!result) assert_int_equal(plan.cost, cost);
            tl_free_plan(NULL, &plan);
            tli_release(NULL, steps.steps);
        }
        tl_free_graph(NULL, &graph);
    }
}

static void remat_proves_equal_layers_at_every_budget(void **state) {
    static const int32_t counts[] = { 20, 50, 100, 1000 };
    size_t k;
    (void)state;
    for (k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        tl_graph graph = equal_chain(counts[k], 1, 1, 0, 1);
        uint64_t budget, most = (uint64_t)counts[k] + 3, advances;
        for (budget = 3; budget <= most; budget += budget < 60 ? 1 : 1 + most / 10) {
            tl_remat_desc desc;
            tl_remat_report report;
            tl_plan plan;
            tl_result result;
            if (counts[k] == 1000 && budget == 4) continue;  // half a million forwards
            memset(&desc, 0, sizeof desc);
            desc.graph = &graph;
            desc.live = 1;
            desc.budget_bytes = budget;
            result = tl_plan_remat(NULL, &desc, &plan, &report);
            assert_true(report.proven);
            if (budget < 4) {
                assert_int_equal(result, TL_ERROR_INFEASIBLE);
                assert_int_equal(report.least_budget_bytes, 4);
                continue;
            }
            assert_int_equal(result, TL_OK);
            assert_int_equal(tli_find_revolve_advances(NULL, (uint64_t)counts[k], budget - 3, &advances), TL_OK);
            assert_int_equal(plan.cost, advances + 1 + (uint64_t)counts[k]);
            tl_free_plan(NULL, &plan);
        }
        tl_free_graph(NULL, &graph);
    }
}

// -- long chains --

static tl_graph random_chain(int32_t count, uint64_t seed) {
    uint64_t *arrays = (uint64_t *)malloc(3 * (size_t)count * sizeof *arrays);
    tl_random random;
    tl_chain_desc chain;
    tl_graph graph;
    int32_t i;
    random.state = seed;
    for (i = 0; i < count; i++) {
        arrays[i] = 100000 + tl_next_random_below(&random, 900001);
        arrays[count + i] = 1000 + tl_next_random_below(&random, 9001);
        arrays[2 * count + i] = 2 * arrays[count + i];
    }
    memset(&chain, 0, sizeof chain);
    chain.layer_count = count;
    chain.input_bytes = 500000;
    chain.output_bytes = arrays;
    chain.fwd_costs = arrays + count;
    chain.bwd_costs = arrays + 2 * count;
    if (tl_add_chain(NULL, &graph, &chain)) fail_msg("%s", "no chain");
    free(arrays);
    return graph;
}

static void hundred_random_stages_are_exact(void **state) {
    tl_graph graph = random_chain(100, 1);
    tl_env env;
    tl_plan plan;
    tl_remat_report report;
    tl_chain_plan_desc desc = desc_of(&graph, keep_all_peak(&graph, 0) / 4, 0);
    (void)state;
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
    assert_true(report.proven);
    tl_free_plan(&env, &plan);
    tl_free_graph(NULL, &graph);
}

static void thousand_random_stages_are_within_a_percent(void **state) {
    static const uint64_t parts[] = { 5, 50 };
    tl_graph graph = random_chain(1000, 1);
    uint64_t peak = keep_all_peak(&graph, 0);
    size_t k;
    (void)state;
    for (k = 0; k < (is_thinned() ? 1 : sizeof parts / sizeof parts[0]); k++) {
        tl_env env;
        tl_plan plan;
        tl_remat_report report;
        tl_chain_plan_desc desc = desc_of(&graph, peak / 100 * parts[k], 0);
        assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
        assert_true(report.gap_ratio <= 0.01);
        tl_free_plan(&env, &plan);
    }
    tl_free_graph(NULL, &graph);
}

// At 3 % of the memory, where a schedule holds few checkpoints: five times the work gives a plan that costs no more, and with
// either the cost is at most 4.5 % above the bound for a chain and 17 % for residual blocks.
static void more_work_on_little_memory_costs_no_more(void **state) {
    static const uint64_t limits[] = { 20000000, 100000000 };
    static const shape kinds[] = { SHAPE_CHAIN, SHAPE_RESIDUAL };
    static const double most[] = { 0.045, 0.17 };
    size_t kind, k;
    (void)state;
    for (kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
        tl_random random = { 1 };
        tl_graph graph;
        uint64_t cost = UINT64_MAX;
        assert_int_equal(shape_graph(NULL, &random, kinds[kind], 1000, &graph), TL_OK);
        for (k = 0; k < (is_thinned() ? 1 : sizeof limits / sizeof limits[0]); k++) {
            tl_env env;
            tl_plan plan;
            tl_remat_report report;
            tl_chain_plan_desc desc = desc_of(&graph, keep_all_peak(&graph, 0) / 100 * 3, limits[k]);
            assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
            if (report.gap_ratio > most[kind] || plan.cost > cost)
                fail_msg("%s: %.4f above the bound, cost %llu after %llu", name_shape(kinds[kind]), report.gap_ratio,
                         (unsigned long long)plan.cost, (unsigned long long)cost);
            cost = plan.cost;
            tl_free_plan(&env, &plan);
        }
        tl_free_graph(NULL, &graph);
    }
}

// The planner of graphs: what chains of two kinds cost above the bound, with the default work.
static void long_chains_are_near_the_bound_with_the_default_work(void **state) {
    static const double most[] = { 0.004, 0.013 };
    tl_random random = { 1 };
    tl_graph graphs[2];
    size_t k;
    (void)state;
    if (is_slow()) return;
    graphs[0] = random_chain(1000, 1);
    assert_int_equal(shape_graph(NULL, &random, SHAPE_CHAIN, 1000, &graphs[1]), TL_OK);
    for (k = is_thinned() ? 1 : 0; k < 2; k++) {
        tl_remat_desc desc;
        tl_plan plan;
        tl_remat_report report;
        memset(&desc, 0, sizeof desc);
        desc.graph = &graphs[k];
        desc.live = 1;
        desc.budget_bytes = keep_all_peak(&graphs[k], 0) / 20;
        assert_int_equal(tl_plan_remat(NULL, &desc, &plan, &report), TL_OK);
        assert_true(plan.peak_bytes <= desc.budget_bytes);
        if (report.gap_ratio > most[k]) fail_msg("%d: %.4f above the bound", (int)k, report.gap_ratio);
        tl_free_plan(NULL, &plan);
    }
    tl_free_graph(NULL, &graphs[0]);
    tl_free_graph(NULL, &graphs[1]);
}

// Attention blocks: the exact search, which does not end in time, leaves work for the parts that find the floor.
static void the_least_budget_of_ten_blocks_is_the_floor(void **state) {
    static const struct { int fwd, bwd, out; const char *needs; int back; } block[] = {
        { 1, 2, 24, "in", 0 },   { 29, 58, 72, "in", 0 },  { 13, 26, 384, "in", 0 }, { 1, 1, 384, "out", 0 },
        { 13, 26, 24, "in", 3 }, { 10, 20, 24, "in", 0 },  { 1, 1, 24, "none", 7 },  { 1, 2, 24, "in", 0 },
        { 39, 77, 96, "in", 0 }, { 1, 1, 96, "in", 0 },    { 39, 77, 24, "in", 0 },  { 1, 1, 24, "none", 5 }
    };
    char text[16384], reads[64];
    int at = snprintf(text, sizeof text, "tlg 1\nnode 0 in input fwd=0 bwd=0 out=24 needs=none in=-\n"), id;
    tl_graph graph;
    tl_remat_desc desc;
    tl_plan plan;
    tl_remat_report report;
    (void)state;
    for (id = 1; id <= 120; id++) {
        int k = (id - 1) % 12;
        if (block[k].back) snprintf(reads, sizeof reads, "%d,%d", id - 1, id - block[k].back);
        else snprintf(reads, sizeof reads, "%d", id - 1);
        at += snprintf(text + at, sizeof text - (size_t)at, "node %d n%d op fwd=%d bwd=%d out=%d needs=%s in=%s\n", id, id,
                       block[k].fwd, block[k].bwd, block[k].out, block[k].needs, reads);
    }
    graph = graph_of(text);
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.budget_bytes = 1;
    assert_int_equal(tl_plan_remat(NULL, &desc, &plan, &report), TL_ERROR_INFEASIBLE);
    assert_int_equal(report.least_budget_bytes, report.bound_budget_bytes);
    tl_free_graph(NULL, &graph);
}

// c and s are large: while the backward of s runs, p is absent, which is 30 bytes less, and it is made once more.
static void a_leaf_drops_for_a_peak_what_it_makes_again(void **state) {
    tl_graph graph = graph_of("tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n"
        "node 1 a op fwd=1 bwd=1 out=2 needs=in in=0\n"
        "node 2 p op fwd=5 bwd=1 out=30 needs=in in=1\n"
        "node 3 c op fwd=7 bwd=1 out=100 needs=in in=2\n"
        "node 4 s op fwd=1 bwd=1 out=100 needs=out in=3\n"
        "node 5 y op fwd=1 bwd=1 out=2 needs=none in=4,1\n"
        "node 6 q op fwd=5 bwd=1 out=30 needs=in in=5\n"
        "node 7 d op fwd=7 bwd=1 out=100 needs=in in=6\n"
        "node 8 t op fwd=1 bwd=1 out=100 needs=out in=7\n"
        "node 9 z op fwd=1 bwd=1 out=2 needs=none in=8,5\n");
    tl_chain_plan_desc desc = desc_of(&graph, 304, 0);
    tl_env env;
    tl_plan plan;
    tl_remat_report report;
    (void)state;
    memset(&env, 0, sizeof env);
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_ERROR_INFEASIBLE);
    assert_int_equal(report.least_budget_bytes, 305);  // x, a, y's gradient, and three of 100 bytes
    desc.budget_bytes = 305;
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
    check_plan(&graph, &plan, 305);
    assert_int_equal(plan.peak_bytes, 305);
    tl_free_plan(&env, &plan);
    tl_free_graph(NULL, &graph);
}

static void more_stages_than_can_be_planned_are_joined(void **state) {
    tl_graph graph = random_chain(2500, 3);
    tl_env env;
    tl_plan plan;
    tl_remat_report report;
    tl_chain_plan_desc desc = desc_of(&graph, keep_all_peak(&graph, 0) / 5, 20000000);
    (void)state;
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
    assert_true(report.gap_ratio < 0.2);
    tl_free_plan(&env, &plan);
    tl_free_graph(NULL, &graph);
}

static uint64_t hash_of(const tl_plan *plan) {
    uint64_t hash = 1;
    int32_t i;
    for (i = 0; i < plan->step_count; i++)
        hash = tl_mix_u64(hash, (uint64_t)plan->steps[i].kind << 32 | (uint32_t)plan->steps[i].node);
    return hash;
}

static void the_same_desc_is_the_same_plan_on_every_machine(void **state) {
    static const uint64_t limits[] = { 0, 200000 };  // the optimum, and what little work finds
    static const uint64_t hashes[] = { UINT64_C(0xf97b1f90c4355b95), UINT64_C(0x4bde779cdb37d2d7) };
    tl_graph graph = random_chain(60, 9);
    uint64_t peak = keep_all_peak(&graph, 0);
    size_t k;
    (void)state;
    for (k = 0; k < 2; k++) {
        tl_env env;
        tl_plan plan;
        tl_remat_report report;
        tl_chain_plan_desc desc = desc_of(&graph, peak / 3, limits[k]);
        assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
        if (hash_of(&plan) != hashes[k]) fail_msg("%d: 0x%016llx", (int)k, (unsigned long long)hash_of(&plan));
        tl_free_plan(&env, &plan);
    }
    tl_free_graph(NULL, &graph);
}

// -- errors --

static void an_error_says_which_rule_was_broken(void **state) {
    tl_graph graph = random_chain(12, 4), broken, large;
    tl_env env;
    tl_plan plan;
    tl_remat_report report;
    tl_chain_plan_desc desc = desc_of(&graph, 1000, 0);
    (void)state;
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_ERROR_INFEASIBLE);
    assert_non_null(strstr(env.error.text, "budget_bytes: no persistent schedule fits below "));
    desc.budget_bytes = report.least_budget_bytes;
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_OK);
    tl_free_plan(&env, &plan);
    desc.base_bytes = 1;
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_ERROR_INFEASIBLE);
    assert_int_equal(report.least_budget_bytes, desc.budget_bytes + 1);
    tl_free_graph(NULL, &graph);
    graph = equal_chain(10, 5, 4, 3, 1);
    desc = desc_of(&graph, 19, 0);
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_ERROR_INFEASIBLE);
    assert_true(report.proven && report.least_budget_bytes == 20 && report.limiting_node == 10);
    desc.base_bytes = UINT64_MAX;
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_ERROR_OVERFLOW);    // no budget can be named
    assert_int_equal(report.least_budget_bytes, 0);
    memset(&env, 0, sizeof env);
    tl_init_graph(&broken);
    desc = desc_of(&broken, 0, 0);
    assert_int_equal(tl_plan_chain(&env, &desc, &plan, NULL), TL_ERROR_INVALID_ARG);
    assert_true(is_zero(&plan, sizeof plan));
    large = graph_of("tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
        "node 1 a op fwd=9000000000000000000 bwd=1 out=5 needs=in in=0\n"
        "node 2 b op fwd=3 bwd=1 out=7 needs=in in=1\n");
    desc = desc_of(&large, 0, 0);
    assert_int_equal(plan_checked(&desc, &env, &plan, &report), TL_ERROR_OVERFLOW);
    assert_string_equal(env.error.text, "tl_plan_chain: graph: costs times stages must fit 62 bits");
    tl_free_graph(NULL, &large);
    tl_free_graph(NULL, &graph);
}

static void every_allocation_fails_in_turn(void **state) {
    static const uint64_t limits[] = { 0, 1 }, budgets[] = { 3, 1000 };
    tl_graph graphs[2];
    int g, k, b;
    (void)state;
    graphs[0] = random_chain(9, 5);
    graphs[1] = equal_chain(9, 1, 1, 0, 1);
    for (g = 0; g < 2; g++) for (k = 0; k < 2; k++) for (b = 0; b < 2; b++) {
        uint64_t budget = b ? budgets[1] : keep_all_peak(&graphs[g], 0) / 2 + budgets[0];
        long at;
        for (at = 0;; at++) {
            failing_alloc f = { 0, 0, 0, 0 };
            tl_env env = failing_env(&f, at);
            tl_chain_plan_desc desc = desc_of(&graphs[g], budget, limits[k]);
            tl_plan plan;
            tl_remat_report report;
            tl_result result = tl_plan_chain(&env, &desc, &plan, &report);
            if (f.count > at) {
                assert_int_equal(result, TL_ERROR_NO_MEMORY);
                assert_true(is_zero(&plan, sizeof plan) && is_zero(&report, sizeof report));
            }
            tl_free_plan(&env, &plan);
            assert_int_equal(f.live, 0);
            if (f.count <= at) break;
        }
    }
    tl_free_graph(NULL, &graphs[0]);
    tl_free_graph(NULL, &graphs[1]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_chains_cost_what_brute_force_says),
        cmocka_unit_test(with_little_work_chains_are_valid_and_bounded),
        cmocka_unit_test(random_graphs_are_valid_and_not_below_the_bound),
        cmocka_unit_test(no_row_of_the_stage_optimum_is_cheaper),
        cmocka_unit_test(results_and_branches_are_joined_into_stages),
        cmocka_unit_test(equal_layers_cost_the_closed_form),
        cmocka_unit_test(every_entry_plans_equal_layers_in_closed_form),
        cmocka_unit_test(the_least_of_equal_layers_holds_its_places),
        cmocka_unit_test(a_long_equal_chain_is_refused_in_little_memory),
        cmocka_unit_test(revolve_over_stages_takes_the_most_slots_that_fit),
        cmocka_unit_test(every_row_of_revolve_is_reached),
        cmocka_unit_test(closed_form_is_the_optimum_of_the_exact_search),
        cmocka_unit_test(remat_proves_equal_layers_at_every_budget),
        cmocka_unit_test(hundred_random_stages_are_exact),
        cmocka_unit_test(thousand_random_stages_are_within_a_percent),
        cmocka_unit_test(more_work_on_little_memory_costs_no_more),
        cmocka_unit_test(long_chains_are_near_the_bound_with_the_default_work),
        cmocka_unit_test(the_least_budget_of_ten_blocks_is_the_floor),
        cmocka_unit_test(a_leaf_drops_for_a_peak_what_it_makes_again),
        cmocka_unit_test(more_stages_than_can_be_planned_are_joined),
        cmocka_unit_test(the_same_desc_is_the_same_plan_on_every_machine),
        cmocka_unit_test(an_error_says_which_rule_was_broken),
        cmocka_unit_test(every_allocation_fails_in_turn),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
