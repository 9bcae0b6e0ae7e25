// [12] RUN: what a start takes. Search that is worth what it saves, its limits, pools and progress; the bytes of the tables
// beside the arena, counted by an allocator that knows nothing of them, and a budget that binds them. Work is counted in
// elementary steps: no test reads a clock.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/counting_alloc.h"

enum { MOST_OPS = 1200 };
static tl_op ops[MOST_OPS];
static tl_tensor readers[MOST_OPS][2];
static tl_cpu_backend_desc memory;

static tl_result nothing(const tl_kernel_call *call, void *user) {
    int32_t i;
    (void)user;
    for (i = 0; call->kind != TL_STEP_BACKWARD && i < call->graph->nodes[call->node].output_count; i++)
        if (call->outputs[i].range.bytes) memset(call->outputs[i].host, 1, (size_t)call->outputs[i].range.bytes);
    return TL_OK;
}

// What the ops look like.
typedef enum shape { EQUAL, UNEVEN, SKIPS, SAVING, SHAPE_COUNT } shape;

static void fill_ops(int32_t count, shape kind, uint32_t seed) {
    tl_random random = { seed };
    int32_t i;
    memset(ops, 0, sizeof ops);
    for (i = 0; i < count; i++) {
        uint64_t size = kind == EQUAL ? 8 : 1 + tl_next_random(&random) % 16, cost = tl_next_random(&random) % 900;
        ops[i].output_bytes = i == count - 1 ? 4 : 64 * size;
        if (!i) continue;
        ops[i].forward = ops[i].backward = nothing;
        ops[i].needs = i == count - 1 ? "in" : "in,out";
        ops[i].fwd_cost = kind == EQUAL ? 1 : 100 + cost;
        ops[i].bwd_cost = kind == EQUAL ? 2 : 200 + 2 * cost;
        if (kind == SAVING && i % 3 == 0) ops[i].saved_bytes = 64 * size;
        if (kind == SAVING && i % 4 == 0) ops[i].fwork_bytes = 128;
        if (kind != SKIPS || i < 4 || i % 4) continue;
        readers[i][0].node = i - 1, readers[i][0].output = 0;
        readers[i][1].node = i - 3, readers[i][1].output = 0;
        ops[i].inputs = readers[i], ops[i].input_count = 2;
        ops[i].needs = "none";
    }
    ops[0].kind = "input";
    ops[count - 1].keep = 1;
}

static void open_backend(tl_env *env, tl_backend *cpu) {
    memset(&memory, 0, sizeof memory);
    memset(env, 0, sizeof *env);
    assert_int_equal(tl_init_cpu_backend(env, &memory, cpu), TL_OK);
}

// A start, run for one pass and freed; figures are those of the start.
typedef struct started { tl_result result; tl_run_figures figures; uint64_t cost, bound; } started;

static started start(tl_env *env, tl_run_desc desc, int32_t count, int has_figures) {
    started s;
    tl_run *run;
    tl_plan plan;
    memset(&s, 0, sizeof s);
    if (has_figures) desc.figures = &s.figures;
    s.result = tl_init_op_run(env, &desc, ops, count, &run);
    if (s.result) return s;
    if (!has_figures) s.figures.work = run->planning_work;
    tl_find_run_plan(run, &plan);
    s.cost = plan.cost;
    s.bound = plan.bound_cost;
    assert_int_equal(tl_run_plan(run), TL_OK);
    tl_free_run(run);
    return s;
}

// -- what search is worth --

