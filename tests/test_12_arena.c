// [12] RUN in one arena: the bytes that a refusal names do, in a block of the caller at any address; what the backend
// takes from its allocator is what was planned, and nothing is taken after init.
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


// -- how the steps of a run come about --

enum { ONLINE, LOSSY_ONLINE, LAZY, GIVEN, SOURCE_COUNT };

// A CPU backend in the place of the bed's own one.
typedef struct arena_bed {
    bed         b;
    tl_env      env;
    tl_backend  backend;
    tl_strategy lazy;
    tl_plan     plan;
} arena_bed;

static void arena_open(arena_bed *a, const tl_graph *graph, int source, const tl_cpu_backend_desc *desc) {
    bed_open(&a->b, graph, 0, 0, 4);
    memset(&a->plan, 0, sizeof a->plan);
    if (tl_init_cpu_backend(&a->env, desc, &a->backend)) fail_msg("%s", a->env.error.text);
    a->b.desc.backend = &a->backend;
    a->lazy = tl_with_precision(tl_with_gradient(tl_strategy_new(), tl_gradient_checkpointed(0)), TL_PRECISION_SINGLE);
    a->lazy = tl_with_memory(tl_with_mode(a->lazy, TL_MODE_LAZY), TL_MEMORY_POOLED);
    if (source == LOSSY_ONLINE) a->b.desc.codec = TL_CODEC_BF16;
    if (source == LAZY) a->b.desc.strategy = &a->lazy;
    if (source == GIVEN) {
        tl_policy_desc policy;
        memset(&policy, 0, sizeof policy);
        policy.graph = graph;
        policy.live = 1;
        policy.policy.kind = TL_POLICY_CHEN_SQRT;
        if (tl_plan_policy(&a->b.env, &policy, &a->plan)) fail_msg("%s", a->b.env.error.text);
        a->b.desc.plan = &a->plan;
    }
}

static void arena_close(arena_bed *a) {
    tl_free_run(a->b.run);
    a->b.run = NULL;
    if (tl_free_cpu_backend(&a->env, &a->backend)) fail_msg("%s", a->env.error.text);
    tl_free_plan(NULL, &a->plan);
    bed_close(&a->b);
}

// -- a block of the caller --

// A block of so many bytes at an address of its own; it has room in front, and whoever writes beside it is seen.
typedef struct given_block { unsigned char *all, *start; size_t bytes; } given_block;

enum { MARGIN = 256 };

static given_block take_block(size_t bytes, size_t shift) {
    given_block g;
    g.all = (unsigned char *)malloc(bytes + 3 * MARGIN);
    g.start = g.all + (MARGIN - (uintptr_t)g.all % MARGIN) + shift;
    g.bytes = bytes;
    memset(g.all, 0xC3, bytes + 3 * MARGIN);
    return g;
}

static void free_block(given_block *g) {
    unsigned char *end = g->all + g->bytes + 3 * MARGIN, *at;
    for (at = g->all; at < g->start; at++) assert_int_equal(*at, 0xC3);
    for (at = g->start + g->bytes; at < end; at++) assert_int_equal(*at, 0xC3);
    free(g->all);
}

// Two steps in a block of so many bytes, or the bytes that would do.
static uint64_t run_in_block(const tl_graph *graph, int source, uint64_t alignment, size_t shift, uint64_t bytes,
                             uint64_t expected) {
    static arena_bed a;
    tl_cpu_backend_desc desc;
    given_block block = take_block((size_t)bytes, shift);
    uint64_t named = 0;
    memset(&a.env, 0, sizeof a.env);
    memset(&desc, 0, sizeof desc);
    desc.memory = block.start;
    desc.memory_bytes = bytes;
    desc.alignment_bytes = alignment;
    arena_open(&a, graph, source, &desc);
    if (bed_init(&a.b)) {
        assert_int_equal(a.b.env.error.code, TL_ERROR_INFEASIBLE);
        assert_int_equal(tl_find_limit(&a.b.env.error), TL_LIMIT_BACKEND);
        named = tl_find_least_budget(&a.b.env.error);
        assert_true(named > bytes);
    } else {
        tl_run_report report;
        (void)bed_step(&a.b, 0);
        if (bed_step(&a.b, 0) != expected && source != LOSSY_ONLINE) fail_msg("%s", "other gradients or results");
        report = bed_report(&a.b);
        assert_int_equal(report.taken_bytes, report.planned_taken_bytes);
        assert_true(report.taken_bytes <= bytes && report.taken_bytes >= report.measured_peak_bytes);
    }
    arena_close(&a);
    free_block(&block);
    return named;
}

