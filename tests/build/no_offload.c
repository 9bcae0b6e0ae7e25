// TL_NO_OFFLOAD: plans that copy to a host can be replayed and run, but none is made.
// lang: both
#define TL_NO_OFFLOAD
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

// A chain of 16 layers of 1 byte, within 9 bytes on the device.
static tl_result plan_chain(tl_env *env, const tl_graph *graph, uint64_t host_budget, tl_plan *plan) {
    tl_remat_desc desc;
    tli_zero(&desc, sizeof desc);
    desc.graph = graph;
    desc.live = 1;
    desc.budget_bytes = 9;
    desc.host_budget_bytes = host_budget;
    return tl_plan_remat(env, &desc, plan, NULL);
}

// The plan with the first output on the host while the others are made.
static tl_result replay_copies(tl_env *env, const tl_graph *graph) {
    static const char text[] = "F 1\nO 1\nW 1\nL 1\nW 1\nDH 1\n";
    tl_simulate_desc desc;
    tl_report report;
    tl_plan plan;
    tl_result result = tl_parse_schedule(env, text, sizeof text - 1, &plan);
    tli_zero(&desc, sizeof desc);
    desc.graph = graph;
    desc.plan = &plan;
    plan.inference = 1;
    if (!result) result = tl_simulate_plan(env, &desc, &report);
    tl_free_plan(env, &plan);
    return result ? result : report.host_peak_bytes == 1 ? TL_OK : TL_ERROR_CORRUPT;
}

// Two ranks, with and without bytes on the host.
static int refuses_copies_of_ranks(tl_env *env, const tl_graph *graph) {
    tl_ranks_desc desc;
    tl_compiled_ranks ranks;
    int failed;
    tli_zero(&desc, sizeof desc);
    desc.graph = graph;
    desc.rank_count = 2;
    desc.micro_batch_count = 2;
    failed = tl_compile_ranks(env, &desc, &ranks) != TL_OK;
    tl_free_compiled_ranks(env, &ranks);
    desc.host_budget_bytes = 1;
    return !failed && tl_compile_ranks(env, &desc, &ranks) == TL_ERROR_UNSUPPORTED;
}

int main(void) {
    tl_env env;
    tl_graph graph, one;
    tl_plan plan, none;
    tl_chain_desc chain;
    int failed;
    tli_zero(&env, sizeof env);
    tli_zero(&graph, sizeof graph);
    tli_zero(&one, sizeof one);
    tli_zero(&chain, sizeof chain);
    chain.layer_count = 16;
    chain.input_bytes = 1;
    failed = tl_add_chain(&env, &graph, &chain) || plan_chain(&env, &graph, 0, &plan) || plan.peak_bytes > 9;
    failed |= plan_chain(&env, &graph, 1, &none) != TL_ERROR_UNSUPPORTED || none.steps;
    failed |= !refuses_copies_of_ranks(&env, &graph);
    chain.layer_count = 1;
    failed |= tl_add_chain(&env, &one, &chain) || replay_copies(&env, &one);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
    tl_free_graph(&env, &one);
    return failed;
}
