// [6] REMAT: which regions of rows are cut into how many blocks, against all choices of the same classes.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/row_steps.h"
#include "support/keep_all.h"
#include "support/texts.h"

static tl_graph parse(const char *text) {
    tl_env env = silent_env();
    tl_graph graph;
    if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s: %s", text, env.error.text);
    return graph;
}

static tl_remat_desc ask(const tl_graph *graph, uint64_t budget) {
    tl_remat_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.budget_bytes = budget;
    desc.live = 1;
    return desc;
}

// -- all choices of the classes --

// The classes that are found for a graph.
typedef struct classes {
    int32_t first[STEP_NODES], last[STEP_NODES], of[STEP_NODES], count, class_count;
    uint64_t rows[TLI_MOST_ROW_CLASSES];
} classes;

// A choice of which the classes are found.
static void open_choice(tl_env *env, const tl_remat_desc *desc, const tl_cut_desc *cut, tli_row_choice *c) {
    uint64_t floor;
    memset(c, 0, sizeof *c);
    c->env = env;
    c->desc = *desc;
    c->cut = *cut;
    c->graph = c->cut.graph = desc->graph;
    c->cut.inference = desc->inference;
    if (tli_open_row_choice(c) || tli_find_row_classes(c, &floor)) fail_msg("%s", env->error.text);
}

static void close_choice(tli_row_choice *c) {
    tli_release(c->env, c->sequence);
    tli_release(c->env, c->cuts);
}

static void find_classes(tl_env *env, const tl_remat_desc *desc, const tl_cut_desc *cut, classes *found) {
    int32_t at;
    tli_row_choice c;
    memset(found, 0, sizeof *found);
    open_choice(env, desc, cut, &c);
    for (at = 0; at < c.count; at++) {
        int32_t number = c.class_of[at];
        if (number < 0 || !c.begins[at]) continue;
        found->first[found->count] = c.sequence[at];
        found->last[found->count] = c.sequence[at + c.lengths[number] - 1];
        found->of[found->count++] = number;
        found->rows[number] = 8;
    }
    found->class_count = c.class_count;
    close_choice(&c);
}

typedef struct brute {
    tl_env env;
    const tl_remat_desc *desc;
    tl_cut_desc cut;
    const classes *found;
    int32_t blocks[TLI_MOST_ROW_CLASSES];
    uint64_t cost, least;       // UINT64_MAX = nothing fits
    long tried, unproven;
} brute;

static void plan_blocks(brute *b) {
    tl_row_cut cuts[STEP_NODES];
    tl_remat_desc desc = *b->desc;
    tl_remat_report report;
    tl_rows_plan rows;
    tl_plan plan;
    int32_t k;
    b->cut.cut_count = 0;
    for (k = 0; k < b->found->count; k++) {
        if (!b->blocks[b->found->of[k]]) continue;
        cuts[b->cut.cut_count].first = b->found->first[k];
        cuts[b->cut.cut_count].last = b->found->last[k];
        cuts[b->cut.cut_count++].block_count = b->blocks[b->found->of[k]];
    }
    b->cut.graph = desc.graph;
    b->cut.cuts = cuts;
    b->cut.inference = desc.inference;
    if (tl_cut_rows(&b->env, &b->cut, &rows)) fail_msg("%s", b->env.error.text);
    desc.graph = &rows.graph;
    if (!tl_plan_remat(&b->env, &desc, &plan, &report)) {
        if (report.cost < b->cost) b->cost = report.cost;
        tl_free_plan(&b->env, &plan);
    } else if (report.least_budget_bytes < b->least) {
        b->least = report.least_budget_bytes;
    }
    b->unproven += !report.proven;
    b->tried++;
    tl_free_rows_plan(&b->env, &rows);
}

static void try_all(brute *b, int32_t number) {
    int32_t blocks;
    if (number == b->found->class_count) {
        plan_blocks(b);
        return;
    }
    for (blocks = 0; blocks <= (int32_t)b->found->rows[number]; blocks++) {
        b->blocks[number] = blocks;
        try_all(b, number + 1);
    }
}

