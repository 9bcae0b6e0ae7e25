// [5] PLAN: lifetimes of what a plan allocates, and places for it. differential_plan.py compares both with the
// independent checker; here are rows by hand, sizes that users have, plans whose budget binds the arena, and errors.
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
#include "support/texts.h"
#include "support/keep_all.h"
#include "support/woven_graph.h"

static const char *const small =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
    "node 1 a conv fwd=3 bwd=5 out=32,4 needs=in in=0 saved=16 fwork=2 bwork=6\n"
    "node 2 b relu fwd=1 bwd=2 out=32 needs=out in=1 inplace=0\n"
    "node 3 c ce fwd=1 bwd=1 out=4 needs=in in=2,1.1 bwork=3\n";

// -- lifetimes --

typedef struct row { tl_use use; int32_t node, output, occurrence; uint64_t bytes; int32_t first, end, number, over; } row;

static void assert_lifetimes(const tl_graph *graph, const char *steps, const row *rows, int32_t count) {
    tl_plan plan = schedule_of(steps);
    tl_env env = silent_env();
    tl_lifetimes lifetimes;
    int32_t i;
    if (tl_find_lifetimes(&env, graph, &plan, &lifetimes)) fail_msg("%s", env.error.text);
    assert_int_equal(lifetimes.count, count);
    for (i = 0; i < count; i++) {
        const tl_lifetime *l = &lifetimes.items[i];
        row got;
        got.use = l->use; got.node = l->node; got.output = l->output; got.occurrence = l->occurrence; got.bytes = l->bytes;
        got.first = l->first_step; got.end = l->end_step; got.number = l->number; got.over = l->over;
        if (got.use != rows[i].use || got.node != rows[i].node || got.output != rows[i].output || got.occurrence != rows[i].occurrence ||
            got.bytes != rows[i].bytes || got.first != rows[i].first || got.end != rows[i].end || got.number != rows[i].number ||
            got.over != rows[i].over || l->offset)
            fail_msg("row %d: %s %d.%d #%d, %d bytes, %d to %d, number %d over %d", (int)i, tl_name_use(got.use), (int)got.node,
                     (int)got.output, (int)got.occurrence, (int)got.bytes, (int)got.first, (int)got.end, (int)got.number, (int)got.over);
    }
    tl_free_lifetimes(&env, &lifetimes);
    tl_free_lifetimes(&env, &lifetimes);
    tl_free_plan(&env, &plan);
}

static void every_kind_of_allocation_has_its_lifetime(void **state) {
    static const row rows[] = {
        { TL_USE_INPUT, 0, 0, 0, 8, 0, 15, 0, -1 },
        { TL_USE_OUTPUT, 1, 0, 0, 32, 0, 1, 1, -1 }, { TL_USE_OUTPUT, 1, 1, 0, 4, 0, 13, 2, -1 }, { TL_USE_SCRATCH, 1, 0, 0, 2, 0, 1, 3, -1 },
        { TL_USE_OUTPUT, 2, 0, 0, 32, 1, 4, 1, 1 },                                             // in place
        { TL_USE_OUTPUT, 3, 0, 0, 4, 2, 14, 4, -1 },
        { TL_USE_HOST, 2, 0, 0, 32, 3, 7, 0, -1 },                                              // numbered by itself
        { TL_USE_OUTPUT, 2, 0, 1, 32, 5, 12, 5, -1 },                                           // fetched
        { TL_USE_GRADIENT, 3, 0, 0, 4, 8, 9, 6, -1 }, { TL_USE_GRADIENT, 2, 0, 0, 32, 8, 11, 7, -1 }, { TL_USE_GRADIENT, 1, 1, 0, 4, 8, 12, 8, -1 },
        { TL_USE_SCRATCH, 3, 0, 1, 3, 8, 9, 9, -1 },                                            // after a call without
        { TL_USE_OUTPUT, 1, 0, 1, 32, 9, 15, 10, -1 }, { TL_USE_SECOND, 1, 1, 0, 4, 9, 10, 11, -1 }, { TL_USE_SAVED, 1, 0, 0, 16, 9, 12, 12, -1 },
        { TL_USE_SCRATCH, 1, 0, 1, 2, 9, 10, 13, -1 },
        { TL_USE_GRADIENT, 1, 0, 0, 32, 10, 12, 14, -1 },
        { TL_USE_SCRATCH, 1, 0, 2, 6, 11, 12, 15, -1 },
    };
    tl_graph graph = graph_of(small);
    int use;
    (void)state;
    assert_lifetimes(&graph, "F 1\nI 2\nF 3\nO 2\nW 2\nL 2\nW 2\nDH 2\nB 3\nS 1\nB 2\nB 1\nD 2\nD 1.1\nD 3\n", rows,
                     (int32_t)(sizeof rows / sizeof rows[0]));
    for (use = 0; use < TL_USE_COUNT; use++) assert_true(tl_name_use((tl_use)use)[0] != '?');
    assert_string_equal(tl_name_use(TL_USE_COUNT), "?");
    assert_string_equal(tl_name_use(TL_USE_COMPRESSED), "compressed");
    tl_free_graph(NULL, &graph);
}

