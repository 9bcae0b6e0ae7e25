// [9] COMPILE: the ways in which ranks share a batch, against every one of them planned by itself.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/texts.h"
#include "support/random_graph.h"

enum { MOST_WAYS = 64, WORK = 700000000 };   // what a desc without a limit has

// -- cases --

typedef struct ways_case {
    tl_env        env;
    tl_random     random;
    tl_graph      graph;
    tl_link       link;
    tl_ranks_desc desc;
} ways_case;

static int32_t count_nodes(const tl_graph *graph) {
    int32_t count = 0, id;
    for (id = 0; id < graph->node_count; id++) count += !graph->nodes[id].is_input;
    return count;
}

static void open_case(ways_case *c, uint64_t seed) {
    static const int32_t ranks[] = { 1, 2, 3, 4, 6, 8 };
    static const int32_t batches[] = { 1, 2, 3, 4, 6, 8, 12 };
    memset(c, 0, sizeof *c);
    c->env = silent_env();
    c->random.state = seed;
    do {
        tl_free_graph(&c->env, &c->graph);
        if (random_graph(&c->env, &c->random, 16, &c->graph)) fail_msg("%s", c->env.error.text);
    } while (count_nodes(&c->graph) < 4);
    c->desc.graph = &c->graph;
    c->desc.rank_count = ranks[tl_next_random_below(&c->random, 6)];
    c->desc.micro_batch_count = batches[tl_next_random_below(&c->random, 7)];
    if (c->desc.rank_count > count_nodes(&c->graph) && c->desc.micro_batch_count % c->desc.rank_count) c->desc.rank_count = 1;
    if (random_chance(&c->random, 50)) c->desc.gradient_ratio = 1;
    if (random_chance(&c->random, 50)) c->desc.optimizer_ratio = 2;
    if (random_chance(&c->random, 15)) c->desc.inference = 1;
    if (random_chance(&c->random, 60)) {
        c->link.bytes_per_second = UINT64_C(1000000000) << tl_next_random_below(&c->random, 6);
        c->link.latency_ns = tl_next_random_below(&c->random, 20);
        c->desc.link = &c->link;
    }
}

// -- every way by itself --

typedef struct way {
    int32_t  replicas, stages, chunks, zero_stage;
    tl_pipeline pipeline;
    int      fits;
    uint64_t time, least_bytes;
} way;

static uint64_t up(uint64_t value, uint64_t by) { return value / by + (value % by != 0); }

// Messages of so many bytes one after the other; together they are rounded up.
static uint64_t messages(const tl_link *link, uint64_t bytes, uint64_t count) {
    return link ? count * link->latency_ns + up(count * bytes * UINT64_C(1000000000), link->bytes_per_second) : 0;
}

// A ring sums in p - 1 turns and hands round in as many; sharded gradients are summed for each micro-batch.
static uint64_t exchange(const ways_case *c, const way *w, uint64_t weights) {
    uint64_t p = (uint64_t)w->replicas, m = (uint64_t)c->desc.micro_batch_count / p;
    uint64_t more = w->zero_stage == 2 ? m - 1 : 0;
    if (p == 1 || c->desc.inference) return 0;
    return 2 * messages(c->desc.link, up(weights, p), p - 1) + messages(c->desc.link, up(weights, p), (p - 1) * more);
}

static uint64_t weights_of(const tl_graph *graph) {
    uint64_t sum = 0;
    int32_t id;
    for (id = 0; id < graph->node_count; id++) sum += graph->nodes[id].param_bytes;
    return sum;
}

static int32_t most_sharded(const ways_case *c, int32_t replicas) {
    if (replicas == 1 || c->desc.inference) return 0;
    return c->desc.gradient_ratio > 0 ? 2 : c->desc.optimizer_ratio > 0;
}

