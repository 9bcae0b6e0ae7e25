// [12] RUN with plans of [6] REMAT: random graphs with dropout planned under budgets, run on the CPU. What was planned
// is what is measured, and gradients and results are those of a run that keeps everything.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/run_support.h"
#include "support/run_bed.h"

// SAMPLE thins the walk in slow builds.

static tl_result plan_tiers(const tl_graph *graph, uint64_t budget, const tl_device *device, uint64_t host_budget,
                            int inference, uint64_t work, tl_plan *plan, tl_remat_report *report) {
    tl_env env;
    tl_remat_desc desc;
    tl_result result;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.budget_bytes = budget;
    desc.inference = inference;
    desc.work_limit = work;
    desc.device = device;
    desc.host_budget_bytes = host_budget;
    result = tl_plan_remat(&env, &desc, plan, report);
    if (result && result != TL_ERROR_INFEASIBLE) fail_msg("%s", env.error.text);
    return result;
}

static tl_result plan_graph(const tl_graph *graph, uint64_t budget, int inference, uint64_t work, tl_plan *plan,
                            tl_remat_report *report) {
    return plan_tiers(graph, budget, NULL, 0, inference, work, plan, report);
}

// A random graph, the peak of keeping all of it, and a plan of it within less than that. Where nothing fits, the plan
// is one within the least budget that was named, or within a little more.
typedef struct case_of {
    tl_graph graph;
    tl_plan  plan;
    tl_remat_report report;
    uint64_t peak, budget, expected, host_budget;  // host_budget 0 = nothing is spilled
    tl_device device;     // its link
    int32_t  repeat;
    int32_t  in_pieces;   // states
    int      inference, was_infeasible;
} case_of;

// Let the graph own weights, which hold their gradients where passes are repeated, and now and then elsewhere.
static void add_states(tl_random *random, case_of *c) {
    tl_graph plain = c->graph;
    if (random_add_states(NULL, random, &plain, random_count(random, 1, 8), &c->graph)) fail_msg("%s", "no states");
    tl_free_graph(NULL, &plain);
    if ((c->repeat > 1 || random_chance(random, 20)) && tl_hold_gradients(NULL, &c->graph)) fail_msg("%s", "no gradients");
}

enum { PLAIN, WITH_STATES, INPUTS_DIE };

static void make_case(tl_random *random, int32_t max_nodes, int inference, int form, case_of *c) {
    uint64_t work = 2000 + tl_next_random_below(random, 60000);
    memset(c, 0, sizeof *c);
    c->inference = inference;
    c->repeat = random_chance(random, 20) ? 2 : 1;
    if (random_graph(NULL, random, max_nodes, &c->graph)) fail_msg("%s", "no graph");
    if (form == WITH_STATES) add_states(random, c);
    if (form == INPUTS_DIE) (void)random_let_inputs_die(random, &c->graph);
    c->expected = keep_all_outcome(&c->graph, inference, c->repeat, &c->peak);
    if (form == WITH_STATES && c->repeat == 1 && random_chance(random, 90)) {
        c->in_pieces = random_train_in_pieces(NULL, random, &c->graph);
        assert_true(keep_all_outcome(&c->graph, inference, c->repeat, &c->peak) == c->expected);
    }
    c->budget = 1 + c->peak - tl_next_random_below(random, c->peak * 2 / 3 + 1);
    if (random_chance(random, 25)) {
        c->host_budget = 1 + tl_next_random_below(random, c->peak);
        c->device.link_bytes_per_second = 1000000000 * (1 + tl_next_random_below(random, 20));
        c->device.link_latency_ns = tl_next_random_below(random, 3);
    }
    if (plan_tiers(&c->graph, c->budget, &c->device, c->host_budget, inference, work, &c->plan, &c->report) == TL_OK) return;
    c->was_infeasible = 1;
    c->budget = c->report.least_budget_bytes;
    if (random_chance(random, 50) && c->budget < c->peak) c->budget += tl_next_random_below(random, c->peak - c->budget);
    if (plan_tiers(&c->graph, c->budget, &c->device, c->host_budget, inference, work, &c->plan, &c->report))
        fail_msg("%s", "the least budget fits nothing");
}

static void free_case(case_of *c) {
    tl_free_plan(NULL, &c->plan);
    tl_free_graph(NULL, &c->graph);
}

