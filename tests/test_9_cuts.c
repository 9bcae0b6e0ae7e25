// [9] COMPILE: where pipelines are cut: ranks that differ, the bound over all cuts, networks of the sizes that users have,
// and the least budget that a refusal names.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/shape_graph.h"


enum { MOST_RANKS = 4 };

static void make_shape(tl_env *env, tl_random *random, shape kind, int32_t nodes, tl_graph *graph) {
    if (shape_graph(env, random, kind, nodes, graph)) fail_msg("%s", env->error.text);
}

static void compile(tl_env *env, const tl_ranks_desc *desc, tl_compiled_ranks *ranks) {
    if (tl_compile_ranks(env, desc, ranks)) fail_msg("%s", env->error.text);
    assert_true(ranks->bound_cost <= ranks->cost);
}

// Bytes of the largest rank.
static uint64_t most_bytes(const tl_compiled_ranks *ranks) {
    uint64_t most = 0;
    int32_t r;
    for (r = 0; r < ranks->rank_count; r++) {
        uint64_t bytes = ranks->ranks[r].base_bytes + ranks->ranks[r].compiled.plan.arena_bytes;
        if (bytes > most) most = bytes;
    }
    return most;
}

// A chain of equal nodes without budgets: a rank on which costs are three times as high gets a third of the nodes.
static void a_slow_rank_gets_less(void **state) {
    static const tl_rank speeds[3] = { { 0, 1, 1 }, { 0, 3, 1 }, { 0, 0, 0 } };
    tl_env env = silent_env();
    tl_graph graph;
    tl_ranks_desc desc;
    tl_compiled_ranks ranks;
    tl_random random = { 1 };
    int32_t counts[3], r;
    (void)state;
    memset(&desc, 0, sizeof desc);
    make_shape(&env, &random, SHAPE_EQUAL, 70, &graph);
    desc.graph = &graph;
    desc.rank_count = 3;
    desc.micro_batch_count = 64;
    desc.ranks = speeds;
    compile(&env, &desc, &ranks);
    for (r = 0; r < 3; r++) {
        counts[r] = ranks.ranks[r].end_node - ranks.ranks[r].first_node;
        assert_int_equal(ranks.ranks[r].compiled.graph->nodes[1].fwd_cost,
                         graph.nodes[ranks.ranks[r].first_node + 1].fwd_cost * (r == 1 ? 3 : 1));
    }
    printf("%d, %d and %d nodes\n", (int)counts[0], (int)counts[1], (int)counts[2]);
    assert_true(counts[1] * 5 >= counts[0] && counts[1] * 2 <= counts[0] && counts[1] * 2 <= counts[2]);
    tl_free_compiled_ranks(&env, &ranks);
    tl_free_graph(&env, &graph);
}

// A rank with few bytes gets a stage that fits them; the same budget for all is the same as ranks with that budget.
static void every_rank_keeps_its_budget(void **state) {
    tl_random random = { 5 };
    long round, fitted = 0;
    (void)state;
    for (round = 0; round < scaled(16); round++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_ranks_desc desc;
        tl_compiled_ranks ranks, again;
        tl_rank each[MOST_RANKS];
        uint64_t most;
        int32_t r;
        tl_result result;
        memset(&desc, 0, sizeof desc);
        memset(each, 0, sizeof each);
        make_shape(&env, &random, round % 2 ? SHAPE_LAYERED : SHAPE_RESIDUAL, 30 + (int32_t)(round % 4) * 10, &graph);
        desc.graph = &graph;
        desc.rank_count = 2 + (int32_t)(round % 3);
        desc.micro_batch_count = 1 + (int32_t)(round % 6);
        desc.work_limit = 20000000;
        compile(&env, &desc, &ranks);
        most = most_bytes(&ranks);
        tl_free_compiled_ranks(&env, &ranks);
        for (r = 0; r < desc.rank_count; r++)
            each[r].budget_bytes = most - most * tl_next_random_below(&random, 8) / 10;
        desc.ranks = each;
        result = tl_compile_ranks(&env, &desc, &ranks);
        if (!result) {
            fitted++;
            for (r = 0; r < desc.rank_count; r++)
                assert_true(ranks.ranks[r].base_bytes + ranks.ranks[r].compiled.plan.arena_bytes <= each[r].budget_bytes);
        } else assert_int_equal(result, TL_ERROR_INFEASIBLE);
        tl_free_compiled_ranks(&env, &ranks);
        for (r = 0; r < desc.rank_count; r++) each[r].budget_bytes = most - most / 5;
        result = tl_compile_ranks(&env, &desc, &ranks);
        desc.ranks = NULL;
        desc.budget_bytes = most - most / 5;
        assert_int_equal(tl_compile_ranks(&env, &desc, &again), result);
        assert_true(ranks.cost == again.cost && ranks.hash == again.hash);
        tl_free_compiled_ranks(&env, &ranks);
        tl_free_compiled_ranks(&env, &again);
        tl_free_graph(&env, &graph);
    }
    printf("%ld of %ld fitted\n", fitted, round);
    assert_true(fitted > round / 3);
}

