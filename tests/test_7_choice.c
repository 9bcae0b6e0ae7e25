// The choice of schemes: brute force on small graphs, reference fronts, bounds on large ones, every error.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/brute_choice.h"

// -- what a plan must hold --

static tl_result plan_checked(tl_env *env, const tli_choice_desc *desc, tli_choice_plan *plan) {
    tl_result result = tli_plan_choice(env, desc, plan);
    tli_choice_sums sums;
    int32_t node, net;
    uint64_t value;
    if (result) {
        uint64_t nearest = plan->nearest_limit;
        plan->nearest_limit = 0;
        assert_true(is_zero(plan, sizeof *plan));
        plan->nearest_limit = nearest;
        return result;
    }
    tli_choice_measure(desc, plan->schemes, &sums, &node, &net);
    assert_true(node < 0 && net < 0);
    assert_true(sums.cost == plan->cost && sums.loss == plan->loss && sums.conversion_cost == plan->conversion_cost &&
                sums.conversion_count == plan->conversion_count);
    value = desc->least_loss ? plan->loss : plan->cost;
    assert_true((desc->least_loss ? plan->cost : plan->loss) <= (desc->least_loss ? desc->cost_limit : desc->loss_limit));
    assert_true(plan->bound <= value);
    assert_int_equal(plan->proven, plan->bound == value);
    assert_int_equal(plan->nearest_limit, 0);
    assert_true(plan->gap_ratio >= 0 && (plan->gap_ratio == 0) == plan->proven);
    assert_in_range(plan->method, TLI_CHOICE_ELIMINATION, TLI_CHOICE_SEARCH);
    return result;
}

// The best cost within a loss, or the best loss within a cost; UINT64_MAX = none.
static uint64_t best_of(const bc_front *front, int least_loss, uint64_t limit) {
    uint64_t best = UINT64_MAX;
    int i;
    for (i = 0; i < front->count; i++) {
        uint64_t limited = least_loss ? front->points[i].cost : front->points[i].loss;
        uint64_t value = least_loss ? front->points[i].loss : front->points[i].cost;
        if (limited <= limit && value < best) best = value;
    }
    return best;
}

static void expect_best(choice_case *c, const bc_front *front, int least_loss, uint64_t limit) {
    tl_env env;
    tli_choice_plan plan;
    tl_result result;
    uint64_t best = best_of(front, least_loss, limit), nearest = TL_UNLIMITED;
    memset(&env, 0, sizeof env);
    c->desc.least_loss = least_loss;
    c->desc.loss_limit = c->desc.cost_limit = limit;
    if (front->count) nearest = least_loss ? front->points[front->count - 1].cost : front->points[0].loss;
    result = plan_checked(&env, &c->desc, &plan);
    if (best == UINT64_MAX) {
        assert_int_equal(result, TL_ERROR_INFEASIBLE);
        assert_true(plan.nearest_limit == nearest);
    } else {
        assert_int_equal(result, TL_OK);
        assert_true((least_loss ? plan.loss : plan.cost) == best);
        assert_true(plan.proven && plan.bound == best);
    }
    tli_free_choice_plan(&env, &plan);
}

static void expect_front(choice_case *c, const bc_front *front) {
    tli_choice_front found;
    tl_result result = tli_plan_choice_front(NULL, &c->desc, 100000, &found);
    int i;
    assert_int_equal(result, front->count ? TL_OK : TL_ERROR_INFEASIBLE);
    assert_int_equal(found.point_count, front->count);
    assert_int_equal(found.complete, front->count > 0);
    for (i = 0; i < front->count; i++) {
        uint64_t cost, loss;
        assert_true(found.points[i].loss == front->points[i].loss && found.points[i].cost == front->points[i].cost);
        assert_true(found.points[i].bound_cost == found.points[i].cost);
        assert_true(bc_price(&c->desc, found.points[i].schemes, &cost, &loss));
        assert_true(cost == found.points[i].cost && loss == found.points[i].loss);
    }
    tli_free_choice_front(NULL, &found);
}

static void random_choices_are_what_brute_force_says(void **state) {
    long cases = 3000L * soaked(), at;
    tl_random r = { 7 };
    (void)state;
    for (at = 0; at < cases; at += thinned()) {
        choice_case c;
        bc_front front;
        int least_loss, k;
        r.state = (uint64_t)at * 7919 + 1;
        bc_fill(&c, &r, 6, at % 3 ? 4 : at % 30 ? 5 : 9);
        if (c.desc.scheme_count > 5 && c.desc.node_count > 4) c.desc.scheme_count = 5;
        if (c.desc.scheme_count <= 5 && !c.desc.formats) c.desc.format_count = 0;
        front = bc_solve(&c.desc);
        for (least_loss = 0; least_loss < 2; least_loss++) {
            expect_best(&c, &front, least_loss, TL_UNLIMITED);
            expect_best(&c, &front, least_loss, 0);
            for (k = 0; k < 4 && front.count; k++) {
                const bc_point *p = &front.points[bc_below(&r, (uint64_t)front.count)];
                uint64_t limit = (least_loss ? p->cost : p->loss) + bc_below(&r, 3);
                expect_best(&c, &front, least_loss, limit ? limit - 1 : 0);
            }
        }
        expect_front(&c, &front);
        free(front.points);
    }
}