// Whatever the address of a block: the bytes that its refusal names are enough, to the byte.
static void a_block_of_the_bytes_that_are_named_is_enough(void **state) {
    static const uint64_t alignments[] = { 1, 4, 16, 64 };
    tl_random random = { 1214 };
    long round, rounds = scaled(160), least = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        tl_graph graph;
        uint64_t alignment = alignments[round / SOURCE_COUNT % 4], named, peak, expected;
        size_t shift = (size_t)tl_next_random_below(&random, 64);
        int source = (int)(round % SOURCE_COUNT);
        if (random_graph(NULL, &random, 24, &graph)) fail_msg("%s", "no graph");
        expected = keep_all_outcome(&graph, 0, 1, &peak);
        named = run_in_block(&graph, source, alignment, shift, 2 * alignment + tl_next_random_below(&random, peak), expected);
        if (named) assert_int_equal(run_in_block(&graph, source, alignment, shift, named, expected), 0);
        least += named > 0;
        tl_free_graph(NULL, &graph);
    }
    printf("%ld blocks, %ld of them too small at first\n", rounds, least);
    assert_true(is_thinned() || (least > rounds / 4 && least < rounds));
}

// A plan that was made for so many bytes runs in a block of them, at any aligned address. Where none fits, one does in what the
// refusal names.
static void a_block_of_the_budget_runs_every_plan_made_for_it(void **state) {
    static const uint64_t alignments[] = { 1, 4, 16, 64 };
    static arena_bed a;
    tl_random random = { 1215 };
    long round, rounds = scaled(240), named = 0, again = 0, full = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        tl_graph graph;
        tl_env env;
        tl_remat_desc remat;
        tl_remat_report report;
        tl_cpu_backend_desc desc;
        tl_plan plan;
        tl_run_report ran;
        given_block block;
        uint64_t peak, expected;
        memset(&env, 0, sizeof env);
        memset(&a.env, 0, sizeof a.env);
        memset(&remat, 0, sizeof remat);
        memset(&desc, 0, sizeof desc);
        if (random_graph(NULL, &random, 24, &graph)) fail_msg("%s", "no graph");
        expected = keep_all_outcome(&graph, 0, 1, &peak);
        remat.graph = &graph;
        remat.alignment_bytes = alignments[round % 4];
        remat.work_limit = 1 + tl_next_random_below(&random, 20000);
        remat.budget_bytes = peak / 3 + tl_next_random_below(&random, peak) + 1;
        if (tl_plan_remat(&env, &remat, &plan, &report) == TL_ERROR_INFEASIBLE) {
            named++;
            remat.budget_bytes = report.least_budget_bytes;
            if (tl_plan_remat(&env, &remat, &plan, &report)) fail_msg("round %ld: %s", round, env.error.text);
        }
        desc.memory_bytes = remat.budget_bytes;
        if (desc.memory_bytes < remat.alignment_bytes) desc.memory_bytes = remat.alignment_bytes;  // the least of a backend
        block = take_block((size_t)desc.memory_bytes, 0);
        desc.memory = block.start;
        desc.alignment_bytes = remat.alignment_bytes;
        arena_open(&a, &graph, ONLINE, &desc);
        a.b.desc.plan = &plan;
        a.b.desc.budget_bytes = remat.budget_bytes;
        if (bed_init(&a.b)) fail_msg("round %ld: %s", round, a.b.env.error.text);
        (void)bed_step(&a.b, 0);
        if (bed_step(&a.b, 0) != expected) fail_msg("round %ld: other gradients or results", round);
        ran = bed_report(&a.b);
        assert_int_equal(ran.taken_bytes, ran.planned_taken_bytes);
        assert_true(ran.taken_bytes <= remat.budget_bytes && ran.taken_bytes >= ran.measured_peak_bytes);
        again += ran.recompute_count > 0;
        full += ran.taken_bytes + remat.alignment_bytes > remat.budget_bytes;
        arena_close(&a);
        free_block(&block);
        tl_free_plan(&env, &plan);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld plans, %ld of them with forwards made again, %ld of the bytes that a refusal named, %ld fill their block\n", rounds, again,
           named, full);
    assert_true(again > rounds / 8 && named > rounds / 8 && full > named / 2);
}

