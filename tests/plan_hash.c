// One checksum a plan, of a fixed set of graphs, budgets and planners: the same text from every compiler, optimisation, word
// size and byte order. tests/check.sh plans compares.
//
//     plan_hash            lines of: graph, planner, budget, result, steps, cost, bound, checksum; of precisions:
//                          graph, criterion, objective, result, conversions, cost, bound, checksum
#include "../tl_strategy.h"
#include "support/random_graph.h"
#include "support/layered_graph.h"
#include "support/word_lengths.h"
#include <stdio.h>
#include <stdlib.h>

enum { WORK = 200000 };     // elementary steps of one plan

static uint64_t hash_plan(const tl_plan *plan) {
    const uint64_t numbers[] = { plan->peak_bytes, plan->arena_bytes, plan->host_peak_bytes, plan->base_bytes, plan->cost,
                                 plan->base_cost, plan->bound_cost };
    uint64_t sum = 0;
    int32_t i;
    for (i = 0; i < plan->step_count; i++) {
        const tl_step *step = &plan->steps[i];
        sum = tl_mix_u64(sum, (uint64_t)step->kind << 8 | step->codec);
        sum = tl_mix_u64(sum, (uint64_t)(uint32_t)step->node << 32 | (uint32_t)step->output);
    }
    for (i = 0; i < 7; i++) sum = tl_mix_u64(sum, numbers[i]);
    for (i = 0; i < plan->offset_count; i++) sum = tl_mix_u64(sum, tl_find_offset(plan, i, 0));
    for (i = 0; i < plan->host_offset_count; i++) sum = tl_mix_u64(sum, tl_find_offset(plan, i, 1));
    return sum;
}

static uint64_t hash_text(uint64_t sum, const char *text) {
    for (; *text; text++) sum = tl_mix_u64(sum, (uint64_t)(unsigned char)*text);
    return sum;
}

static void print_plan(const char *name, const char *planner, uint64_t budget, tl_result result, const tl_env *env,
                       const tl_plan *plan, uint64_t sum) {
    sum = tl_mix_u64(sum, hash_plan(plan));
    if (result) sum = hash_text(sum, env->error.text);
    printf("%-14s %-12s %12llu %-10s %6d %14llu %14llu %016llx\n", name, planner, (unsigned long long)budget,
           tl_name_result(result), (int)plan->step_count, (unsigned long long)plan->cost, (unsigned long long)plan->bound_cost,
           (unsigned long long)sum);
}

// Plan, and return the budget that there is a plan for. With a host, tensors may be spilled there over a slow link.
static uint64_t plan_remat(const char *name, const tl_graph *graph, uint64_t budget, int inference, uint64_t work_limit,
                           uint64_t host_budget) {
    tl_device device;
    tl_env env;
    tl_remat_desc desc;
    tl_remat_report report;
    tl_plan plan;
    tl_result result;
    uint64_t sum;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.live = 1;
    desc.budget_bytes = budget;
    desc.inference = inference;
    desc.work_limit = work_limit;
    memset(&device, 0, sizeof device);
    device.link_bytes_per_second = 100000000;
    device.link_latency_ns = 50;
    if (host_budget) desc.device = &device;
    desc.host_budget_bytes = host_budget;
    result = tl_plan_remat(&env, &desc, &plan, &report);
    sum = tl_mix_u64(report.work, tl_mix_u64(report.least_budget_bytes, report.bound_budget_bytes));
    sum = tl_mix_u64(sum, (uint64_t)(uint32_t)report.limiting_node << 1 | (uint64_t)report.proven);
    print_plan(name, host_budget ? "host" : inference ? "inference" : "remat", budget, result, &env, &plan, sum);
    tl_free_plan(&env, &plan);
    return result ? report.least_budget_bytes : budget;
}

static void plan_policies(const char *name, const tl_graph *graph, uint64_t budget) {
    int policy;
    for (policy = 0; policy <= TL_POLICY_CHAIN; policy++) {
        tl_env env;
        tl_policy_desc desc;
        tl_plan plan;
        tl_result result;
        memset(&env, 0, sizeof env);
        memset(&desc, 0, sizeof desc);
        desc.graph = graph;
        desc.live = 1;
        desc.policy.kind = (tl_policy_kind)policy;
        desc.budget_bytes = budget;
        result = tl_plan_policy(&env, &desc, &plan);
        print_plan(name, tl_name_policy(desc.policy.kind), budget, result, &env, &plan, 0);
        tl_free_plan(&env, &plan);
    }
}