// More steps to come are worth more search, and never a dearer plan; a gap that is closed ends it; the least budget
// depends on none of this.
static void test_search_is_worth_what_it_saves(void **state) {
    static const double ratios[] = { 0.6, 0.3 };
    int32_t sizes[] = { 9, 16, 30 }, s, r, e, kind, planned = 0, ended = 0;     // figures take longer than all of the rest: of the first alone
    tl_env env, of_backend;
    tl_backend cpu;
    (void)state;
    memset(&env, 0, sizeof env);
    open_backend(&of_backend, &cpu);
    for (kind = 0; kind < 3; kind++)
        for (s = 0; s < 3; s++)
            for (r = 0; r < 2; r++) {
                uint64_t cost = UINT64_MAX, work = 0, first_work = 0, least = 0;
                fill_ops(sizes[s], (shape)kind, (uint32_t)(7 * s + kind));
                for (e = 0; e < 3; e++) {
                    static const uint64_t steps[] = { 1, 1000, 3000 };
                    tl_run_desc desc;
                    started now;
                    memset(&desc, 0, sizeof desc);
                    desc.backend = &cpu;
                    desc.budget_ratio = ratios[r];
                    desc.expected_steps = steps[e];
                    now = start(&env, desc, sizes[s], !s);
                    if (e) assert_true(now.figures.least_bytes == least);
                    least = now.figures.least_bytes;
                    if (now.result) { assert_int_equal(now.result, TL_ERROR_INFEASIBLE); break; }
                    assert_true(now.cost <= cost && now.figures.work >= work);
                    cost = now.cost;
                    work = now.figures.work;
                    if (!e) first_work = work;
                }
                if (e < 3) continue;
                planned++;
                ended += first_work < work;     // for one step less is worth its time than for thousands
            }
    print_message("%d of %d searches for one step end sooner\n", ended, planned);
    assert_true(ended > 0);
    tl_free_cpu_backend(&of_backend, &cpu);
}

// What a refusal names does not depend on how long a plan is to last: no search for it ends because it is not worth its time.
static void test_least_is_that_of_any_steps(void **state) {
    static const int32_t sizes[] = { 16, 30, 60 };
    int32_t s, kind;
    tl_env env, of_backend;
    tl_backend cpu;
    (void)state;
    memset(&env, 0, sizeof env);
    open_backend(&of_backend, &cpu);
    for (s = 0; s < (is_slow() ? 1 : 3); s++)
        for (kind = 0; kind < SHAPE_COUNT; kind++) {
            static const uint64_t steps[] = { 1, 30, 100000 };
            uint64_t least = 0;
            size_t e;
            fill_ops(sizes[s], (shape)kind, (uint32_t)(5 * s + kind));
            for (e = 0; e < sizeof steps / sizeof *steps; e++) {
                tl_run_desc desc;
                tl_run *run;
                memset(&desc, 0, sizeof desc);
                desc.backend = &cpu;
                desc.budget_bytes = 1;
                desc.expected_steps = steps[e];
                assert_int_equal(tl_init_op_run(&env, &desc, ops, sizes[s], &run), TL_ERROR_INFEASIBLE);
                if (e) assert_true(tl_find_least_budget(&env.error) == least);
                least = tl_find_least_budget(&env.error);
            }
        }
    tl_free_cpu_backend(&of_backend, &cpu);
}

// A start by default takes a small part of the work that the planner takes by default, at a cost within 3 %.
static void test_starts_take_little_work(void **state) {
    static const double ratios[] = { 0.6, 0.3 };
    static const int32_t sizes[] = { 20, 30, 200 };
    tl_env env, of_backend;
    tl_backend cpu;
    tl_run_figures figures;
    uint64_t work_of_starts = 0, work_of_plans = 0;
    int32_t s, r;
    (void)state;
    memset(&env, 0, sizeof env);
    open_backend(&of_backend, &cpu);
    for (s = 0; s < 3; s++)
        for (r = 0; r < 2; r++) {
            tl_run_desc desc;
            tl_remat_desc ask;
            tl_remat_report report;
            tl_plan found, plan;
            tl_run *run;
            memset(&desc, 0, sizeof desc);
            memset(&ask, 0, sizeof ask);
            memset(&figures, 0, sizeof figures);
            fill_ops(sizes[s], s == 2 ? EQUAL : UNEVEN, 3);
            desc.backend = &cpu;
            desc.work_limit = 1;
            desc.figures = &figures;
            assert_int_equal(tl_init_op_run(&env, &desc, ops, sizes[s], &run), TL_OK);     // for its figures
            tl_free_run(run);
            desc.figures = NULL;
            desc.work_limit = 0;
            desc.budget_bytes = (uint64_t)(ratios[r] * (double)figures.keep_all_bytes);
            if (tl_init_op_run(&env, &desc, ops, sizes[s], &run)) continue;
            tl_find_run_plan(run, &plan);
            ask.graph = tl_find_run_graph(run);
            ask.budget_bytes = desc.budget_bytes - 56;      // what the backend takes beside an arena
            ask.alignment_bytes = 64;
            assert_int_equal(tl_plan_remat(&env, &ask, &found, &report), TL_OK);
            work_of_starts += run->planning_work;
            work_of_plans += report.work;
            assert_true(plan.cost <= found.cost + found.cost / 33);
            tl_free_plan(&env, &found);
            tl_free_run(run);
        }
    assert_true(work_of_starts > 0 && work_of_starts < work_of_plans / 3);
    tl_free_cpu_backend(&of_backend, &cpu);
}