// Plan a way with the first zero_stage that fits, with its part of the half of the work that `count` ways share.
static void plan_alone(ways_case *c, int count, way *w) {
    tl_ranks_desc desc = c->desc;
    tl_compiled_ranks ranks;
    tl_result result = TL_ERROR_INFEASIBLE;
    int32_t r;
    desc.rank_count = w->stages;
    desc.micro_batch_count = w->stages > 1 ? desc.micro_batch_count / w->replicas : 1;      // repeated
    desc.pipeline = w->pipeline;
    desc.chunk_count = w->chunks;
    desc.work_limit = WORK / 2 / (uint64_t)count / (uint64_t)(most_sharded(c, w->replicas) + 1);
    for (w->zero_stage = 0; w->zero_stage <= most_sharded(c, w->replicas); w->zero_stage++) {
        if (w->zero_stage == 1) desc.optimizer_ratio = c->desc.optimizer_ratio / w->replicas;
        if (w->zero_stage == 2) desc.gradient_ratio = c->desc.gradient_ratio / w->replicas;
        result = tl_compile_ranks(&c->env, &desc, &ranks);
        if (!result) break;
        if (result != TL_ERROR_INFEASIBLE) fail_msg("%s", c->env.error.text);
        w->least_bytes = tl_find_least_budget(&c->env.error);
    }
    w->fits = !result;
    for (r = 0; r < w->stages && w->fits; r++) {
        uint64_t repeats = w->stages > 1 ? 1 : (uint64_t)(c->desc.micro_batch_count / w->replicas);
        uint64_t end = repeats * ranks.ranks[r].end_cost + exchange(c, w, weights_of(ranks.ranks[r].compiled.graph));
        if (end > w->time) w->time = end;
    }
    tl_free_compiled_ranks(&c->env, &ranks);
}

static int list_ways(ways_case *c, way *ways) {
    int32_t nodes = count_nodes(&c->graph), p, chunks;
    int count = 0, kind, i;
    for (p = c->desc.rank_count; p >= 1; p--) {
        int32_t stages = c->desc.rank_count / p;
        if (c->desc.rank_count % p || c->desc.micro_batch_count % p || stages > nodes) continue;
        for (kind = 0; kind < TL_PIPELINE_COUNT; kind++)
            for (chunks = 1; chunks <= 4; chunks++) {
                way *w = &ways[count];
                if ((kind == TL_PIPELINE_INTERLEAVED) != (chunks > 1) || (stages == 1 && kind) || chunks > nodes / stages) continue;
                if (chunks > 1 && c->desc.micro_batch_count / p % stages) continue;
                assert_true(++count <= MOST_WAYS);
                memset(w, 0, sizeof *w);
                w->replicas = p;
                w->stages = stages;
                w->chunks = chunks;
                w->pipeline = (tl_pipeline)kind;
            }
    }
    for (i = 0; i < count; i++) plan_alone(c, count, &ways[i]);
    return count;
}

// -- what is chosen --

typedef struct ways_tally {
    long cases, refused, reasons[TL_PARALLEL_REASON_COUNT], kinds[TL_PARALLELISM_COUNT], sharded, ways, equal, again;
} ways_tally;

static void check_choice(const ways_case *c, const tl_parallel_plan *plan, const tl_parallel_choice *choice, const way *w,
                         ways_tally *t) {
    assert_true(choice->replica_count == w->replicas && choice->stage_count == w->stages && choice->chunk_count == w->chunks &&
                choice->pipeline == w->pipeline);
    assert_int_equal(choice->kind, w->stages > 1   ? TL_PARALLELISM_PIPELINE
                                   : w->replicas > 1 ? TL_PARALLELISM_DATA
                                                     : TL_PARALLELISM_NONE);
    t->ways++;
    t->reasons[choice->reason]++;
    if ((choice->reason != TL_PARALLEL_MEMORY) != w->fits)
        fail_msg("%d replicas of %d stages, %s, %d chunks, zero %d within %llu: fits %d, %llu bytes", (int)w->replicas, (int)w->stages,
                 tl_name_pipeline(w->pipeline), (int)w->chunks, (int)choice->zero_stage, (unsigned long long)c->desc.budget_bytes,
                 !w->fits, (unsigned long long)(w->fits ? choice->bytes : w->least_bytes));
    if (!w->fits) {
        assert_true(!choice->time_ns && choice->bytes > c->desc.budget_bytes);
        return;
    }
    assert_int_equal(choice->zero_stage, w->zero_stage);
    assert_true(!c->desc.budget_bytes || choice->bytes <= c->desc.budget_bytes);
    assert_true(!choice->idle_ns && choice->time_ns == plan->bound_ns + choice->recompute_ns + choice->bubble_ns + choice->communication_ns);
    assert_true(choice->recompute_ns <= choice->time_ns && choice->bubble_ns <= choice->time_ns &&
                choice->communication_ns <= choice->time_ns);
    t->sharded += choice->zero_stage > 0;
    t->equal += choice->time_ns == w->time;
    t->again += choice->recompute_ns > 0;
    if (choice == &plan->choices[plan->best] ? choice->time_ns > w->time : choice->time_ns != w->time)
        fail_msg("%d replicas of %d stages, %s, %d chunks, zero %d within %llu takes %llu, not %llu%s", (int)w->replicas, (int)w->stages,
                 tl_name_pipeline(w->pipeline), (int)w->chunks, (int)w->zero_stage, (unsigned long long)c->desc.budget_bytes,
                 (unsigned long long)choice->time_ns, (unsigned long long)w->time, choice == &plan->choices[plan->best] ? ", the best" : "");
}