// The chain planner with too little work for its exact curves.
static void plan_chain(const char *name, const tl_graph *graph, uint64_t budget, uint64_t work_limit) {
    tl_env env;
    tl_chain_plan_desc desc;
    tl_remat_report report;
    tl_plan plan;
    tl_result result;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.live = 1;
    desc.budget_bytes = budget;
    desc.work_limit = work_limit;
    result = tl_plan_chain(&env, &desc, &plan, &report);
    print_plan(name, "short-chain", budget, result, &env, &plan, tl_mix_u64(report.work, report.least_budget_bytes));
    tl_free_plan(&env, &plan);
}

// Plans that come with places, within a budget that binds their arena.
static void plan_placed(const char *name, const tl_graph *graph, uint64_t budget, uint64_t work_limit) {
    enum { ALIGNMENT = 2 };
    tl_env env;
    tl_remat_desc remat;
    tl_chain_plan_desc chain;
    tl_policy_desc policy;
    tl_remat_report report;
    tl_plan plan;
    tl_result result;
    memset(&env, 0, sizeof env);
    memset(&remat, 0, sizeof remat);
    memset(&chain, 0, sizeof chain);
    memset(&policy, 0, sizeof policy);
    remat.graph = chain.graph = policy.graph = graph;
    remat.budget_bytes = chain.budget_bytes = policy.budget_bytes = budget;
    remat.alignment_bytes = chain.alignment_bytes = policy.alignment_bytes = ALIGNMENT;
    remat.work_limit = chain.work_limit = work_limit;
    policy.policy.kind = TL_POLICY_CHEN_GREEDY;
    result = tl_plan_remat(&env, &remat, &plan, &report);
    print_plan(name, "placed", budget, result, &env, &plan, tl_mix_u64(report.work, report.least_budget_bytes));
    tl_free_plan(&env, &plan);
    result = tl_plan_chain(&env, &chain, &plan, &report);
    print_plan(name, "placed-chain", budget, result, &env, &plan, tl_mix_u64(report.work, report.least_budget_bytes));
    tl_free_plan(&env, &plan);
    result = tl_plan_policy(&env, &policy, &plan);
    print_plan(name, "placed-chen", budget, result, &env, &plan, 0);
    tl_free_plan(&env, &plan);
}

// What a scheme is chosen for, and the graph with its conversions.
static uint64_t hash_precision(const tl_precision_plan *plan, const tl_graph *graph) {
    const double ratios[] = { plan->loss, plan->bound_loss, plan->gap_ratio, plan->speedup };
    const uint64_t numbers[] = { plan->conversion_cost, plan->bytes, plan->base_bytes, (uint64_t)plan->proven };
    uint64_t sum = 0, bits;
    int32_t i;
    for (i = 0; i < plan->node_count; i++) {
        const tl_precision_node *node = &plan->nodes[i];
        sum = tl_mix_u64(sum, (uint64_t)node->scheme << 8 | (uint64_t)node->runner_up);
        sum = tl_mix_u64(sum, node->runner_up_cost);
    }
    for (i = 0; i < 4; i++) {
        memcpy(&bits, &ratios[i], sizeof bits);
        sum = tl_mix_u64(tl_mix_u64(sum, bits), numbers[i]);
    }
    for (i = 0; i < graph->tensor_count; i++) sum = tl_mix_u64(sum, graph->outputs[i].bytes);
    return sum;
}

static void plan_precision(const char *name, const tl_graph *graph, int criterion, int objective) {
    tl_env env;
    tl_precision_desc desc;
    tl_precision_plan plan;
    tl_precision_graph applied;
    tl_apply_desc apply;
    tl_result result;
    uint64_t sum;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    memset(&apply, 0, sizeof apply);
    memset(&applied, 0, sizeof applied);
    desc.graph = graph;
    desc.criterion = (tl_criterion)criterion;
    desc.objective = (tl_precision_objective)objective;
    desc.loss_limit = 0.005;
    desc.least_speedup = 1.5;
    desc.allow_sensitive = desc.allow_unknown = 1;
    desc.profiles = word_length_profiles(&desc.profile_count);
    desc.work_limit = 10 * WORK;
    result = tl_plan_precision(&env, &desc, &plan);
    apply.graph = graph;
    apply.plan = &plan;
    if (!result) result = tl_apply_precision(&env, &apply, &applied);
    sum = hash_precision(&plan, &applied.graph);
    if (result) sum = hash_text(sum, env.error.text);
    printf("%-14s %-12s %12s %-10s %6d %14llu %14llu %016llx\n", name, tl_name_criterion(desc.criterion),
           tl_name_objective(desc.objective), tl_name_result(result), (int)applied.conversion_count,
           (unsigned long long)plan.cost, (unsigned long long)plan.bound_cost, (unsigned long long)sum);
    tl_free_precision_graph(&env, &applied);
    tl_free_precision_plan(&env, &plan);
}