// 0 = a node has no scheme.
static int allow_all(const tli_choice_desc *desc, uint16_t *allowed) {
    int i, k;
    for (i = 0; i < desc->node_count; i++) {
        for (allowed[i] = 0, k = 0; k < desc->scheme_count; k++)
            if (desc->costs[i * desc->scheme_count + k] != TL_FORBIDDEN) allowed[i] = (uint16_t)(allowed[i] | 1u << k);
        if (!allowed[i]) return 0;
    }
    return 1;
}

// Wide by decree: lists of so many cells at most, 0 = none.
static tl_result search_within(tl_env *env, const tli_choice_desc *desc, uint64_t most_cells, uint8_t *best, tli_choice *x) {
    uint16_t allowed[32];
    tl_result result;
    if (!allow_all(desc, allowed)) return TL_ERROR_UNSUPPORTED;
    tli_choice_init(x, env, desc, allowed, best);
    x->most_cells = most_cells;
    result = tli_choice_solve(x);
    tli_choice_free(x);
    return result;
}

// The tree alone: from any choice within the limit, in `best`, and with weights that know nothing of the limit.
static int divide_within(tl_env *env, const tli_choice_desc *desc, uint64_t most_cells, uint8_t *best, tli_choice *x) {
    uint16_t allowed[32];
    uint64_t cost, loss;
    assert_true(allow_all(desc, allowed));
    assert_true(bc_price(desc, best, &cost, &loss));
    tli_choice_init(x, env, desc, allowed, best);
    x->most_cells = most_cells;
    x->found = 1;
    x->best_value = desc->least_loss ? loss : cost;
    x->best_limited = desc->least_loss ? cost : loss;
    return tli_choice_search_tree(x, 1, 0, 0);
}

// Without lists, what is found is within the limit, nearly always the best, and its bound none too high; with lists for the
// parts that branching leaves, it is always the best, and proven.
static void the_search_is_valid_and_its_tree_is_exact(void **state) {
    long cases = 1500L * soaked(), at;
    long solved = 0, best_found = 0, proven = 0, divided = 0;
    tl_random r = { 7 };
    (void)state;
    for (at = 0; at < cases; at += thinned()) {
        choice_case c;
        bc_front front;
        uint8_t best[BC_NODES];
        int k;
        r.state = (uint64_t)at * 104729 + 5;
        bc_fill(&c, &r, 6, 4);
        front = bc_solve(&c.desc);
        for (k = 0; k < 8 && front.count; k++) {
            const bc_point *p = &front.points[bc_below(&r, (uint64_t)front.count)];
            uint64_t optimum, cost, loss, value;
            tl_result result;
            tli_choice x;
            c.desc.least_loss = k % 2;
            c.desc.loss_limit = c.desc.cost_limit = k % 4 == 3 ? TL_UNLIMITED : k % 2 ? p->cost : p->loss;
            optimum = best_of(&front, k % 2, c.desc.loss_limit);
            result = search_within(NULL, &c.desc, k < 4 ? 0 : 48, best, &x);
            if (result == TL_ERROR_INFEASIBLE) continue;    // none was found: with forbidden conversions that may be
            assert_int_equal(result, TL_OK);
            assert_true(bc_price(&c.desc, best, &cost, &loss));
            assert_true((k % 2 ? cost : loss) <= c.desc.loss_limit);
            value = k % 2 ? loss : cost;
            assert_true(value == x.best_value && value >= optimum && x.bound <= optimum);
            if (k >= 4) {
                assert_true(value == optimum && x.bound == value);
                divided += x.method == TLI_CHOICE_SEARCH;
                continue;
            }
            assert_int_equal(x.method, TLI_CHOICE_SEARCH);
            solved++;
            best_found += value == optimum;
            proven += x.bound == value;
        }
        free(front.points);
    }
    assert_true(is_thinned() || (solved > 0 && best_found * 100 >= solved * 99 && proven * 100 >= solved * 99 && divided * 20 > solved));
}

// Without any lists a part of one state a node may stay open: the bound is its own then, and none too high.
static void what_cannot_be_divided_further_keeps_its_bound(void **state) {
    tl_random r;
    int at, open = 0;
    (void)state;
    for (at = 0; at < 300; at++) {
        uint8_t best[BC_NODES];
        choice_case c;
        tli_choice_plan plan;
        bc_front front;
        uint64_t optimum;
        tli_choice x;
        r.state = (uint64_t)at * 31 + 9;
        bc_fill(&c, &r, 5, 4);
        front = bc_solve(&c.desc);
        c.desc.least_loss = 1;
        c.desc.cost_limit = TL_UNLIMITED;
        if (front.count && !tli_plan_choice(NULL, &c.desc, &plan)) {
            memcpy(best, plan.schemes, (size_t)c.desc.node_count);
            tli_free_choice_plan(NULL, &plan);
            c.desc.least_loss = 0;
            c.desc.loss_limit = front.points[front.count / 2].loss;
            optimum = best_of(&front, 0, c.desc.loss_limit);
            assert_true(divide_within(NULL, &c.desc, 1, best, &x));
            assert_true(x.bound <= optimum && optimum <= x.best_value);
            open += x.bound < x.best_value;
        }
        free(front.points);
    }
    assert_true(open > 10);
}