// -- progress and pools --

typedef struct watched { long calls, end, calls_after; uint64_t work; int goes_back, goes_beyond; } watched;

static int watch(const tl_remat_progress *progress, void *user) {
    watched *w = (watched *)user;
    w->goes_back |= progress->work < w->work;
    w->goes_beyond |= progress->work > progress->work_limit;
    w->work = progress->work;
    w->calls_after += w->calls >= w->end;
    return ++w->calls >= w->end;
}

// Progress is told rising work, and ends the search at any call: the start has a plan within its budget then, or is refused.
static void test_progress_ends_a_start(void **state) {
    tl_env env, of_backend;
    tl_backend cpu;
    tl_run_desc desc;
    uint64_t keep_all;
    long end, calls = 0;
    int ran = 0, mode;
    (void)state;
    memset(&env, 0, sizeof env);
    open_backend(&of_backend, &cpu);
    fill_ops(40, UNEVEN, 9);
    memset(&desc, 0, sizeof desc);
    desc.backend = &cpu;
    desc.work_limit = 1;
    keep_all = start(&env, desc, 40, 1).figures.keep_all_bytes;
    desc.expected_steps = 3000;
    for (mode = 0; mode < 4; mode++)
        for (end = 1; end < (is_slow() ? 4 : 12); end += end) {
            tl_run_figures figures;
            watched w = { 0, 0, 0, 0, 0, 0 };
            tl_run *run;
            tl_result result;
            w.end = end;
            desc.work_limit = mode == 1 ? 5000000 : 0;
            desc.counts_tables = mode > 1;
            desc.figures = mode == 3 ? &figures : NULL;
            desc.budget_bytes = keep_all / 3;
            desc.progress = watch;
            desc.progress_user = &w;
            result = tl_init_op_run(&env, &desc, ops, 40, &run);
            assert_true(w.calls >= 1 && w.calls >= calls / 1000 && !w.goes_back && !w.goes_beyond);
            assert_int_equal(w.calls_after, 0);     // who has asked to stop is asked no more
            calls += w.calls;
            if (result) {
                assert_int_equal(result, TL_ERROR_INFEASIBLE);
                assert_null(run);
                continue;
            }
            ran++;
            assert_int_equal(tl_run_plan(run), TL_OK);
            tl_free_run(run);
        }
    assert_true(ran >= (is_slow() ? 1 : 4));
    tl_free_cpu_backend(&of_backend, &cpu);
}

// Starts that share a pool find no dearer plan, with less work; a pool of another graph is refused.
static void test_starts_share_a_pool(void **state) {
    tl_env env, of_backend;
    tl_backend cpu;
    tl_remat_pool *pool;
    int32_t kind, turn;
    (void)state;
    memset(&env, 0, sizeof env);
    open_backend(&of_backend, &cpu);
    for (kind = 0; kind < (is_slow() ? 1 : 4); kind++) {
        tl_run_desc desc;
        uint64_t cost = UINT64_MAX, keep_all;
        assert_int_equal(tl_init_remat_pool(&env, &pool), TL_OK);
        memset(&desc, 0, sizeof desc);
        fill_ops(40, (shape)kind, 11);
        desc.backend = &cpu;
        desc.work_limit = 1;
        keep_all = start(&env, desc, 40, 1).figures.keep_all_bytes;
        desc.work_limit = 0;
        desc.budget_bytes = keep_all / 2;
        desc.pool = pool;
        for (turn = 0; turn < 3; turn++) {
            tl_run *run;
            tl_plan plan;
            assert_int_equal(tl_init_op_run(&env, &desc, ops, 40, &run), TL_OK);
            tl_find_run_plan(run, &plan);
            assert_true(plan.cost <= cost);
            cost = plan.cost;
            tl_free_run(run);
        }
        fill_ops(39, (shape)kind, 11);
        {
            tl_run *run;
            assert_int_equal(tl_init_op_run(&env, &desc, ops, 39, &run), TL_ERROR_INVALID_ARG);
            assert_null(run);
        }
        tl_free_remat_pool(pool);
    }
    tl_free_cpu_backend(&of_backend, &cpu);
}

