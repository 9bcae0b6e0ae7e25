// [3] GRAPH: regions of rows: the division against all others, rings against the least, refusals.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/row_nets.h"

// -- divisions --

// What a region takes when it is walked through by itself; UINT64_MAX = there is none.
static uint64_t region_peak(tli_regions *g, int32_t first, int32_t last, uint64_t rows, uint64_t *calls) {
    tli_region_sum sum;
    int32_t at;
    if (first < g->lowest[last] || first == last || g->graph->nodes[g->members[last].node].is_input) return UINT64_MAX;
    memset(&sum, 0, sizeof sum);
    sum.rows = rows;
    tli_walk_region(g, first, last, rows);
    for (at = last; at >= first; at--) tli_add_member(g, &sum, at);
    *calls = sum.calls;
    return g->crossing[first] + sum.outputs + sum.rings + sum.scratch;
}

typedef struct brute {
    tli_regions *g;
    uint64_t limit;             // of peaks; UINT64_MAX = calls do not matter
    uint64_t peak, calls;       // the least peak, and the fewest calls within the limit
} brute;

// Try all divisions of the candidates from `first` on, behind which peak and calls are known.
static void try_divisions(brute *b, int32_t first, uint64_t peak, uint64_t calls, int one_row) {
    int32_t last;
    if (first == b->g->count) {
        if (one_row && peak < b->peak) b->peak = peak;
        if (peak <= b->limit && calls < b->calls) b->calls = calls;
        return;
    }
    if (b->g->wholes[first] != UINT64_MAX)
        try_divisions(b, first + 1, tli_larger_u64(peak, b->g->wholes[first]), calls + 1, one_row);
    for (last = first + 1; last < b->g->count; last++) {
        uint64_t rows;
        for (rows = 1; rows < 2 * MOST_ROWS; rows *= 2) {
            uint64_t more = 0, found = region_peak(b->g, first, last, rows, &more);
            if (found == UINT64_MAX) break;
            try_divisions(b, last + 1, tli_larger_u64(peak, found), calls + more, one_row && rows == 1);
        }
    }
}

static void check_division(const row_net *n, tl_random *random) {
    tl_env env = silent_env();
    tl_rows_desc desc;
    tl_rows_plan plan;
    tli_regions g;
    brute b;
    memset(&desc, 0, sizeof desc);
    desc.graph = &n->graph;
    desc.alignment_bytes = UINT64_C(1) << random_count(random, 0, 4);
    if (random_chance(random, 50)) desc.in_slots = n->in_slots;
    assert_true(tli_open_regions(&env, &desc, &g));
    assert_int_equal(tli_prepare_regions(&g), TL_OK);
    b.g = &g;
    b.peak = b.calls = UINT64_MAX;
    b.limit = 0;
    try_divisions(&b, 0, 0, 0, 1);
    if (random_chance(random, 50)) desc.budget_bytes = b.peak + tl_next_random_below(random, b.peak + 1);
    b.limit = desc.budget_bytes ? desc.budget_bytes : b.peak;
    b.calls = UINT64_MAX;
    try_divisions(&b, 0, 0, 0, 1);
    tli_close_regions(&g);
    assert_int_equal(tl_plan_rows(&env, &desc, &plan), TL_OK);
    assert_true(plan.peak_bytes <= b.limit);
    assert_int_equal(plan.call_count, b.calls);
    if (!desc.budget_bytes) assert_int_equal(plan.peak_bytes, b.peak);
    assert_int_equal(tl_check_graph(&env, &plan.graph), TL_OK);
    tl_free_rows_plan(&env, &plan);
    desc.budget_bytes = b.peak - 1;
    if (!desc.budget_bytes) return;
    assert_int_equal(tl_plan_rows(&env, &desc, &plan), TL_ERROR_INFEASIBLE);
    assert_int_equal(tl_find_least_budget(&env.error), b.peak);
    assert_null(plan.memory);
}