// Large enough to be divided, small enough to be solved by lists as well. All nodes in f32 lose nothing.
static void a_divided_graph_has_the_same_best(void **state) {
    static const double limits[] = { 0.02, 0.1, 0.3, 0.6 };
    uint64_t seed, seeds = (uint64_t)scaled(12);
    int tried = 0, closed = 0;
    (void)state;
    for (seed = 1; seed <= seeds; seed++) {
        int nodes = 9 + (int)(seed % 6), k;
        for (k = 0; k < 8; k++, tried++) {
            uint64_t optimum, cost, loss;
            uint8_t best[32] = { 0 };
            large_choice c;
            tli_choice_plan plan;
            tl_env env;
            tli_choice x;
            memset(&env, 0, sizeof env);
            lc_init(&c, CHOICE_RANDOM, nodes, seed, limits[k % 4]);
            assert_int_equal(plan_checked(&env, &c.desc, &plan), TL_OK);
            if (k >= 4) {
                memcpy(best, plan.schemes, (size_t)nodes);
                c.desc.cost_limit = plan.cost + plan.cost / 100;
                c.desc.least_loss = 1;
                tli_free_choice_plan(&env, &plan);
                assert_int_equal(plan_checked(&env, &c.desc, &plan), TL_OK);
            }
            optimum = k < 4 ? plan.cost : plan.loss;
            assert_true(plan.proven && divide_within(NULL, &c.desc, 64 << k % 3, best, &x));
            assert_true(x.bound <= optimum && optimum <= x.best_value);
            if (x.work < x.work_limit) {
                assert_true(x.best_value == optimum && x.bound == optimum);
                closed++;
            }
            tli_free_choice_plan(&env, &plan);
            assert_true(bc_price(&c.desc, best, &cost, &loss));
            assert_true(x.best_value == (k < 4 ? cost : loss));
            lc_free(&c);
        }
    }
    assert_true(closed * 10 > tried * 9);
}

static void every_allocation_of_a_divided_graph_fails_in_turn(void **state) {
    large_choice c;
    long at;
    (void)state;
    lc_init(&c, CHOICE_RANDOM, 10, 3, 0.1);
    for (at = 0;; at++) {
        uint8_t best[32] = { 0 };
        failing_alloc f = { 0, 0, 0, 0 };
        tl_env env = failing_env(&f, at);
        tli_choice x;
        int result = divide_within(&env, &c.desc, 64, best, &x);
        assert_int_equal(f.live, 0);
        assert_int_equal(result, f.count <= at);
        if (f.count <= at) break;
    }
    assert_true(at > 200);
    lc_free(&c);
}

// One node after the other gets another scheme: the running sums stay what a replay says.
static void a_change_is_priced_by_its_nets_alone(void **state) {
    long at;
    int priced = 0;
    (void)state;
    for (at = 0; at < 300; at++) {
        choice_case c;
        uint16_t allowed[BC_NODES];
        uint8_t best[BC_NODES];
        uint64_t cost, loss;
        tl_random r;
            tli_choice_local l;
        tli_choice x;
        int k;
        r.state = (uint64_t)at;
        bc_fill(&c, &r, 6, 4);
        for (k = 0; k < c.desc.node_count * c.desc.scheme_count; k++) if (c.costs[k] == TL_FORBIDDEN) c.costs[k] = 1;
        for (k = 0; k < BC_NODES; k++) allowed[k] = (uint16_t)((1 << c.desc.scheme_count) - 1);
        tli_choice_init(&x, NULL, &c.desc, allowed, best);
        assert_true(tli_choice_build(&x) && tli_choice_init_local(&l, &x));
        tli_choice_start_local(&l);
        for (k = 0; k < 30; k++) {
            int32_t node = (int32_t)bc_below(&r, (uint64_t)c.desc.node_count);
            int32_t scheme = (int32_t)bc_below(&r, (uint64_t)c.desc.scheme_count);
            tli_choice_change change = tli_choice_price_change(&l, node, scheme);
            tli_choice_apply_change(&l, node, scheme, &change);
            if (!bc_price(&c.desc, x.schemes, &cost, &loss)) continue;
            assert_true(l.cost == cost && l.loss == loss);
            priced++;
        }
        tli_choice_free_local(&l);
        tli_choice_free(&x);
    }
    assert_true(priced > 3000);
}

// -- reference fronts --

typedef struct json { const char *at; } json;

static void json_skip(json *j) { while (*j->at && strchr(" \n\r\t,:", *j->at)) j->at++; }

static int json_opens(json *j, char bracket) {
    json_skip(j);
    if (*j->at != bracket) return 0;
    j->at++;
    return 1;
}

static long json_number(json *j) {
    char *end;
    long value;
    json_skip(j);
    value = strtol(j->at, &end, 10);
    assert_true(end != j->at);
    j->at = end;
    return value;
}

static const char *json_key(const char *from, const char *to, const char *key) {
    const char *at = strstr(from, key);
    assert_true(at && at < to);
    return at + strlen(key);
}