// Two training steps of the plan on a backend that has room for its budget and not one byte more.
static void run_case(const case_of *c, int kind, uint64_t seed) {
    static bed b;
    tl_run_report report;
    bed_open(&b, &c->graph, kind, seed, 1);
    b.spy.limit = c->budget;
    b.desc.plan = &c->plan;
    b.desc.budget_bytes = c->budget;
    b.desc.repeat_count = c->repeat;
    b.desc.device = &c->device;
    b.desc.host_budget_bytes = c->host_budget;
    bed_must_init(&b);
    (void)bed_step(&b, c->inference);
    if (bed_step(&b, c->inference) != c->expected) fail_msg("other gradients or results on a backend of kind %d", kind);
    report = bed_report(&b);
    assert_int_equal(report.planned_peak_bytes, c->plan.peak_bytes);
    assert_int_equal(report.measured_peak_bytes, c->plan.peak_bytes);
    assert_true(report.measured_peak_bytes <= c->budget);
    assert_int_equal(report.measured_host_peak_bytes, c->plan.host_peak_bytes);
    assert_true(report.measured_host_peak_bytes <= c->host_budget);
    assert_int_equal(report.planned_cost, c->plan.cost);
    assert_int_equal(report.recompute_count, b.mixer.recomputes / (2 * c->repeat));
    assert_int_equal(report.forward_count, b.mixer.forwards / (2 * c->repeat));
    assert_false(b.spy.went_over);
    bed_close(&b);
}

// 1 = a node runs forward twice.
static int is_made_again(const case_of *c) {
    int32_t i, ran[MIXER_NODES] = { 0 };
    for (i = 0; i < c->plan.step_count; i++)
        if (c->plan.steps[i].kind <= TL_STEP_FORWARD_SAVE && ran[c->plan.steps[i].node]++) return 1;
    return 0;
}

// What a fault in the kernels makes of it: 1 = it shows.
static int fault_shows(const case_of *c, int reseeds) {
    static bed b;
    uint64_t outcome;
    bed_open(&b, &c->graph, 0, 0, 1);
    b.desc.plan = &c->plan;
    b.desc.repeat_count = c->repeat;
    b.mixer.reseeds_recompute = reseeds;
    b.mixer.skips_recompute = !reseeds;
    bed_must_init(&b);
    (void)bed_step(&b, c->inference);
    outcome = bed_step(&b, c->inference);
    bed_close(&b);
    return outcome != c->expected;
}

static void random_graphs_run_as_planned_with_the_gradients_of_keep_all(void **state) {
    tl_random random = { 120 };
    long round, rounds = scaled(1000), recomputes = 0, spills = 0, least = 0, lower = 0, faults = 0, seen = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        case_of c;
        make_case(&random, 20, 0, 0, &c);
        run_case(&c, round % 4 == 3 ? (int)(round / 4 % BACKEND_KINDS) : BACKEND_CHECKED, tl_next_random(&random));
        spills += c.plan.host_peak_bytes > 0;
        recomputes += is_made_again(&c);
        least += c.was_infeasible;
        lower += c.plan.peak_bytes < c.peak;
        if (is_made_again(&c)) {
            faults++;
            seen += fault_shows(&c, (int)(round % 2));
        }
        free_case(&c);
    }
    printf("%ld graphs: %ld with forwards made again, %ld spilled, %ld first infeasible, %ld below the peak of keep all\n"
           "%ld of %ld planted faults seen\n", rounds, recomputes, spills, least, lower, seen, faults);
    assert_true(is_thinned() || spills > rounds / 20);
    assert_true(recomputes > rounds / 5 && least > rounds / 20 && lower > rounds / 2);
    assert_true(seen * 100 >= faults * 95);  // what is made again may have no byte
}

