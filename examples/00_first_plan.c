// 00_first_plan.c -- one budget in, a plan out
//
// You learn: a graph is sizes and costs, a budget is a number of bytes, and a plan is a list of
// steps whose peak is known before anything runs. It prints what 16 layers take when everything is
// kept, what they take within 60 % of that, and the steps: F = forward, D = drop, B = backward; a
// second F makes a dropped activation again. Read next: 01, where such plans train a network.
//
// check:
//
//     mkdir -p build && cc -o build/00_first_plan examples/00_first_plan.c && build/00_first_plan

#include <stdio.h>

#define TL_STRATEGY_STATIC  // private to this file: what it does not call is left out
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

int main(void) {
    static char memory[1 << 17];                   // all that planning takes: nothing calls malloc
    tl_env env = { 0 };                            // (an env of zeroes would: it is valid, too)
    size_t most;
    tl_chain_desc chain = { 0 };                   // zero = default, everywhere
    tl_graph graph = { 0 };
    tl_plan all = { 0 }, plan = { 0 };
    tl_checkpoint_config config = { 0 };
    uint64_t bytes[16], costs[16];
    char text[1024];
    int i;
    for (i = 0; i < 16; i++) bytes[i] = 4096;
    for (i = 0; i < 16; i++) costs[i] = i % 2 ? 1000 : 10;  // a cheap layer, a dear one, ...
    chain.layer_count = 16;
    chain.input_bytes = 4096;
    chain.output_bytes = bytes;
    chain.fwd_costs = chain.bwd_costs = costs;
    if (tl_init_arena(&env, memory, sizeof memory) ||
        tl_add_chain(&env, &graph, &chain) || tl_plan_keep_all(&env, &graph, 0, &all) ||
        tl_checkpoint_dynamic(&env, 16, 0.60, &config) ||  // the cheapest that takes at most 60 %
        tl_plan_checkpoints(&env, &graph, &config, &plan)) {
        fprintf(stderr, "%s\n", env.error.text);
        tl_free_plan(&env, &all);
        tl_free_graph(&env, &graph);
        return 1;
    }
    tl_print_schedule(&plan, text, sizeof text);
    for (i = 0; text[i]; i++) if (text[i] == '\n') text[i] = text[i + 1] ? ',' : '\n';
    printf("keep all: %d bytes, cost %d\n", (int)all.peak_bytes, (int)all.cost);
    printf("plan:     %d bytes, cost %d\n%s", (int)plan.peak_bytes, (int)plan.cost, text);
    tl_free_plan(&env, &plan);
    tl_free_plan(&env, &all);
    tl_free_graph(&env, &graph);
    tl_measure_arena(&env, NULL, &most);
    printf("planned in %d bytes\n", (int)most);
    return 0;
}