// A nested list of numbers, one after the other; returns how many.
static int json_numbers(const char *text, uint64_t *numbers, int capacity) {
    json j;
    int depth = 0, count = 0;
    j.at = text;
    do {
        if (json_opens(&j, '[')) depth++;
        else if (json_opens(&j, ']')) depth--;
        else { assert_true(count < capacity); numbers[count++] = (uint64_t)json_number(&j); }
    } while (depth);
    return count;
}

static bc_front json_front(const char *text) {
    bc_front front = { NULL, 0 };
    json j;
    j.at = text;
    front.points = (bc_point *)malloc(1000 * sizeof *front.points);
    assert_true(json_opens(&j, '['));
    while (!json_opens(&j, ']')) {
        const char *end = strchr(j.at, '}');
        json number;
        number.at = json_key(j.at, end, "\"loss\":");
        front.points[front.count].loss = (uint64_t)json_number(&number);
        number.at = json_key(j.at, end, "\"cost\":");
        front.points[front.count++].cost = (uint64_t)json_number(&number);
        j.at = end + 1;
        json_skip(&j);
    }
    return front;
}

static void expect_every_limit(choice_case *c, const bc_front *front) {
    uint64_t limit, last = front->points[front->count - 1].loss + 2;
    int i;
    for (limit = 0; limit <= last; limit++) expect_best(c, front, 0, limit);
    for (i = 0; i < front->count; i++) {
        expect_best(c, front, 1, front->points[i].cost);
        expect_best(c, front, 1, front->points[i].cost - 1);
    }
    expect_front(c, front);
}

// One instance between from and to: with a net an edge, and with a net a producer.
static void expect_instance(const char *from, const char *to) {
    choice_case c;
    bc_front front;
    uint64_t edges[64];
    json j;
    int edge_count, i, k;
    memset(&c, 0, sizeof c);
    j.at = json_key(from, to, "\"n\":");
    c.desc.node_count = (int32_t)json_number(&j);
    j.at = json_key(from, to, "\"k\":");
    c.desc.scheme_count = (int32_t)json_number(&j);
    assert_true(c.desc.node_count <= BC_NODES && c.desc.scheme_count == 4);
    edge_count = json_numbers(json_key(from, to, "\"edges\":"), edges, 64) / 2;
    assert_true(edge_count <= BC_NETS);
    json_numbers(json_key(from, to, "\"cost\":"), c.costs, BC_NODES * BC_SCHEMES);
    json_numbers(json_key(from, to, "\"loss\":"), c.losses, BC_NODES * BC_SCHEMES);
    json_numbers(json_key(from, to, "\"conv\":"), c.prices, BC_NETS * BC_SCHEMES * BC_SCHEMES);
    c.desc.costs = c.costs;
    c.desc.losses = c.losses;
    c.desc.nets = c.nets;
    c.desc.net_count = edge_count;
    for (i = 0; i < edge_count; i++) {
        c.readers[i] = (int32_t)edges[2 * i + 1];
        c.nets[i].producer = (int32_t)edges[2 * i];
        c.nets[i].readers = c.readers + i;
        c.nets[i].reader_count = 1;
        c.nets[i].costs = c.prices + 16 * i;
    }
    front = json_front(json_key(from, to, "\"pareto\":"));
    expect_every_limit(&c, &front);
    free(front.points);
    c.desc.net_count = 0;
    for (i = 0; i < c.desc.node_count; i++) {
        tli_choice_net *net = &c.nets[c.desc.net_count];
        net->producer = i;
        net->readers = c.readers + i * BC_READERS;
        net->reader_count = 0;
        for (k = 0; k < edge_count; k++)
            if (edges[2 * k] == (uint64_t)i) {
                assert_true(net->reader_count < BC_READERS);
                if (!net->reader_count) net->costs = c.prices + 16 * k;
                c.readers[i * BC_READERS + net->reader_count++] = (int32_t)edges[2 * k + 1];
            }
        if (net->reader_count) c.desc.net_count++;
    }
    front = json_front(json_key(from, to, "\"pareto_shared\":"));
    expect_every_limit(&c, &front);
    free(front.points);
}

static void reference_fronts_are_found(void **state) {
    char *text = read_reference("reference_fronts_are_found", "precision/plan_reference.json", NULL);
    const char *at;
    int count = 0;
    (void)state;
    if (!text) skip();
    for (at = strstr(text, "\"name\":"); at; count++) {
        const char *next = strstr(at + 1, "\"name\":");
        expect_instance(at, next ? next : text + strlen(text));
        at = next;
    }
    assert_int_equal(count, 12);
    free(text);
}

// -- large graphs --

static void expect_gap(choice_shape shape, int nodes, uint64_t seed, double limit, double gap, int proven) {
    large_choice c;
    tli_choice_plan plan;
    tl_env env;
    int least_loss;
    memset(&env, 0, sizeof env);
    lc_init(&c, shape, nodes, seed, limit);
    for (least_loss = 0; least_loss < 2; least_loss++) {
        c.desc.least_loss = least_loss;
        assert_int_equal(plan_checked(&env, &c.desc, &plan), TL_OK);
        assert_true(plan.gap_ratio <= (least_loss ? 30 * gap : gap));    // of losses, which differ by decades
        assert_true(plan.proven || !proven);
        c.desc.cost_limit = plan.cost + plan.cost / 50;
        tli_free_choice_plan(&env, &plan);
    }
    lc_free(&c);
}

