// [6] REMAT: graphs that once failed, in tests/corpus/graphs, each named by the commit that mended it.
#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/walks.h"
#include <dirent.h>

#define FOLDER "tests/corpus/graphs/"
#define WORK UINT64_C(4000000)

// Plan within a budget, and see that the plan is within it and above its bound. Its cost; UINT64_MAX = refused.
static uint64_t cost_within(const tl_graph *graph, uint64_t budget, int in_arena, uint64_t *least, const char *name) {
    tl_remat_desc desc;
    tl_remat_report report;
    tl_plan plan;
    tl_env env;
    tl_result result;
    uint64_t cost = UINT64_MAX;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.budget_bytes = budget;
    desc.live = !in_arena;
    desc.work_limit = is_slow() ? WORK / 8 : WORK;
    result = tl_plan_remat(&env, &desc, &plan, &report);
    if (result && result != TL_ERROR_INFEASIBLE) fail_msg("%s: %s", name, env.error.text);
    *least = report.least_budget_bytes;
    if (!result) {
        cost = report.cost;
        assert_true(report.cost >= report.bound_cost);
        assert_true((in_arena ? plan.arena_bytes : plan.peak_bytes) <= budget);
        tl_free_plan(&env, &plan);
    }
    return cost;
}

// The least budget that a refusal names is the same whoever asks, has a plan, and none is refused above it.
static void check_graph(const char *name) {
    char path[512];
    tl_graph graph;
    tl_env env;
    int in_arena;
    memset(&env, 0, sizeof env);
    snprintf(path, sizeof path, FOLDER "%s", name);
    if (tl_read_graph(&env, path, &graph)) fail_msg("%s: %s", name, env.error.text);
    for (in_arena = 0; in_arena < 2; in_arena++) {
        uint64_t least, again, none, cost, k;
        if (cost_within(&graph, 1, in_arena, &least, name) != UINT64_MAX) fail_msg("%s: planned in a byte", name);
        if (!is_slow() && cost_within(&graph, least - 1, in_arena, &again, name) == UINT64_MAX && again != least)
            fail_msg("%s: two least budgets, %llu and %llu", name, (unsigned long long)least, (unsigned long long)again);
        cost = cost_within(&graph, least, in_arena, &none, name);
        if (cost == UINT64_MAX) fail_msg("%s: refused at its least budget, %llu", name, (unsigned long long)least);
        for (k = is_slow() ? 8 : 1; k <= 8; k *= 8)
            if (cost_within(&graph, least + least * k / 8, in_arena, &none, name) > cost)
                fail_msg("%s: refused, or dearer, above its least budget, %llu", name, (unsigned long long)least);
    }
    tl_free_graph(&env, &graph);
}

static void graphs_that_once_failed_keep_what_was_mended(void **state) {
    DIR *folder = opendir(FOLDER);
    const struct dirent *entry;
    int count = 0;
    (void)state;
    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        if (!strstr(entry->d_name, ".tlg")) continue;
        check_graph(entry->d_name);
        count++;
    }
    closedir(folder);
    assert_true(count > 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_that_once_failed_keep_what_was_mended),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