static void plan_all(const char *family, int index, tl_graph *graph, tl_result made, uint64_t work_limit) {
    static const uint64_t percents[] = { 85, 65, 45 };
    char name[32];
    tl_plan all;
    int inference, criterion;
    size_t k;
    if (made) { fprintf(stderr, "plan_hash: no graph\n"); exit(1); }
    snprintf(name, sizeof name, "%s-%d", family, index);
    for (inference = 0; inference < 2; inference++) {
        if (tl_plan_keep_all(NULL, graph, inference, &all)) { fprintf(stderr, "plan_hash: no plan\n"); exit(1); }
        for (k = (size_t)inference; k < 3; k++) {
            uint64_t budget = all.peak_bytes / 100 * percents[k] + 1;
            uint64_t fits = plan_remat(name, graph, budget, inference, work_limit, 0);
            if (fits != budget && k == 2) plan_remat(name, graph, fits, inference, work_limit, 0);
            if (!inference) plan_remat(name, graph, budget, inference, work_limit, all.peak_bytes / 2);
            if (!inference && k < 2) plan_policies(name, graph, k ? budget : 0);
            if (!inference) plan_chain(name, graph, budget, work_limit / 10);
            if (!inference && !k) plan_placed(name, graph, budget, work_limit / 10);
        }
        tl_free_plan(NULL, &all);
    }
    for (criterion = 0; criterion < TL_CRITERION_COUNT; criterion++)
        plan_precision(name, graph, criterion, (index + criterion) % TL_OBJECTIVE_COUNT);
    tl_free_graph(NULL, graph);
}

// A chain whose sizes and costs have nothing in common.
static tl_result uneven_chain(tl_random *random, int32_t layers, tl_graph *graph) {
    static const char *const needs[] = { "in", "out", "in,out", "none" };
    uint64_t bytes[128], saved[128], fwd[128], bwd[128], work[128];
    tl_chain_desc chain;
    int32_t i;
    memset(&chain, 0, sizeof chain);
    for (i = 0; i < layers; i++) {
        bytes[i] = 1 + tl_next_random_below(random, 10007);
        saved[i] = tl_next_random_below(random, 4) ? 0 : 1 + tl_next_random_below(random, 5003);
        work[i] = tl_next_random_below(random, 4) ? 0 : 1 + tl_next_random_below(random, 3001);
        fwd[i] = tl_next_random_below(random, 1000003);
        bwd[i] = 2 * fwd[i];
    }
    chain.layer_count = layers;
    chain.input_bytes = 4099;
    chain.output_bytes = bytes;
    chain.saved_bytes = saved;
    chain.bwork_bytes = work;
    chain.fwd_costs = fwd;
    chain.bwd_costs = bwd;
    chain.needs = needs[tl_next_random_below(random, 4)];
    return tl_add_chain(NULL, graph, &chain);
}

int main(void) {
    static const int32_t nodes[] = { 8, 16, 30, 60, 120, 250 }, layers[] = { 6, 12, 25, 50, 100 };
    tl_random random = { 70 };
    tl_graph graph;
    tl_result made;
    int i;
    for (i = 0; i < 6; i++) {
        made = layered_graph(NULL, &random, nodes[i], &graph);
        plan_all("layered", i, &graph, made, WORK);
    }
    for (i = 0; i < 5; i++) {
        made = uneven_chain(&random, layers[i], &graph);
        plan_all("chain", i, &graph, made, WORK);
    }
    for (i = 0; i < 25; i++) {      // several outputs, saved bytes, in place, frozen parts, results
        made = random_graph(NULL, &random, i % 4 ? 12 : 80, &graph);
        plan_all("random", i, &graph, made, WORK / 4);
    }
    return 0;
}