// -- an allocator that looks --

typedef struct watched { size_t sizes[64]; long count; } watched;

static void *watch_alloc(void *user, size_t bytes) {
    watched *w = (watched *)user;
    if (w->count < 64) w->sizes[w->count] = bytes;
    w->count++;
    return malloc(bytes ? bytes : 1);
}

static void watch_release(void *user, void *at) { (void)user; free(at); }

// One allocation of the planned bytes at init, and none in a pass.
static void the_allocator_gives_what_was_planned_and_nothing_later(void **state) {
    static const uint64_t alignments[] = { 1, 8, 64, 4096 };
    static arena_bed a;
    tl_random random = { 1215 };
    long round, rounds = scaled(80);
    (void)state;
    for (round = 0; round < rounds; round++) {
        tl_graph graph;
        watched w;
        tl_cpu_backend_desc desc;
        tl_run_report report;
        long i, blocks = 0;
        memset(&w, 0, sizeof w);
        memset(&a.env, 0, sizeof a.env);
        memset(&desc, 0, sizeof desc);
        desc.alignment_bytes = alignments[round / SOURCE_COUNT % 4];
        a.env.alloc = watch_alloc;
        a.env.release = watch_release;
        a.env.user = &w;
        if (random_graph(NULL, &random, 24, &graph)) fail_msg("%s", "no graph");
        arena_open(&a, &graph, (int)(round % SOURCE_COUNT), &desc);
        bed_must_init(&a.b);
        (void)bed_step(&a.b, 0);
        report = bed_report(&a.b);
        for (i = 0; i < w.count && i < 64; i++) blocks += w.sizes[i] == report.taken_bytes;
        assert_true(blocks >= (report.taken_bytes > 0));
        assert_true(report.taken_bytes < report.planned_arena_bytes + desc.alignment_bytes);
        i = w.count;
        (void)bed_step(&a.b, 0);
        assert_int_equal(w.count, i);
        arena_close(&a);
        tl_free_graph(NULL, &graph);
    }
}

// -- host copies --

// How host copies come about: decided online, planned at init, or given without places on the host.
enum { HOST_ONLINE, HOST_LAZY, HOST_GIVEN };

static void host_open(arena_bed *a, const tl_graph *graph, int source, uint64_t budget, uint64_t host_budget) {
    static const int sources[] = { ONLINE, LAZY, ONLINE };
    tl_cpu_backend_desc desc;
    memset(&desc, 0, sizeof desc);
    memset(&a->env, 0, sizeof a->env);
    desc.alignment_bytes = 16;
    arena_open(a, graph, sources[source], &desc);
    a->b.desc.budget_bytes = budget;
    a->b.desc.host_budget_bytes = host_budget;
    if (source == HOST_GIVEN) {
        tl_remat_desc remat;
        memset(&remat, 0, sizeof remat);
        remat.graph = graph;
        remat.live = 1;
        remat.budget_bytes = budget;
        remat.host_budget_bytes = UINT64_MAX;
        remat.work_limit = 300000;
        if (tl_plan_remat(&a->b.env, &remat, &a->plan, NULL)) return;     // the run decides online then
        a->b.desc.plan = &a->plan;
        a->b.desc.budget_bytes = 0;
    }
}

