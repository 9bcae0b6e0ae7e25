// [8] PARALLEL: one cost model for all ways to split the work, the best of them, and why not the others.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"

#define UNITS 8

typedef struct work { tl_unit units[UNITS]; tl_link link; tl_parallel_desc desc; } work;

// Units of 30 + 60 ns, 4 bytes of weights and 10 of activations each.
static void equal_work(work *w, int32_t units, int32_t ranks, int32_t m) {
    int32_t i;
    memset(w, 0, sizeof *w);
    for (i = 0; i < units; i++) {
        w->units[i].forward_ns = 30;
        w->units[i].backward_ns = 60;
        w->units[i].activation_bytes = 10;
        w->units[i].parameter_bytes = w->units[i].output_bytes = 4;
    }
    w->link.bytes_per_second = 1000000000;
    w->desc.units = w->units;
    w->desc.unit_count = units;
    w->desc.rank_count = ranks;
    w->desc.micro_batch_count = m;
}

static tl_parallel_plan planned(const work *w) {
    tl_env env = silent_env();
    tl_parallel_plan plan;
    if (tl_plan_parallel(&env, &w->desc, &plan)) fail_msg("%s", env.error.text);
    return plan;
}

static const tl_parallel_choice *choice_of(const tl_parallel_plan *plan, int32_t replicas, int32_t stages, tl_pipeline pipeline) {
    int32_t i;
    for (i = 0; i < plan->choice_count; i++) {
        const tl_parallel_choice *c = &plan->choices[i];
        if (c->kind != TL_PARALLELISM_MODEL && c->replica_count == replicas && c->stage_count == stages && c->pipeline == pipeline) return c;
    }
    fail_msg("no choice of %d replicas and %d stages", (int)replicas, (int)stages);
    return NULL;
}

// Without a link, all ranks work all the time on a share each.
static void without_transfers_the_batch_is_split(void **state) {
    work w;
    tl_parallel_plan plan;
    const tl_parallel_choice *c;
    (void)state;
    equal_work(&w, 4, 4, 8);
    plan = planned(&w);
    c = &plan.choices[plan.best];
    assert_true(c->kind == TL_PARALLELISM_DATA && c->replica_count == 4 && c->reason == TL_PARALLEL_CHOSEN);
    assert_true(c->time_ns == 8 * 360 / 4 && c->time_ns == plan.bound_ns && c->bytes == 4 * (8 + 10));
    c = choice_of(&plan, 1, 4, TL_PIPELINE_1F1B);
    assert_true(c->time_ns == (8 + 3) * 90 && c->reason == TL_PARALLEL_BUBBLE && c->bubble_ns == 3 * 90);
    assert_true(c->bytes == 8 + 4 * 10);            // the first stage keeps 4 micro-batches
    c = choice_of(&plan, 1, 4, TL_PIPELINE_GPIPE);
    assert_true(c->bytes == 8 + 8 * 10);
    c = choice_of(&plan, 1, 1, TL_PIPELINE_1F1B);
    assert_true(c->kind == TL_PARALLELISM_NONE && c->reason == TL_PARALLEL_IDLE && c->idle_ns == 8 * 360 * 3 / 4);
    c = choice_of(&plan, 2, 2, TL_PIPELINE_1F1B);   // 4 micro-batches through two stages of 180
    assert_true(c->kind == TL_PARALLELISM_PIPELINE && c->time_ns == (4 + 1) * 180);
    assert_true(plan.is_complete);
    tl_free_parallel_plan(NULL, &plan);
}

static void a_slow_link_leaves_one_rank(void **state) {
    work w;
    tl_parallel_plan plan;
    (void)state;
    equal_work(&w, 4, 4, 8);
    w.link.latency_ns = 100000;
    w.desc.link = &w.link;
    plan = planned(&w);
    assert_int_equal(plan.choices[plan.best].kind, TL_PARALLELISM_NONE);
    assert_int_equal(choice_of(&plan, 4, 1, TL_PIPELINE_1F1B)->reason, TL_PARALLEL_COMMUNICATION);
    assert_true(choice_of(&plan, 4, 1, TL_PIPELINE_1F1B)->communication_ns == 6 * 100000 + 4 * 6);
    tl_free_parallel_plan(NULL, &plan);
}

