// [5] REMAT with a host tier: spills and fetches beside recomputation, and how far from the optimum they can be.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support.h"
#include "random_graph.h"
#include "run_support.h"
#include "brute_offload.h"

#define SOAK_TIMES(count) ((count) * (getenv("SOAK") ? 20 : getenv("SAMPLE") ? 0.15 : 1))
#define FEW 1000000     // steps of work where time matters more than the last percent

static tl_remat_desc desc_of(const tl_graph *graph, uint64_t budget, const tl_device *device, uint64_t host_budget) {
    tl_remat_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.budget_bytes = budget;
    desc.device = device;
    desc.host_budget_bytes = host_budget;
    desc.work_limit = FEW;
    return desc;
}

// What every answer must hold, whatever the graph.
static void check_answer(const tl_remat_desc *desc, const tl_env *env, tl_result result, const tl_plan *plan,
                         const tl_remat_report *report) {
    uint64_t budget = desc->budget_bytes ? desc->budget_bytes : UINT64_MAX;
    tl_simulate_desc replay;
    tl_report simulated;
    if (result) {
        assert_int_equal(env->error.code, result);
        assert_true(!plan->steps && !plan->step_count);
    }
    if (result == TL_ERROR_INFEASIBLE) {
        assert_true(report->least_budget_bytes > budget);
        assert_true(report->bound_budget_bytes <= report->least_budget_bytes);
        assert_true(!report->proven || report->bound_budget_bytes > budget);
        return;
    }
    if (result) return;
    memset(&replay, 0, sizeof replay);
    replay.graph = desc->graph;
    replay.plan = plan;
    replay.device = desc->device;
    if (tl_simulate_plan(NULL, &replay, &simulated)) fail_msg("the plan is not valid");
    assert_true(plan->peak_bytes <= budget && plan->base_bytes <= budget - plan->peak_bytes);
    assert_true(plan->host_peak_bytes <= desc->host_budget_bytes);
    assert_int_equal(plan->peak_bytes, simulated.peak_bytes);
    assert_int_equal(plan->host_peak_bytes, simulated.host_peak_bytes);
    assert_int_equal(plan->cost, simulated.cost);
    assert_int_equal(plan->base_cost, simulated.base_cost);
    assert_int_equal(simulated.end_host_bytes, 0);
    assert_int_equal(report->cost, plan->cost);
    assert_int_equal(report->bound_cost, plan->bound_cost);
    assert_true(report->bound_cost <= report->cost);
    assert_int_equal(report->proven, report->cost == report->bound_cost);
}

static tl_result plan_checked(const tl_remat_desc *desc, tl_env *env, tl_plan *plan, tl_remat_report *report) {
    tl_result result;
    memset(env, 0, sizeof *env);
    result = tl_plan_remat(env, desc, plan, report);
    check_answer(desc, env, result, plan, report);
    return result;
}

// -- against brute force --

static void random_device(tl_random *random, tl_device *device) {
    static const uint64_t rates[] = { 0, 300000000, 500000000, 1000000000, 1500000000, 2000000000, 5000000000 };
    memset(device, 0, sizeof *device);
    device->link_bytes_per_second = rates[tl_next_random_below(random, 7)];
    device->link_latency_ns = tl_next_random_below(random, 4);
}

// So many nodes beside one input, few bytes, costs of the same order as the copies.
static void tiny_graph(tl_random *random, int32_t count, tl_graph *graph) {
    int32_t i, k;
    tl_init_graph(graph);
    for (i = 0; i <= count; i++) {
        tl_node_desc node;
        tl_tensor inputs[2];
        uint64_t bytes[2];
        char needs[64];
        memset(&node, 0, sizeof node);
        node.op = i ? "op" : "input";
        node.inputs = inputs;
        node.input_count = i ? 1 + (i > 1 && random_chance(random, 35)) : 0;
        node.output_bytes = bytes;
        node.output_count = i && random_chance(random, 10) ? 2 : 1;
        for (k = 0; k < 2; k++) bytes[k] = 1 + tl_next_random_below(random, 9);
        for (k = 0; k < node.input_count; k++) {
            inputs[k].node = random_chance(random, 70) ? i - 1 : random_count(random, 0, i - 1);
            inputs[k].output = random_count(random, 0, graph->nodes[inputs[k].node].output_count - 1);
        }
        node.keep = random_chance(random, 5);
        if (i) {
            node.fwd_cost = tl_next_random_below(random, 15);
            if (random_chance(random, 20)) node.fwork_bytes = tl_next_random_below(random, 4);
            node.no_grad = random_chance(random, 5);
            if (random_chance(random, 15) && inputs[0].node) {
                node.inplace = 1;
                bytes[0] = graph->outputs[graph->nodes[inputs[0].node].first_output + inputs[0].output].bytes;
            }
        }
        if (i && !node.no_grad) {
            random_needs(random, node.input_count, node.output_count, needs);
            node.needs = random_chance(random, 40) ? "in" : needs;
            node.bwd_cost = tl_next_random_below(random, 25);
            if (random_chance(random, 15)) node.saved_bytes = 1 + tl_next_random_below(random, 6);
            if (random_chance(random, 20)) node.bwork_bytes = tl_next_random_below(random, 4);
        }
        if (tl_add_node(NULL, graph, &node, NULL)) fail_msg("no node");
    }
}