// The plan that is returned is the choice that has the reason "chosen", and nothing is faster.
static void check_best(const tl_parallel_plan *plan, const tl_compiled_ranks *ranks, const ways_case *c) {
    const tl_parallel_choice *best = &plan->choices[plan->best];
    int32_t i;
    assert_int_equal(best->reason, TL_PARALLEL_CHOSEN);
    assert_int_equal(ranks->rank_count, best->stage_count);
    assert_int_equal(ranks->chunk_count, best->chunk_count);
    assert_int_equal(ranks->micro_batch_count * best->replica_count, c->desc.micro_batch_count);
    assert_true(ranks->cost <= best->time_ns && plan->is_complete);
    for (i = 0; i < plan->choice_count; i++) {
        const tl_parallel_choice *choice = &plan->choices[i];
        if (choice->reason == TL_PARALLEL_MEMORY) continue;
        assert_true(choice->time_ns >= best->time_ns);
        assert_true(i == plan->best || choice->time_ns > best->time_ns || choice->reason == TL_PARALLEL_EQUAL);
        assert_true(i >= plan->best || choice->time_ns > best->time_ns);   // of equal ones the first
    }
}

static void compare_with_every_way(ways_case *c, ways_tally *t) {
    static way ways[MOST_WAYS];
    int count = list_ways(c, ways), i, fits = 0;
    uint64_t least = UINT64_MAX;
    tl_compiled_ranks ranks;
    tl_parallel_plan plan;
    tl_result result = tl_compile_parallel(&c->env, &c->desc, &ranks, &plan);
    for (i = 0; i < count; i++) {
        fits |= ways[i].fits;
        if (!ways[i].fits && ways[i].least_bytes < least) least = ways[i].least_bytes;
    }
    t->cases++;
    assert_int_equal(result, fits ? TL_OK : TL_ERROR_INFEASIBLE);
    if (result) {       // the bytes that it names do
        uint64_t named = tl_find_least_budget(&c->env.error);
        assert_true(named > c->desc.budget_bytes && !ranks.memory && !plan.choices);
        assert_int_equal(named, least);
        c->desc.budget_bytes = named;
        t->refused++;
        assert_int_equal(tl_compile_parallel(&c->env, &c->desc, &ranks, NULL), TL_OK);
        tl_free_compiled_ranks(&c->env, &ranks);
        return;
    }
    assert_int_equal(plan.choice_count, count);
    for (i = 0; i < count; i++) check_choice(c, &plan, &plan.choices[i], &ways[i], t);
    check_best(&plan, &ranks, c);
    t->kinds[plan.choices[plan.best].kind]++;
    tl_free_compiled_ranks(&c->env, &ranks);
    tl_free_parallel_plan(&c->env, &plan);
}

