// [6] REMAT: windows: a sequence is improved, or its peak lowered, piece by piece.
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
#include "support/progress.h"

typedef struct question {
    const tl_graph *graph;
    const tl_plan  *start;
    uint64_t        budget, work_limit;
    int             inference;
    int           (*progress)(const tl_remat_progress *progress, void *user);
} question;

typedef struct answer { tl_result result; tl_plan plan; uint64_t cost, work; } answer;

static answer ask(tl_env *env, const question *q) {
    tl_env local;
    tl_remat_desc desc;
    tli_remat_watch watch;
    tli_remat_input in;
    tli_steps steps;
    answer a;
    memset(&local, 0, sizeof local);
    memset(&desc, 0, sizeof desc);
    memset(&watch, 0, sizeof watch);
    memset(&in, 0, sizeof in);
    memset(&a, 0, sizeof a);
    desc.progress = q->progress;
    watch.desc = &desc;
    in.env = env ? env : &local;
    in.graph = q->graph;
    in.budget = q->budget;
    in.inference = q->inference;
    in.work_limit = q->work_limit;
    in.watch = &watch;
    a.result = tli_remat_window(&in, q->start, &steps, &a.work);
    if (a.result && a.result != TL_ERROR_INFEASIBLE) assert_null(steps.steps);
    else if (tli_finish_plan(&steps, TLI_IN(PLAN_REMAT), q->graph, q->inference, &a.plan)) a.result = TL_ERROR_NO_MEMORY;
    a.cost = a.plan.cost;
    return a;
}

// The simulator accepts the plan, and says its cost and peak.
static void assert_is_valid(const question *q, const answer *a) {
    tl_simulate_desc desc;
    tl_report report;
    tl_env env;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.graph = q->graph;
    desc.plan = &a->plan;
    if (tl_simulate_plan(&env, &desc, &report)) fail_msg("%s", env.error.text);
    assert_int_equal(report.cost, a->cost);
    assert_int_equal(report.peak_bytes, a->plan.peak_bytes);
    if (a->result == TL_OK) assert_true(a->plan.peak_bytes <= q->budget);
    else assert_true(a->plan.peak_bytes > q->budget);
}