// No cut of two ranks takes less than the bound says, and with bytes to spare the one that is found is the best of all.
static void no_cut_is_below_the_bound(void **state) {
    static const shape kinds[] = { SHAPE_CHAIN, SHAPE_LAYERED, SHAPE_RESIDUAL, SHAPE_U, SHAPE_RANDOM };
    static const tl_link link = { 4000000000u, 20 };
    tl_random random = { 9 };
    long round, cuts = 0, best_found = 0, rounds = scaled(6);
    double gap = 0, worst = 1;
    (void)state;
    for (round = 0; round < rounds; round++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_ranks_desc desc;
        tl_compiled_ranks ranks;
        uint64_t cost, bound, best = UINT64_MAX;
        int32_t ends[2];
        memset(&desc, 0, sizeof desc);
        make_shape(&env, &random, kinds[round % 5], 40 + (int32_t)(round % 3) * 20, &graph);
        desc.graph = &graph;
        desc.rank_count = 2;
        desc.micro_batch_count = 1 + (int32_t)(round % 7);
        desc.inference = round % 4 == 3;
        desc.link = round % 2 ? &link : NULL;
        compile(&env, &desc, &ranks);
        cost = ranks.cost;
        bound = ranks.bound_cost;
        tl_free_compiled_ranks(&env, &ranks);
        desc.ends = ends;
        ends[1] = graph.node_count;
        for (ends[0] = 2; ends[0] < graph.node_count; ends[0]++, cuts++) {
            compile(&env, &desc, &ranks);
            assert_true(ranks.cost >= bound);
            if (ranks.cost < best) best = ranks.cost;
            tl_free_compiled_ranks(&env, &ranks);
        }
        best_found += cost == best;
        gap += (double)cost / (double)bound - 1;
        if ((double)cost / (double)best > worst) worst = (double)cost / (double)best;
        tl_free_graph(&env, &graph);
    }
    printf("%ld cuts; %ld of %ld are the best there is, worst ratio %.4f, gap to the bound %.3f on average\n", cuts, best_found,
           rounds, worst, gap / (double)rounds);
    assert_true(best_found * 3 >= rounds * 2 && worst < 1.05);
}

// Within a budget no cut is taken that is worse than the one that is best without it, but for the work that is shared.
static void no_budget_makes_a_worse_cut(void **state) {
    static const shape kinds[] = { SHAPE_U, SHAPE_LAYERED, SHAPE_RESIDUAL, SHAPE_CHAIN };
    tl_random random = { 21 };
    long round, rounds = scaled(16), compared = 0, better = 0;
    double worst = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_ranks_desc desc;
        tl_compiled_ranks free_ranks, given, found;
        memset(&desc, 0, sizeof desc);
        make_shape(&env, &random, kinds[round % 4], 40 + (int32_t)(round % 5) * 10, &graph);
        desc.graph = &graph;
        desc.rank_count = 3 + (int32_t)(round % 2);
        desc.micro_batch_count = 8;
        desc.work_limit = 100000000;
        compile(&env, &desc, &free_ranks);
        desc.budget_bytes = most_bytes(&free_ranks) / 100 * (uint64_t)(40 + 10 * (round % 4));
        desc.ends = free_ranks.ends;
        if (!tl_compile_ranks(&env, &desc, &given)) {
            double ratio;
            desc.ends = NULL;
            compile(&env, &desc, &found);
            ratio = (double)found.cost / (double)given.cost;
            if (ratio > worst) worst = ratio;
            better += ratio < 0.999;
            compared++;
            tl_free_compiled_ranks(&env, &found);
        }
        tl_free_compiled_ranks(&env, &given);
        tl_free_compiled_ranks(&env, &free_ranks);
        tl_free_graph(&env, &graph);
    }
    printf("%ld of %ld cheaper, at most %.4f times as long\n", better, compared, worst);
    assert_true(worst < 1.03 && (rounds < 16 || (compared > rounds / 3 && better > compared / 6)));
}

