// [6] REMAT: the ends of what may be asked for: no budget, every budget, one step of work.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/shape_graph.h"

static uint64_t peak_of(const tl_graph *graph, const tl_plan *plan) {
    tl_simulate_desc desc;
    tl_report report;
    tl_env env;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    if (tl_simulate_plan(&env, &desc, &report)) fail_msg("%s", env.error.text);
    assert_int_equal(report.cost, plan->cost);
    return report.peak_bytes;
}

// No budget is the largest one: the same plan, and nothing is made twice.
static void budget_zero_is_no_limit(void **state) {
    tl_random random = { 50 };
    int i;
    (void)state;
    for (i = 0; i < 60; i++) {
        tl_graph graph;
        tl_plan keep_all, none, all;
        tl_remat_report report;
        tl_remat_desc desc;
        assert_int_equal(random_graph(NULL, &random, 20, &graph), TL_OK);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.live = 1;
        desc.inference = random_chance(&random, 30);
        desc.work_limit = 100000;
        assert_int_equal(tl_plan_keep_all(NULL, &graph, desc.inference, &keep_all), TL_OK);
        assert_int_equal(tl_plan_remat(NULL, &desc, &none, &report), TL_OK);
        desc.budget_bytes = UINT64_MAX;
        assert_int_equal(tl_plan_remat(NULL, &desc, &all, &report), TL_OK);
        assert_int_equal(peak_of(&graph, &all), all.peak_bytes);
        assert_true(all.cost <= keep_all.cost && report.bound_cost <= all.cost);
        assert_int_equal(none.step_count, all.step_count);
        if (all.step_count) assert_memory_equal(none.steps, all.steps, (size_t)all.step_count * sizeof *all.steps);
        tl_free_plan(NULL, &keep_all);
        tl_free_plan(NULL, &none);
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
}

// The base is part of the budget to its last byte.
static void base_fills_any_budget(void **state) {
    tl_random random = { 51 };
    tl_graph graph;
    tl_plan plan;
    tl_remat_report report;
    tl_remat_desc desc;
    tl_env env;
    uint64_t peak;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    assert_int_equal(random_graph(&env, &random, 10, &graph), TL_OK);
    desc.graph = &graph;
    desc.live = 1;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, &report), TL_OK);
    peak = plan.peak_bytes;
    assert_true(peak > 0);
    tl_free_plan(&env, &plan);
    desc.budget_bytes = UINT64_MAX;
    desc.base_bytes = UINT64_MAX - peak;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, &report), TL_OK);
    assert_true(plan.peak_bytes <= peak);
    assert_int_equal(plan.base_bytes, UINT64_MAX - peak);
    tl_free_plan(&env, &plan);
    desc.budget_bytes = 1;
    desc.base_bytes = 2;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, &report), TL_ERROR_INFEASIBLE);
    tl_free_graph(&env, &graph);
}

// Every planner: a budget that cannot be named, because it does not fit 64 bits, is not named.
static void a_base_beyond_any_budget_is_an_overflow(void **state) {
#define BASE_BYTES_DO_NOT_FIT ": base_bytes: with what a plan takes they do not fit 64 bits"
    tl_random random = { 51 };
    tl_graph graph;
    tl_plan plan;
    tl_remat_report report;
    tl_remat_desc remat;
    tl_chain_plan_desc chain;
    tl_policy_desc policy;
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&remat, 0, sizeof remat);
    memset(&chain, 0, sizeof chain);
    memset(&policy, 0, sizeof policy);
    assert_int_equal(random_graph(&env, &random, 10, &graph), TL_OK);
    remat.graph = chain.graph = policy.graph = &graph;
    remat.base_bytes = chain.base_bytes = policy.base_bytes = UINT64_MAX;
    remat.budget_bytes = chain.budget_bytes = policy.budget_bytes = UINT64_MAX;
    for (remat.live = 0; remat.live < 2; remat.live++) {
        chain.live = policy.live = remat.live;
        assert_int_equal(tl_plan_remat(&env, &remat, &plan, &report), TL_ERROR_OVERFLOW);
        assert_string_equal(env.error.text, "tl_plan_remat" BASE_BYTES_DO_NOT_FIT);
        assert_true(report.least_budget_bytes == 0 && report.bound_budget_bytes == 0 && !plan.steps);
        assert_int_equal(tl_plan_chain(&env, &chain, &plan, &report), TL_ERROR_OVERFLOW);
        assert_string_equal(env.error.text, "tl_plan_chain" BASE_BYTES_DO_NOT_FIT);
        assert_int_equal(report.least_budget_bytes, 0);
        policy.policy.kind = TL_POLICY_CHEN_SQRT;
        assert_int_equal(tl_plan_policy(&env, &policy, &plan), TL_ERROR_OVERFLOW);
        assert_string_equal(env.error.text, "tl_plan_policy" BASE_BYTES_DO_NOT_FIT);
    }
    tl_free_graph(&env, &graph);
}