static void large_graphs_are_within_two_percent(void **state) {
    static const double limits[] = { 0.05, 0.2, 0.6 };
    uint64_t seed, seeds = (uint64_t)soaked();
    int k;
    (void)state;
    for (seed = 1; seed <= seeds; seed++)
        for (k = 0; k < 3; k++) {
            expect_gap(CHOICE_CHAIN, 200, seed, limits[k], 0, 1);
            expect_gap(CHOICE_SERIES_PARALLEL, 200, seed, limits[k], 0.001, 0);
            if (is_thinned() && k != 1) continue;
            expect_gap(CHOICE_RANDOM, 50, seed, limits[k], 0, 1);
            expect_gap(CHOICE_RANDOM, 120, seed, limits[k], 0.02, 0);
        }
    expect_gap(CHOICE_CHAIN, 1000, 1, 0.2, 0.001, 0);
}

// The other way round: for one less than the least cost within a loss, the least loss is above that.
static void a_proven_cost_cannot_be_undercut(void **state) {
    static const double limits[] = { 0.1, 0.3, 0.7 };
    uint64_t seed, seeds = (uint64_t)scaled(4);
    int k;
    (void)state;
    for (seed = 1; seed <= seeds; seed++)
        for (k = 0; k < 3; k++) {
            large_choice c;
            tli_choice_plan plan;
            tl_env env;
            uint64_t cost;
            memset(&env, 0, sizeof env);
            lc_init(&c, seed % 2 ? CHOICE_CHAIN : CHOICE_SERIES_PARALLEL, 300, seed, limits[k]);
            assert_int_equal(plan_checked(&env, &c.desc, &plan), TL_OK);
            assert_true(plan.proven);
            cost = plan.cost;
            tli_free_choice_plan(&env, &plan);
            c.desc.least_loss = 1;
            c.desc.cost_limit = cost - 1;
            assert_int_equal(plan_checked(&env, &c.desc, &plan), TL_OK);
            assert_true(plan.cost < cost && plan.loss > c.desc.loss_limit && plan.bound > c.desc.loss_limit);
            tli_free_choice_plan(&env, &plan);
            lc_free(&c);
        }
}

static void with_little_work_choices_are_valid_and_bounded(void **state) {
    static const uint64_t works[] = { 1, 1000, 100000, 1000000, 10000000 };
    choice_shape shape;
    (void)state;
    for (shape = CHOICE_CHAIN; shape < CHOICE_SHAPE_COUNT; shape = (choice_shape)(shape + 1)) {
        large_choice c;
        tli_choice_plan plan;
        tl_env env;
        uint64_t best = UINT64_MAX, bound = 0;
        int k;
        memset(&env, 0, sizeof env);
        lc_init(&c, shape, 60, 3, 0.3);
        for (k = 0; k < 5; k++) {
            c.desc.work_limit = works[k];
            assert_int_equal(plan_checked(&env, &c.desc, &plan), TL_OK);
            if (plan.cost < best) best = plan.cost;
            if (plan.bound > bound) bound = plan.bound;
            assert_true(bound <= best);
            tli_free_choice_plan(&env, &plan);
        }
        lc_free(&c);
    }
}

// A tensor that many read: alone each would take the cheap scheme; one conversion serves them all.
static void a_conversion_is_paid_once_for_all_readers(void **state) {
    enum { READERS = 200 };
    uint64_t costs[2 * (READERS + 1)], losses[2 * (READERS + 1)], prices[4] = { 0, 1000, 1000, 0 };
    int32_t readers[2 * READERS];
    tli_choice_net nets[READERS];
    tli_choice_desc desc;
    tli_choice_plan plan;
    tl_env env;
    int i;
    (void)state;
    memset(&desc, 0, sizeof desc);
    memset(&env, 0, sizeof env);
    for (i = 0; i <= READERS; i++) {
        costs[2 * i] = 20;
        costs[2 * i + 1] = i ? 10 : TL_FORBIDDEN;
        losses[2 * i] = losses[2 * i + 1] = 0;
    }
    for (i = 0; i < 2 * READERS; i++) readers[i] = 1 + i / 2;    // each of them twice
    for (i = 0; i < READERS; i++) {
        nets[i].producer = 0;
        nets[i].readers = readers + 2 * i;
        nets[i].reader_count = 1;
        nets[i].costs = prices;
    }
    desc.node_count = READERS + 1;
    desc.scheme_count = 2;
    desc.costs = costs;
    desc.losses = losses;
    desc.nets = nets;
    desc.net_count = READERS;
    assert_int_equal(plan_checked(&env, &desc, &plan), TL_OK);
    assert_true(plan.proven && plan.cost == 20 * (READERS + 1) && plan.conversion_count == 0);
    tli_free_choice_plan(&env, &plan);
    nets[0].reader_count = 2 * READERS;
    desc.net_count = 1;
    assert_int_equal(plan_checked(&env, &desc, &plan), TL_OK);
    assert_true(plan.proven && plan.cost == 20 + 1000 + 10 * READERS);
    assert_int_equal(plan.conversion_count, 1);
    assert_true(plan.conversion_cost == 1000);
    tli_free_choice_plan(&env, &plan);
    // Too dear for all of them, but one has no other scheme: it is paid, so the others use it.
    prices[1] = prices[2] = 5000;
    assert_int_equal(plan_checked(&env, &desc, &plan), TL_OK);
    assert_true(plan.proven && plan.cost == 20 * (READERS + 1) && plan.conversion_count == 0);
    tli_free_choice_plan(&env, &plan);
    costs[2] = TL_FORBIDDEN;
    assert_int_equal(plan_checked(&env, &desc, &plan), TL_OK);
    assert_true(plan.proven && plan.cost == 20 + 5000 + 10 * READERS);
    tli_free_choice_plan(&env, &plan);
}