// The cost of the plan of the graph that tl_cut_rows makes with the cuts of a choice.
static uint64_t cost_of(const tl_remat_desc *desc, const tl_cut_desc *more, const tl_rows_choice *choice) {
    tl_env env = silent_env();
    tl_cut_desc cut = *more;
    tl_remat_desc with = *desc;
    tl_remat_report report;
    tl_rows_plan rows;
    tl_plan plan;
    uint64_t cost;
    cut.graph = desc->graph;
    cut.inference = desc->inference;
    cut.cuts = choice->cuts;
    cut.cut_count = choice->cut_count;
    if (tl_cut_rows(&env, &cut, &rows)) fail_msg("%s", env.error.text);
    with.graph = &rows.graph;
    if (tl_plan_remat(&env, &with, &plan, &report)) fail_msg("%s", env.error.text);
    assert_true(plan.peak_bytes <= desc->budget_bytes);
    assert_int_equal(plan.cost, report.cost);
    cost = plan.cost;
    tl_free_plan(&env, &plan);
    tl_free_rows_plan(&env, &rows);
    return cost;
}

// All costs of a step, once.
static uint64_t whole_cost(const tl_graph *graph, int inference) {
    uint64_t sum = 0;
    int32_t id;
    for (id = 0; id < graph->node_count; id++) sum += graph->nodes[id].fwd_cost + (inference ? 0 : graph->nodes[id].bwd_cost);
    return sum;
}

// A choice with hardly any work is not the best, but its bound holds all the same.
static void check_hasty_choice(const tl_remat_desc *asked, const brute *b, uint64_t work, int32_t number) {
    tl_env env = silent_env();
    tl_remat_desc desc = *asked;
    tl_rows_choice choice;
    desc.work_limit = work;
    if (!tl_choose_rows(&env, &desc, &b->cut, &choice) && (choice.report.bound_cost > b->cost || choice.report.cost < b->cost))
        fail_msg("graph %d, work %d: the bound %d, %d the best, %d chosen", (int)number, (int)work, (int)choice.report.bound_cost, (int)b->cost, (int)choice.report.cost);
    tl_free_rows_choice(&env, &choice);
}

static void choices_are_among_all_of_their_classes_and_above_the_bound(void **state) {
    int32_t count = scaled(400), i, cut_some = 0, best = 0, feasible = 0, classed = 0, missed = 0;
    long tried = 0, unproven = 0;
    (void)state;
    for (i = 0; i < count; i++) {
        tl_env env = silent_env();
        tl_random random = { (uint64_t)i + 1 };
        tl_remat_desc desc;
        tl_rows_choice choice;
        tl_result result;
        tl_graph graph;
        classes found;
        brute b;
        uint64_t peak;
        random_row_step(&random, 8, &graph);
        memset(&b, 0, sizeof b);
        b.cut.call_cost = (uint64_t)random_count(&random, 0, 2);
        b.cut.may_round = random_chance(&random, 20);
        peak = keep_all_peak(&graph, 0);
        desc = ask(&graph, peak / 5 + 1 + tl_next_random_below(&random, peak));
        desc.inference = random_chance(&random, 15);
        find_classes(&env, &desc, &b.cut, &found);
        b.found = &found;
        b.desc = &desc;
        b.cost = b.least = UINT64_MAX;
        try_all(&b, 0);
        tried += b.tried;
        unproven += b.unproven;
        classed += found.class_count > 0;
        result = tl_choose_rows(&env, &desc, &b.cut, &choice);
        assert_int_equal(choice.class_count, found.class_count);
        assert_int_equal(choice.whole_cost, whole_cost(&graph, desc.inference));
        check_hasty_choice(&desc, &b, (uint64_t)random_count(&random, 1, 300), i);
        if (result == TL_ERROR_INFEASIBLE) {
            uint64_t least = choice.report.least_budget_bytes;
            missed += b.cost != UINT64_MAX;
            assert_true(least > desc.budget_bytes);
            assert_int_equal(tl_find_least_budget(&env.error), least);
            desc.budget_bytes = least;
            assert_true(cost_of(&desc, &b.cut, &choice) > 0);
            tl_free_rows_choice(&env, &choice);
            assert_int_equal(tl_choose_rows(&env, &desc, &b.cut, &choice), TL_OK);
        } else {
            if (result) fail_msg("%d: %s", (int)i, env.error.text);
            feasible++;
            assert_true(choice.report.cost >= b.cost);
            if (choice.report.bound_cost > b.cost) fail_msg("graph %d: the bound %d is above %d", (int)i, (int)choice.report.bound_cost, (int)b.cost);
            best += choice.report.cost == b.cost;
            cut_some += choice.cut_count > 0;
        }
        assert_true(choice.report.bound_cost <= choice.report.cost);
        assert_int_equal(cost_of(&desc, &b.cut, &choice), choice.report.cost);
        tl_free_rows_choice(&env, &choice);
        tl_free_graph(&env, &graph);
    }
    print_message("%d graphs, %d with classes; %d feasible, %d missed, %d with cuts, %d the best of %ld choices, %ld of these not proven\n", (int)count, (int)classed,
                  (int)feasible, (int)missed, (int)cut_some, (int)best, tried, unproven);
    assert_true(cut_some * 10 > count && best * 10 > 8 * feasible && unproven * 100 < tried && missed * 50 < count);
}