// One block in each tier, of the bytes that were planned, within both budgets; the outcome is that of keeping all.
// The bytes that a refusal names are enough.
static void host_copies_lie_in_one_block_within_their_budget(void **state) {
    static arena_bed a;
    tl_random random = { 1216 };
    long round, rounds = scaled(240), spilled = 0, refused = 0, lowered = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        tl_graph graph;
        tl_run_report report;
        tl_backend_counters counters;
        uint64_t peak, expected, budget, host;
        int source = round % 16 == 3 ? HOST_LAZY : round % 2 ? HOST_GIVEN : HOST_ONLINE;    // few wait for the planner
        if (random_graph(NULL, &random, source == HOST_LAZY ? 7 : 24, &graph)) fail_msg("%s", "no graph");
        expected = keep_all_outcome(&graph, 0, 1, &peak);
        budget = peak / 2 + tl_next_random_below(&random, peak);
        host = round / 2 % 2 ? UINT64_MAX : 48 + tl_next_random_below(&random, peak / 4);  // few bytes: gaps show
        host_open(&a, &graph, source, budget, host);
        if (bed_init(&a.b)) {
            uint64_t named = tl_find_least_budget(&a.b.env.error);
            tl_limit limit = tl_find_limit(&a.b.env.error);
            assert_int_equal(a.b.env.error.code, TL_ERROR_INFEASIBLE);
            if (limit == TL_LIMIT_HOST_BUDGET) a.b.desc.host_budget_bytes = named;
            else a.b.desc.budget_bytes = named;
            bed_must_init(&a.b);
            refused++;
        }
        (void)bed_step(&a.b, 0);
        if (bed_step(&a.b, 0) != expected) fail_msg("%s", "other gradients or results");
        report = bed_report(&a.b);
        assert_int_equal(report.taken_bytes, report.planned_taken_bytes);
        assert_int_equal(report.host_taken_bytes, report.planned_host_taken_bytes);
        assert_true(report.host_taken_bytes >= report.measured_host_peak_bytes);
        assert_true(report.host_taken_bytes <= a.b.desc.host_budget_bytes);
        if (a.b.desc.budget_bytes) assert_true(report.taken_bytes <= a.b.desc.budget_bytes);
        a.backend.counters(a.backend.self, &counters);
        assert_int_equal(counters.block_count[TL_TIER_HOST], report.host_taken_bytes > 0);
        assert_int_equal(counters.block_count[TL_TIER_DEVICE], report.taken_bytes > 0);
        spilled += report.spill_count > 0;
        lowered += a.b.run->live_budget[TL_TIER_HOST] < host && source == HOST_ONLINE;
        arena_close(&a);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld runs, %ld spill, %ld were refused at first, %ld decided with less on the host\n", rounds, spilled, refused, lowered);
    assert_true(is_thinned() || (spilled > rounds / 8 && refused > rounds / 16 && lowered > 0));
}

// -- more bytes --