// The states after two training steps, every gradient and result are those of a run that keeps everything.
static void graphs_with_states_are_trained_as_keep_all_trains_them(void **state) {
    tl_random random = { 123 };
    long round, rounds = scaled(400), recomputes = 0, spills = 0, lower = 0, pieces = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        case_of c;
        make_case(&random, 20, 0, WITH_STATES, &c);
        pieces += c.in_pieces > 0;
        run_case(&c, round % 4 == 3 ? (int)(round / 4 % BACKEND_KINDS) : BACKEND_CHECKED, tl_next_random(&random));
        recomputes += is_made_again(&c);
        spills += c.plan.host_peak_bytes > 0;
        lower += c.plan.peak_bytes < c.peak;
        free_case(&c);
    }
    printf("%ld graphs with states: %ld with states in pieces, %ld with forwards made again, %ld spilled, %ld below the peak of "
           "keep all\n", rounds, pieces, recomputes, spills, lower);
    assert_true(is_thinned() || (recomputes > rounds / 10 && lower > rounds / 4 && pieces > rounds / 12));
}

// What is freed is written again before each pass; and the outcome is that of inputs that stay.
static void inputs_that_die_are_written_before_each_pass(void **state) {
    tl_random random = { 127 };
    long round, rounds = scaled(300), freed = 0, spills = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        case_of c;
        uint64_t stays, peak;
        int32_t i, is_freed = 0;
        make_case(&random, 16, (int)(round % 3 == 2), INPUTS_DIE, &c);
        run_case(&c, round % 4 == 3 ? (int)(round / 4 % BACKEND_KINDS) : BACKEND_CHECKED, tl_next_random(&random));
        for (i = 0; i < c.plan.step_count; i++)
            is_freed |= c.plan.steps[i].kind == TL_STEP_DROP && c.graph.nodes[c.plan.steps[i].node].is_input;
        freed += is_freed;
        spills += c.plan.host_peak_bytes > 0;
        for (i = 0; i < c.graph.node_count; i++)
            if (c.graph.nodes[i].is_input) ((tl_node *)c.graph.nodes + i)->is_input = 1;
        stays = keep_all_outcome(&c.graph, c.inference, c.repeat, &peak);
        assert_true(stays == c.expected && peak >= c.peak);
        free_case(&c);
    }
    printf("%ld graphs: inputs freed in %ld, %ld spilled\n", rounds, freed, spills);
    assert_true(is_thinned() || (freed > rounds / 2 && spills > 0));
}

static void an_input_that_died_is_missed(void **state) {
    static bed b;
    static tl_step steps[3];
    static const char text[] = "tlg 2\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=- dies\n"
                               "node 1 y input fwd=0 bwd=0 out=8 needs=none in=-\n"
                               "node 2 a op fwd=1 bwd=1 out=8 needs=in in=0,1\nend 3\n";
    static const unsigned char bytes[8] = { 1, 2, 3 };
    unsigned char read[8];
    tl_graph graph;
    tl_plan plan;
    tl_tensor x = { 0, 0 }, a = { 2, 0 };
    int round, k;
    (void)state;
    assert_int_equal(tl_parse_graph(NULL, text, sizeof text - 1, &graph), TL_OK);
    assert_int_equal(tl_plan_keep_all(NULL, &graph, 1, &plan), TL_OK);
    assert_true(plan.step_count <= 3 && plan.steps[plan.step_count - 1].kind == TL_STEP_DROP);
    memcpy(steps, plan.steps, (size_t)plan.step_count * sizeof *steps);
    for (round = 0; round < 6; round++) {
        tl_plan frees_none = plan;      // a plan that frees nothing uses the input as well
        frees_none.steps = steps;
        frees_none.step_count--;
        frees_none.peak_bytes = frees_none.arena_bytes = 0;
        k = round % 3;
        if (!k) {
            bed_open(&b, &graph, BACKEND_CHECKED, 1, 1);
            b.desc.plan = round ? &frees_none : &plan;
            b.desc.load = NULL;
            bed_must_init(&b);
        }
        tl_result made = k ? TL_OK : TL_ERROR_NOT_FOUND;
        assert_int_equal(tl_run_plan(b.run), TL_ERROR_INVALID_ARG);     // a refusal leaves the result
        assert_string_equal(b.env.error.text, "tl_start_pass: inputs: x dies in a pass and was not written since: write it before each");
        assert_int_equal(tl_read_tensor(b.run, a, read, sizeof read), made);
        assert_int_equal(tl_write_tensor(b.run, x, bytes, sizeof bytes - 1), TL_ERROR_INVALID_ARG);
        assert_int_equal(tl_read_tensor(b.run, a, read, sizeof read), made);
        assert_int_equal(tl_read_tensor(b.run, x, read, sizeof read), k && round < 3 ? TL_ERROR_NOT_FOUND : TL_OK);
        if (k && round < 3) assert_non_null(strstr(b.env.error.text, "an input that dies: its bytes are gone"));
        assert_int_equal(tl_write_tensor(b.run, x, bytes, sizeof bytes), TL_OK);
        assert_int_equal(tl_read_tensor(b.run, x, read, sizeof read), TL_OK);
        assert_int_equal(tl_read_tensor(b.run, a, read, sizeof read), round < 3 || !k ? TL_ERROR_NOT_FOUND : TL_OK);
        if (round < 3) assert_non_null(strstr(b.env.error.text, "released since"));
        mixer_start_pass(&b.mixer);
        if (tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);
        if (k == 2) bed_close(&b);
    }
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void forward_only_graphs_give_the_results_of_keep_all(void **state) {
    tl_random random = { 121 };
    long round, rounds = scaled(400), recomputes = 0, lower = 0, skipped = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        case_of c;
        make_case(&random, 24, 1, round % 4 == 1, &c);
        run_case(&c, round % 4 == 3 ? (int)(round / 4 % BACKEND_KINDS) : BACKEND_CHECKED, tl_next_random(&random));
        assert_int_equal(c.plan.inference, 1);
        recomputes += c.plan.cost > c.plan.base_cost;
        lower += c.plan.peak_bytes < c.peak;
        skipped += c.plan.cost < c.plan.base_cost;
        free_case(&c);
    }
    printf("%ld graphs: %ld with forwards made again, %ld below the peak of keep all, %ld leave nodes out\n", rounds,
           recomputes, lower, skipped);
    assert_true(is_thinned() || (recomputes > rounds / 50 && lower > rounds / 5));
}