// -- tables --

static void set_mode(tl_run_desc *desc, tl_strategy *strategy, int mode, const tl_device *link) {
    memset(strategy, 0, sizeof *strategy);
    strategy->gradient = tl_gradient_checkpointed(0);
    strategy->precision = TL_PRECISION_SINGLE;
    strategy->memory = TL_MEMORY_POOLED;
    strategy->mode = TL_MODE_LAZY;
    desc->strategy = strategy;
    switch (mode) {
    case 0: desc->strategy = NULL; break;
    case 1: desc->in_flight = 3; break;
    case 2: strategy->mode = TL_MODE_EAGER; break;
    case 3: strategy->memory = TL_MEMORY_STANDARD; break;
    case 4: strategy->memory = TL_MEMORY_MINIMAL_PEAK; break;
    case 5: desc->host_budget_bytes = 1u << 20; desc->device = link; break;
    case 6: strategy->gradient = tl_gradient_full(); desc->budget_ratio = 1; break;
    case 7: strategy->mode = TL_MODE_EAGER; desc->host_budget_bytes = 1u << 20; break;
    case 8:                                 // compiled: formats
        strategy->precision = TL_PRECISION_MIXED;
        desc->kernel_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_MIXED;
        desc->budget_ratio = 0.45;
        break;
    case 9: strategy->enable_fusion = 1; break;     // compiled: fused chains
    default: strategy->gradient.checkpoint_interval = 4; desc->budget_ratio = 0; break;
    }
}
enum { MODES = 11 };

// The bytes that a run keeps are those that a counting allocator sees, whatever is run; after passes, too.
static void test_tables_are_counted_exactly(void **state) {
    static const int32_t sizes[] = { 3, 20, 200 };
    int32_t s, kind, mode, i, checked = 0, compiled = 0;
    tl_device link;
    tl_env of_backend;
    tl_backend cpu;
    (void)state;
    open_backend(&of_backend, &cpu);
    memset(&link, 0, sizeof link);
    link.link_bytes_per_second = 1000000000;
    for (s = 0; s < (is_slow() ? 2 : 3); s++)
        for (kind = 0; kind < SHAPE_COUNT; kind++)
            for (mode = 0; mode < MODES; mode++) {
                counting_alloc counter = { 0, 0 };
                tl_env env = counting_env(&counter);
                tl_run_desc desc;
                tl_strategy strategy;
                tl_run_report report;
                tl_run *run;
                int pass;
                memset(&desc, 0, sizeof desc);
                fill_ops(sizes[s], (shape)kind, (uint32_t)(s + kind));
                desc.backend = &cpu;
                desc.work_limit = 100000;
                desc.budget_ratio = 0.7;
                set_mode(&desc, &strategy, mode, &link);
                for (i = 1; mode == 9 && kind == EQUAL && i < sizes[s] - 1; i++) ops[i].takes_blocks = 1;
                if (tl_init_op_run(&env, &desc, ops, sizes[s], &run)) {
                    if (env.error.code != TL_ERROR_INFEASIBLE) fail_msg("mode %d: %s", (int)mode, env.error.text);
                    assert_true(counter.live == 0);
                    continue;
                }
                for (pass = 0; pass < 2; pass++) {
                    tl_measure_run(run, &report);
                    if (counter.live != report.table_bytes)
                        fail_msg("%d ops, shape %d, mode %d, pass %d: %d bytes live, %d counted", (int)sizes[s], (int)kind,
                                 (int)mode, pass, (int)counter.live, (int)report.table_bytes);
                    assert_int_equal(tl_run_plan(run), TL_OK);
                }
                checked++;
                compiled += tl_find_compiled_plan(run) != NULL;
                tl_free_run(run);
                assert_true(counter.live == 0);
            }
    print_message("%d runs, %d of them compiled\n", (int)checked, (int)compiled);
    assert_true(checked > (is_slow() ? 30 : 60) && compiled > checked / 10);
    tl_free_cpu_backend(&of_backend, &cpu);
}