static void divisions_are_the_best_of_all(void **state) {
    int32_t count = scaled(2000), i, regions = 0;
    static row_net n;
    (void)state;
    for (i = 0; i < count; i++) {
        tl_env env = silent_env();
        tl_random random = {(uint64_t)i + 77};
        random_row_net(&n, (uint64_t)i + 100000, 8);
        check_division(&n, &random);
        regions++;
        tl_free_graph(&env, &n.graph);
    }
    assert_int_equal(regions, count);
}

// -- rings --

// A ring with what is in it: rows of which tensor.
typedef struct slot { int32_t node; int64_t row; } slot;

// Whether a region's calls find all rows that they read when the ring of one member, and of those that share it, has
// so many rows. Rows of other rings are always found.
static int rings_hold(const row_net *n, const tl_rows_plan *plan, int32_t region, int32_t owner, uint64_t rows) {
    static uint64_t made[2 * MOST_NODES];
    static slot ring[4 * MOST_ROWS];
    tli_row_walk walk;
    tli_row_call call;
    int32_t first = plan->first_members[region], k;
    const tl_row_member *members = plan->members + first;
    memset(made, 0, sizeof made);
    for (k = 0; k < 4 * MOST_ROWS; k++) ring[k].node = -1;
    walk.graph = &n->graph;
    walk.members = members;
    walk.links = plan->links;
    walk.made = made;
    walk.first = 0;
    walk.last = plan->first_members[region + 1] - first - 1;
    while (tli_next_row_call(&walk, &call)) {
        const tl_row_member *m = &members[call.member];
        const row_layer *l = &n->layers[m->node];
        uint64_t row;
        for (row = call.first; row < call.first + call.count; row++)
            for (k = 0; k < l->input_count; k++) {
                int32_t from = plan->links[m->first_link + k].member, at = from, place = from;
                int64_t under = first_under(&l->relations[k], row), j;
                if (from < 0 || !members[from].ring_rows) continue;
                while (members[at].shares >= 0) at = members[at].shares;
                if (at != owner) continue;
                while (members[place].shares >= 0 && !members[place].takes_slots) place = members[place].shares;
                for (j = 0; j < rows_under(&l->relations[k], members[from].rows); j++, under += step_under(&l->relations[k])) {
                    int64_t where = under;
                    if (under < 0 || under >= (int64_t)members[from].rows) continue;
                    if (members[place].takes_slots)
                        where = first_under(&n->layers[members[place].node].relations[members[place].takes_slots - 1], (uint64_t)under) + (int64_t)rows;
                    if (ring[where % (int64_t)rows].node != members[from].node || ring[where % (int64_t)rows].row != under) return 0;
                }
            }
        for (row = call.first; row < call.first + call.count && m->ring_rows; row++) {
            int32_t at = call.member, place = call.member;
            int64_t where = (int64_t)row;
            while (members[at].shares >= 0) at = members[at].shares;
            if (at != owner) break;
            while (members[place].shares >= 0 && !members[place].takes_slots) place = members[place].shares;
            if (members[place].takes_slots)
                where = first_under(&n->layers[members[place].node].relations[members[place].takes_slots - 1], row) + (int64_t)rows;
            ring[where % (int64_t)rows].node = m->node;
            ring[where % (int64_t)rows].row = (int64_t)row;
        }
        made[call.member] += call.count;
    }
    return 1;
}