// Where the whole network fits no rank, stages do; and sharding where that is enough.
static void a_budget_asks_for_stages_or_shares(void **state) {
    work w;
    tl_parallel_plan plan;
    const tl_parallel_choice *c;
    (void)state;
    equal_work(&w, 4, 4, 8);
    w.desc.budget_bytes = 48;
    plan = planned(&w);
    c = &plan.choices[plan.best];
    assert_true(c->kind == TL_PARALLELISM_PIPELINE && c->stage_count == 4 && c->bytes <= 48);
    c = choice_of(&plan, 4, 1, TL_PIPELINE_1F1B);
    assert_true(c->reason == TL_PARALLEL_MEMORY && !c->time_ns && c->bytes == 4 * (4 + 1 + 10));
    tl_free_parallel_plan(NULL, &plan);
    w.desc.optimizer_multiplier = 2;
    w.desc.budget_bytes = 4 * (4 + 4 + 2 + 10);     // the optimizer's 32 bytes by four
    plan = planned(&w);
    c = choice_of(&plan, 4, 1, TL_PIPELINE_1F1B);
    assert_true(c->zero_stage == 1 && c->reason == TL_PARALLEL_CHOSEN && c->bytes == w.desc.budget_bytes);
    tl_free_parallel_plan(NULL, &plan);
}

static void a_graph_is_placed_as_one_more_choice(void **state) {
    static const tl_placement_node nodes[] = { {90, 1}, {90, 1}, {90, 1}, {90, 1} };
    static const tl_unit units_of_nothing[] = { {30, 60, 0, 0, 0}, {30, 60, 0, 0, 0}, {30, 60, 0, 0, 0}, {30, 60, 0, 0, 0} };
    tl_placement_desc graph;
    int i;
    work w;
    tl_parallel_plan plan;
    const tl_parallel_choice *c;
    (void)state;
    equal_work(&w, 4, 2, 1);
    memset(&graph, 0, sizeof graph);
    graph.nodes = nodes;
    graph.node_count = 4;           // no edges: two nodes each
    graph.rank_count = 2;
    w.desc.graph = &graph;
    plan = planned(&w);
    c = &plan.choices[plan.best];
    assert_true(c->kind == TL_PARALLELISM_MODEL && c->reason == TL_PARALLEL_CHOSEN && c->time_ns == 180 && c->stage_count == 2);
    tl_free_parallel_plan(NULL, &plan);
    w.desc.kinds = 1u << TL_PARALLELISM_MODEL;
    plan = planned(&w);
    assert_int_equal(plan.choice_count, 1);
    tl_free_parallel_plan(NULL, &plan);
    w.desc.kinds = 0;               // one byte for each node, but two nodes on some rank of one
    graph.rank_count = w.desc.rank_count = 3;
    w.desc.budget_bytes = graph.budget_bytes = 1;
    w.desc.units = units_of_nothing;
    plan = planned(&w);
    for (i = 0; plan.choices[i].kind != TL_PARALLELISM_MODEL;) i++;
    assert_true(plan.choices[i].reason == TL_PARALLEL_MEMORY && plan.choices[i].bytes == 2);
    tl_free_parallel_plan(NULL, &plan);
}

// Every figure follows from its parts; the best is the first of the least that fit; bytes of the rejected would do.
static void check_plan(const work *w, const tl_parallel_plan *plan) {
    int32_t i;
    uint64_t least = UINT64_MAX, budget = w->desc.budget_bytes ? w->desc.budget_bytes : UINT64_MAX;
    for (i = 0; i < plan->choice_count; i++) {
        const tl_parallel_choice *c = &plan->choices[i];
        int fits = c->bytes <= budget;
        assert_int_equal(fits, c->reason != TL_PARALLEL_MEMORY);
        if (!fits) {
            assert_true(!c->time_ns && !c->sent_bytes);
            continue;
        }
        assert_true(c->time_ns == plan->bound_ns + c->idle_ns + c->bubble_ns + c->communication_ns);
        assert_true(c->time_ns >= plan->choices[plan->best].time_ns);
        if (!w->desc.link) assert_true(!c->communication_ns);
        if (c->time_ns < least) { least = c->time_ns; assert_true(i <= plan->best); }
        if (i != plan->best)
            assert_int_equal(c->reason == TL_PARALLEL_EQUAL, c->time_ns == plan->choices[plan->best].time_ns);
    }
    assert_int_equal(plan->choices[plan->best].reason, TL_PARALLEL_CHOSEN);
}