static void alloc_brute(brute_offload *tables, uint32_t capacity) {
    tables->capacity = tables->heap_capacity = capacity;
    tables->heap_capacity *= 4;
    tables->table_size = 2 * capacity + 1;
    tables->states = (bo_state *)malloc(capacity * sizeof *tables->states);
    tables->now = (uint64_t *)malloc(capacity * sizeof *tables->now);
    tables->settled = (uint8_t *)malloc(capacity);
    tables->table = (uint32_t *)malloc(tables->table_size * sizeof *tables->table);
    tables->heap = (bo_entry *)malloc(tables->heap_capacity * sizeof *tables->heap);
    if (!tables->states || !tables->now || !tables->settled || !tables->table || !tables->heap) fail_msg("no memory");
}

static void free_brute(brute_offload *tables) {
    free(tables->states);
    free(tables->now);
    free(tables->settled);
    free(tables->table);
    free(tables->heap);
}

static void lend_tables(brute_offload *b, const brute_offload *tables) {
    b->states = tables->states; b->now = tables->now; b->settled = tables->settled; b->table = tables->table;
    b->heap = tables->heap; b->capacity = tables->capacity; b->heap_capacity = tables->heap_capacity;
    b->table_size = tables->table_size;
}

typedef struct tally { int tried[6], met[6], proven, copies, missed, infeasible, large; } tally;

// Whether the planner's answer is the optimum; every eighth time that brute force finds it, too.
static void compare_with_brute(brute_offload *b, const tl_remat_desc *desc, tl_result result, const tl_plan *plan,
                               const tl_remat_report *report, int number, tally *sums) {
    uint64_t least = 0, limit = result ? 1000 : plan->cost - (number % 8 > 0);
    int n = desc->graph->node_count - 1, solved;
    if (!result && !plan->cost) return;
    solved = bo_solve(b, desc->device, desc->budget_bytes, desc->host_budget_bytes, limit, &least);
    if (solved < 0) { sums->large++; return; }
    if (result) {
        if (solved && report->proven) fail_msg("graph %d: proven infeasible, ends at %d", number, (int)least);
        sums->missed += solved;
        sums->infeasible += !solved;
        return;
    }
    if (!solved && number % 8 == 0) fail_msg("graph %d: nothing ends by %d", number, (int)plan->cost);
    if (!solved) least = plan->cost;
    if (least < report->bound_cost) fail_msg("graph %d: bound %d, optimum %d", number, (int)report->bound_cost, (int)least);
    sums->tried[n]++;
    sums->met[n] += least == plan->cost;
    sums->proven += report->proven;
    sums->copies += plan->host_peak_bytes > 0;
    if (least < plan->cost && getenv("SHOW")) {
        char text[8192];
        tl_print_graph(desc->graph, text, sizeof text);
        printf("%s", text);
        tl_print_schedule(plan, text, sizeof text);
        for (n = 0; text[n]; n++) if (text[n] == '\n') text[n] = ' ';
        printf("%s\nbudget %d host %d rate %d latency %d cost %d optimum %d\n\n", text, (int)desc->budget_bytes,
               (int)desc->host_budget_bytes, (int)(desc->device->link_bytes_per_second / 1000000),
               (int)desc->device->link_latency_ns, (int)plan->cost, (int)least);
    }
}

static void tiny_graphs_reach_the_optimum_of_brute_force(void **state) {
    tl_random random = { 61 };
    brute_offload b, tables;
    tally sums;
    int i, count = (int)SOAK_TIMES(getenv("CASES") ? atoi(getenv("CASES")) : 150);
    (void)state;
    memset(&sums, 0, sizeof sums);
    alloc_brute(&tables, 1u << 18);
    for (i = 0; i < count; i++) {
        tl_graph graph;
        tl_device device;
        tl_plan all, plan;
        tl_remat_desc desc;
        tl_remat_report report;
        tl_env env;
        tl_result result;
        uint64_t host = random_chance(&random, 60) ? TL_UNLIMITED : 1 + tl_next_random_below(&random, 20), floor;
        int32_t node;
        tiny_graph(&random, 3 + i % 3, &graph);
        random_device(&random, &device);
        if (tl_plan_keep_all(NULL, &graph, 0, &all)) fail_msg("no plan");
        if (tli_remat_floor(NULL, &graph, 0, 1, &floor, &node)) fail_msg("no floor");
        floor += tl_next_random_below(&random, all.peak_bytes - floor + 1);
        desc = desc_of(&graph, floor ? floor : 1, &device, host);
        result = plan_checked(&desc, &env, &plan, &report);
        if (bo_init(&b, &graph, 0)) {
            lend_tables(&b, &tables);
            compare_with_brute(&b, &desc, result, &plan, &report, i, &sums);
        }
        tl_free_plan(&env, &plan);
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
    free_brute(&tables);
    print_message("optimum reached: 3 nodes %d of %d, 4 nodes %d of %d, 5 nodes %d of %d; %d proven, %d with copies, "
                  "%d infeasible, %d missed, %d too large\n", sums.met[3], sums.tried[3], sums.met[4], sums.tried[4],
                  sums.met[5], sums.tried[5], sums.proven, sums.copies, sums.infeasible, sums.missed, sums.large);
    assert_int_equal(sums.met[3], sums.tried[3]);
    assert_int_equal(sums.missed, 0);
    assert_true(100 * (sums.met[4] + sums.met[5]) >= 97 * (sums.tried[4] + sums.tried[5]));
    assert_true(sums.copies > 0 && sums.proven > 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiny_graphs_reach_the_optimum_of_brute_force),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