// Where the arena of the decisions exceeds a budget, they are made within a little less, not within the least that works:
// a larger budget never costs half as many forwards again as a smaller one.
static void a_larger_budget_does_not_fall_back_to_the_least(void **state) {
    static arena_bed a;
    tl_cpu_backend_desc desc;
    tl_random random = { 1217 };
    long round, rounds = scaled(24), tries = 0, runs = 0, odd = 59;    // 139 forwards at 72 %, 63 at 64 %, if nothing else is tried
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.alignment_bytes = 16;      // much for such small tensors: arenas exceed the live bytes
    for (round = 0; round < rounds || round <= odd; round++) {
        tl_graph graph;
        uint64_t peak, percent;
        int32_t fewest = INT32_MAX;
        if (random_graph(NULL, &random, 40, &graph)) fail_msg("%s", "no graph");
        if (round >= rounds && round < odd) {
            tl_free_graph(NULL, &graph);
            continue;
        }
        (void)keep_all_outcome(&graph, 0, 1, &peak);
        for (percent = 40; percent <= 240; percent += 8) {
            tl_plan plan;
            tl_report report;
            tl_simulate_desc simulate;
            memset(&a.env, 0, sizeof a.env);
            arena_open(&a, &graph, ONLINE, &desc);
            a.b.desc.budget_bytes = peak * percent / 100;
            a.b.desc.host_budget_bytes = round % 2 ? peak / 4 : 0;
            if (!bed_init(&a.b)) {
                tl_find_run_plan(a.b.run, &plan);
                memset(&simulate, 0, sizeof simulate);
                simulate.graph = &graph;
                simulate.plan = &plan;
                assert_int_equal(tl_simulate_plan(NULL, &simulate, &report), TL_OK);
                if (fewest < INT32_MAX && report.forward_count > fewest + fewest / 2)
                    fail_msg("round %ld: %d forwards at %d %%, %d with less", round, (int)report.forward_count, (int)percent, (int)fewest);
                if (report.forward_count < fewest) fewest = report.forward_count;
                tries += a.b.run->live_budget[TL_TIER_DEVICE] < a.b.desc.budget_bytes;
                runs++;
            }
            arena_close(&a);
        }
        tl_free_graph(NULL, &graph);
    }
    printf("%ld runs, %ld of them within fewer live bytes than the budget\n", runs, tries);
    assert_true(tries > runs / 20);
}

// -- checkpoints switched on and off --

// The inputs move to the other arena and back with the bytes that the caller wrote.
static void inputs_stay_when_checkpoints_are_switched(void **state) {
    static bed b;
    static tl_layer layers[40];
    static tl_graph none;
    tl_tensor input = { 0, 0 };
    unsigned char wrote[16], read[16];
    uint64_t blocks;
    int i, on;
    (void)state;
    memset(layers, 0, sizeof layers);
    bed_open(&b, &none, 0, 5, 8);
    b.desc.load = NULL;
    b.desc.policy = tl_policy_none();
    for (i = 0; i < 40; i++) {
        layers[i].forward = mixer_forward;
        layers[i].backward = mixer_backward;
        layers[i].user = &b.mixer;
        layers[i].output_bytes = 8 + (uint64_t)(i % 5) * 8;
    }
    if (tl_init_layer_run(&b.env, &b.desc, layers, 40, sizeof wrote, &b.run)) fail_msg("%s", b.env.error.text);
    for (i = 0; i < 16; i++) wrote[i] = (unsigned char)(17 * i + 3);
    if (tl_write_tensor(b.run, input, wrote, sizeof wrote)) fail_msg("%s", b.env.error.text);
    for (on = 0; on < 2; on++) {
        mixer_start_pass(&b.mixer);
        if (tl_enable_checkpoints(b.run, on)) fail_msg("%s", b.env.error.text);
        if (tl_read_tensor(b.run, input, read, sizeof read)) fail_msg("%s", b.env.error.text);
        assert_memory_equal(read, wrote, sizeof wrote);
        if (tl_run_plan(b.run)) fail_msg("%s", b.env.error.text);
        assert_true((bed_report(&b).recompute_count > 0) == on);
        assert_int_equal(bed_report(&b).taken_bytes, bed_report(&b).planned_taken_bytes);
        blocks = spy_count(&b.spy).block_count[TL_TIER_DEVICE];
        assert_int_equal(blocks, 1);
        assert_int_equal(spy_count(&b.spy).block_count[TL_TIER_HOST], 0);
    }
    bed_close(&b);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_of_the_budget_runs_every_plan_made_for_it),
        cmocka_unit_test(a_block_of_the_bytes_that_are_named_is_enough),
        cmocka_unit_test(the_allocator_gives_what_was_planned_and_nothing_later),
        cmocka_unit_test(host_copies_lie_in_one_block_within_their_budget),
        cmocka_unit_test(a_larger_budget_does_not_fall_back_to_the_least),
        cmocka_unit_test(inputs_stay_when_checkpoints_are_switched),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