static void a_window_never_makes_a_sequence_dearer_or_its_peak_higher(void **state) {
    tl_random random = { 71 };
    int i, share, cheaper = 0, lower = 0, never = 0;
    (void)state;
    for (i = 0; i < scaled(60); i++) {
        tl_graph graph;
        tl_plan all;
        tl_result made = i % 2 ? random_effect_graph(NULL, &random, 40, i % 4 * 6, &graph) : layered_graph(NULL, &random, 40 + i, &graph);
        int inference = i % 6 == 5;
        assert_int_equal(made, TL_OK);
        assert_int_equal(tl_plan_keep_all(NULL, &graph, inference, &all), TL_OK);
        for (share = 1; share < 10; share += 2) {
            question q;
            answer first, last;
            memset(&q, 0, sizeof q);
            q.graph = &graph;
            q.start = &all;
            q.inference = inference;
            q.budget = all.peak_bytes / 10 * (uint64_t)share;
            q.work_limit = 300000;
            first = ask(NULL, &q);
            assert_is_valid(&q, &first);
            assert_true(first.plan.peak_bytes <= all.peak_bytes);
            lower += first.result == TL_OK;
            q.start = &first.plan;
            q.work_limit = 1000000;
            last = ask(NULL, &q);
            assert_is_valid(&q, &last);
            if (first.result == TL_OK) {
                assert_int_equal(last.result, TL_OK);
                assert_true(last.cost <= first.cost);
                cheaper += last.cost < first.cost;
            } else {
                assert_true(last.plan.peak_bytes <= first.plan.peak_bytes);
                never += last.result == TL_ERROR_INFEASIBLE;
            }
            tl_free_plan(NULL, &first.plan);
            tl_free_plan(NULL, &last.plan);
        }
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
    assert_true(is_thinned() || (cheaper > 5 && lower > 10 && never > 3));
}

// Exhaustive search is the judge: never below it, and nearly always equal to it.
static void small_graphs_reach_the_optimum_and_the_least_budget(void **state) {
    tl_random random = { 72 };
    int i, asked = 0, optimal = 0, lowest = 0;
    (void)state;
    for (i = 0; i < scaled(400); i++) {
        tl_graph graph;
        tl_plan all;
        tl_remat_desc desc;
        tli_remat_watch watch;
        tli_steps steps;
        question q;
        answer a;
        uint64_t floor, cost, bound, work = 0;
        int32_t proven;
        memset(&desc, 0, sizeof desc);
        memset(&watch, 0, sizeof watch);
        memset(&q, 0, sizeof q);
        watch.desc = &desc;
        assert_int_equal(random_graph(NULL, &random, 8, &graph), TL_OK);
        assert_int_equal(tl_plan_keep_all(NULL, &graph, 0, &all), TL_OK);
        steps = tli_steps_of(NULL);
        assert_int_equal(tli_remat_exact_floor(NULL, &graph, 0, &watch, 20000000, &steps, &floor, &proven, &work), TL_OK);
        tli_release(NULL, steps.steps);
        if (!proven || !floor) { tl_free_plan(NULL, &all); tl_free_graph(NULL, &graph); continue; }
        q.graph = &graph;
        q.start = &all;
        q.work_limit = 1000000;
        q.budget = floor + (all.peak_bytes - floor) * tl_next_random_below(&random, 3) / 3;
        work = 0;
        steps = tli_steps_of(NULL);
        assert_int_equal(tli_remat_exact(NULL, &graph, q.budget, 0, &watch, 20000000, &steps, &cost, &bound, &proven, &work), TL_OK);
        tli_release(NULL, steps.steps);
        a = ask(NULL, &q);
        if (proven) {
            assert_is_valid(&q, &a);
            assert_true(a.result == TL_ERROR_INFEASIBLE || a.cost >= cost);
            asked++;
            optimal += a.result == TL_OK && a.cost == cost;
        }
        tl_free_plan(NULL, &a.plan);
        q.budget = floor - 1;
        a = ask(NULL, &q);
        assert_int_equal(a.result, TL_ERROR_INFEASIBLE);
        assert_true(a.plan.peak_bytes >= floor);
        lowest += a.plan.peak_bytes == floor;
        tl_free_plan(NULL, &a.plan);
        tl_free_plan(NULL, &all);
        tl_free_graph(NULL, &graph);
    }
    print_message("optimal %d, lowest %d of %d\n", optimal, lowest, asked);
    assert_true(optimal * 100 >= asked * 95 && lowest * 100 >= asked * 95);
}

static void an_allocation_that_fails_is_an_error_and_leaves_nothing(void **state) {
    tl_random random = { 73 };
    tl_graph graph;
    tl_plan all;
    int share;
    (void)state;
    assert_int_equal(layered_graph(NULL, &random, 50, &graph), TL_OK);
    assert_int_equal(tl_plan_keep_all(NULL, &graph, 0, &all), TL_OK);
    for (share = 1; share < 8; share += 3) {
        question q;
        answer whole, broken;
        long at;
        memset(&q, 0, sizeof q);
        q.graph = &graph;
        q.start = &all;
        q.budget = all.peak_bytes / 10 * (uint64_t)share;
        q.work_limit = 200000;
        whole = ask(NULL, &q);
        for (at = 0; ; at++) {
            failing_alloc f = { 0, 0, 0, 0 };
            tl_env env = failing_env(&f, at);
            f.fails_once = at % 2 == 0;
            broken = ask(&env, &q);
            if (broken.result == TL_ERROR_NO_MEMORY) {
                assert_int_equal(broken.plan.step_count, 0);
            } else {
                assert_int_equal(broken.result, whole.result);
                assert_int_equal(broken.cost, whole.cost);
                assert_int_equal(broken.plan.peak_bytes, whole.plan.peak_bytes);
            }
            tl_free_plan(&env, &broken.plan);
            assert_int_equal(f.live, 0);
            if (f.count <= at) break;
        }
        assert_true(at > 10);
        tl_free_plan(NULL, &whole.plan);
    }
    tl_free_plan(NULL, &all);
    tl_free_graph(NULL, &graph);
}

static void windows_end_at_the_work_limit_and_when_progress_says_so(void **state) {
    tl_random random = { 74 };
    tl_graph graph;
    tl_plan all;
    uint64_t limit;
    int share;
    (void)state;
    assert_int_equal(layered_graph(NULL, &random, 400, &graph), TL_OK);
    assert_int_equal(tl_plan_keep_all(NULL, &graph, 0, &all), TL_OK);
    for (share = 1; share < 8; share += 3)
        for (limit = 1; limit < 20000000; limit *= 50) {
            question q;
            answer a;
            memset(&q, 0, sizeof q);
            q.graph = &graph;
            q.start = &all;
            q.budget = all.peak_bytes / 10 * (uint64_t)share;
            q.work_limit = limit;
            a = ask(NULL, &q);
            assert_is_valid(&q, &a);
            assert_true(a.work < limit + 2000000);
            tl_free_plan(NULL, &a.plan);
            q.progress = stop_progress;
            a = ask(NULL, &q);
            assert_is_valid(&q, &a);
            assert_true(a.work < 2000000);
            tl_free_plan(NULL, &a.plan);
        }
    tl_free_plan(NULL, &all);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_never_makes_a_sequence_dearer_or_its_peak_higher),
        cmocka_unit_test(small_graphs_reach_the_optimum_and_the_least_budget),
        cmocka_unit_test(an_allocation_that_fails_is_an_error_and_leaves_nothing),
        cmocka_unit_test(windows_end_at_the_work_limit_and_when_progress_says_so),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
