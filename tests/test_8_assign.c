// [8] PARALLEL: the number of replicas, and nodes of graphs on ranks, against enumeration.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"

static uint64_t divided(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

static uint64_t below(tl_random *random, uint64_t limit) { return tl_next_random_below(random, limit); }

// -- replicas --

static tl_replicas_desc replicas_of(uint64_t compute, uint64_t bytes, int32_t limit, const tl_link *link) {
    tl_replicas_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.compute_ns = compute;
    desc.parameter_bytes = desc.gradient_bytes = bytes;
    desc.replica_limit = limit;
    desc.link = link;
    return desc;
}

// A ring of 4 over 1 GB/s: 6 transfers of 250 bytes, each 250 ns and 10 ns of latency.
static void a_ring_by_hand(void **state) {
    tl_link link = { 1000000000, 10 };
    tl_replicas_desc desc = replicas_of(8000, 1000, 8, &link);
    tl_replicas r;
    (void)state;
    assert_int_equal(tl_estimate_replicas(NULL, &desc, 4, &r), TL_OK);
    assert_true(r.compute_ns == 2000 && r.exchange_ns == 6 * 260 && r.time_ns == 3560 && r.sent_bytes == 1500);
    assert_true(r.bytes == 2000 && r.fits && r.replica_count == 4);
    assert_int_equal(tl_estimate_replicas(NULL, &desc, 1, &r), TL_OK);
    assert_true(r.time_ns == 8000 && !r.exchange_ns && !r.sent_bytes);
}

// Optimizer state, then gradients, are held in shares; what is sent stays as much.
static void sharding_divides_bytes_and_sends_as_much(void **state) {
    tl_link link = { 1000000000, 0 };
    tl_replicas_desc desc = replicas_of(0, 1000, 8, &link);
    uint64_t bytes[3], sent[3];
    int i;
    (void)state;
    desc.optimizer_bytes = 8000;
    desc.activation_bytes = 400;
    desc.rank_bytes = 7;
    for (i = 0; i < 3; i++) {
        tl_replicas r;
        desc.zero_stage = i;
        assert_int_equal(tl_estimate_replicas(NULL, &desc, 4, &r), TL_OK);
        bytes[i] = r.bytes;
        sent[i] = r.sent_bytes;
    }
    assert_true(bytes[0] == 1000 + 1000 + 8000 + 100 + 7);
    assert_true(bytes[1] == 1000 + 1000 + 2000 + 100 + 7);
    assert_true(bytes[2] == 1000 + 250 + 2000 + 100 + 7);
    assert_true(sent[0] == 1500 && sent[1] == sent[0] && sent[2] == sent[0]);
    desc.gradient_bytes = 3000;         // gradients of f32, weights handed round in f16
    for (i = 0; i < 3; i++) {
        tl_replicas r;
        desc.zero_stage = i;
        assert_int_equal(tl_estimate_replicas(NULL, &desc, 4, &r), TL_OK);
        assert_true(r.sent_bytes == (i ? 3 * (750 + 250) : 6 * 750));
    }
}

// What every number takes, from the formulas alone; the least time of those that fit.
static void random_steps_get_the_best_number(void **state) {
    tl_random random = { 5 };
    int round, alone = 0, refused = 0;
    (void)state;
    for (round = 0; round < scaled(20000); round++) {
        tl_link link = { 100000000 + below(&random, 4000000000u), below(&random, 300) };
        tl_replicas_desc desc = replicas_of(below(&random, 100000), below(&random, 5000), 1 + (int32_t)below(&random, 16), &link);
        uint64_t best = 0, best_p = 0, least = UINT64_MAX, p;
        tl_replicas r;
        tl_env env = silent_env();
        tl_result result;
        desc.optimizer_bytes = below(&random, 9000);
        desc.activation_bytes = below(&random, 9000);
        desc.budget_bytes = below(&random, 3) ? 3000 + below(&random, 20000) : 0;
        desc.sample_count = below(&random, 2) ? 1 + (int32_t)below(&random, 40) : 0;
        desc.zero_stage = (int32_t)below(&random, 3);
        desc.is_weak = (int32_t)below(&random, 2);
        for (p = 1; p <= (uint64_t)desc.replica_limit; p++) {
            uint64_t samples = (uint64_t)desc.sample_count, share = samples ? divided(samples, p) : 1, time, bytes, other, i;
            if (samples && p > samples) break;
            time = desc.is_weak ? desc.compute_ns : divided(desc.compute_ns * share, samples ? samples : p);
            bytes = desc.is_weak ? desc.activation_bytes : divided(desc.activation_bytes * share, samples ? samples : p);
            bytes += desc.parameter_bytes + (desc.zero_stage == 2 ? divided(desc.gradient_bytes, p) : desc.gradient_bytes);
            bytes += desc.zero_stage ? divided(desc.optimizer_bytes, p) : desc.optimizer_bytes;
            other = desc.zero_stage ? desc.parameter_bytes : desc.gradient_bytes;
            for (i = 0; i < 2; i++) {   // two rounds of p - 1 transfers
                uint64_t part = divided(i ? other : desc.gradient_bytes, p);
                time += divided((p - 1) * part * 1000000000, link.bytes_per_second) + (p - 1) * link.latency_ns;
            }
            if (bytes < least) least = bytes;
            if (desc.budget_bytes && bytes > desc.budget_bytes) continue;
            if (!best_p || (desc.is_weak ? time * best_p < best * p : time < best)) { best = time; best_p = p; }
        }
        result = tl_choose_replicas(&env, &desc, &r);
        if (!best_p) {
            assert_true(result == TL_ERROR_INFEASIBLE && tl_find_least_budget(&env.error) == least && is_zero(&r, sizeof r));
            refused++;
            continue;
        }
        assert_int_equal(result, TL_OK);
        if ((uint64_t)r.replica_count != best_p || r.time_ns != best || !r.fits) fail_msg("round %d", round);
        alone += r.replica_count == 1;
    }
    assert_true(alone > round / 50 && refused > round / 50);
}

// A step of 7 ns with a batch on each replica: 7 / 6 for each is less than 7 / 5, though both are 1 and something.
static void fractions_of_a_nanosecond_count(void **state) {
    tl_replicas_desc desc = replicas_of(7, 0, 6, NULL);
    tl_replicas r;
    (void)state;
    desc.is_weak = 1;
    assert_int_equal(tl_choose_replicas(NULL, &desc, &r), TL_OK);
    assert_int_equal(r.replica_count, 6);
}

static void wrong_replicas_are_named(void **state) {
    tl_link link = { 1, 0 };
    int i;
    (void)state;
    for (i = 0; i < 7; i++) {
        static const char *const texts[] = { "replica_limit", "zero_stage", "sample_count", "is_weak", "bytes_per_second", "62 bits", "62 bits" };
        tl_replicas_desc desc = replicas_of(10, 10, 4, &link);
        tl_replicas r;
        tl_env env = silent_env();
        if (i == 0) desc.replica_limit = 0;
        if (i == 1) desc.zero_stage = 3;
        if (i == 2) desc.sample_count = -1;
        if (i == 3) desc.is_weak = 2;
        link.bytes_per_second = i != 4;
        if (i == 5) desc.gradient_bytes = UINT64_MAX / 2;
        if (i == 6) desc.compute_ns = UINT64_MAX;
        assert_int_equal(tl_choose_replicas(&env, &desc, &r), i < 5 ? TL_ERROR_INVALID_ARG : TL_ERROR_OVERFLOW);
        if (!strstr(env.error.text, texts[i])) fail_msg("%s", env.error.text);
        assert_true(is_zero(&r, sizeof r));
        if (i < 5) continue;
        assert_int_equal(tl_estimate_replicas(&env, &desc, 2, &r), TL_ERROR_OVERFLOW);
        assert_true(is_zero(&r, sizeof r) && strstr(env.error.text, "tl_estimate_replicas: "));
    }
}

// -- placement: an independent clock --

#define NODES_AT_MOST 32
#define EDGES_AT_MOST 96
#define RANKS_AT_MOST 4

typedef struct random_graph_of_costs {
    tl_placement_node nodes[NODES_AT_MOST];
    tl_placement_edge edges[EDGES_AT_MOST];
    tl_rank ranks[RANKS_AT_MOST];
    tl_link link;
    tl_placement_desc desc;
} random_graph_of_costs;

// The end of the last node, by going through the listing; UINT64_MAX = a budget is exceeded.
static uint64_t clock_of(const tl_placement_desc *desc, const int32_t *rank_of, uint64_t *sent) {
    uint64_t ends[NODES_AT_MOST], free_at[RANKS_AT_MOST] = {0}, held[RANKS_AT_MOST] = {0}, total = 0;
    uint64_t wire[RANKS_AT_MOST][RANKS_AT_MOST], arrived[EDGES_AT_MOST];
    int32_t v, e, k;
    memset(wire, 0, sizeof wire);
    *sent = 0;
    for (v = 0; v < desc->node_count; v++) {
        int32_t here = rank_of[v];
        uint64_t over = desc->ranks && desc->ranks[here].cost_numerator ? desc->ranks[here].cost_numerator : 1;
        uint64_t under = desc->ranks && desc->ranks[here].cost_denominator ? desc->ranks[here].cost_denominator : 1;
        uint64_t budget = desc->ranks ? desc->ranks[here].budget_bytes : desc->budget_bytes, start = free_at[here];
        held[here] += desc->nodes[v].bytes;
        if (budget && held[here] > budget) return UINT64_MAX;
        for (e = 0; e < desc->edge_count; e++) {
            const tl_placement_edge *edge = &desc->edges[e];
            int32_t there = rank_of[edge->from];
            if (edge->to != v) continue;
            arrived[e] = ends[edge->from];
            for (k = 0; there != here && k < desc->edge_count; k++) {   // has the same tensor come to this rank before?
                const tl_placement_edge *other = &desc->edges[k];
                if (other->from == edge->from && other->output == edge->output && rank_of[other->to] == here &&
                    (other->to < v || (other->to == v && k < e))) break;
            }
            if (there != here && k < desc->edge_count) {
                arrived[e] = arrived[k];
            } else if (there != here) {
                if (wire[there][here] > arrived[e]) arrived[e] = wire[there][here];
                if (desc->link) arrived[e] += divided(edge->bytes * 1000000000, desc->link->bytes_per_second) + desc->link->latency_ns;
                wire[there][here] = arrived[e];
                *sent += edge->bytes;
            }
            if (arrived[e] > start) start = arrived[e];
        }
        ends[v] = free_at[here] = start + divided(desc->nodes[v].cost_ns * over, under);
        if (ends[v] > total) total = ends[v];
    }
    return total;
}

static void fill_graph(tl_random *random, random_graph_of_costs *g, int32_t most_nodes, int32_t most_ranks) {
    tl_placement_desc *desc = &g->desc;
    int32_t v, u, i;
    memset(g, 0, sizeof *g);
    desc->nodes = g->nodes;
    desc->edges = g->edges;
    desc->node_count = 1 + (int32_t)below(random, (uint64_t)most_nodes);
    desc->rank_count = 1 + (int32_t)below(random, (uint64_t)most_ranks);
    for (v = 0; v < desc->node_count; v++) {
        g->nodes[v].cost_ns = below(random, 30);
        g->nodes[v].bytes = below(random, 20);
        for (u = 0; u < v; u++) {
            int32_t copies = below(random, 4) ? 0 : 1 + (int32_t)below(random, 2);
            for (; copies > 0 && desc->edge_count < EDGES_AT_MOST; copies--) {
                tl_placement_edge *edge = &g->edges[desc->edge_count++];
                edge->from = u;
                edge->to = v;
                edge->output = (int32_t)below(random, 2);
                edge->bytes = (uint64_t)(u * 7 + edge->output * 5) % 23;
            }
        }
    }
    for (i = desc->edge_count; i > 1; i--) {        // in any order
        int32_t k = (int32_t)below(random, (uint64_t)i);
        tl_placement_edge swap = g->edges[k];
        g->edges[k] = g->edges[i - 1];
        g->edges[i - 1] = swap;
    }
    for (i = 0; i < desc->rank_count; i++) {
        g->ranks[i].cost_numerator = (uint32_t)below(random, 3);
        g->ranks[i].cost_denominator = (uint32_t)below(random, 3);
        g->ranks[i].budget_bytes = below(random, 3) ? 10 + below(random, 60) : 0;
    }
    if (!below(random, 3)) desc->ranks = g->ranks;
    else if (below(random, 2)) desc->budget_bytes = 10 + below(random, 60);
    g->link.bytes_per_second = 500000000 + below(random, 3000000000u);
    g->link.latency_ns = below(random, 5);
    if (below(random, 4)) desc->link = &g->link;
}

static void assert_is_sound(const tl_placement_desc *desc, const tl_placement *placement) {
    uint64_t bytes[RANKS_AT_MOST] = {0}, sent;
    int32_t v;
    assert_true(clock_of(desc, placement->rank_of, &sent) == placement->total_ns && sent == placement->sent_bytes);
    assert_true(placement->bound_ns <= placement->total_ns);
    assert_int_equal(placement->is_proven, placement->bound_ns == placement->total_ns);
    for (v = 0; v < desc->node_count; v++) bytes[placement->rank_of[v]] += desc->nodes[v].bytes;
    for (v = 0; v < desc->rank_count; v++) assert_true(bytes[v] == placement->rank_bytes[v]);
}

// The least end of all placements; UINT64_MAX = none keeps the budgets.
static uint64_t least_of_all(const tl_placement_desc *desc) {
    int32_t rank_of[NODES_AT_MOST] = {0}, v = 0;
    uint64_t best = UINT64_MAX, sent;
    while (v < desc->node_count) {
        uint64_t end = clock_of(desc, rank_of, &sent);
        if (end < best) best = end;
        for (v = 0; v < desc->node_count && ++rank_of[v] == desc->rank_count; v++) rank_of[v] = 0;
    }
    return best;
}

static void small_graphs_are_placed_as_enumeration_says(void **state) {
    tl_random random = { 3 };
    int rounds = scaled(3000), round, refused = 0, split = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        random_graph_of_costs g;
        tl_placement placement;
        tl_env env = silent_env();
        tl_result result;
        uint64_t best;
        fill_graph(&random, &g, 8, 3);
        best = least_of_all(&g.desc);
        result = tl_plan_placement(&env, &g.desc, &placement);
        if (best == UINT64_MAX) {
            assert_true(result == TL_ERROR_INFEASIBLE && is_zero(&placement, sizeof placement));
            g.desc.ranks = NULL;        // the bytes that the error names would do
            g.desc.budget_bytes = tl_find_least_budget(&env.error);
            assert_int_equal(tl_plan_placement(&env, &g.desc, &placement), TL_OK);
            tl_free_placement(NULL, &placement);
            refused++;
            continue;
        }
        if (result || placement.total_ns != best || !placement.is_proven)
            fail_msg("round %d: %llu, not %llu: %s", round, (unsigned long long)placement.total_ns, (unsigned long long)best, env.error.text);
        assert_is_sound(&g.desc, &placement);
        split += placement.sent_bytes > 0;
        tl_free_placement(NULL, &placement);
    }
    printf("    %d graphs, %d infeasible, %d with transfers\n", rounds, refused, split);
    assert_true(refused > rounds / 50 && split > rounds / 10);
}