// -- the strategy plans by itself --

static tl_strategy lazy(tl_gradient gradient) {
    return tl_with_gradient(tl_with_mode(tl_with_precision(tl_strategy_new(), TL_PRECISION_SINGLE), TL_MODE_LAZY), gradient);
}

// A run that is told nothing but a strategy and a budget; the env and its sentence stay in *b.
static tl_result init_lazy(bed *b, const tl_graph *graph, const tl_strategy *strategy, uint64_t budget, uint64_t base) {
    bed_open(b, graph, BACKEND_CHECKED, 9, 1);
    b->desc.strategy = strategy;
    b->desc.budget_bytes = budget;
    b->desc.base_bytes = base;
    return bed_init(b);
}

static void a_lazy_run_within_a_budget_is_planned_as_tl_plan_remat_plans(void **state) {
    static bed b;
    tl_random random = { 122 };
    long round, rounds = scaled(60), refused = 0, recomputes = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        int inference = random_chance(&random, 40);
        tl_strategy strategy = lazy(inference ? tl_gradient_none() : tl_gradient_checkpointed(0));
        uint64_t base = tl_next_random_below(&random, 1000), budget;
        tl_graph graph;
        tl_plan all, plan;
        tl_remat_report report;
        tl_result result;
        if (random_graph(NULL, &random, 7, &graph) || tl_plan_keep_all(NULL, &graph, inference, &all)) fail_msg("%s", "no graph");
        budget = 1 + all.peak_bytes - tl_next_random_below(&random, all.peak_bytes * 2 / 3 + 1);
        result = plan_graph(&graph, budget, inference, 0, &plan, &report);
        assert_int_equal(init_lazy(&b, &graph, &strategy, budget + base, base), result);
        if (result) {
            char least[32];
            snprintf(least, sizeof least, " is %llu", (unsigned long long)(report.least_budget_bytes + base));
            assert_null(b.run);
            if (!strstr(b.env.error.text, least)) fail_msg("%s", b.env.error.text);
            assert_int_equal(tl_find_least_budget(&b.env.error), report.least_budget_bytes + base);
            bed_close(&b);
            budget = report.least_budget_bytes;
            if (plan_graph(&graph, budget, inference, 0, &plan, &report)) fail_msg("%s", "the least budget fits nothing");
            if (init_lazy(&b, &graph, &strategy, budget + base, base)) fail_msg("%s", b.env.error.text);
            refused++;
        }
        (void)bed_step(&b, inference);
        if (bed_step(&b, inference) != keep_all_outcome(&graph, inference, 1, NULL)) fail_msg("%s", "other gradients or results");
        {
            tl_plan own;
            tl_find_run_plan(b.run, &own);
            assert_int_equal(own.step_count, plan.step_count);
            assert_memory_equal(own.steps, plan.steps, (size_t)plan.step_count * sizeof *plan.steps);
        }
        assert_int_equal(bed_report(&b).measured_peak_bytes, plan.peak_bytes);
        recomputes += bed_report(&b).recompute_count;
        bed_close(&b);
        tl_free_plan(NULL, &all);
        tl_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld runs, %ld first refused, %ld forwards made again\n", rounds, refused, recomputes);
    assert_true(is_thinned() || (refused > rounds / 20 && recomputes > rounds / 4));
}

