// 00_first_plan.c -- one budget in, a plan out
//
// You learn: a graph is sizes and costs, a budget is a number of bytes, and a plan is a list of
// steps whose peak is known before anything runs. It prints what eight layers take when everything
// is kept, what they take within 60 % of that, and every step of that plan. Read next: 01, where
// such a plan trains a network.
//
// check:
//
//     cc -std=c99 -o build/00_first_plan examples/00_first_plan.c && build/00_first_plan

#include <stdio.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

int main(void) {
    static const uint64_t bytes[8] = { 4096, 4096, 8192, 8192, 4096, 4096, 2048, 2048 };
    static const uint64_t costs[8] = { 10, 10, 40, 40, 10, 10, 5, 5 };
    tl_env env = { 0 };                              // malloc, silent
    tl_chain_desc chain = { 0 };                     // zero = default, everywhere
    tl_graph graph = { 0 };
    tl_plan all = { 0 }, plan = { 0 };
    tl_checkpoint_config config = { 0 };
    char text[1024];
    chain.layer_count = 8;
    chain.input_bytes = 4096;
    chain.output_bytes = bytes;
    chain.fwd_costs = costs;
    chain.bwd_costs = costs;
    if (tl_add_chain(&env, &graph, &chain) ||
        tl_plan_keep_all(&env, &graph, 0, &all) ||
        tl_checkpoint_dynamic(&env, 8, 0.60, &config) ||  // the cheapest below 60 % of the peak
        tl_plan_checkpoints(&env, &graph, &config, &plan)) {
        fprintf(stderr, "%s\n", env.error.text);
        return 1;
    }
    tl_print_schedule(&plan, text, sizeof text);
    printf("keep all: %d bytes, cost %d\n", (int)all.peak_bytes, (int)all.cost);
    printf("plan:     %d bytes, cost %d\n\n%s", (int)plan.peak_bytes, (int)plan.cost, text);
    tl_free_plan(&env, &plan);
    tl_free_plan(&env, &all);
    tl_free_graph(&env, &graph);
    return 0;
}