// With little work, and without the search, answers are placements still, and bounds are below the least.
static void little_work_never_breaks_the_bound(void **state) {
    tl_random random = { 4 };
    int rounds = scaled(1500), round, unproven = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        random_graph_of_costs g;
        tl_placement placement;
        uint64_t best;
        fill_graph(&random, &g, 7, 3);
        g.desc.work_limit = 1 + below(&random, 20);
        best = least_of_all(&g.desc);
        if (tl_plan_placement(NULL, &g.desc, &placement)) continue;
        assert_is_sound(&g.desc, &placement);
        assert_true(best != UINT64_MAX && placement.bound_ns <= best && placement.total_ns >= best);
        unproven += !placement.is_proven;
        tl_free_placement(NULL, &placement);
    }
    assert_true(unproven > rounds / 20);
}

static void larger_graphs_keep_budgets_and_bounds(void **state) {
    tl_random random = { 6 };
    int rounds = 10 + scaled(50), round, proven = 0, planned = 0;
    double gap = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        random_graph_of_costs g;
        tl_placement placement;
        do fill_graph(&random, &g, NODES_AT_MOST, RANKS_AT_MOST); while (g.desc.node_count < 20 || g.desc.rank_count < 2);
        g.desc.work_limit = 300000;
        if (g.desc.budget_bytes) g.desc.budget_bytes += 250;
        if (tl_plan_placement(NULL, &g.desc, &placement)) continue;
        planned++;
        assert_is_sound(&g.desc, &placement);
        proven += placement.is_proven;
        gap += (double)(placement.total_ns - placement.bound_ns) / (double)placement.bound_ns;
        tl_free_placement(NULL, &placement);
    }
    printf("    %d graphs of 20 to %d nodes, %d proven, mean distance to the bound %.1f %%\n", planned, NODES_AT_MOST, proven,
           100 * gap / planned);
    assert_true(planned > rounds / 2 && proven > 0 && gap / planned < 1);
}