// -- fronts that are a selection --

static void expect_selection(const tli_choice_desc *desc, int32_t limit, int32_t least_count) {
    tli_choice_front front;
    uint64_t cost, loss;
    int i;
    assert_int_equal(tli_plan_choice_front(NULL, desc, limit, &front), TL_OK);
    assert_in_range(front.point_count, least_count, limit);
    for (i = 0; i < front.point_count; i++) {
        const tli_front_point *p = &front.points[i];
        assert_true(bc_price(desc, p->schemes, &cost, &loss));
        assert_true(cost == p->cost && loss == p->loss && p->bound_cost <= p->cost);
        assert_true(!i || (p->loss > p[-1].loss && p->cost < p[-1].cost));
    }
    tli_free_choice_front(NULL, &front);
}

static void a_selection_of_the_front_has_both_ends(void **state) {
    choice_shape shape;
    (void)state;
    for (shape = CHOICE_CHAIN; shape < CHOICE_SHAPE_COUNT; shape = (choice_shape)(shape + 1)) {
        large_choice c;
        tli_choice_front front;
        tli_choice_plan plan;
        lc_init(&c, shape, 60, 1, 0.3);
        c.desc.work_limit = 20000000;
        expect_selection(&c.desc, 1, 1);
        expect_selection(&c.desc, 2, 1);
        expect_selection(&c.desc, 40, shape == CHOICE_RANDOM ? 3 : 40);
        assert_int_equal(tli_plan_choice_front(NULL, &c.desc, 10, &front), TL_OK);
        assert_int_equal(front.complete, 0);
        assert_int_equal(front.points[0].loss, 0);
        c.desc.loss_limit = TL_UNLIMITED;
        assert_int_equal(tli_plan_choice(NULL, &c.desc, &plan), TL_OK);
        assert_true(front.points[front.point_count - 1].cost == plan.cost);
        tli_free_choice_plan(NULL, &plan);
        tli_free_choice_front(NULL, &front);
        lc_free(&c);
    }
}

// A complete front that is longer than asked for: points of it, spread over the cost.
static void a_long_front_is_thinned(void **state) {
    long at;
    int thinned = 0;
    (void)state;
    for (at = 0; at < 300; at++) {
        choice_case c;
        bc_front front;
        tl_random r;
        int32_t limit;
        r.state = (uint64_t)at;
        bc_fill(&c, &r, 6, 4);
        front = bc_solve(&c.desc);
        for (limit = 1; limit < front.count; limit++) {
            tli_choice_front found;
            int i, k = 0;
            assert_int_equal(tli_plan_choice_front(NULL, &c.desc, limit, &found), TL_OK);
            assert_in_range(found.point_count, 1, limit);
            assert_int_equal(found.complete, 0);
            for (i = 0; i < found.point_count; i++) {
                while (k < front.count && front.points[k].loss < found.points[i].loss) k++;
                assert_true(k < front.count && front.points[k].loss == found.points[i].loss);
                assert_true(front.points[k].cost == found.points[i].cost && found.points[i].bound_cost == found.points[i].cost);
            }
            assert_true(found.points[i - 1].cost == front.points[front.count - 1].cost);
            if (limit > 1) assert_true(found.points[0].loss == front.points[0].loss);
            tli_free_choice_front(NULL, &found);
            thinned++;
        }
        free(front.points);
    }
    assert_true(thinned > 100);
}

// -- the same everywhere, memory, errors --

static void the_same_desc_is_the_same_choice_on_every_machine(void **state) {
    choice_shape shape;
    uint64_t hash = 0;
    (void)state;
    for (shape = CHOICE_CHAIN; shape < CHOICE_SHAPE_COUNT; shape = (choice_shape)(shape + 1)) {
        choice_case c;
        tl_random r;
        tli_choice_plan plan;
        int i, k;
        for (k = 0; k < 200; k++) {
            r.state = (uint64_t)(shape * 1000 + k);
            bc_fill(&c, &r, 6, 4);
            c.desc.loss_limit = 20;
            if (tli_plan_choice(NULL, &c.desc, &plan)) { hash = tl_mix_u64(hash, plan.nearest_limit); continue; }
            for (i = 0; i < c.desc.node_count; i++) hash = tl_mix_u64(hash, plan.schemes[i]);
            hash = tl_mix_u64(hash, plan.work);
            tli_free_choice_plan(NULL, &plan);
        }
    }
    assert_true(hash == 0x725f7c3f76cf8925u);
}