// Both copies of a tensor live in the step that converts it.
static void conversions_hold_both_copies(void **state) {
    static const row rows[] = {
        { TL_USE_INPUT, 0, 0, 0, 4, 0, 3, 0, -1 }, { TL_USE_OUTPUT, 1, 0, 0, 128, 0, 2, 1, -1 },
        { TL_USE_COMPRESSED, 1, 0, 0, 36, 1, 3, 2, -1 }, { TL_USE_OUTPUT, 1, 0, 1, 128, 2, 3, 3, -1 },
    };
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=-\nnode 1 a conv fwd=1 bwd=1 out=128 needs=none in=0\n");
    tl_plan plan = schedule_of("F 1\nC 1 q8\nX 1\n");
    tl_lifetimes lifetimes;
    int32_t i;
    (void)state;
    plan.inference = 1;
    assert_int_equal(tl_find_lifetimes(NULL, &graph, &plan, &lifetimes), TL_OK);
    assert_int_equal(lifetimes.count, 4);
    for (i = 0; i < 4; i++) {
        const tl_lifetime *l = &lifetimes.items[i];
        assert_true(l->use == rows[i].use && l->bytes == rows[i].bytes && l->first_step == rows[i].first && l->end_step == rows[i].end &&
                    l->occurrence == rows[i].occurrence && l->number == rows[i].number);
    }
    tl_free_lifetimes(NULL, &lifetimes);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// -- places --

static void large_plans_are_placed_near_their_live_peak(void **state) {
    static const double most[SHAPE_COUNT] = { 1, 1, 1.001, 1.01, 1.01, 1, 1.1, 1.05, 1.001 };    // in the order of SHAPES
    int shape_id, work;
    (void)state;
    for (shape_id = 0; shape_id < SHAPE_COUNT; shape_id += is_slow() ? 2 : 1)
        for (work = 0; work < 2; work++) {
            tl_random random = { 1 };
            tl_env env = silent_env();
            tl_graph graph;
            tl_plan plan;
            tl_places_desc desc;
            tl_places_report report;
            memset(&desc, 0, sizeof desc);
            desc.work_limit = work ? 4000000 : 1;
            desc.graph = &graph;
            assert_int_equal(shape_graph(&env, &random, (shape)shape_id, 20000, &graph), TL_OK);
            assert_int_equal(tl_plan_keep_all(&env, &graph, 0, &plan), TL_OK);
            assert_int_equal(tl_plan_places(&env, &desc, &plan, &report), TL_OK);
            assert_true(report.arena_bytes == plan.arena_bytes && report.bound_bytes >= plan.peak_bytes && plan.offset_count > 0);
            if ((double)plan.arena_bytes > most[shape_id] * (double)plan.peak_bytes)
                fail_msg("%s: %.5f times the live peak", name_shape((shape)shape_id), (double)plan.arena_bytes / (double)plan.peak_bytes);
            tl_free_plan(&env, &plan);
            tl_free_graph(&env, &graph);
        }
}

// A plan comes within its budget with all that lies between allocations, or the bytes that are named do.
static void budgets_bind_the_arenas(void **state) {
    tl_random random = { 5 };
    long round, plans = 0, refused = 0, turns = 0, spilled = 0;
    (void)state;
    for (round = 0; round < scaled(400); round++) {
        static const uint64_t alignments[] = { 0, 1, 4, 16, 64 };
        tl_env env = silent_env();
        tl_graph graph;
        tl_remat_desc desc;
        tl_remat_report report, live;
        tl_plan plan;
        uint64_t peak;
        tl_result result;
        assert_int_equal(random_effect_graph(&env, &random, 30, 20, &graph), TL_OK);
        memset(&desc, 0, sizeof desc);
        desc.inference = random_chance(&random, 25);
        peak = keep_all_peak(&graph, desc.inference);
        desc.graph = &graph;
        desc.base_bytes = random_chance(&random, 30) ? 100 : 0;
        desc.budget_bytes = 1 + desc.base_bytes + tl_next_random_below(&random, peak + peak / 4 + 1);
        desc.work_limit = random_chance(&random, 50) ? 200000 : 20000;
        desc.alignment_bytes = alignments[tl_next_random_below(&random, 5)];
        if (round % 4 == 3) desc.host_budget_bytes = 16 + tl_next_random_below(&random, peak);
        result = tl_plan_remat(&env, &desc, &plan, &report);
        if (result == TL_ERROR_INFEASIBLE) {
            uint64_t bound = report.bound_budget_bytes;
            assert_true(report.least_budget_bytes > desc.budget_bytes && bound <= report.least_budget_bytes);
            assert_true(tl_find_least_budget(&env.error) == report.least_budget_bytes);
            desc.budget_bytes = report.least_budget_bytes;
            refused++;
            result = tl_plan_remat(&env, &desc, &plan, &report);
        }
        if (result) fail_msg("round %ld: %s", round, env.error.text);
        assert_true(plan.arena_bytes + desc.base_bytes <= desc.budget_bytes && plan.peak_bytes <= plan.arena_bytes);
        assert_true(report.bound_cost <= report.cost && report.cost == plan.cost && report.proven == (report.cost == report.bound_cost));
        assert_true(plan.host_arena_bytes <= desc.host_budget_bytes && plan.host_peak_bytes <= plan.host_arena_bytes);
        spilled += plan.host_offset_count > 0;
        turns += !desc.host_budget_bytes && report.work > 3 * desc.work_limit;
        tl_free_plan(&env, &plan);
        desc.live = 1;          // what fits as an arena fits as a sum of live bytes, at no higher a bound
        result = tl_plan_remat(&env, &desc, &plan, &live);
        if (!result) assert_true(live.bound_cost <= report.cost);
        tl_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
        plans++;
    }
    printf("%ld plans, %ld refused at first, %ld were made more than once, %ld spill\n", plans, refused, turns, spilled);
    assert_true(is_thinned() || (refused > 20 && turns > 5 && spilled > 20));
}

// Allocations take multiples of the alignment, so bounds do.
static void bounds_are_of_rounded_sizes(void **state) {
    tl_env env = silent_env();
    tl_graph graph = graph_of(small);
    tl_remat_desc desc;
    tl_remat_report report;
    tl_plan plan;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.budget_bytes = 1;
    desc.alignment_bytes = 64;
    assert_int_equal(tl_plan_remat(&env, &desc, &plan, &report), TL_ERROR_INFEASIBLE);
    assert_true(report.proven && report.least_budget_bytes % 64 == 0);
    assert_int_equal(report.bound_budget_bytes, report.least_budget_bytes);
    tl_free_graph(&env, &graph);
}

// Where the plan of the least bytes leaves gaps, six more are made before it is named, with work of their own: what a refusal
// takes all together is that of a dozen plans.
static void the_arena_of_the_least_plan_is_lowered(void **state) {
    enum { LIMIT = 4000000 };
    uint64_t named = 0, live = 0, work = 0, seed;
    (void)state;
    for (seed = 7; seed <= (is_slow() ? 7 : 10); seed++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_remat_desc desc;
        tl_remat_report report;
        tl_plan plan;
        woven_graph(seed, 8, 8, &graph);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.budget_bytes = 1;
        desc.work_limit = LIMIT;
        assert_int_equal(tl_plan_remat(&env, &desc, &plan, &report), TL_ERROR_INFEASIBLE);
        named += report.least_budget_bytes;
        if (report.work > work) work = report.work;
        desc.budget_bytes = report.least_budget_bytes;
        assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_OK);
        assert_true(plan.arena_bytes <= desc.budget_bytes);
        tl_free_plan(&env, &plan);
        desc.budget_bytes = desc.live = 1;
        assert_int_equal(tl_plan_remat(&env, &desc, &plan, &report), TL_ERROR_INFEASIBLE);
        live += report.least_budget_bytes;
        tl_free_graph(&env, &graph);
    }
    printf("named / live %.4f, at most %.2f times the work limit\n", (double)named / (double)live, (double)work / LIMIT);
    assert_true((double)named <= (is_slow() ? 1.1 : 1.075) * (double)live);     // 1.069; from the least live bytes alone 1.084
    assert_true(work <= 18 * (uint64_t)LIMIT);
}