// Two chains side by side go to two ranks whole; their ends meet.
static void independent_chains_go_apart(void **state) {
    static const tl_placement_node nodes[] = { {10, 1}, {10, 1}, {10, 1}, {10, 1}, {1, 1} };
    static const tl_placement_edge edges[] = { {0, 2, 0, 5}, {1, 3, 0, 5}, {2, 4, 0, 5}, {3, 4, 0, 5} };
    tl_link link = { 1000000000, 1 };
    tl_placement placement;
    tl_placement_desc desc;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.nodes = nodes;
    desc.node_count = 5;
    desc.edges = edges;
    desc.edge_count = 4;
    desc.rank_count = 2;
    desc.link = &link;
    assert_int_equal(tl_plan_placement(NULL, &desc, &placement), TL_OK);
    assert_true(placement.total_ns == 27 && placement.is_proven && placement.sent_bytes == 5);
    assert_true(placement.rank_of[0] == placement.rank_of[2] && placement.rank_of[1] == placement.rank_of[3]);
    tl_free_placement(NULL, &placement);
}

static void wrong_placements_are_named(void **state) {
    static const char *const texts[] = { "node_count", "rank_count", "bytes_per_second", "edge 1 must lead", "edge 1 must lead",
                                         "edge 1 has other bytes", "62 bits", "62 bits", "62 bits", "budget_bytes: no placement was found; 9", "edges: edge 0" };
    int i;
    (void)state;
    for (i = 0; i < 11; i++) {
        tl_placement_node nodes[3] = { {10, 9}, {10, 9}, {10, 9} };
        tl_placement_edge edges[2] = { {0, 1, 0, 5}, {0, 2, 0, 5} };
        tl_link link = { 1000, 0 };
        tl_placement placement;
        tl_placement_desc desc;
        tl_env env = silent_env();
        tl_result expected = i < 6 || i > 9 ? TL_ERROR_INVALID_ARG : i < 9 ? TL_ERROR_OVERFLOW : TL_ERROR_INFEASIBLE;
        memset(&desc, 0, sizeof desc);
        desc.nodes = nodes;
        desc.node_count = i ? 3 : 0;
        desc.edges = edges;
        desc.edge_count = 2;
        desc.rank_count = i == 1 ? 0 : 3;
        desc.link = &link;
        if (i == 2) link.bytes_per_second = 0;
        if (i == 3) edges[1].from = 2;
        if (i == 4) edges[1].to = 3;
        if (i == 5) edges[1].bytes = 6;
        if (i == 6) nodes[1].cost_ns = UINT64_MAX / 2;
        if (i == 7) nodes[1].bytes = UINT64_MAX;
        if (i == 8) edges[0].bytes = edges[1].bytes = UINT64_MAX / 4;
        if (i == 9) desc.budget_bytes = 8;
        if (i == 10) desc.edge_count = -1;
        assert_int_equal(tl_plan_placement(&env, &desc, &placement), expected);
        if (!strstr(env.error.text, texts[i])) fail_msg("%d: %s", i, env.error.text);
        assert_true(is_zero(&placement, sizeof placement));
    }
}