static void rings_are_the_least_that_hold_what_is_read(void **state) {
    int32_t count = scaled(3000), i, id, at, rings = 0, larger = 0;
    static row_net n;
    (void)state;
    for (i = 0; i < count; i++) {
        tl_env env = silent_env();
        tl_rows_desc desc;
        tl_rows_plan plan;
        random_row_net(&n, (uint64_t)i + 1, MOST_NODES);
        memset(&desc, 0, sizeof desc);
        desc.graph = &n.graph;
        if (i % 2) desc.in_slots = n.in_slots;
        assert_int_equal(tl_plan_rows(&env, &desc, &plan), TL_OK);
        for (id = 0; id < plan.graph.node_count; id++) {
            int streams = 0;
            for (at = plan.first_members[id]; at < plan.first_members[id + 1]; at++) streams |= n.layers[plan.members[at].node].is_input;
            assert_int_equal(plan.graph.nodes[id].once, streams);     // rows of a stream come once
            for (at = 0; at < plan.first_members[id + 1] - plan.first_members[id]; at++) {
                const tl_row_member *m = &plan.members[plan.first_members[id] + at];
                if (!m->ring_rows || m->shares >= 0) continue;
                assert_true(rings_hold(&n, &plan, id, at, m->ring_rows));
                rings++;
                larger += m->ring_rows > 1 && rings_hold(&n, &plan, id, at, m->ring_rows - 1);
            }
        }
        tl_free_rows_plan(&env, &plan);
        tl_free_graph(&env, &n.graph);
    }
    print_message("%d rings, %d of which could be smaller\n", (int)rings, (int)larger);
    assert_true(rings > count && larger * 20 < rings);
}

// -- searches --

// The calls of a region one after the other, found anew and by going on where the last search ended.
static void check_search(const row_net *n, const tl_rows_plan *plan, int32_t region) {
    static uint64_t made[2 * MOST_NODES];
    static int32_t asked[2 * MOST_NODES];
    int32_t first = plan->first_members[region];
    tli_row_walk walk;
    tli_row_search search;
    tli_row_call call, other;
    memset(made, 0, sizeof made);
    walk.graph = &n->graph;
    walk.members = plan->members + first;
    walk.links = plan->links;
    walk.made = made;
    walk.first = 0;
    walk.last = plan->first_members[region + 1] - first - 1;
    search = tli_begin_row_search(&walk, asked);
    while (tli_next_row_call(&walk, &call)) {
        assert_true(tli_follow_row_call(&walk, &search, &other));
        assert_int_equal(call.member, other.member);
        assert_int_equal(call.first, other.first);
        assert_int_equal(call.count, other.count);
        made[call.member] += call.count;
    }
    assert_false(tli_follow_row_call(&walk, &search, &other));
}

// Random nets with little work: plans are worse, and as sound.
static void searches_end_at_the_work_limit(void **state) {
    int32_t count = scaled(1000), i, id, at, less = 0;
    static row_net n;
    (void)state;
    if (count < 200) count = 200;   // fewer need not have plans that a limit makes worse
    for (i = 0; i < count; i++) {
        tl_env env = silent_env();
        tl_random random = {(uint64_t)i};
        tl_rows_desc desc;
        tl_rows_plan plan, best;
        random_row_net(&n, (uint64_t)i + 500000, MOST_NODES);
        memset(&desc, 0, sizeof desc);
        desc.graph = &n.graph;
        assert_int_equal(tl_plan_rows(&env, &desc, &best), TL_OK);
        desc.work_limit = 1 + tl_next_random_below(&random, 4000);
        assert_int_equal(tl_plan_rows(&env, &desc, &plan), TL_OK);
        assert_int_equal(tl_check_graph(&env, &plan.graph), TL_OK);
        assert_true(plan.peak_bytes >= best.peak_bytes && plan.peak_bytes <= plan.whole_bytes);
        less += plan.peak_bytes > best.peak_bytes;
        for (id = 0; id < plan.graph.node_count; id++) {
            check_search(&n, &plan, id);
            for (at = 0; at < plan.first_members[id + 1] - plan.first_members[id]; at++) {
                const tl_row_member *m = &plan.members[plan.first_members[id] + at];
                if (m->ring_rows && m->shares < 0) assert_true(rings_hold(&n, &plan, id, at, m->ring_rows));
            }
        }
        tl_free_rows_plan(&env, &plan);
        tl_free_rows_plan(&env, &best);
        tl_free_graph(&env, &n.graph);
    }
    assert_true(less > count / 20 && less < count);
}