// One step of work still gives an answer that holds, at any budget, soon.
static void one_step_of_work_gives_an_answer_that_holds(void **state) {
    tl_random random = { 52 };
    int i, found = 0, refused = 0;
    (void)state;
    for (i = 0; i < 150; i++) {
        tl_graph graph;
        tl_plan keep_all, plan;
        tl_remat_report report;
        tl_remat_desc desc;
        tl_result result;
        tl_env env;
        memset(&env, 0, sizeof env);
        memset(&desc, 0, sizeof desc);
        assert_int_equal(random_graph(&env, &random, i % 10 ? 14 : 60, &graph), TL_OK);
        assert_int_equal(tl_plan_keep_all(&env, &graph, 0, &keep_all), TL_OK);
        desc.graph = &graph;
        desc.live = 1;
        desc.work_limit = 1;
        desc.budget_bytes = keep_all.peak_bytes * (uint64_t)random_count(&random, 0, 110) / 100;
        result = tl_plan_remat(&env, &desc, &plan, &report);
        if (result) {
            assert_int_equal(result, TL_ERROR_INFEASIBLE);
            assert_true(report.least_budget_bytes > desc.budget_bytes && report.bound_budget_bytes <= report.least_budget_bytes);
            refused++;
        } else {
            assert_int_equal(peak_of(&graph, &plan), plan.peak_bytes);
            assert_true(!desc.budget_bytes || plan.peak_bytes <= desc.budget_bytes);
            assert_true(report.bound_cost <= plan.cost);
            found++;
        }
        if (desc.budget_bytes >= keep_all.peak_bytes) assert_int_equal(result, TL_OK);
        tl_free_plan(&env, &plan);
        tl_free_plan(&env, &keep_all);
        tl_free_graph(&env, &graph);
    }
    assert_true(found > 20 && refused > 20);
}

static void a_broken_device_is_refused(void **state) {
    static const char text[] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n";
    tl_env env = silent_env();
    tl_graph graph;
    tl_device device;
    tl_plan plan;
    tl_remat_desc remat;
    tl_chain_plan_desc chain;
    tl_policy_desc policy;
    (void)state;
    memset(&device, 0, sizeof device);
    memset(&remat, 0, sizeof remat);
    memset(&chain, 0, sizeof chain);
    memset(&policy, 0, sizeof policy);
    assert_int_equal(tl_parse_graph(&env, text, sizeof text - 1, &graph), TL_OK);
    device.alignment_bytes = 3;
    remat.graph = chain.graph = policy.graph = &graph;
    remat.device = chain.device = policy.device = &device;
    assert_int_equal(tl_plan_remat(&env, &remat, &plan, NULL), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_plan_chain(&env, &chain, &plan, NULL), TL_ERROR_INVALID_ARG);
    assert_int_equal(tl_plan_policy(&env, &policy, &plan), TL_ERROR_INVALID_ARG);
    assert_int_equal(plan.step_count, 0);
    tl_free_graph(&env, &graph);
}