// About half of what they were: 737062 bytes of 1105 ops at 30 %, 913982 at the least budget, 122239 of 200 ops, 19003 of 20.
static void test_tables_are_small(void **state) {
    static const struct { int32_t count; double ratio; uint64_t most; } rows[] = {
        { 1105, 0.3, 737062 / 2 }, { 1105, 0, 913982 / 2 }, { 200, 0.3, 66500 }, { 200, 0, 157159 / 2 }, { 20, 0.6, 14000 } };
    tl_env env, of_backend;
    tl_backend cpu;
    size_t i;
    (void)state;
    memset(&env, 0, sizeof env);
    open_backend(&of_backend, &cpu);
    for (i = is_slow() ? 4 : 0; i < sizeof rows / sizeof *rows; i++) {
        tl_run_desc desc;
        started s;
        memset(&desc, 0, sizeof desc);
        fill_ops(rows[i].count, UNEVEN, 7);
        desc.backend = &cpu;
        desc.work_limit = 1000000;
        desc.budget_ratio = rows[i].ratio;
        if (desc.budget_ratio == 0) desc.budget_bytes = start(&env, desc, rows[i].count, 1).figures.least_bytes;
        s = start(&env, desc, rows[i].count, 1);
        assert_int_equal(s.result, TL_OK);
        if (s.figures.table_bytes > rows[i].most)
            fail_msg("%d ops take %d bytes", (int)rows[i].count, (int)s.figures.table_bytes);
    }
    tl_free_cpu_backend(&of_backend, &cpu);
}

// With counts_tables arena and tables together are within the budget, and a refusal names a budget that works.
static void test_budgets_bind_tables(void **state) {
    static const int32_t sizes[] = { 12, 40, 200 };
    int32_t s, kind, part, ran = 0, refused = 0, size_count = is_slow() ? 1 : 3;
    tl_env env, of_backend;
    tl_backend cpu;
    (void)state;
    memset(&env, 0, sizeof env);
    open_backend(&of_backend, &cpu);
    for (s = 0; s < size_count; s++)
        for (kind = s < 2 ? 0 : SAVING; kind < SHAPE_COUNT; kind++) {
            tl_run_desc desc;
            started all;
            memset(&desc, 0, sizeof desc);
            fill_ops(sizes[s], (shape)kind, (uint32_t)kind);
            desc.backend = &cpu;
            desc.work_limit = 200000;
            all = start(&env, desc, sizes[s], 1);
            assert_int_equal(all.result, TL_OK);
            desc.counts_tables = 1;
            for (part = 10; part >= 1; part -= 3) {
                tl_run_report report;
                tl_run *run;
                tl_result result;
                int turn;
                desc.budget_bytes = all.figures.table_bytes + all.figures.keep_all_bytes * (uint64_t)part / 10;
                for (turn = 0; turn < 2; turn++) {
                    result = tl_init_op_run(&env, &desc, ops, sizes[s], &run);
                    if (!result) break;
                    assert_int_equal(result, TL_ERROR_INFEASIBLE);
                    assert_int_equal(turn, 0);          // the budget that it named works
                    assert_true(tl_find_least_budget(&env.error) > desc.budget_bytes);
                    desc.budget_bytes = tl_find_least_budget(&env.error);
                    refused++;
                }
                assert_int_equal(tl_run_plan(run), TL_OK);
                tl_measure_run(run, &report);
                assert_true(report.taken_bytes + report.table_bytes <= desc.budget_bytes);
                tl_free_run(run);
                ran++;
            }
        }
    assert_true(ran > 0 && (is_slow() || (ran == 36 && refused > 4)));
    tl_free_cpu_backend(&of_backend, &cpu);
}