static int32_t least_of(int32_t a, int32_t b) { return a < b ? a : b; }

static void random_plans_are_consistent(void **state) {
    tl_random random = { 8 };
    int rounds = 100 + scaled(700), round, refused = 0, kinds[TL_PARALLELISM_COUNT] = {0}, mixed = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        work w;
        tl_env env = silent_env();
        tl_parallel_plan plan;
        tl_result result;
        int32_t i, p, s, pairs = 0;
        equal_work(&w, 1 + (int32_t)tl_next_random_below(&random, UNITS), 1 + (int32_t)tl_next_random_below(&random, 8),
                   1 + (int32_t)tl_next_random_below(&random, 8));
        for (i = 0; i < w.desc.unit_count; i++) {
            w.units[i].forward_ns = tl_next_random_below(&random, 5000);
            w.units[i].backward_ns = tl_next_random_below(&random, 9000);
            w.units[i].activation_bytes = tl_next_random_below(&random, 1000);
            w.units[i].parameter_bytes = tl_next_random_below(&random, 1000);
            w.units[i].output_bytes = tl_next_random_below(&random, 1000);
        }
        if (tl_next_random_below(&random, 3)) w.desc.link = &w.link;
        w.link.latency_ns = tl_next_random_below(&random, 3000);
        w.desc.optimizer_multiplier = tl_next_random_below(&random, 4);
        if (tl_next_random_below(&random, 3)) w.desc.budget_bytes = 1000 + tl_next_random_below(&random, 15000);
        result = tl_plan_parallel(&env, &w.desc, &plan);
        if (result == TL_ERROR_INFEASIBLE) {
            assert_true(is_zero(&plan, sizeof plan));
            w.desc.budget_bytes = tl_find_least_budget(&env.error) - 1;
            assert_int_equal(tl_plan_parallel(NULL, &w.desc, &plan), TL_ERROR_INFEASIBLE);
            w.desc.budget_bytes++;
            assert_int_equal(tl_plan_parallel(NULL, &w.desc, &plan), TL_OK);
            refused++;
        } else {
            assert_int_equal(result, TL_OK);
        }
        check_plan(&w, &plan);
        for (p = 1; p <= least_of(w.desc.rank_count, w.desc.micro_batch_count); p++)
            for (s = 1; p * s <= w.desc.rank_count && s <= w.desc.unit_count; s++) {
                choice_of(&plan, p, s, TL_PIPELINE_1F1B);
                if (s > 1) choice_of(&plan, p, s, TL_PIPELINE_GPIPE);
                pairs += s > 1 ? 2 : 1;
            }
        for (i = 0; i < plan.choice_count; i++) pairs += plan.choices[i].pipeline == TL_PIPELINE_INTERLEAVED;
        assert_int_equal(pairs, plan.choice_count);
        kinds[plan.choices[plan.best].kind]++;
        mixed += plan.choices[plan.best].stage_count > 1 && plan.choices[plan.best].replica_count > 1;
        tl_free_parallel_plan(NULL, &plan);
    }
    printf("    %d plans: %d on one rank, %d data, %d pipeline, %d of these replicated; %d infeasible\n", rounds,
           kinds[TL_PARALLELISM_NONE], kinds[TL_PARALLELISM_DATA], kinds[TL_PARALLELISM_PIPELINE], mixed, refused);
    assert_true(kinds[TL_PARALLELISM_NONE] && kinds[TL_PARALLELISM_DATA] && kinds[TL_PARALLELISM_PIPELINE] && mixed && refused);
}