// With the largest working set as budget the search makes its starts; with a byte less it tries nothing.
static void the_search_starts_at_the_floor_and_not_below(void **state) {
    tl_graph graph;
    tl_chain_desc chain;
    int below;
    (void)state;
    memset(&chain, 0, sizeof chain);
    chain.layer_count = 8;
    chain.input_bytes = 1;
    tl_init_graph(&graph);
    assert_int_equal(tl_add_chain(NULL, &graph, &chain), TL_OK);
    for (below = 0; below < 2; below++) {
        tl_env env = silent_env();
        tli_remat_watch watch;
        tl_remat_desc desc;
        tli_remat_input in;
        tli_search_problem p;
        tli_search_state r;
        tli_search_greedy g;
        tli_search_start starts[TLI_SEARCH_STARTS];
        memset(&watch, 0, sizeof watch);
        memset(&desc, 0, sizeof desc);
        memset(&in, 0, sizeof in);
        memset(starts, 0, sizeof starts);
        watch.desc = &desc;
        in.env = &env;
        in.graph = &graph;
        in.watch = &watch;
        assert_int_equal(tli_search_init_problem(&in, &p), TL_OK);
        p.budget = tli_search_find_floor(&p) - below;
        assert_int_equal(tli_search_init_search(&p, &r), TL_OK);
        assert_int_equal(tli_search_init_greedy(&p, &g), TL_OK);
        tli_search_limit_tries(&r, 1000000);
        assert_int_equal(tli_search_begin(&r, &g, starts), 1);
        assert_int_equal(r.best.count > 0, !below);
        assert_int_equal(r.seq.work + g.work > 0, !below);
        tli_search_free_greedy(&g);
        tli_search_free_search(&r, starts);
        tli_search_free_problem(&p);
    }
    tl_free_graph(NULL, &graph);
}

// -- arenas of public networks --

// Where allocations of the plan leave gaps, one of a little less is the answer; and before a plan is refused for its arena, it is
// placed with more work. What either takes more than the plan whose live bytes alone fit is below the limit.
static void an_arena_costs_next_to_nothing(void **state) {
    static const struct { const char *model; uint64_t budget, work; double limit; } rows[] = {
        { "mobilenet_v2_rl", 1560674304, 0, 1.0001 },
        { "mobilenet_v2_rl", 2055208960, 0, 1.0001 },
        { "mobilenet_v2", 1271660544, 100000, 1.0001 },
    };
    size_t k;
    (void)state;
    for (k = is_slow() ? 2 : 0; k < sizeof rows / sizeof *rows; k++) {
        tl_env env;
        tl_graph graph;
        tl_remat_desc desc;
        tl_plan live, placed;
        char path[64], *text;
        memset(&env, 0, sizeof env);
        snprintf(path, sizeof path, "models/%s.tlg", rows[k].model);
        text = read_reference("an_arena_costs_next_to_nothing", path, NULL);
        if (!text) skip();
        if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
        free(text);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.budget_bytes = rows[k].budget;
        desc.alignment_bytes = 64;
        desc.work_limit = rows[k].work;
        if (tl_plan_remat(&env, &desc, &placed, NULL)) fail_msg("%s", env.error.text);
        desc.live = 1;
        if (tl_plan_remat(&env, &desc, &live, NULL)) fail_msg("%s", env.error.text);
        assert_true(placed.arena_bytes <= rows[k].budget);
        assert_int_equal(placed.arena_bytes, placed.peak_bytes);
        assert_true((double)placed.cost <= rows[k].limit * (double)live.cost);
        tl_free_plan(&env, &placed);
        tl_free_plan(&env, &live);
        tl_free_graph(&env, &graph);
    }
}

// So it is on a chain near its least budget, where a plan of as much less as the arena exceeds would be far dearer.
static void a_budget_is_lowered_by_little_first(void **state) {
    tl_random random = { 308 };
    tl_env env = { 0 };
    tl_graph graph;
    tl_remat_desc desc;
    tl_plan live, placed;
    (void)state;
    assert_int_equal(shape_graph(&env, &random, SHAPE_CHAIN, 208, &graph), TL_OK);
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.budget_bytes = 252000;
    desc.work_limit = 40000000;
    assert_int_equal(tl_plan_remat(&env, &desc, &placed, NULL), TL_OK);
    desc.live = 1;
    assert_int_equal(tl_plan_remat(&env, &desc, &live, NULL), TL_OK);
    assert_true(placed.arena_bytes <= 252000 && (double)placed.cost < 1.4 * (double)live.cost);
    tl_free_plan(&env, &placed);
    tl_free_plan(&env, &live);
    tl_free_graph(&env, &graph);
}

// -- banks --