static void an_allocation_that_fails_is_an_error(void **state) {
    tl_random random = { 9 };
    random_graph_of_costs g;
    int at;
    (void)state;
    do fill_graph(&random, &g, 12, 3); while (g.desc.node_count < 8 || g.desc.rank_count < 2 || g.desc.ranks || g.desc.budget_bytes);
    for (at = 0; ; at++) {
        failing_alloc f = {0, 0, 0, 0};
        tl_env env = failing_env(&f, at);
        tl_placement placement;
        tl_result result = tl_plan_placement(&env, &g.desc, &placement);
        if (result) assert_true(result == TL_ERROR_NO_MEMORY && is_zero(&placement, sizeof placement));
        tl_free_placement(&env, &placement);
        assert_int_equal(f.live, 0);
        if (f.count > at) continue;
        assert_int_equal(result, TL_OK);
        assert_true(at >= 20);
        break;
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_by_hand),
        cmocka_unit_test(sharding_divides_bytes_and_sends_as_much),
        cmocka_unit_test(random_steps_get_the_best_number),
        cmocka_unit_test(fractions_of_a_nanosecond_count),
        cmocka_unit_test(wrong_replicas_are_named),
        cmocka_unit_test(independent_chains_go_apart),
        cmocka_unit_test(small_graphs_are_placed_as_enumeration_says),
        cmocka_unit_test(little_work_never_breaks_the_bound),
        cmocka_unit_test(larger_graphs_keep_budgets_and_bounds),
        cmocka_unit_test(wrong_placements_are_named),
        cmocka_unit_test(an_allocation_that_fails_is_an_error),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