// Without a budget, then within two thirds and a half of what the way that is fastest takes.
static void the_fastest_of_all_ways_is_taken(void **state) {
    ways_tally t;
    int rounds = is_slow() ? 1 : scaled(30), round, part;
    (void)state;
    memset(&t, 0, sizeof t);
    for (round = 0; round < rounds; round++) {
        ways_case c;
        tl_compiled_ranks ranks;
        tl_parallel_plan plan;
        uint64_t bytes;
        open_case(&c, (uint64_t)round + 1);
        if (tl_compile_parallel(&c.env, &c.desc, &ranks, &plan)) fail_msg("%s", c.env.error.text);
        bytes = plan.choices[plan.best].bytes;
        tl_free_compiled_ranks(&c.env, &ranks);
        tl_free_parallel_plan(&c.env, &plan);
        for (part = 6; part > 2; part -= part == 6 ? 2 : 1) {
            c.desc.budget_bytes = part == 6 ? 0 : bytes * (uint64_t)part / 6 + 1;
            compare_with_every_way(&c, &t);
        }
        tl_free_graph(&c.env, &c.graph);
    }
    print_message("%ld cases, %ld refused; %ld ways, %ld as planned alone; none %ld, data %ld, pipeline %ld; "
                  "memory %ld, communication %ld, bubble %ld, equal %ld, recomputation %ld; %ld run again, %ld sharded\n",
                  t.cases, t.refused, t.ways, t.equal, t.kinds[TL_PARALLELISM_NONE], t.kinds[TL_PARALLELISM_DATA],
                  t.kinds[TL_PARALLELISM_PIPELINE], t.reasons[TL_PARALLEL_MEMORY], t.reasons[TL_PARALLEL_COMMUNICATION],
                  t.reasons[TL_PARALLEL_BUBBLE], t.reasons[TL_PARALLEL_EQUAL], t.reasons[TL_PARALLEL_RECOMPUTATION], t.again, t.sharded);
    assert_true(is_thinned() || (t.refused && t.sharded && t.kinds[TL_PARALLELISM_DATA] && t.kinds[TL_PARALLELISM_PIPELINE]));
    assert_true(is_thinned() || (t.reasons[TL_PARALLEL_COMMUNICATION] && t.reasons[TL_PARALLEL_BUBBLE] && t.again &&
                                 t.reasons[TL_PARALLEL_EQUAL]));
}

// -- what is refused --

static const char four[] =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=16 needs=none in=-\n"
    "node 1 a op fwd=10 bwd=20 out=16 needs=in in=0 param=40\n"
    "node 2 b op fwd=10 bwd=20 out=16 needs=in in=1 param=40\n"
    "node 3 c op fwd=10 bwd=20 out=16 needs=in in=2 param=40\n"
    "node 4 d op fwd=10 bwd=20 out=16 needs=in in=3 param=40 keep\n";

// A copy of all takes its micro-batches one after the other: its bytes are those of one.
static void copies_hold_one_micro_batch(void **state) {
    tl_graph graph = graph_of(four);
    tl_env env = silent_env();
    tl_ranks_desc desc;
    int32_t m;
    uint64_t bytes = 0;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.rank_count = 4;
    for (m = 4; m <= 400; m *= 10) {
        tl_compiled_ranks ranks;
        tl_parallel_plan plan;
        desc.micro_batch_count = m;
        assert_int_equal(tl_compile_parallel(&env, &desc, &ranks, &plan), TL_OK);
        assert_true(plan.best == 0 && plan.choices[0].time_ns == (uint64_t)m / 4 * 120 && ranks.cost == plan.choices[0].time_ns);
        assert_true(ranks.micro_batch_count == m / 4 && ranks.ranks[0].compiled.plan.repeat_count == m / 4);
        assert_true(!bytes || plan.choices[0].bytes == bytes);
        bytes = plan.choices[0].bytes;
        tl_free_compiled_ranks(&env, &ranks);
        tl_free_parallel_plan(&env, &plan);
    }
    tl_free_graph(NULL, &graph);
}

static void bad_descs_are_refused(void **state) {
    static const char *const says[] = { "must be 0 where ways", "must be 0 where ways", "must be 0 where ways", "must be 0 where ways",
                                        "rank_count", "micro_batch_count", "no number of stages", "no number of stages", "link" };
    static const int32_t ends[] = { 1, 5 };
    static const tl_rank ranks[4] = { { 0, 1, 1 }, { 0, 1, 1 }, { 0, 1, 1 }, { 0, 1, 1 } };
    tl_graph graph = graph_of(four);
    tl_link link = { 0, 0 };
    int i;
    (void)state;
    for (i = 0; i < (int)(sizeof says / sizeof says[0]); i++) {
        tl_env env = silent_env();
        tl_compiled_ranks compiled;
        tl_parallel_plan plan;
        tl_ranks_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.rank_count = desc.micro_batch_count = 4;
        if (i == 0) desc.ends = ends;
        if (i == 1) desc.ranks = ranks;
        if (i == 2) desc.pipeline = TL_PIPELINE_GPIPE;
        if (i == 3) desc.chunk_count = 1;
        if (i == 4) desc.rank_count = 0;
        if (i == 5) desc.micro_batch_count = 0;
        if (i == 6) { desc.rank_count = 5; desc.micro_batch_count = 4; }    // one stage needs 5 replicas, 5 stages 5 nodes
        if (i == 7) desc.micro_batch_count = INT32_MAX;
        if (i == 8) desc.link = &link;
        assert_int_equal(tl_compile_parallel(&env, &desc, &compiled, &plan), TL_ERROR_INVALID_ARG);
        if (!strstr(env.error.text, says[i])) fail_msg("%d: %s", i, env.error.text);
        assert_true(!compiled.memory && !plan.choices && !plan.choice_count);
        assert_int_equal(tl_compile_parallel(NULL, &desc, &compiled, NULL), TL_ERROR_INVALID_ARG);
    }
    tl_free_graph(NULL, &graph);
}