// A refusal names bytes with which the same call finds a plan.
static void the_least_budget_is_a_plan(void **state) {
    static const shape kinds[] = { SHAPE_CHAIN, SHAPE_LAYERED, SHAPE_RESIDUAL, SHAPE_U };
    tl_random random = { 11 };
    long round, rounds = scaled(8);
    (void)state;
    for (round = 0; round < rounds; round++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_ranks_desc desc;
        tl_compiled_ranks ranks;
        char text[1024];
        uint64_t least, again;
        memset(&desc, 0, sizeof desc);
        make_shape(&env, &random, kinds[round % 4], 12 + (int32_t)(round % 5) * 16, &graph);
        desc.graph = &graph;
        desc.rank_count = 2 + (int32_t)(round % 3);
        desc.micro_batch_count = 1 + (int32_t)(round % 6);
        desc.pipeline = round % 5 == 4 ? TL_PIPELINE_GPIPE : TL_PIPELINE_1F1B;
        desc.work_limit = 20000000;
        desc.budget_bytes = 1;
        assert_int_equal(tl_compile_ranks(&env, &desc, &ranks), TL_ERROR_INFEASIBLE);
        assert_non_null(strstr(env.error.text, "budget_bytes: no plan of a stage fits 1 bytes"));
        tl_explain_error(&env.error, text, sizeof text);
        assert_non_null(strstr(text, ": budget_bytes: no plan of a stage fits 1 bytes; the least found is "));
        least = tl_find_least_budget(&env.error);
        desc.budget_bytes = least / 2 ? least / 2 : 1;
        assert_int_equal(tl_compile_ranks(&env, &desc, &ranks), TL_ERROR_INFEASIBLE);
        again = tl_find_least_budget(&env.error);
        if (again != least) fail_msg("round %ld: least %llu, then %llu", round, (unsigned long long)least, (unsigned long long)again);
        desc.budget_bytes = least;
        if (tl_compile_ranks(&env, &desc, &ranks)) fail_msg("round %ld: %s", round, env.error.text);
        assert_true(most_bytes(&ranks) <= least);
        tl_free_compiled_ranks(&env, &ranks);
        tl_free_graph(&env, &graph);
    }
}

// Long chains, whose nodes stand in units where bytes are asked.
static void long_networks_are_cut(void **state) {
    tl_env env = silent_env();
    tl_graph graph;
    tl_ranks_desc desc;
    tl_compiled_ranks ranks;
    tl_random random = { 3 };
    uint64_t most, cost;
    (void)state;
    memset(&desc, 0, sizeof desc);
    make_shape(&env, &random, SHAPE_LAYERED, is_slow() ? 100 : 900, &graph);
    desc.graph = &graph;
    desc.rank_count = 4;
    desc.micro_batch_count = 4;
    desc.work_limit = 5000000;
    compile(&env, &desc, &ranks);
    most = most_bytes(&ranks);
    cost = ranks.cost;
    printf("900 nodes: %.4f times the bound", (double)cost / (double)ranks.bound_cost);
    tl_free_compiled_ranks(&env, &ranks);
    desc.budget_bytes = most - most / 8;
    compile(&env, &desc, &ranks);
    printf(", %.4f within 7 of 8 bytes\n", (double)ranks.cost / (double)ranks.bound_cost);
    assert_true(most_bytes(&ranks) <= desc.budget_bytes);
    assert_true(ranks.cost <= cost + cost / 10);
    tl_free_compiled_ranks(&env, &ranks);
    tl_free_graph(&env, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_rank_gets_less),
        cmocka_unit_test(every_rank_keeps_its_budget),
        cmocka_unit_test(no_cut_is_below_the_bound),
        cmocka_unit_test(no_budget_makes_a_worse_cut),
        cmocka_unit_test(the_least_budget_is_a_plan),
        cmocka_unit_test(long_networks_are_cut),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