// What a refusal names depends on no budget, and more bytes than it names never cost more than these: of the last plans that
// are made, the cheapest that fits is the answer.
static void every_refusal_names_the_same_arena(void **state) {
    uint64_t seed;
    (void)state;
    for (seed = is_slow() ? 8 : 5; seed <= 8; seed += 3) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_remat_desc desc;
        tl_remat_report report;
        tl_plan plan;
        uint64_t live, named, cost, part;
        woven_graph(seed, 5, 8, &graph);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.work_limit = 1000000;
        desc.budget_bytes = desc.live = 1;
        assert_int_equal(tl_plan_remat(&env, &desc, &plan, &report), TL_ERROR_INFEASIBLE);
        live = report.least_budget_bytes;
        desc.live = 0;
        assert_int_equal(tl_plan_remat(&env, &desc, &plan, &report), TL_ERROR_INFEASIBLE);
        named = report.least_budget_bytes;
        assert_true(named > live);                  // the arena binds
        for (part = 2 * (uint64_t)is_slow(); part <= 2; part++) {  // from the live bytes up to one byte below
            desc.budget_bytes = live + (named - 1 - live) * part / 2;
            assert_int_equal(tl_plan_remat(&env, &desc, &plan, &report), TL_ERROR_INFEASIBLE);
            assert_int_equal(report.least_budget_bytes, named);
        }
        desc.budget_bytes = named;
        assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_OK);
        cost = plan.cost;
        tl_free_plan(&env, &plan);
        for (part = 2; part <= (is_slow() ? 2 : 6); part += 2) {
            desc.budget_bytes = named + named / 100 * part;
            assert_int_equal(tl_plan_remat(&env, &desc, &plan, NULL), TL_OK);
            assert_true(plan.arena_bytes <= desc.budget_bytes && plan.cost <= cost);
            tl_free_plan(&env, &plan);
        }
        tl_free_graph(&env, &graph);
    }
}