// -- classes --

// Two pairs that are alike but for what they read: one of them adds twice to the gradient of v, and cannot be cut.
static void what_looks_alike_and_cannot_be_cut_is_in_no_class(void **state) {
    int32_t order, rounds, k, pairs[2] = { 0, 0 };
    (void)state;
    for (order = 0; order < 2; order++) {
        tl_env env = silent_env();
        char text[1024];
        tl_remat_desc desc;
        tl_cut_desc cut;
        tl_rows_choice choice;
        tl_graph graph;
        classes found;
        snprintf(text, sizeof text, "tlg 2\nstate 0 v sgd w=64\nstate 1 w sgd w=64\nnode 2 x input fwd=0 bwd=0 out=800 needs=none in=-\n"
                 "node 3 a up fwd=1 bwd=1 out=8000 needs=in in=2,0 rows=10@0 rin=1:1,whole ordered\nnode 4 b down fwd=1 bwd=1 out=800 needs=in in=3,%d rows=10@0 rin=1:1,whole ordered\n"
                 "node 5 c up fwd=1 bwd=1 out=8000 needs=in in=4,0 rows=10@0 rin=1:1,whole ordered\nnode 6 d down fwd=1 bwd=1 out=800 needs=in in=5,%d rows=10@0 rin=1:1,whole ordered\n"
                 "end 7\n", order, !order);
        graph = parse(text);
        memset(&cut, 0, sizeof cut);
        desc = ask(&graph, 20000);
        for (rounds = 0; rounds < 2; rounds++) {
            cut.may_round = rounds;
            find_classes(&env, &desc, &cut, &found);
            for (k = 0; k < found.count; k++) pairs[rounds] += found.last[k] == found.first[k] + 1;
            if (tl_choose_rows(&env, &desc, &cut, &choice)) fail_msg("%s", env.error.text);
            tl_free_rows_choice(&env, &choice);
        }
        tl_free_graph(&env, &graph);
    }
    assert_true(pairs[0] > 0 && pairs[1] == 4);
}

#define UP(id, name, in, more) "node " #id " " name " up fwd=1 bwd=1 out=8000 needs=in in=" in " rows=10@0 rin=1:1" more "\n"
#define DOWN(id, name, in, more) "node " #id " " name " down fwd=1 bwd=1 out=800 needs=in in=" in " rows=10@0 rin=1:1" more "\n"