static void every_allocation_fails_in_turn(void **state) {
    int kind;
    (void)state;
    for (kind = 0; kind < 6; kind++) {
        large_choice c;
        long at;
        lc_init(&c, kind % 3 == 2 ? CHOICE_RANDOM : CHOICE_SERIES_PARALLEL, kind % 3 == 2 ? 25 : 12, 4, 0.3);
        c.desc.work_limit = kind % 3 == 2 ? 30000 : 0;
        if (kind % 3 == 1) c.desc.loss_limit = 0;
        for (at = 0;; at++) {
            failing_alloc f = { 0, 0, 0, 0 };
            tl_env env = failing_env(&f, at);
            tli_choice_plan plan;
            tli_choice_front front;
            tl_result result;
            memset(&plan, 0, sizeof plan);
            memset(&front, 0, sizeof front);
            if (kind < 3) result = tli_plan_choice(&env, &c.desc, &plan);
            else result = tli_plan_choice_front(&env, &c.desc, 5, &front);
            if (f.count > at) {
                assert_int_equal(result, TL_ERROR_NO_MEMORY);
                assert_true(is_zero(&plan, sizeof plan) && is_zero(&front, sizeof front));
            }
            tli_free_choice_plan(&env, &plan);
            tli_free_choice_front(&env, &front);
            assert_int_equal(f.live, 0);
            if (f.count <= at) break;
        }
        lc_free(&c);
    }
}

// Two nodes, two schemes, one net.
static void fill_pair(choice_case *c) {
    memset(c, 0, sizeof *c);
    c->costs[0] = c->costs[2] = 10;
    c->costs[1] = c->costs[3] = 4;
    c->losses[1] = c->losses[3] = 7;
    c->losses[0] = 2;
    c->losses[2] = 1;
    c->prices[1] = c->prices[2] = 5;
    c->readers[0] = 1;
    c->nets[0].readers = c->readers;
    c->nets[0].reader_count = 1;
    c->nets[0].costs = c->prices;
    c->desc.node_count = 2;
    c->desc.scheme_count = 2;
    c->desc.net_count = 1;
    c->desc.costs = c->costs;
    c->desc.losses = c->losses;
    c->desc.nets = c->nets;
}

static void expect_infeasible(const tli_choice_desc *desc, uint64_t nearest) {
    tli_choice_plan plan;
    assert_int_equal(plan_checked(NULL, desc, &plan), TL_ERROR_INFEASIBLE);
    assert_true(plan.nearest_limit == nearest);
}

static void what_is_not_possible_names_the_nearest_limit(void **state) {
    choice_case c;
    tl_env env;
    tli_choice_front front;
    (void)state;
    memset(&env, 0, sizeof env);
    fill_pair(&c);
    c.desc.loss_limit = 2;
    expect_infeasible(&c.desc, 3);
    c.prices[1] = c.prices[2] = TL_FORBIDDEN;
    c.costs[0] = TL_FORBIDDEN;
    expect_infeasible(&c.desc, 14);
    c.desc.loss_limit = 12;          // both alone would leave room for it
    expect_infeasible(&c.desc, 14);
    c.desc.least_loss = 1;
    c.desc.cost_limit = 7;
    expect_infeasible(&c.desc, 8);
    c.costs[3] = TL_FORBIDDEN;
    expect_infeasible(&c.desc, TL_UNLIMITED);
    assert_int_equal(tli_plan_choice_front(&env, &c.desc, 0, &front), TL_ERROR_INFEASIBLE);
    assert_true(is_zero(&front, sizeof front));
    c.costs[2] = TL_FORBIDDEN;
    expect_infeasible(&c.desc, TL_UNLIMITED);
    assert_int_equal(tli_plan_choice_front(&env, &c.desc, 0, &front), TL_ERROR_INFEASIBLE);
}

static void a_wide_graph_says_what_was_found(void **state) {
    large_choice c;
    tli_choice_plan plan;
    tl_env env;
    size_t i;
    (void)state;
    memset(&env, 0, sizeof env);
    lc_init(&c, CHOICE_RANDOM, 60, 1, 0.3);
    for (i = 0; i < 60; i++) c.losses[i * LARGE_SCHEMES] = 1;
    c.desc.loss_limit = 59;
    assert_int_equal(plan_checked(&env, &c.desc, &plan), TL_ERROR_INFEASIBLE);
    assert_true(plan.nearest_limit == 60);
    c.desc.loss_limit = 60;
    assert_int_equal(plan_checked(&env, &c.desc, &plan), TL_OK);
    assert_true(plan.loss == 60 && plan.proven);
    tli_free_choice_plan(&env, &plan);
    lc_free(&c);
}