// One of the planners with a simple rule, at one budget; behind TL_POLICY_CHAIN: tl_plan_chain.
typedef struct rule_plan {
    const tl_graph *graph;
    int      policy;
    uint64_t budget, base, alignment;
    int32_t  live;
    tl_plan  plan;
    tl_env   env;
} rule_plan;

static tl_result plan_by_rule(rule_plan *p) {
    tl_policy_desc policy;
    tl_chain_plan_desc chain;
    memset(&policy, 0, sizeof policy);
    memset(&chain, 0, sizeof chain);
    policy.policy.kind = (tl_policy_kind)p->policy;
    policy.graph = chain.graph = p->graph;
    policy.budget_bytes = chain.budget_bytes = p->budget;
    policy.base_bytes = chain.base_bytes = p->base;
    policy.alignment_bytes = chain.alignment_bytes = p->alignment;
    policy.live = chain.live = p->live;
    return p->policy > TL_POLICY_CHAIN ? tl_plan_chain(&p->env, &chain, &p->plan, NULL)
                                       : tl_plan_policy(&p->env, &policy, &p->plan);
}

// Policies and the optimum of chains come with places as well, and budgets bind these; the bytes that a refusal
// names do. With live bytes alone there are no places, and no plan is dearer.
static void budgets_bind_the_arenas_of_rules(void **state) {
    static const uint64_t alignments[] = { 0, 1, 4, 16, 64 };
    tl_random random = { 6 };
    long round, plans = 0, refused = 0, above = 0;
    (void)state;
    for (round = 0; round < scaled(100); round++) {
        static rule_plan p;
        tl_graph graph;
        uint64_t peak, cost;
        memset(&p, 0, sizeof p);
        assert_int_equal(random_graph(&p.env, &random, 30, &graph), TL_OK);
        peak = keep_all_peak(&graph, 0);
        p.graph = &graph;
        p.policy = (int)(round % (TL_POLICY_CHAIN + 2));
        p.base = random_chance(&random, 30) ? 100 : 0;
        p.budget = random_chance(&random, 10) ? 0 : 1 + p.base + tl_next_random_below(&random, peak + peak / 4 + 1);
        p.alignment = alignments[tl_next_random_below(&random, 5)];
        if (plan_by_rule(&p)) {
            assert_int_equal(p.env.error.code, TL_ERROR_INFEASIBLE);
            assert_null(p.plan.steps);
            assert_true(tl_find_least_budget(&p.env.error) > p.budget);
            p.budget = tl_find_least_budget(&p.env.error);
            refused++;
            if (plan_by_rule(&p)) fail_msg("round %ld: %s", round, p.env.error.text);
        }
        if (p.budget) assert_true(p.plan.arena_bytes + p.base <= p.budget);
        assert_true(p.plan.base_bytes == p.base && p.plan.offset_count > 0 && p.plan.peak_bytes <= p.plan.arena_bytes);
        assert_true(p.plan.alignment_bytes == (p.alignment ? p.alignment : 1));
        above += p.plan.arena_bytes > p.plan.peak_bytes;
        cost = p.plan.cost;
        assert_int_equal(tl_measure_plan(&p.env, &graph, NULL, &p.plan), TL_OK);  // the simulator takes the places
        assert_int_equal(p.plan.cost, cost);
        tl_free_plan(&p.env, &p.plan);
        p.live = 1;
        if (plan_by_rule(&p)) fail_msg("round %ld: %s", round, p.env.error.text);
        assert_true(!p.plan.offset_count && p.plan.cost <= cost);
        tl_free_plan(&p.env, &p.plan);
        tl_free_graph(&p.env, &graph);
        plans++;
    }
    printf("%ld plans, %ld refused at first, %ld with an arena above their live bytes\n", plans, refused, above);
    assert_true(refused > plans / 5 && above > plans / 5);
}