// The figures of a start that counts tables are budgets that it works with, whatever the steps it is to last; other values
// than 0 and 1 are refused.
static void test_figures_count_tables(void **state) {
    static const int32_t sizes[] = { 1, 5, 16, 39 };
    static const uint64_t steps[] = { 1, 0, 1000000, 0 }, works[] = { 0, 0, 0, 50000 };
    int32_t s, kind, k, asked;
    uint64_t least = 0;
    tl_env env, of_backend;
    tl_backend cpu;
    (void)state;
    memset(&env, 0, sizeof env);
    open_backend(&of_backend, &cpu);
    for (s = 0; s < (is_slow() ? 2 : 4); s++)
        for (kind = 0; kind < SHAPE_COUNT; kind += is_thinned() ? 3 : 1)
            for (k = 0; k < (s < 3 ? 4 : 1); k++) {
                tl_run_desc desc;
                started all, again;
                uint64_t named;
                memset(&desc, 0, sizeof desc);
                fill_ops(sizes[s], (shape)kind, (uint32_t)kind);
                desc.backend = &cpu;
                desc.expected_steps = steps[k];
                desc.work_limit = works[k];
                desc.counts_tables = 1;
                all = start(&env, desc, sizes[s], 1);
                assert_int_equal(all.result, TL_OK);
                if (!k) least = all.figures.least_bytes;
                assert_int_equal(all.figures.least_bytes, least);
                for (asked = k; asked < 2; asked++) {
                    desc.budget_bytes = asked ? all.figures.least_bytes : all.figures.keep_all_bytes;
                    again = start(&env, desc, sizes[s], 1);
                    if (again.result) fail_msg("%d ops, shape %d, %d bytes: %s", (int)sizes[s], (int)kind, (int)desc.budget_bytes, env.error.text);
                    assert_int_equal(again.figures.least_bytes, all.figures.least_bytes);
                    assert_int_equal(again.figures.keep_all_bytes, all.figures.keep_all_bytes);
                }
                desc.budget_bytes = all.figures.least_bytes / 2;
                again = start(&env, desc, sizes[s], 1);
                named = tl_find_least_budget(&env.error);
                assert_true(again.result == TL_ERROR_INFEASIBLE && named == all.figures.least_bytes);
                desc.counts_tables = 2;
                assert_int_equal(start(&env, desc, sizes[s], 1).result, TL_ERROR_INVALID_ARG);
            }
    tl_free_cpu_backend(&of_backend, &cpu);
}

// Every allocation that fails is an error, and nothing is lost.
static void test_failing_allocations(void **state) {
    long at;
    int mode;
    (void)state;
    for (mode = 0; mode < 3; mode++)
        for (at = 0;; at++) {
            failing_alloc f = { 0, 0, 0, 0 };
            tl_env env = failing_env(&f, at), of_backend;
            tl_backend cpu;
            tl_run_desc desc;
            tl_run *run;
            tl_result result;
            open_backend(&of_backend, &cpu);
            memset(&desc, 0, sizeof desc);
            fill_ops(9, mode == 1 ? SAVING : UNEVEN, 5);
            desc.backend = &cpu;
            desc.expected_steps = mode == 2 ? 0 : 1;
            desc.work_limit = mode == 2 ? 1000 : 0;
            desc.budget_ratio = 0.8;
            desc.counts_tables = mode;
            if (mode) desc.budget_ratio = 0, desc.budget_bytes = 60000;
            if (mode == 2) desc.counts_tables = 1;
            result = tl_init_op_run(&env, &desc, ops, 9, &run);
            if (!result) tl_free_run(run);
            else assert_int_equal(result, TL_ERROR_NO_MEMORY);
            assert_int_equal(f.live, 0);
            tl_free_cpu_backend(&of_backend, &cpu);
            if (f.count <= at) break;
        }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_is_worth_what_it_saves),
        cmocka_unit_test(test_least_is_that_of_any_steps),
        cmocka_unit_test(test_starts_take_little_work),
        cmocka_unit_test(test_progress_ends_a_start),
        cmocka_unit_test(test_starts_share_a_pool),
        cmocka_unit_test(test_tables_are_counted_exactly),
        cmocka_unit_test(test_tables_are_small),
        cmocka_unit_test(test_budgets_bind_tables),
        cmocka_unit_test(test_figures_count_tables),
        cmocka_unit_test(test_failing_allocations)
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