// The bytes that a plan takes of each bank, from its blocks.
static uint64_t sum_banks(const tl_plan *plan, uint64_t *bytes) {
    uint64_t sum = 0;
    int32_t k;
    memset(bytes, 0, TL_MOST_BANKS * sizeof *bytes);
    for (k = 0; k < plan->block_count; k++) {
        if (plan->blocks[k].tier) continue;
        bytes[plan->blocks[k].bank] += plan->blocks[k].bytes;
        sum += plan->blocks[k].bytes;
    }
    return sum;
}

// What is taken of all banks stays within the budget, of each within its capacity; where all have one, no budget is needed.
static void banks_are_bound_together_and_each(void **state) {
    tl_random random = { 54 };
    int i, count = is_slow() ? 100 : 400, planned = 0, several = 0, again = 0, refused = 0, unplaced = 0;
    (void)state;
    for (i = 0; i < count; i++) {
        tl_env env;
        tl_graph graph;
        tl_remat_desc desc;
        tl_remat_report report;
        tl_bank banks[3];
        tl_plan all, plan;
        uint64_t bytes[TL_MOST_BANKS], sum = 0, limit, taken;
        tl_result result;
        int32_t k;
        memset(&env, 0, sizeof env);
        memset(&desc, 0, sizeof desc);
        memset(banks, 0, sizeof banks);
        if (random_graph(NULL, &random, 20, &graph)) fail_msg("%s", "no graph");
        if (tl_plan_keep_all(&env, &graph, 0, &all)) fail_msg("%s", env.error.text);
        desc.graph = &graph;
        desc.alignment_bytes = (uint64_t)1 << tl_next_random_below(&random, 4);
        desc.work_limit = 50000;
        desc.banks = banks;
        desc.bank_count = 1 + (int32_t)tl_next_random_below(&random, 3);
        for (k = 0; k < desc.bank_count; k++) {
            banks[k].capacity_bytes = all.peak_bytes / 4 + tl_next_random_below(&random, all.peak_bytes / 2 + 1);
            banks[k].price = (uint64_t)k + 1;
            sum += banks[k].capacity_bytes;
        }
        limit = sum;
        if (i % 2) limit = desc.budget_bytes = all.peak_bytes / 2 + tl_next_random_below(&random, all.peak_bytes / 2 + 1);
        if (i % 4 == 1) banks[desc.bank_count - 1].capacity_bytes = 0;      // no limit but the budget
        else if (sum < limit) limit = sum;
        result = tl_plan_remat(&env, &desc, &plan, &report);
        if (result) {
            assert_int_equal(result, TL_ERROR_INFEASIBLE);
            assert_true(plan.step_count == 0 && plan.memory == NULL);
            if (!strncmp(env.error.text, "tl_plan_remat: ", 15)) assert_true(report.least_budget_bytes > limit);
            else { assert_int_equal(report.least_budget_bytes, 0); unplaced++; }
            refused++;
        } else {
            taken = sum_banks(&plan, bytes);
            assert_true(taken == plan.arena_bytes && taken <= limit);
            for (k = 0; k < desc.bank_count; k++) assert_true(!banks[k].capacity_bytes || bytes[k] <= banks[k].capacity_bytes);
            for (; k < TL_MOST_BANKS; k++) assert_int_equal(bytes[k], 0);
            several += bytes[0] < taken;
            again += plan.cost > all.cost;
            planned++;
        }
        tl_free_plan(&env, &plan);
        tl_free_plan(&env, &all);
        tl_free_graph(NULL, &graph);
    }
    printf("%d plans, %d in several banks, %d with forwards that run again; %d refused, %d of them for want of places\n", planned, several, again, refused,
           unplaced);
    assert_true(several * 8 > count && again * 8 > count && refused > 0);
}

static void banks_that_are_none_are_errors(void **state) {
    tl_random random = { 55 };
    tl_env env;
    tl_graph graph;
    tl_remat_desc desc;
    tl_bank bank = { 0, 0, 0 };
    tl_plan plan;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    if (random_graph(NULL, &random, 20, &graph)) fail_msg("%s", "no graph");
    desc.graph = &graph;
    desc.bank_count = 1;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_plan_remat: bank_count: must be 0 to 8, the number of banks");
    desc.banks = &bank;
    desc.bank_count = TL_MOST_BANKS + 1;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_ERROR_INVALID_ARG);
    desc.bank_count = -1;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_ERROR_INVALID_ARG);
    desc.bank_count = 1;
    bank.capacity_bytes = 1;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_ERROR_INFEASIBLE);
    assert_non_null(strstr(env.error.text, "tl_plan_remat: device_capacity_bytes: "));
    tl_free_graph(NULL, &graph);
}