typedef struct asked_of { long count, stop_at; uint64_t work, work_limit; } asked_of;

static int ask(const tl_rows_progress *progress, void *user) {
    asked_of *a = (asked_of *)user;
    assert_true(progress->work > a->work && progress->work_limit >= progress->work);
    a->work = progress->work;
    a->work_limit = progress->work_limit;
    return ++a->count == a->stop_at;
}

static int32_t add_rows(tl_graph *graph, const char *op, int32_t from, uint64_t rows, int32_t axis, tl_relation relation);

// A chain of windows whose rows are many, behind a stream.
static void build_chain(tl_graph *graph, int32_t count) {
    static const tl_relation window = {TL_RELATION_WINDOW, 3, 1, 1, 1};
    int32_t id = -1;
    tl_init_graph(graph);
    for (; count > 0; count--) id = add_rows(graph, id < 0 ? "input" : "conv", id, 500, 0, window);
    ((tl_node_rows *)(uintptr_t)tli_find_rows(graph, 0))->stream = 1;
}

static void progress_is_asked_and_may_stop(void **state) {
    tl_env env = silent_env();
    tl_rows_desc desc;
    tl_rows_plan all, plan;
    tl_graph graph;
    asked_of a = {0, 0, 0, 0};
    uint64_t work;
    (void)state;
    build_chain(&graph, 150);
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.progress = ask;
    desc.user = &a;
    assert_int_equal(tl_plan_rows(&env, &desc, &all), TL_OK);
    assert_true(a.count > 5 && a.work_limit == 100000000);
    work = a.work;
    for (a.stop_at = 1; a.stop_at < 10; a.stop_at += 2) {
        a.count = 0;
        a.work = 0;
        assert_int_equal(tl_plan_rows(&env, &desc, &plan), TL_OK);
        assert_int_equal(a.count, a.stop_at);
        assert_int_equal(tl_check_graph(&env, &plan.graph), TL_OK);
        assert_true(plan.peak_bytes >= all.peak_bytes && plan.peak_bytes <= plan.whole_bytes);
        assert_true(plan.region_count > 0 && plan.nodes[0] == plan.nodes[1]);   // the stream is in a region
        tl_free_rows_plan(&env, &plan);
    }
    a.stop_at = 1;
    a.work = a.count = 0;
    desc.budget_bytes = all.peak_bytes - 1;
    assert_int_equal(tl_plan_rows(&env, &desc, &plan), TL_ERROR_INFEASIBLE);
    assert_true(tl_find_least_budget(&env.error) >= all.peak_bytes && a.count == 1);
    a.stop_at = a.count = 0;
    a.work = 0;
    desc.budget_bytes = 0;
    desc.work_limit = work / 4;
    assert_int_equal(tl_plan_rows(&env, &desc, &plan), TL_OK);
    assert_true(a.work <= desc.work_limit + 1000000);
    tl_free_rows_plan(&env, &plan);
    tl_free_rows_plan(&env, &all);
    tl_free_graph(&env, &graph);
}

// -- refusals --

static int32_t add_rows(tl_graph *graph, const char *op, int32_t from, uint64_t rows, int32_t axis, tl_relation relation) {
    tl_env env = silent_env();
    tl_node_desc desc;
    tl_tensor input = {from, 0};
    uint64_t bytes = 16 * rows;
    int32_t id;
    memset(&desc, 0, sizeof desc);
    desc.op = op;
    desc.inputs = &input;
    desc.input_count = from >= 0;
    desc.output_bytes = &bytes;
    desc.output_count = 1;
    desc.rows = rows;
    desc.row_axis = axis;
    desc.relations = from >= 0 ? &relation : NULL;
    desc.no_grad = from >= 0;
    assert_int_equal(tl_add_node(&env, graph, &desc, &id), TL_OK);
    return id;
}