// The time of a pipeline, from the public functions alone: the better of two partitions, then the rings.
static void a_replicated_pipeline_is_what_its_parts_say(void **state) {
    tl_random random = { 12 };
    int round;
    (void)state;
    for (round = 0; round < scaled(300); round++) {
        work w;
        tl_parallel_plan plan;
        const tl_parallel_choice *c;
        uint64_t best = UINT64_MAX;
        int32_t i, s, objective;
        equal_work(&w, UNITS, 6, 7);
        for (i = 0; i < UNITS; i++) {
            w.units[i].forward_ns = tl_next_random_below(&random, 5000);
            w.units[i].backward_ns = tl_next_random_below(&random, 9000);
            w.units[i].parameter_bytes = tl_next_random_below(&random, 1000);
            w.units[i].output_bytes = tl_next_random_below(&random, 1000);
        }
        w.desc.link = &w.link;
        w.link.latency_ns = tl_next_random_below(&random, 300);
        plan = planned(&w);
        c = choice_of(&plan, 2, 3, TL_PIPELINE_1F1B);
        for (objective = 0; objective < 2; objective++) {
            tl_partition_desc cut;
            tl_partition parts;
            tl_pipeline_desc pipe;
            tl_pipeline_report report;
            uint64_t forward[3] = {0}, backward[3] = {0}, out[3], weights[3] = {0}, time = 0;
            memset(&cut, 0, sizeof cut);
            memset(&pipe, 0, sizeof pipe);
            cut.units = w.units;
            cut.unit_count = UNITS;
            cut.rank_count = cut.stage_count = pipe.rank_count = 3;
            cut.micro_batch_count = pipe.micro_batch_count = 4;     // of 7, the larger half
            cut.objective = (tl_partition_objective)objective;
            cut.link = pipe.link = &w.link;
            assert_int_equal(tl_plan_partition(NULL, &cut, &parts), TL_OK);
            for (s = 0; s < 3; s++) {
                for (i = parts.stages[s].first_unit; i < parts.stages[s].end_unit; i++) {
                    forward[s] += w.units[i].forward_ns;
                    backward[s] += w.units[i].backward_ns;
                    weights[s] += w.units[i].parameter_bytes;
                }
                out[s] = w.units[parts.stages[s].end_unit - 1].output_bytes;
            }
            pipe.forward_ns = forward;
            pipe.backward_ns = backward;
            pipe.output_bytes = out;
            assert_int_equal(tl_simulate_pipeline(NULL, &pipe, &report), TL_OK);
            for (s = 0; s < 3; s++) {
                uint64_t end = report.ranks[s].end_ns + 2 * ((weights[s] + 1) / 2 + w.link.latency_ns);
                if (end > time) time = end;
            }
            if (time < best) best = time;
            tl_free_pipeline_report(NULL, &report);
            tl_free_partition(NULL, &parts);
        }
        if (c->time_ns != best) fail_msg("round %d: %llu, not %llu", round, (unsigned long long)c->time_ns, (unsigned long long)best);
        tl_free_parallel_plan(NULL, &plan);
    }
}

static void little_work_leaves_choices_out(void **state) {
    work w;
    tl_parallel_plan plan, whole;
    (void)state;
    equal_work(&w, 8, 8, 8);
    whole = planned(&w);
    w.desc.work_limit = whole.work / 2;
    plan = planned(&w);
    assert_true(whole.is_complete && !plan.is_complete && plan.choice_count < whole.choice_count);
    check_plan(&w, &plan);
    tl_free_parallel_plan(NULL, &plan);
    tl_free_parallel_plan(NULL, &whole);
}

static void the_table_begins_with_the_best(void **state) {
    static const char first[] = "data     -              4    1  1  0            720              0              0              0              0"
                                "             96             72  chosen\n";
    work w;
    tl_parallel_plan plan;
    char text[8192], cut[64];
    size_t length;
    (void)state;
    equal_work(&w, 4, 4, 8);
    plan = planned(&w);
    length = tl_print_parallel_plan(&plan, text, sizeof text);
    assert_int_equal(length, strlen(text));
    if (!strstr(text, "reason\n") || strncmp(strchr(text, '\n') + 1, first, sizeof first - 1)) fail_msg("%s", text);
    assert_int_equal(tl_print_parallel_plan(&plan, cut, sizeof cut), length);
    assert_true(strlen(cut) == sizeof cut - 1 && tl_print_parallel_plan(&plan, NULL, 0) == length);
    tl_free_parallel_plan(NULL, &plan);
}