// a x 2^shift / b, by hand: what is cut off rounds up where that is asked for, and what does not fit is all ones.
static void quotients_round_as_they_are_told(void **state) {
    static const struct { uint64_t a; int32_t shift; uint64_t b, down, up; } cases[] = {
        { 7, 0, 2, 3, 4 }, { 8, 0, 2, 4, 4 }, { 7, -1, 2, 1, 2 }, { 6, -1, 2, 1, 2 }, { 8, -1, 2, 2, 2 },
        { 8, -63, 2, 0, 1 }, { 8, -64, 2, 0, 1 }, { 0, -64, 2, 0, 0 }, { 1, -200, 3, 0, 1 }, { 0, -200, 3, 0, 0 },
        { 1, 10, 3, 341, 342 }, { 3, 62, 3, UINT64_C(1) << 62, UINT64_C(1) << 62 }, { 3, 64, 3, UINT64_MAX, UINT64_MAX },
        { UINT64_MAX, 0, 1, UINT64_MAX, UINT64_MAX }, { UINT64_MAX, 1, 2, UINT64_MAX, UINT64_MAX },
        { UINT64_MAX, 1, 1, UINT64_MAX, UINT64_MAX }, { 0, 1000, 7, 0, 0 },
    };
    uint64_t mantissa;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(tli_divide_shifted(cases[i].a, cases[i].shift, cases[i].b, 0), cases[i].down);
        assert_int_equal(tli_divide_shifted(cases[i].a, cases[i].shift, cases[i].b, 1), cases[i].up);
    }
    assert_int_equal(tli_split_f64(tli_f64_of(5), &mantissa), -1074);      // not normalised
    assert_int_equal(mantissa, 5);
    assert_int_equal(tli_split_f64(3, &mantissa), -51);
    assert_int_equal(mantissa, UINT64_C(3) << 51);
    assert_true(tli_scale_f64(1.5, 4) == 24 && tli_scale_f64(24, -4) == 1.5 && tli_scale_f64(0, -4000) == 0);
    assert_int_equal(tli_divide_f64(0, 3, 1, 1), 0);
    assert_int_equal(tli_divide_f64(1, 4, 3, 1), 6);
    assert_int_equal(tli_divide_by_f64(10, 0.75, 0), 13);
}

// Points in any order, of searches that may miss the best: what stays are those that no other one is as good as, each with its own
// schemes.
static void a_front_keeps_what_no_other_point_is_as_good_as(void **state) {
    enum { POINTS = 12, BYTES = 3 };
    tl_random random = { 91 };
    int round, rounds = scaled(2000), dropped = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        tli_front_point points[POINTS];
        uint8_t schemes[POINTS * BYTES], closed[POINTS], at_hand[BYTES];
        uint64_t loss[POINTS], cost[POINTS];
        int32_t rows[POINTS], i, k, expected = 0;
        tli_choice_desc desc;
        tli_choice x;
        tli_choice_points f;
        memset(&desc, 0, sizeof desc);
        memset(&x, 0, sizeof x);
        memset(&f, 0, sizeof f);
        desc.node_count = BYTES;
        x.desc = &desc;
        x.schemes = at_hand;
        f.x = &x;
        f.points = points;
        f.schemes = schemes;
        f.rows = rows;
        f.closed = closed;
        f.limit = POINTS;
        for (i = 0; i < POINTS; i++) {
            tli_choice_point point;
            loss[i] = point.limited = tl_next_random_below(&random, 10);
            cost[i] = point.value = tl_next_random_below(&random, 10);
            memset(at_hand, i, BYTES);
            tli_choice_add_point(&f, point, cost[i]);
        }
        for (i = 0; i < POINTS; i++) {      // of equal ones the first counts
            int stays = 1;
            for (k = 0; k < POINTS && stays; k++)
                stays = k == i || loss[k] > loss[i] || cost[k] > cost[i] || (loss[k] == loss[i] && cost[k] == cost[i] && k > i);
            expected += stays;
        }
        assert_int_equal(f.count, expected);
        dropped += POINTS - expected;
        for (i = 0; i < f.count; i++) {
            uint8_t of = schemes[rows[i] * BYTES];
            assert_true(rows[i] < f.count && of < POINTS && points[i].loss == loss[of] && points[i].cost == cost[of]);
            assert_true(!i || (points[i - 1].loss < points[i].loss && points[i - 1].cost > points[i].cost));
        }
    }
    assert_true(dropped > rounds);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_choices_are_what_brute_force_says),
        cmocka_unit_test(the_search_is_valid_and_its_tree_is_exact),
        cmocka_unit_test(what_cannot_be_divided_further_keeps_its_bound),
        cmocka_unit_test(a_divided_graph_has_the_same_best),
        cmocka_unit_test(every_allocation_of_a_divided_graph_fails_in_turn),
        cmocka_unit_test(a_change_is_priced_by_its_nets_alone),
        cmocka_unit_test(reference_fronts_are_found),
        cmocka_unit_test(large_graphs_are_within_two_percent),
        cmocka_unit_test(a_proven_cost_cannot_be_undercut),
        cmocka_unit_test(with_little_work_choices_are_valid_and_bounded),
        cmocka_unit_test(a_conversion_is_paid_once_for_all_readers),
        cmocka_unit_test(a_selection_of_the_front_has_both_ends),
        cmocka_unit_test(a_long_front_is_thinned),
        cmocka_unit_test(the_same_desc_is_the_same_choice_on_every_machine),
        cmocka_unit_test(every_allocation_fails_in_turn),
        cmocka_unit_test(what_is_not_possible_names_the_nearest_limit),
        cmocka_unit_test(a_wide_graph_says_what_was_found),
        cmocka_unit_test(a_front_keeps_what_no_other_point_is_as_good_as),
        cmocka_unit_test(quotients_round_as_they_are_told),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