// Pairs with other units are of another class; of one row nothing can be cut.
static void classes_have_the_same_units_and_more_than_one_row(void **state) {
    static const struct { const char *text; int32_t class_count; } cases[] = {
        { UP(1, "a", "0", "") DOWN(2, "b", "1", "") UP(3, "c", "2", "") DOWN(4, "d", "3", "") "end 5\n", 1 },
        { UP(1, "a", "0", "") DOWN(2, "b", "1", "") UP(3, "c", "2", " row_unit=5") DOWN(4, "d", "3", "") "end 5\n", 2 },
        { "node 1 a up fwd=1 bwd=1 out=8000 needs=in in=0 rows=1@0 rin=1:1\nend 2\n", 0 },
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_env env = silent_env();
        char text[1024];
        tl_graph graph;
        tl_cut_desc cut;
        tl_remat_desc desc;
        classes found;
        snprintf(text, sizeof text, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=800 needs=none in=-\n%s", cases[i].text);
        graph = parse(text);
        desc = ask(&graph, 20000);
        memset(&cut, 0, sizeof cut);
        find_classes(&env, &desc, &cut, &found);
        if (found.class_count != cases[i].class_count) fail_msg("case %d: %d classes", (int)i, (int)found.class_count);
        tl_free_graph(&env, &graph);
    }
}

// The fewest blocks, 2, 4, .., whose call takes at most so many bytes, are those of a walk through all.
static void fewest_blocks_are_the_first_that_are_small_enough(void **state) {
    int32_t count = scaled(60), i, tried = 0;
    (void)state;
    for (i = 0; i < count; i++) {
        tl_env env = silent_env();
        tl_random random = { (uint64_t)i + 1 };
        tl_remat_desc desc;
        tl_cut_desc cut;
        tl_graph graph;
        tli_row_choice c;
        int32_t number, at, blocks, found;
        random_row_step(&random, 8, &graph);
        desc = ask(&graph, 1);
        memset(&cut, 0, sizeof cut);
        open_choice(&env, &desc, &cut, &c);
        for (number = 0; number < c.class_count; number++) {
            for (at = 0; c.class_of[at] != number || !c.begins[at]; at++) {}
            for (blocks = 2; blocks <= TLI_MOST_ROW_BLOCKS; blocks *= 2) {
                tli_row_sums sums, before;
                c.cuts[0].first = c.sequence[at];
                c.cuts[0].last = c.sequence[at + c.lengths[number] - 1];
                c.cuts[0].block_count = blocks;
                assert_int_equal(tli_measure_cut(&c, 1, &sums), TL_OK);
                assert_int_equal(tli_find_fewest_blocks(&c, number, sums.call, &found), TL_OK);
                assert_true(found <= blocks);
                c.cuts[0].block_count = found;      // this many do, and half as many do not
                assert_int_equal(tli_measure_cut(&c, 1, &before), TL_OK);
                assert_true(before.call <= sums.call);
                c.cuts[0].block_count = found / 2;
                if (found > 2) assert_int_equal(tli_measure_cut(&c, 1, &before), TL_OK);
                if (found > 2) assert_true(before.call > sums.call);
                tried++;
            }
        }
        close_choice(&c);
        tl_free_graph(&env, &graph);
    }
    assert_true(tried > count);
}

// -- what is better --

static void better_regions_have_smaller_calls_then_keep_less_then_cost_less(void **state) {
    static const struct { tli_row_sums a, b; int is_longer, is_better; } cases[] = {     // cost, kept, call
        { { 9, 9, 90 }, { 1, 1, 100 }, 0, 1 }, { { 1, 1, 100 }, { 9, 9, 90 }, 0, 0 },      // a tenth fewer bytes
        { { 9, 8, 98 }, { 1, 9, 100 }, 0, 1 }, { { 1, 9, 98 }, { 9, 8, 100 }, 0, 0 },       // about as many: what is kept
        { { 9, 8, 100 }, { 1, 9, 98 }, 0, 1 }, { { 8, 9, 100 }, { 9, 9, 98 }, 0, 1 },
        { { 9, 9, 98 }, { 8, 9, 100 }, 1, 0 }, { { 9, 9, 100 }, { 9, 9, 100 }, 1, 1 }, { { 9, 9, 100 }, { 9, 9, 100 }, 0, 0 },
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        if (tli_is_better_region(&cases[i].a, &cases[i].b, cases[i].is_longer) != cases[i].is_better) fail_msg("case %d", (int)i);
}

static void better_tries_have_a_plan_then_cost_less_then_fewer_blocks(void **state) {
    static const struct { int32_t has_plan; uint64_t value, block_sum; } order[] = {     // the best first
        { 1, 10, 4 }, { 1, 10, 8 }, { 1, 12, 2 }, { 0, 5, 2 }, { 0, 5, 4 }, { 0, UINT64_MAX, 0 },
    };
    size_t i, k;
    (void)state;
    for (i = 0; i < sizeof order / sizeof *order; i++)
        for (k = 0; k < sizeof order / sizeof *order; k++) {
            tli_row_try a, b;
            memset(&a, 0, sizeof a);
            memset(&b, 0, sizeof b);
            a.has_plan = order[i].has_plan; a.value = order[i].value; a.block_sum = order[i].block_sum;
            b.has_plan = order[k].has_plan; b.value = order[k].value; b.block_sum = order[k].block_sum;
            assert_int_equal(tli_is_better_rows(&a, &b), i < k);
        }
}

// What several backwards read is kept once, beside what is saved; inputs of the graph are there anyway.
static void what_is_kept_is_counted_once(void **state) {
    tl_graph graph = parse("tlg 2\nnode 0 x input fwd=0 bwd=0 out=100 needs=none in=-\nnode 1 a op fwd=1 bwd=1 out=50 needs=in,out in=0 saved=8\n"
                           "node 2 b op fwd=1 bwd=1 out=30 needs=in in=1\nnode 3 c op fwd=1 bwd=1 out=20 needs=none in=2 saved=3\nend 4\n");
    int32_t marks[4];
    (void)state;
    assert_int_equal(tli_sum_kept(&graph, marks), 50 + 8 + 3);
    tl_free_graph(NULL, &graph);
}

// Layers whose costs were measured take not quite the same, and are alike all the same: all their products are cut.
static void layers_of_measured_costs_are_alike(void **state) {
    tl_env env = silent_env();
    tl_remat_desc desc;
    tl_cut_desc cut;
    tl_rows_choice choice;
    tl_graph graph;
    char text[4096];
    size_t length;
    int k;
    (void)state;
    length = (size_t)snprintf(text, sizeof text, "tlg 2\nnode 0 x input fwd=0 bwd=0 out=800 needs=none in=-\n");
    for (k = 0; k < 8; k++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "node %d a%d up fwd=%d bwd=%d out=8000 needs=in in=%d rows=10@0 rin=1:1\n"
                                   "node %d b%d down fwd=%d bwd=%d out=800 needs=in in=%d rows=10@0 rin=1:1\n",
                                   2 * k + 1, k, 100 + k, 207 - k, 2 * k, 2 * k + 2, k, 110 - k, 200 + k, 2 * k + 1);
    snprintf(text + length, sizeof text - length, "end 17\n");
    graph = parse(text);
    memset(&cut, 0, sizeof cut);
    desc = ask(&graph, 15000);
    assert_int_equal(tl_choose_rows(&env, &desc, &cut, &choice), TL_OK);
    assert_int_equal(choice.class_count, 1);
    assert_int_equal(choice.cut_count, 8);
    tl_free_rows_choice(&env, &choice);
    tl_free_graph(&env, &graph);
}

static const char chain[] = "tlg 2\nnode 0 x input fwd=0 bwd=0 out=800 needs=none in=-\nnode 1 a up fwd=1 bwd=1 out=8000 needs=in in=0 rows=10@0 rin=1:1\n"
                            "node 2 b down fwd=1 bwd=1 out=800 needs=in in=1 rows=10@0 rin=1:1\nend 3\n";

static void what_is_wrong_is_said(void **state) {
    tl_env env = silent_env();
    tl_graph graph = parse(chain);
    tl_remat_desc desc = ask(&graph, 4000);
    tl_cut_desc cut;
    tl_rows_choice choice;
    (void)state;
    memset(&cut, 0, sizeof cut);
    cut.alignment_bytes = 3;
    assert_int_equal(tl_choose_rows(&env, &desc, &cut, &choice), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(env.error.text, "alignment_bytes"));
    cut.alignment_bytes = 0;
    desc.codec = TL_CODEC_COUNT;
    assert_int_equal(tl_choose_rows(&env, &desc, &cut, &choice), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(env.error.text, "codec"));
    assert_null(choice.memory);
    desc = ask(&graph, 100);
    assert_int_equal(tl_choose_rows(&env, &desc, &cut, &choice), TL_ERROR_INFEASIBLE);
    assert_non_null(strstr(env.error.text, "100"));
    assert_true(choice.cut_count == 1 && choice.report.least_budget_bytes > 100);
    tl_free_rows_choice(&env, &choice);
    tl_free_rows_choice(&env, &choice);
    tl_free_rows_choice(&env, NULL);
    tl_free_graph(&env, &graph);
}

static void each_allocation_that_fails_is_reported(void **state) {
    tl_graph graph = parse(chain);
    tl_remat_desc desc = ask(&graph, 4000);
    tl_cut_desc cut;
    long at, step = 1;
    (void)state;
    memset(&cut, 0, sizeof cut);
    desc.work_limit = 1000;
    for (at = 0;; at += step) {
        failing_alloc f;
        tl_env env;
        tl_rows_choice choice;
        tl_result result;
        memset(&f, 0, sizeof f);
        env = failing_env(&f, at);
        result = tl_choose_rows(&env, &desc, &cut, &choice);
        if (f.count > at && result != TL_ERROR_NO_MEMORY) fail_msg("allocation %ld: result %d", at, (int)result);
        if (f.count <= at) assert_int_equal(result, TL_OK);
        if (result) assert_null(choice.memory);
        tl_free_rows_choice(&env, &choice);
        assert_int_equal(f.live, 0);
        if (f.count <= at) break;
    }
    assert_true(at > 100);
    tl_free_graph(NULL, &graph);
}

// -- losses whose backward makes them --

// A host copy of a late output that was made before its backward would keep what nobody computed.
static void host_copies_of_late_outputs_come_behind_their_backward(void **state) {
    tl_env env = silent_env();
    tl_graph graph = parse("tlg 2\nnode 0 x input fwd=0 bwd=0 out=800 needs=none in=-\nnode 1 loss op fwd=1 bwd=1 out=4 needs=out in=0 keep late\nend 2\n");
    static const struct { const char *text; tl_result result; } cases[] = { { "F 1\nB 1\n", TL_OK }, { "F 1\nO 1.0\nB 1\n", TL_ERROR_INVALID_PLAN } };
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        tl_plan plan;
        tl_report report;
        tl_simulate_desc desc;
        memset(&desc, 0, sizeof desc);
        plan = schedule_of(cases[i].text);
        desc.graph = &graph;
        desc.plan = &plan;
        assert_int_equal(tl_simulate_plan(&env, &desc, &report), cases[i].result);
        tl_free_plan(&env, &plan);
    }
    assert_non_null(strstr(env.error.text, "of which the host has a copy"));
    tl_free_graph(&env, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_are_among_all_of_their_classes_and_above_the_bound),
        cmocka_unit_test(what_looks_alike_and_cannot_be_cut_is_in_no_class),
        cmocka_unit_test(classes_have_the_same_units_and_more_than_one_row),
        cmocka_unit_test(fewest_blocks_are_the_first_that_are_small_enough),
        cmocka_unit_test(better_regions_have_smaller_calls_then_keep_less_then_cost_less),
        cmocka_unit_test(better_tries_have_a_plan_then_cost_less_then_fewer_blocks),
        cmocka_unit_test(what_is_kept_is_counted_once),
        cmocka_unit_test(layers_of_measured_costs_are_alike),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(each_allocation_that_fails_is_reported),
        cmocka_unit_test(host_copies_of_late_outputs_come_behind_their_backward),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