static tl_graph chain_of(int32_t layers) {
    static uint64_t bytes[64];
    tl_chain_desc chain;
    tl_graph graph;
    int32_t i;
    memset(&chain, 0, sizeof chain);
    for (i = 0; i < layers; i++) bytes[i] = 64;
    chain.layer_count = layers;
    chain.input_bytes = 64;
    chain.output_bytes = bytes;
    if (tl_add_chain(NULL, &graph, &chain)) fail_msg("%s", "no chain");
    return graph;
}

static tl_run_report lazy_report(const tl_graph *graph, tl_strategy strategy, uint64_t budget) {
    static bed b;
    tl_run_report report;
    bed_open(&b, graph, 0, 0, 4);
    b.desc.strategy = &strategy;
    b.desc.budget_bytes = budget;
    b.desc.kernel_precisions = (1u << TL_PRECISION_COUNT) - 1;
    bed_must_init(&b);
    (void)bed_step(&b, !strategy.gradient.computes);
    report = bed_report(&b);
    bed_close(&b);
    return report;
}

static void the_budget_decides_what_a_lazy_run_makes_again(void **state) {
    tl_graph graph = chain_of(12);
    tl_strategy planned = lazy(tl_gradient_checkpointed(0)), half = tl_with_precision(planned, TL_PRECISION_HALF);
    tl_run_report all = lazy_report(&graph, lazy(tl_gradient_full()), 0), report;
    (void)state;
    // Without a limit nothing is made again, and the tighter it is the more.
    report = lazy_report(&graph, planned, 0);
    assert_int_equal(report.recompute_count, 0);
    assert_int_equal(report.measured_peak_bytes, all.measured_peak_bytes);
    assert_int_equal(lazy_report(&graph, planned, TL_UNLIMITED).recompute_count, 0);
    report = lazy_report(&graph, planned, all.measured_peak_bytes - 1);
    assert_int_equal(report.recompute_count, 1);
    assert_true(lazy_report(&graph, planned, 7 * 64).recompute_count > report.recompute_count);
    assert_int_equal(lazy_report(&graph, planned, 7 * 64).measured_peak_bytes, 7 * 64);
    // Of elements of half the size twice as many fit; the graph input keeps its bytes.
    assert_int_equal(lazy_report(&graph, half, 64 + 6 * 32).measured_peak_bytes, 64 + 6 * 32);
    assert_int_equal(lazy_report(&graph, half, 64 + 6 * 32).recompute_count, lazy_report(&graph, planned, 7 * 64).recompute_count);
    assert_int_equal(lazy_report(&graph, half, 7 * 64).recompute_count, 1);
    // An interval stays what it was, whatever the budget.
    report = lazy_report(&graph, lazy(tl_gradient_checkpointed(3)), 0);
    assert_int_equal(lazy_report(&graph, lazy(tl_gradient_checkpointed(3)), 64 * 64).recompute_count, report.recompute_count);
    tl_free_graph(NULL, &graph);
}