static void relations_that_do_not_fit_are_refused(void **state) {
    static const struct { tl_relation relation; uint64_t rows; int32_t axis; const char *text; } cases[] = {
        {{TL_RELATION_SAME, 0, 0, 0, 0}, 4, 0, "node 1 (n1): rin: an input that is read 1:1 has another number of rows"},
        {{TL_RELATION_SAME, 0, 0, 0, 0}, 8, 1, "node 1 (n1): rin: an input has its rows along another axis"},
        {{TL_RELATION_WINDOW, 3, 2, 1, 1}, 6, 0, "node 1 (n1): rin: what the last row reads begins behind the last row of an input"},
        {{TL_RELATION_UP, 0, 2, 0, 0}, 17, 0, "node 1 (n1): rin: what the last row reads begins behind the last row of an input"},
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_env env = silent_env();
        tl_rows_desc desc;
        tl_rows_plan plan;
        tl_graph graph;
        tl_init_graph(&graph);
        (void)add_rows(&graph, "input", -1, 8, 0, cases[i].relation);
        (void)add_rows(&graph, "conv", 0, cases[i].rows, cases[i].axis, cases[i].relation);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        assert_int_equal(tl_plan_rows(&env, &desc, &plan), TL_ERROR_INVALID_ARG);
        assert_non_null(strstr(env.error.text, cases[i].text));
        tl_free_graph(&env, &graph);
    }
}

static void a_desc_that_is_wrong_is_refused(void **state) {
    tl_env env = silent_env();
    tl_relation none;
    tl_rows_desc desc;
    tl_rows_plan plan;
    tl_graph graph;
    (void)state;
    memset(&none, 0, sizeof none);
    memset(&desc, 0, sizeof desc);
    tl_init_graph(&graph);
    (void)add_rows(&graph, "input", -1, 8, 0, none);
    desc.graph = &graph;
    desc.alignment_bytes = 3;
    assert_int_equal(tl_plan_rows(&env, &desc, &plan), TL_ERROR_INVALID_ARG);
    desc.alignment_bytes = UINT64_C(1) << 31;
    assert_int_equal(tl_plan_rows(&env, &desc, &plan), TL_ERROR_INVALID_ARG);
    assert_non_null(strstr(env.error.text, "at most 2^30"));
    desc.alignment_bytes = 0;
    desc.op = "input";
    assert_int_equal(tl_plan_rows(&env, &desc, &plan), TL_ERROR_INVALID_ARG);
    desc.op = "region";
    assert_int_equal(tl_plan_rows(&env, &desc, &plan), TL_OK);
    assert_int_equal(plan.region_count, 0);
    tl_free_rows_plan(&env, &plan);
    tl_free_rows_plan(&env, NULL);
    tl_free_graph(&env, &graph);
}

static void each_allocation_that_fails_is_reported(void **state) {
    static row_net n;
    long at;
    (void)state;
    random_row_net(&n, 12, MOST_NODES);
    for (at = 0;; at++) {
        failing_alloc f;
        tl_env env;
        tl_rows_desc desc;
        tl_rows_plan plan;
        tl_result result;
        memset(&f, 0, sizeof f);
        env = failing_env(&f, at);
        memset(&desc, 0, sizeof desc);
        desc.graph = &n.graph;
        result = tl_plan_rows(&env, &desc, &plan);
        assert_int_equal(result, f.count > at ? TL_ERROR_NO_MEMORY : TL_OK);
        tl_free_rows_plan(&env, &plan);
        assert_int_equal(f.live, 0);
        if (f.count <= at) break;
    }
    assert_true(at > 5);
    tl_free_graph(NULL, &n.graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divisions_are_the_best_of_all),
        cmocka_unit_test(rings_are_the_least_that_hold_what_is_read),
        cmocka_unit_test(searches_end_at_the_work_limit),
        cmocka_unit_test(progress_is_asked_and_may_stop),
        cmocka_unit_test(relations_that_do_not_fit_are_refused),
        cmocka_unit_test(a_desc_that_is_wrong_is_refused),
        cmocka_unit_test(each_allocation_that_fails_is_reported),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