static void failing_memory_loses_nothing(void **state) {
    tl_graph graph = graph_of(four);
    long at, failures = 0;
    (void)state;
    for (at = 0;; at += is_soaked() ? 1 : 1 + at / 8) {
        failing_alloc f = { 0, 0, 0, 0 };
        tl_env env = failing_env(&f, at);
        tl_compiled_ranks ranks;
        tl_parallel_plan plan;
        tl_ranks_desc desc;
        tl_result result;
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.rank_count = desc.micro_batch_count = 2;
        desc.budget_bytes = 250;
        desc.work_limit = 100;
        result = tl_compile_parallel(&env, &desc, &ranks, &plan);
        if (result) assert_int_equal(result, TL_ERROR_NO_MEMORY);
        tl_free_compiled_ranks(&env, &ranks);
        tl_free_parallel_plan(&env, &plan);
        assert_int_equal(f.live, 0);
        if (!result) break;
        failures++;
    }
    print_message("%ld failures\n", failures);
    assert_true(failures > 20);
    tl_free_graph(NULL, &graph);
}

// What is chosen and why, by numbers: 4 ranks, 4 micro-batches of 120 ns.
static void the_link_decides(void **state) {
    static const struct { uint64_t rate, latency; tl_parallelism_kind kind; uint64_t time; } rows[] = {
        { 0, 0, TL_PARALLELISM_DATA, 120 },                           // bound
        { UINT64_C(4000000000), 0, TL_PARALLELISM_DATA, 120 + 6 * 10 },   // 160 bytes of weights: six quarters travel
        { UINT64_C(4000000000), 100, TL_PARALLELISM_PIPELINE, 0 },        // in fewer turns
    };
    tl_graph graph = graph_of(four);
    size_t i;
    (void)state;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tl_env env = silent_env();
        tl_link link;
        tl_compiled_ranks ranks;
        tl_parallel_plan plan;
        tl_ranks_desc desc;
        const tl_parallel_choice *best;
        char text[4096];
        memset(&desc, 0, sizeof desc);
        link.bytes_per_second = rows[i].rate;
        link.latency_ns = rows[i].latency;
        desc.graph = &graph;
        desc.rank_count = desc.micro_batch_count = 4;
        desc.link = rows[i].rate ? &link : NULL;
        assert_int_equal(tl_compile_parallel(&env, &desc, &ranks, &plan), TL_OK);
        best = &plan.choices[plan.best];
        assert_true(tl_print_parallel_plan(&plan, text, sizeof text) < sizeof text);
        if (best->kind != rows[i].kind || (rows[i].time && best->time_ns != rows[i].time)) fail_msg("row %d:\n%s", (int)i, text);
        assert_int_equal(plan.bound_ns, 120);
        // Two stages of 20 + 40 ns and two micro-batches take 180 without a link: the rest is what the link takes.
        assert_true(plan.choices[1].replica_count == 2 && plan.choices[1].pipeline == TL_PIPELINE_1F1B);
        assert_int_equal(plan.choices[1].bubble_ns, 60);
        assert_int_equal(plan.choices[1].recompute_ns, 0);
        assert_int_equal(plan.choices[1].communication_ns > 0, rows[i].rate > 0);
        tl_free_compiled_ranks(&env, &ranks);
        tl_free_parallel_plan(&env, &plan);
    }
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_of_all_ways_is_taken),
        cmocka_unit_test(the_link_decides),
        cmocka_unit_test(copies_hold_one_micro_batch),
        cmocka_unit_test(bad_descs_are_refused),
        cmocka_unit_test(failing_memory_loses_nothing),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