static void wrong_fields_are_named(void **state) {
    static const char *const texts[] = { "unit_count", "rank_count", "micro_batch_count", "bytes_per_second", "kinds", "kinds", "chunk_limit",
                                         "62 bits", "62 bits", "graph: rank_count", "costs of its nodes are 90, those of the units 360",
                                         "budget_bytes: no way to split the work fits; the least bytes found for a rank are 38", "62 bits" };
    int i;
    (void)state;
    for (i = 0; i < 13; i++) {
        static const tl_placement_node node = { 90, 1 };
        tl_placement_desc graph;
        tl_env env = silent_env();
        tl_parallel_plan plan;
        work w;
        equal_work(&w, 4, 4, 8);
        memset(&graph, 0, sizeof graph);
        graph.nodes = &node;
        graph.node_count = 1;
        graph.rank_count = i == 9 ? 3 : 4;
        if (i == 0) w.desc.unit_count = 0;
        if (i == 1) w.desc.rank_count = 0;
        if (i == 2) w.desc.micro_batch_count = 0;
        if (i == 3) { w.desc.link = &w.link; w.link.bytes_per_second = 0; }
        if (i == 4) w.desc.kinds = 1u << TL_PARALLELISM_AUTOMATIC;
        if (i == 5) w.desc.kinds = 1u << TL_PARALLELISM_MODEL;
        if (i == 6) w.desc.chunk_limit = -1;
        if (i == 7) w.units[0].forward_ns = UINT64_MAX / 8;
        if (i == 8) w.desc.optimizer_multiplier = UINT64_MAX;
        if (i == 9 || i == 10) w.desc.graph = &graph;
        if (i == 11) w.desc.budget_bytes = 10;
        if (i == 12) w.units[0].forward_ns = UINT64_MAX / 40;   // 8 of them fit, a flow line of stages does not
        assert_int_equal(tl_plan_parallel(&env, &w.desc, &plan),
                         i == 7 || i == 8 || i == 12 ? TL_ERROR_OVERFLOW : i == 11 ? TL_ERROR_INFEASIBLE : TL_ERROR_INVALID_ARG);
        if (!strstr(env.error.text, texts[i])) fail_msg("%d: %s", i, env.error.text);
        assert_true(is_zero(&plan, sizeof plan));
    }
}

static void an_allocation_that_fails_is_an_error(void **state) {
    static const tl_placement_node nodes[] = { {180, 1}, {180, 1} };
    tl_placement_desc graph;
    work w;
    int at;
    (void)state;
    equal_work(&w, 4, 4, 4);
    memset(&graph, 0, sizeof graph);
    graph.nodes = nodes;
    graph.node_count = 2;
    graph.rank_count = 4;
    w.desc.graph = &graph;
    for (at = 0; ; at++) {
        failing_alloc f = {0, 0, 0, 0};
        tl_env env = failing_env(&f, at);
        tl_parallel_plan plan;
        tl_result result = tl_plan_parallel(&env, &w.desc, &plan);
        if (result) assert_true(result == TL_ERROR_NO_MEMORY && env.error.code == result && is_zero(&plan, sizeof plan));
        tl_free_parallel_plan(&env, &plan);
        assert_int_equal(f.live, 0);
        if (f.count > at) continue;
        assert_int_equal(result, TL_OK);
        assert_true(at > 50);
        break;
    }
}

static void success_leaves_the_error_alone(void **state) {
    long lines;
    tl_env env = logging_env(&lines);
    work w;
    tl_parallel_plan plan;
    (void)state;
    equal_work(&w, 4, 4, 8);
    w.desc.budget_bytes = 48;       // most choices do not fit
    assert_int_equal(tl_plan_parallel(&env, &w.desc, &plan), TL_OK);
    assert_true(is_silent(&env, lines));
    tl_free_parallel_plan(&env, &plan);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_transfers_the_batch_is_split),
        cmocka_unit_test(a_slow_link_leaves_one_rank),
        cmocka_unit_test(a_budget_asks_for_stages_or_shares),
        cmocka_unit_test(a_graph_is_placed_as_one_more_choice),
        cmocka_unit_test(random_plans_are_consistent),
        cmocka_unit_test(a_replicated_pipeline_is_what_its_parts_say),
        cmocka_unit_test(little_work_leaves_choices_out),
        cmocka_unit_test(the_table_begins_with_the_best),
        cmocka_unit_test(wrong_fields_are_named),
        cmocka_unit_test(an_allocation_that_fails_is_an_error),
        cmocka_unit_test(success_leaves_the_error_alone),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