static void a_lazy_run_spills_where_there_is_a_host_tier(void **state) {
    static bed b;
    tl_graph graph = chain_of(12);
    tl_strategy planned = lazy(tl_gradient_checkpointed(0));
    tl_device device;
    tl_run_report report;
    (void)state;
    memset(&device, 0, sizeof device);
    device.link_bytes_per_second = UINT64_C(64000000000);  // an activation in the time of a layer
    bed_open(&b, &graph, BACKEND_CHECKED, 3, 1);
    b.desc.strategy = &planned;
    b.desc.device = &device;
    b.desc.budget_bytes = 7 * 64;
    b.desc.host_budget_bytes = 4 * 64;
    bed_must_init(&b);
    (void)bed_step(&b, 0);
    if (bed_step(&b, 0) != keep_all_outcome(&graph, 0, 1, NULL)) fail_msg("%s", "other gradients");
    report = bed_report(&b);
    assert_true(report.spill_count > 0 && report.spill_count <= 4 && report.fetch_count > 0);
    assert_true(report.measured_peak_bytes <= 7 * 64 && report.measured_host_peak_bytes <= 4 * 64);
    assert_true(report.recompute_count < lazy_report(&graph, planned, 7 * 64).recompute_count);
    // Over a link that takes ages, it computes again instead.
    tl_free_run(b.run);
    device.link_bytes_per_second = 1;
    bed_must_init(&b);
    (void)bed_step(&b, 0);
    assert_int_equal(bed_report(&b).spill_count, 0);
    assert_true(bed_report(&b).recompute_count > report.recompute_count);
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

static void full_gradients_are_never_planned_below_keep_all(void **state) {
    static bed b;
    tl_graph graph = chain_of(12);
    tl_strategy full = lazy(tl_gradient_full());
    tl_run_report all = lazy_report(&graph, full, 0);
    (void)state;
    assert_int_equal(init_lazy(&b, &graph, &full, all.measured_peak_bytes - 1, 0), TL_ERROR_INFEASIBLE);
    assert_non_null(strstr(b.env.error.text, "budget_bytes: the plan takes "));
    bed_close(&b);
    tl_free_graph(NULL, &graph);
}

static void a_base_above_the_budget_is_infeasible(void **state) {
    static bed b;
    tl_graph graph = chain_of(3);
    int inference;
    (void)state;
    for (inference = 0; inference < 2; inference++) {
        tl_strategy strategy = lazy(inference ? tl_gradient_none() : tl_gradient_checkpointed(0));
        assert_int_equal(init_lazy(&b, &graph, &strategy, 1000, 1001), TL_ERROR_INFEASIBLE);
        assert_null(b.run);
        assert_non_null(strstr(b.env.error.text, "tl_plan_remat: budget_bytes: "));
        bed_close(&b);
    }
    tl_free_graph(NULL, &graph);
}

static void every_allocation_of_a_planned_run_may_fail(void **state) {
    static bed b;
    tl_graph graph = chain_of(4);
    int which;
    (void)state;
    for (which = 0; which < 3; which++) {  // gradients, results, and what no plan fits
        tl_strategy strategy = lazy(which == 1 ? tl_gradient_none() : tl_gradient_checkpointed(0));
        long at, failures = 0;
        for (at = 0; ; at++) {
            failing_alloc f;
            tl_result result;
            memset(&f, 0, sizeof f);
            bed_open(&b, &graph, 0, 0, 4);
            b.desc.strategy = &strategy;
            b.desc.budget_bytes = which == 0 ? 5 * 64 : which == 1 ? 3 * 64 : 64;
            b.env = failing_env(&f, at);
            result = bed_init(&b);
            if (result == TL_ERROR_NO_MEMORY) {
                failures++;
                assert_null(b.run);
                assert_int_equal(f.live, 0);
            } else {
                assert_int_equal(result, which == 2 ? TL_ERROR_INFEASIBLE : TL_OK);
            }
            bed_close(&b);
            assert_int_equal(f.live, 0);
            if (f.count <= at) break;
        }
        assert_true(failures > 10);
    }
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_run_as_planned_with_the_gradients_of_keep_all),
        cmocka_unit_test(graphs_with_states_are_trained_as_keep_all_trains_them),
        cmocka_unit_test(inputs_that_die_are_written_before_each_pass),
        cmocka_unit_test(an_input_that_died_is_missed),
        cmocka_unit_test(forward_only_graphs_give_the_results_of_keep_all),
        cmocka_unit_test(a_lazy_run_within_a_budget_is_planned_as_tl_plan_remat_plans),
        cmocka_unit_test(the_budget_decides_what_a_lazy_run_makes_again),
        cmocka_unit_test(a_lazy_run_spills_where_there_is_a_host_tier),
        cmocka_unit_test(full_gradients_are_never_planned_below_keep_all),
        cmocka_unit_test(a_base_above_the_budget_is_infeasible),
        cmocka_unit_test(every_allocation_of_a_planned_run_may_fail),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