// A config has no alignment: its plan is placed by 1, and the simulator takes it.
static void plans_of_configs_have_places(void **state) {
    tl_env env = silent_env();
    tl_graph graph;
    tl_chain_desc chain;
    tl_checkpoint_config config = tl_checkpoint_uniform(3);
    tl_plan plan;
    uint64_t arena;
    (void)state;
    memset(&graph, 0, sizeof graph);
    memset(&chain, 0, sizeof chain);
    chain.layer_count = 12;
    chain.input_bytes = 7;
    assert_int_equal(tl_add_chain(&env, &graph, &chain), TL_OK);
    assert_int_equal(tl_plan_checkpoints(&env, &graph, &config, &plan), TL_OK);
    arena = plan.arena_bytes;
    assert_true(plan.offset_count > 0 && arena >= plan.peak_bytes && plan.alignment_bytes == 1);
    assert_int_equal(tl_measure_plan(&env, &graph, NULL, &plan), TL_OK);
    assert_int_equal(plan.arena_bytes, arena);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// -- errors --

static void an_error_leaves_the_plan_as_it_was(void **state) {
    tl_graph graph = graph_of(small);
    tl_plan plan = schedule_of("F 1\nF 2\nF 3\nB 3\nB 2\n"), before = plan;
    tl_env env = silent_env();
    tl_places_desc desc;
    tl_places_report report;
    tl_lifetimes lifetimes;
    tl_device device;
    tl_remat_desc remat;
    (void)state;
    memset(&desc, 0, sizeof desc);
    memset(&device, 0, sizeof device);
    memset(&remat, 0, sizeof remat);
    desc.graph = &graph;
    assert_int_equal(tl_plan_places(&env, &desc, &plan, &report), TL_ERROR_INVALID_PLAN);
    assert_true(is_zero(&report, sizeof report) && !memcmp(&plan, &before, sizeof plan));
    assert_int_equal(tl_find_lifetimes(&env, &graph, &plan, &lifetimes), TL_ERROR_INVALID_PLAN);
    assert_true(is_zero(&lifetimes, sizeof lifetimes));
    assert_non_null(strstr(env.error.text, "tl_find_lifetimes: "));
    {
        tl_plan few = schedule_of("F 1\nF 2\nF 3\nB 3\nS 1\nB 2\nB 1\n");
        uint64_t *offset = (uint64_t *)malloc(sizeof *offset);
        assert_non_null(offset);
        *offset = 0;
        few.offsets = offset;       // of the input alone
        few.offset_count = 1;
        assert_int_equal(tl_find_lifetimes(&env, &graph, &few, &lifetimes), TL_ERROR_INVALID_PLAN);
        assert_non_null(strstr(env.error.text, "offsets: fewer than allocations"));
        assert_int_equal(tl_plan_places(&env, &desc, &few, &report), TL_OK);     // in the place of those
        assert_true(few.offset_count > 1);
        tl_free_plan(&env, &few);
        free(offset);
    }
    device.alignment_bytes = 3;
    desc.device = &device;
    assert_int_equal(tl_plan_places(&env, &desc, &plan, NULL), TL_ERROR_INVALID_ARG);
    remat.graph = &graph;
    remat.alignment_bytes = 3;
    tl_free_plan(&env, &plan);
    assert_int_equal(tl_plan_remat(&env, &remat, &plan, NULL), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_plan_remat: alignment_bytes: must be a power of two, at most 2^30");
    remat.alignment_bytes = UINT64_C(1) << 31;
    assert_int_equal(tl_plan_remat(&env, &remat, &plan, NULL), TL_ERROR_INVALID_ARG);
    remat.live = 2;
    assert_int_equal(tl_plan_remat(&env, &remat, &plan, NULL), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_plan_remat: live: must be 0 or 1");
    tl_free_graph(NULL, &graph);
}

static void bytes_beyond_what_a_layout_adds_up_are_refused(void **state) {
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=2000000000000000000 needs=none in=-\n"
                              "node 1 a conv fwd=1 bwd=1 out=2000000000000000000 needs=none in=0\n");
    tl_plan plan = schedule_of("F 1\n");
    tl_env env = silent_env();
    tl_places_desc desc;
    (void)state;
    plan.inference = 1;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    assert_int_equal(tl_plan_places(&env, &desc, &plan, NULL), TL_ERROR_OVERFLOW);
    assert_true(!plan.offsets);
    tl_free_plan(&env, &plan);
    tl_free_graph(NULL, &graph);
}

static void every_allocation_fails_in_turn(void **state) {
    tl_graph graph = graph_of(small);
    long at;
    int remat;
    (void)state;
    for (remat = 0; remat < 2; remat++)
        for (at = 0;; at++) {
            failing_alloc f = { 0, 0, 0, 0 };
            tl_env env = failing_env(&f, -1);
            tl_remat_desc desc;
            tl_places_desc places;
            tl_lifetimes lifetimes;
            tl_plan plan;
            tl_result result;
            memset(&desc, 0, sizeof desc);
            memset(&places, 0, sizeof places);
            desc.graph = places.graph = &graph;
            desc.budget_bytes = 150;
            desc.work_limit = 20000;
            if (!remat) assert_int_equal(tl_plan_keep_all(&env, &graph, 0, &plan), TL_OK);
            f.count = 0;
            f.fail_at = at;
            result = remat ? tl_plan_remat(&env, &desc, &plan, NULL) : tl_find_lifetimes(&env, &graph, &plan, &lifetimes);
            if (!remat && !result) { tl_free_lifetimes(&env, &lifetimes); result = tl_plan_places(&env, &places, &plan, NULL); }
            if (f.count > at) assert_int_equal(result, TL_ERROR_NO_MEMORY);
            else assert_int_equal(result, TL_OK);
            tl_free_plan(&env, &plan);
            assert_int_equal(f.live, 0);
            if (f.count <= at) break;
        }
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_allocation_has_its_lifetime),
        cmocka_unit_test(conversions_hold_both_copies),
        cmocka_unit_test(large_plans_are_placed_near_their_live_peak),
        cmocka_unit_test(budgets_bind_the_arenas),
        cmocka_unit_test(bounds_are_of_rounded_sizes),
        cmocka_unit_test(the_arena_of_the_least_plan_is_lowered),
        cmocka_unit_test(every_refusal_names_the_same_arena),
        cmocka_unit_test(budgets_bind_the_arenas_of_rules),
        cmocka_unit_test(plans_of_configs_have_places),
        cmocka_unit_test(an_error_leaves_the_plan_as_it_was),
        cmocka_unit_test(bytes_beyond_what_a_layout_adds_up_are_refused),
        cmocka_unit_test(every_allocation_fails_in_turn),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