// All that a call does counts, and stays within what is asked for, whatever binds. In graphs this large, so little is used up.
static void no_call_does_more_work_than_its_limit(void **state) {
    static const uint64_t limits[] = { 100000000, 110000000, 120000000, 140000000, 160000000 };
    tl_random random = { 59 };
    int i, used_up = 0, planned = 0;
    (void)state;
    for (i = 0; i < (is_slow() ? 4 : 10); i++) {
        tl_graph graph;
        tl_plan plan;
        tl_remat_desc desc;
        tl_remat_report report;
        uint64_t limit = limits[i % 5];
        assert_int_equal(shape_graph(NULL, &random, (shape)(i % SHAPE_COUNT), 40 + i % 4 * 20, &graph), TL_OK);
        assert_int_equal(tl_plan_keep_all(NULL, &graph, 0, &plan), TL_OK);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.budget_bytes = plan.peak_bytes / 100 * (uint64_t)(i % 2 ? 45 : 70);
        desc.work_limit = limit;
        desc.live = i % 3 == 1;
        tl_free_plan(NULL, &plan);
        if (!tl_plan_remat(NULL, &desc, &plan, &report)) {
            if (report.work > limit) fail_msg("%d: %llu of %llu", i, (unsigned long long)report.work, (unsigned long long)limit);
            used_up += report.work > limit / 2;
            planned++;
        }
        tl_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
    printf("%d plans, %d of them with more than half of the limit\n", planned, used_up);
    assert_true(planned > 0);
}

// Where the desc says no alignment, places have that of the device.
static void places_are_aligned_as_the_device_asks(void **state) {
    tl_random random = { 900 };
    int i, planned = 0;
    (void)state;
    for (i = 0; i < 60; i++) {
        tl_env env = silent_env();
        tl_device device = { 0 };
        tl_remat_desc desc;
        tl_graph graph;
        tl_plan plan, keep_all;
        int32_t k;
        memset(&desc, 0, sizeof desc);
        assert_int_equal(random_graph(NULL, &random, 10, &graph), TL_OK);
        assert_int_equal(tl_plan_keep_all(NULL, &graph, 0, &keep_all), TL_OK);
        device.alignment_bytes = 64;
        desc.graph = &graph;
        desc.device = &device;
        desc.budget_bytes = keep_all.peak_bytes + 64 * (uint64_t)graph.tensor_count - (i % 2 ? keep_all.peak_bytes / 4 : 0);
        if (!tl_plan_remat(&env, &desc, &plan, NULL)) {
            planned++;
            for (k = 0; k < plan.offset_count; k++) assert_int_equal(plan.offsets[k] % 64, 0);
            tl_free_plan(&env, &plan);
        } else {
            assert_int_equal(env.error.code, TL_ERROR_INFEASIBLE);
        }
        tl_free_plan(NULL, &keep_all);
        tl_free_graph(NULL, &graph);
    }
    assert_true(planned > 30);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(budget_zero_is_no_limit),
        cmocka_unit_test(base_fills_any_budget),
        cmocka_unit_test(a_base_beyond_any_budget_is_an_overflow),
        cmocka_unit_test(a_broken_device_is_refused),
        cmocka_unit_test(an_arena_costs_next_to_nothing),
        cmocka_unit_test(a_budget_is_lowered_by_little_first),
        cmocka_unit_test(banks_are_bound_together_and_each),
        cmocka_unit_test(banks_that_are_none_are_errors),
        cmocka_unit_test(the_search_starts_at_the_floor_and_not_below),
        cmocka_unit_test(one_step_of_work_gives_an_answer_that_holds),
        cmocka_unit_test(no_call_does_more_work_than_its_limit),
        cmocka_unit_test(places_are_aligned_as_the_device_asks),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
