// [12] RUN in the banks of a plan, and in arenas that the backend's largest block cuts: what is taken of each bank is what
// was planned, outcomes stay, nothing is taken after init, and what a backend does not have is refused at init.
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
#include "support/texts.h"


static const uint64_t alignments[] = { 1, 4, 16, 64 };

// -- banks of the caller --

enum { MOST = 3 };

typedef struct memories { unsigned char *all[MOST], *start[MOST]; uint64_t bytes[MOST]; } memories;

// Memory for each bank, of exactly so many bytes from an aligned address, with bytes around it that nobody writes.
static void take_memories(memories *m, const uint64_t *bytes, int32_t count, tl_cpu_backend_desc *desc, tl_cpu_bank *banks) {
    int32_t k;
    memset(m, 0, sizeof *m);
    for (k = 0; k < count; k++) {
        m->bytes[k] = bytes[k] ? bytes[k] : desc->alignment_bytes;
        m->all[k] = (unsigned char *)malloc((size_t)m->bytes[k] + 512);
        m->start[k] = m->all[k] + (256 - (uintptr_t)m->all[k] % 256);
        memset(m->all[k], 0xC3, (size_t)m->bytes[k] + 512);
        if (k) { banks[k - 1].memory = m->start[k]; banks[k - 1].memory_bytes = m->bytes[k]; }
    }
    desc->memory = m->start[0];
    desc->memory_bytes = m->bytes[0];
    desc->banks = banks;
    desc->bank_count = count - 1;
}

static void free_memories(memories *m) {
    int32_t k;
    for (k = 0; k < MOST && m->all[k]; k++) {
        unsigned char *end = m->all[k] + m->bytes[k] + 512, *at;
        for (at = m->all[k]; at < m->start[k]; at++) assert_int_equal(*at, 0xC3);
        for (at = m->start[k] + m->bytes[k]; at < end; at++) assert_int_equal(*at, 0xC3);
        free(m->all[k]);
    }
}

typedef struct watched { long count; } watched;
static void *watch_alloc(void *user, size_t bytes) { ((watched *)user)->count++; return malloc(bytes ? bytes : 1); }
static void watch_release(void *user, void *at) { (void)user; free(at); }

// A plan of a policy with places in banks, the last of them without a limit. 0 = they do not hold it.
static int bank_plan(tl_env *env, tl_random *random, const tl_graph *graph, uint64_t alignment, int32_t bank_count, tl_plan *plan,
                     tl_places_report *report) {
    static const tl_policy_kind policies[] = { TL_POLICY_CHEN_SQRT, TL_POLICY_KEEP_ALL };
    tl_bank banks[MOST];
    tl_policy_desc policy;
    tl_places_desc desc;
    tl_device device;
    int32_t k;
    tl_result result;
    memset(&policy, 0, sizeof policy);
    policy.graph = graph;
    policy.policy.kind = policies[tl_next_random_below(random, 2)];
    if (tl_plan_policy(env, &policy, plan)) fail_msg("%s", env->error.text);
    memset(&desc, 0, sizeof desc);
    memset(&device, 0, sizeof device);
    device.alignment_bytes = alignment;
    desc.graph = graph;
    desc.device = &device;
    desc.work_limit = 20000;
    desc.banks = banks;
    desc.bank_count = bank_count;
    for (k = 0; k < bank_count; k++) {
        banks[k].capacity_bytes = k + 1 < bank_count ? alignment + tl_next_random_below(random, plan->peak_bytes) : 0;
        banks[k].price = (uint64_t)k + 1;
        banks[k].alignment = 0;
    }
    result = tl_plan_places(env, &desc, plan, report);
    if (result && result != TL_ERROR_INFEASIBLE) fail_msg("%s", env->error.text);
    return result == TL_OK;
}

static void a_plan_runs_in_banks_of_exactly_its_bytes(void **state) {
    static bed b;
    tl_random random = { 61 };
    long round, rounds = scaled(120), several = 0, again = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        tl_graph graph;
        tl_cpu_backend_desc desc;
        tl_cpu_bank banks[MOST];
        tl_backend backend;
        tl_places_report places;
        tl_run_report report;
        tl_plan plan;
        memories m;
        watched w = { 0 };
        tl_env env;
        uint64_t alignment = alignments[round % 4], peak, expected, bytes[MOST] = { 0 };
        int32_t bank_count = 1 + (int32_t)tl_next_random_below(&random, MOST), k;
        int stricter = round % 3 == 0;     // then it is placed again, each tensor in its bank
        memset(&env, 0, sizeof env);
        env.alloc = watch_alloc; env.release = watch_release; env.user = &w;
        if (random_graph(NULL, &random, 20, &graph)) fail_msg("%s", "no graph");
        expected = keep_all_outcome(&graph, 0, 1, &peak);
        if (!bank_plan(&env, &random, &graph, stricter ? 1 : alignment, bank_count, &plan, &places)) fail_msg("%s", env.error.text);
        memset(&desc, 0, sizeof desc);
        desc.alignment_bytes = alignment;
        for (k = 0; k < bank_count; k++) bytes[k] = stricter ? 1 << 16 : places.bank_bytes[k];
        take_memories(&m, bytes, bank_count, &desc, banks);
        if (tl_init_cpu_backend(&env, &desc, &backend)) fail_msg("%s", env.error.text);
        memset(banks, 0xFF, sizeof banks);  // read during the call only
        bed_open(&b, &graph, 0, 0, 4);
        b.desc.backend = &backend;
        b.desc.plan = &plan;
        bed_must_init(&b);
        (void)bed_step(&b, 0);
        w.count = 0;
        if (bed_step(&b, 0) != expected) fail_msg("round %ld: other gradients or results", round);
        assert_int_equal(w.count, 0);
        report = bed_report(&b);
        assert_int_equal(report.taken_bytes, report.planned_taken_bytes);
        assert_memory_equal(report.taken_bank_bytes, report.planned_bank_bytes, sizeof report.taken_bank_bytes);
        for (k = 0; k < bank_count && !stricter; k++) assert_int_equal(report.taken_bank_bytes[k], places.bank_bytes[k]);
        for (k = 1, several += report.taken_bank_bytes[0] < report.taken_bytes; k < bank_count; k++)
            assert_true(!report.taken_bank_bytes[k] == !places.bank_bytes[k]);
        again += stricter && alignment > 1;
        tl_free_run(b.run);
        b.run = NULL;
        if (tl_free_cpu_backend(&env, &backend)) fail_msg("%s", env.error.text);
        bed_close(&b);
        free_memories(&m);
        tl_free_plan(&env, &plan);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld runs, %ld of them in several banks, %ld placed again\n", rounds, several, again);
    assert_true(is_thinned() || (several > rounds / 3 && again > 0));
}

// -- a backend with a largest block --

static tl_backend inner;           // of the one under test
static uint64_t largest_block;

static void limits_with_largest(void *self, tl_backend_limits *limits) {
    inner.limits(self, limits);
    limits->block_bytes = largest_block;
}

enum { ONLINE, LAZY, ORDERED, GIVEN, GIVEN_PLACES, SOURCE_COUNT };

static void arenas_are_cut_where_the_backend_asks_for_it(void **state) {
    static bed b;
    tl_random random = { 62 };
    long round, rounds = scaled(120), cut = 0, host = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        tl_graph graph;
        tl_cpu_backend_desc desc;
        tl_backend backend;
        tl_backend_counters counters;
        tl_run_report report;
        tl_plan plan, made;
        tl_strategy lazy;
        tl_env env;
        watched w = { 0 };
        uint64_t alignment = alignments[round / SOURCE_COUNT % 4], peak, expected, seen = 0;
        int source = (int)(round % SOURCE_COUNT), tier;
        int32_t k;
        memset(&env, 0, sizeof env);
        memset(&plan, 0, sizeof plan);
        env.alloc = watch_alloc; env.release = watch_release; env.user = &w;
        if (random_graph(NULL, &random, 20, &graph)) fail_msg("%s", "no graph");
        expected = keep_all_outcome(&graph, 0, 1, &peak);
        memset(&desc, 0, sizeof desc);
        desc.alignment_bytes = alignment;
        if (tl_init_cpu_backend(&env, &desc, &inner)) fail_msg("%s", env.error.text);
        backend = inner;
        backend.limits = limits_with_largest;
        largest_block = (random_largest(&graph) + alignment - 1) / alignment * alignment + alignment + tl_next_random_below(&random, peak / 4 + 1);
        bed_open(&b, &graph, 0, 0, 4);
        b.desc.backend = &backend;
        lazy = tl_with_precision(tl_with_gradient(tl_strategy_new(), tl_gradient_checkpointed(0)), TL_PRECISION_SINGLE);
        lazy = tl_with_memory(tl_with_mode(lazy, TL_MODE_LAZY), source == ORDERED ? TL_MEMORY_MINIMAL_PEAK : TL_MEMORY_POOLED);
        if (source == LAZY || source == ORDERED) b.desc.strategy = &lazy;
        if (source == ONLINE) { b.desc.budget_bytes = 4 * peak + 4096; b.desc.host_budget_bytes = UINT64_MAX; }
        if (source == GIVEN) {
            tl_remat_desc remat;
            memset(&remat, 0, sizeof remat);
            remat.graph = &graph;
            remat.budget_bytes = peak * 3 / 4;
            remat.host_budget_bytes = UINT64_MAX;
            remat.work_limit = 50000;
            if (!tl_plan_remat(&env, &remat, &plan, NULL)) b.desc.plan = &plan;
        }
        if (source == GIVEN_PLACES) {
            tl_places_desc places;
            tl_device device;
            memset(&places, 0, sizeof places);
            memset(&device, 0, sizeof device);
            places.graph = &graph;
            places.device = &device;
            device.alignment_bytes = alignment;
            if (tl_plan_keep_all(&env, &graph, 0, &plan) || tl_plan_places(&env, &places, &plan, NULL)) fail_msg("%s", env.error.text);
            b.desc.plan = &plan;
        }
        bed_must_init(&b);
        (void)bed_step(&b, 0);
        w.count = 0;
        if (bed_step(&b, 0) != expected) fail_msg("round %ld: other gradients or results", round);
        assert_int_equal(w.count, 0);
        report = bed_report(&b);
        assert_int_equal(report.taken_bytes, report.planned_taken_bytes);
        assert_int_equal(report.host_taken_bytes, report.planned_host_taken_bytes);
        tl_find_run_plan(b.run, &made);
        backend.counters(backend.self, &counters);
        for (tier = 0; tier < TL_TIER_COUNT; tier++) {
            int32_t count = 0;
            for (k = 0; k < made.block_count; k++) count += made.blocks[k].tier == tier;
            if (!count) count = (tier ? report.host_taken_bytes : report.taken_bytes) > 0;
            assert_int_equal(counters.block_count[tier], count);
            cut += !tier && count > 1;
            host += tier && count > 1;
        }
        for (k = 0; k < made.block_count; k++) {
            assert_true(made.blocks[k].bytes + (alignment > 8 ? alignment - 8 : 0) <= largest_block);
            if (!made.blocks[k].tier) seen += made.blocks[k].bytes;
        }
        if (seen) assert_true(seen == made.arena_bytes && report.taken_bytes >= seen);
        tl_free_run(b.run);
        b.run = NULL;
        if (tl_free_cpu_backend(&env, &inner)) fail_msg("%s", env.error.text);
        bed_close(&b);
        tl_free_plan(&env, &plan);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld runs, the arena of %ld is cut, on the host of %ld\n", rounds, cut, host);
    assert_true(is_thinned() || (cut > rounds / 2 && host > 0));
}

// A minimal-peak run whose order does not fit in blocks is planned as one with forwards that run again: what fits the one fits
// the other. whole: of the arena in one piece.
static void an_order_that_fits_in_one_piece_only_is_planned_again(void **state) {
    static bed b;
    static const tl_memory memories[] = { TL_MEMORY_POOLED, TL_MEMORY_MINIMAL_PEAK };
    tl_random random = { 63 };
    long round, rounds = scaled(120), again = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        tl_graph graph;
        tl_env env;
        tl_order_desc order;
        tl_order_report whole, in_blocks;
        tl_plan plan;
        uint64_t budget, peak;
        int k;
        memset(&env, 0, sizeof env);
        memset(&order, 0, sizeof order);
        if (random_graph(NULL, &random, 20, &graph)) fail_msg("%s", "no graph");
        (void)keep_all_outcome(&graph, 0, 1, &peak);
        largest_block = (random_largest(&graph) + 7) / 8 * 8 + tl_next_random_below(&random, 4) * 8;
        order.graph = &graph;
        order.alignment_bytes = 8;
        order.work_limit = 2000000;
        if (tl_plan_order(&env, &order, &plan, &whole)) fail_msg("%s", env.error.text);
        tl_free_plan(&env, &plan);
        order.block_bytes = largest_block;
        if (tl_plan_order(&env, &order, &plan, &in_blocks)) fail_msg("%s", env.error.text);
        tl_free_plan(&env, &plan);
        if (whole.arena_bytes >= in_blocks.arena_bytes) { tl_free_graph(NULL, &graph); continue; }
        budget = whole.arena_bytes + (in_blocks.arena_bytes - whole.arena_bytes) / 2;
        for (k = 0; k < 2; k++) {
            static unsigned char memory[1 << 16];
            tl_cpu_backend_desc desc;
            tl_backend backend;
            tl_strategy lazy = tl_with_precision(tl_with_gradient(tl_strategy_new(), tl_gradient_checkpointed(0)), TL_PRECISION_SINGLE);
            memset(&desc, 0, sizeof desc);
            desc.alignment_bytes = 8;
            desc.memory = memory;       // blocks of the caller's have no bytes beside them
            desc.memory_bytes = sizeof memory;
            lazy = tl_with_memory(tl_with_mode(lazy, TL_MODE_LAZY), memories[k]);
            if (tl_init_cpu_backend(&env, &desc, &inner)) fail_msg("%s", env.error.text);
            backend = inner;
            backend.limits = limits_with_largest;
            bed_open(&b, &graph, 0, 0, 4);
            b.desc.backend = &backend;
            b.desc.strategy = &lazy;
            b.desc.budget_bytes = budget;
            if (bed_init(&b)) {
                if (k) fail_msg("round %ld: %s", round, b.env.error.text);
                k = 1;      // neither fits
            } else {
                (void)bed_step(&b, 0);
                assert_true(bed_report(&b).taken_bytes <= budget);
                again += k;
            }
            tl_free_run(b.run);
            b.run = NULL;
            if (tl_free_cpu_backend(&env, &inner)) fail_msg("%s", env.error.text);
            bed_close(&b);
        }
        tl_free_graph(NULL, &graph);
    }
    printf("%ld graphs, %ld of them run within what their order takes in one piece\n", rounds, again);
    assert_true(is_thinned() || again > 0);
}

// -- what a backend does not have --

static const char *const chain =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=64 needs=none in=-\n"
    "node 1 a conv fwd=1 bwd=1 out=64 needs=in in=0\n"
    "node 2 b conv fwd=1 bwd=1 out=128 needs=in in=1\n"
    "node 3 c ce fwd=1 bwd=1 out=64 needs=in in=2\n";

static void expect_refused(tl_env *env, const tl_graph *graph, tl_backend *backend, const tl_plan *plan, tl_result code, const char *says) {
    static bed b;
    tl_backend_counters counters;
    (void)env;
    bed_open(&b, graph, 0, 0, 4);
    b.desc.backend = backend;
    b.desc.plan = plan;
    assert_int_equal(bed_init(&b), code);
    assert_string_equal(b.env.error.text, says);
    backend->counters(backend->self, &counters);
    assert_true(!counters.block_count[TL_TIER_DEVICE] && !counters.reserved_bytes[TL_TIER_DEVICE]);
    bed_close(&b);
}

static void banks_and_blocks_that_no_backend_has_are_refused(void **state) {
    static uint64_t memory[128], more[16];
    static const tl_bank two[2] = { { 128, 1, 0 }, { 0, 3, 0 } };
    tl_graph graph = graph_of(chain);
    tl_env env = silent_env();
    tl_places_desc places;
    tl_device device;
    tl_cpu_backend_desc desc;
    tl_cpu_bank bank;
    tl_backend backend;
    tl_backend_limits limits;
    tl_plan plan;
    char says[128];
    (void)state;
    memset(&places, 0, sizeof places);
    memset(&device, 0, sizeof device);
    memset(&desc, 0, sizeof desc);
    device.alignment_bytes = desc.alignment_bytes = 8;
    places.graph = &graph;
    places.device = &device;
    places.banks = two;
    places.bank_count = 2;
    assert_int_equal(tl_plan_keep_all(&env, &graph, 0, &plan), TL_OK);
    assert_int_equal(tl_plan_places(&env, &places, &plan, NULL), TL_OK);
    assert_int_equal(tl_init_cpu_backend(&env, &desc, &backend), TL_OK);
    expect_refused(&env, &graph, &backend, &plan, TL_ERROR_UNSUPPORTED,
                   "tl_init_run: backend: the plan has a block in bank 1 of the device, the backend has 1 there");
    {
        tl_plan on_host = plan;
        tl_plan_block blocks[3];
        memcpy(blocks, plan.blocks, 2 * sizeof *blocks);
        memset(&blocks[2], 0, sizeof *blocks);
        blocks[0].bank = blocks[1].bank = 0;
        blocks[2].tier = TL_TIER_HOST; blocks[2].bank = 2; blocks[2].bytes = 8;
        on_host.blocks = blocks;
        on_host.block_count = 3;
        expect_refused(&env, &graph, &backend, &on_host, TL_ERROR_UNSUPPORTED,
                       "tl_init_run: backend: the plan has a block in bank 2 of the host, the backend has 1 there");
    }
    inner = backend;
    backend.limits = limits_with_largest;
    largest_block = 120;
    inner.limits(inner.self, &limits);  // less the slack for an allocator that aligns less
    snprintf(says, sizeof says, "tl_init_run: backend: its largest block is %d bytes, and node 2 (b) has 128",
             (int)((120 - limits.block_overhead_bytes[TL_TIER_DEVICE]) / 8 * 8));
    expect_refused(&env, &graph, &backend, NULL, TL_ERROR_UNSUPPORTED, says);
    backend.limits = inner.limits;
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
    bank.memory = more;
    bank.memory_bytes = sizeof more;
    desc.memory = memory;
    desc.memory_bytes = sizeof memory;
    desc.banks = &bank;
    desc.bank_count = 1;
    assert_int_equal(tl_init_cpu_backend(&env, &desc, &backend), TL_OK);
    expect_refused(&env, &graph, &backend, &plan, TL_ERROR_NO_MEMORY,
                   "tl_init_run: backend: a pass takes 320 bytes of bank 1, of which 128 are free");
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
    tl_free_plan(&env, &plan);
    tl_free_graph(NULL, &graph);
}

// Bank 0 of the env, whose blocks take the slack of their alignment besides, and banks of the caller, which take none.
static void banks_beside_memory_of_the_env_take_exactly_their_bytes(void **state) {
    static const tl_bank two[2] = { { 128, 1, 0 }, { 0, 3, 0 } };
    static unsigned char memory[640 + 64];
    static bed b;
    tl_graph graph = graph_of(chain);
    tl_env env = silent_env();
    tl_places_desc places;
    tl_places_report found;
    tl_device device;
    tl_cpu_backend_desc desc;
    tl_cpu_bank bank;
    tl_backend backend;
    tl_backend_limits limits;
    tl_plan plan;
    tl_run_report report;
    uint64_t peak, expected = keep_all_outcome(&graph, 0, 1, &peak);
    int is_less;
    (void)state;
    memset(&places, 0, sizeof places);
    memset(&device, 0, sizeof device);
    memset(&desc, 0, sizeof desc);
    device.alignment_bytes = 64;
    places.graph = &graph;
    places.device = &device;
    places.banks = two;
    places.bank_count = 2;
    assert_int_equal(tl_plan_keep_all(&env, &graph, 0, &plan), TL_OK);
    assert_int_equal(tl_plan_places(&env, &places, &plan, &found), TL_OK);
    assert_true(found.bank_bytes[0] > 0 && found.bank_bytes[1] > 0 && found.bank_bytes[1] <= 640);
    for (is_less = 0; is_less < 2; is_less++) {
        bank.memory = memory + (64 - (uintptr_t)memory % 64) % 64;
        bank.memory_bytes = found.bank_bytes[1] - (is_less ? 64 : 0);
        desc.banks = &bank;
        desc.bank_count = 1;
        assert_int_equal(tl_init_cpu_backend(&env, &desc, &backend), TL_OK);
        backend.limits(backend.self, &limits);
        assert_int_equal(limits.bank_overhead_bytes[0], limits.block_overhead_bytes[TL_TIER_DEVICE]);
        assert_int_equal(limits.bank_overhead_bytes[0], 64 - sizeof(void *));
        assert_int_equal(limits.bank_overhead_bytes[1], 0);
        bed_open(&b, &graph, 0, 0, 4);
        b.desc.backend = &backend;
        b.desc.plan = &plan;
        if (is_less) {
            assert_int_equal(bed_init(&b), TL_ERROR_NO_MEMORY);
            assert_non_null(strstr(b.env.error.text, "bytes of bank 1, of which"));
        } else {
            bed_must_init(&b);
            (void)bed_step(&b, 0);
            assert_true(bed_step(&b, 0) == expected);
            report = bed_report(&b);
            assert_int_equal(report.taken_bytes, report.planned_taken_bytes);
            assert_int_equal(report.taken_bank_bytes[0], found.bank_bytes[0] + 64 - sizeof(void *));
            assert_int_equal(report.taken_bank_bytes[1], found.bank_bytes[1]);
            assert_memory_equal(report.taken_bank_bytes, report.planned_bank_bytes, sizeof report.taken_bank_bytes);
        }
        tl_free_run(b.run);
        b.run = NULL;
        assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
        bed_close(&b);
    }
    tl_free_plan(&env, &plan);
    tl_free_graph(NULL, &graph);
}

// Guards of the checked backend lie in the caller's memory, and no plan counts them.
static void guard_bytes_are_named_where_they_have_no_room(void **state) {
    static uint64_t memory[80];
    tl_graph graph = graph_of(chain);
    tl_env env = silent_env();
    tl_cpu_backend_desc desc;
    tl_backend backend;
    tl_plan plan;
    tl_places_desc places;
    tl_device device;
    (void)state;
    memset(&places, 0, sizeof places);
    memset(&device, 0, sizeof device);
    memset(&desc, 0, sizeof desc);
    device.alignment_bytes = desc.alignment_bytes = 8;
    places.graph = &graph;
    places.device = &device;
    assert_int_equal(tl_plan_keep_all(&env, &graph, 0, &plan), TL_OK);
    assert_int_equal(tl_plan_places(&env, &places, &plan, NULL), TL_OK);
    desc.memory = memory;
    desc.memory_bytes = plan.arena_bytes + 127;
    desc.checked = 1;
    assert_true(desc.memory_bytes <= sizeof memory);
    assert_int_equal(tl_init_cpu_backend(&env, &desc, &backend), TL_OK);
    expect_refused(&env, &graph, &backend, &plan, TL_ERROR_NO_MEMORY,
                   "tl_init_run: backend: could not take the arena of 448 bytes: add_block: no room for the block of "
                   "448 bytes, and for the 128 bytes of its guards (checked)");
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
    desc.memory_bytes++;
    assert_int_equal(tl_init_cpu_backend(&env, &desc, &backend), TL_OK);
    {
        static bed b;
        uint64_t peak, expected = keep_all_outcome(&graph, 0, 1, &peak);
        bed_open(&b, &graph, 0, 0, 4);
        b.desc.backend = &backend;
        b.desc.plan = &plan;
        bed_must_init(&b);
        (void)bed_step(&b, 0);
        assert_true(bed_step(&b, 0) == expected);
        tl_free_run(b.run);
        b.run = NULL;
        bed_close(&b);
    }
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
    tl_free_plan(&env, &plan);
    tl_free_graph(NULL, &graph);
}

static void a_bad_plan_is_refused_in_the_name_of_the_run(void **state) {
    static const struct { const char *steps; int places, field; tl_result code; const char *says; } rows[] = {
        { "F 1\nF 3\n", 0, 0, TL_ERROR_INVALID_PLAN, "tl_init_run: plan: step 1 (F 3 c): input 2.0 is not resident" },
        { "F 1\nF 3\n", 1, 0, TL_ERROR_INVALID_PLAN, "tl_init_run: plan: step 1 (F 3 c): input 2.0 is not resident" },
        { "F 1\nF 2\nF 3\n", 0, 1, TL_ERROR_INVALID_ARG, "tl_init_run: plan: repeat_count: must be >= 0" },
        { "F 1\nF 2\nF 3\n", 1, 1, TL_ERROR_INVALID_ARG, "tl_init_run: plan: repeat_count: must be >= 0" },
        { "F 1\nF 2\nF 3\n", 1, 2, TL_ERROR_INVALID_ARG, "tl_init_run: plan: block_count: must be the number of blocks" },
    };
    static const uint64_t offsets[] = { 0, 64, 128, 256, 320 };
    tl_graph graph = graph_of(chain);
    tl_env env = silent_env();
    tl_cpu_backend_desc desc;
    tl_backend backend;
    size_t row;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.alignment_bytes = 8;
    assert_int_equal(tl_init_cpu_backend(&env, &desc, &backend), TL_OK);
    for (row = 0; row < sizeof rows / sizeof *rows; row++) {
        tl_plan plan, asked;
        assert_int_equal(tl_parse_schedule(&env, rows[row].steps, strlen(rows[row].steps), &plan), TL_OK);
        asked = plan;
        if (rows[row].places) { asked.offsets = offsets; asked.offset_count = 5; asked.alignment_bytes = 8; }
        if (rows[row].field == 1) asked.repeat_count = -1;
        if (rows[row].field == 2) asked.block_count = 1;
        expect_refused(&env, &graph, &backend, &asked, rows[row].code, rows[row].says);
        tl_free_plan(&env, &plan);
    }
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
    tl_free_graph(NULL, &graph);
}

static void memories_of_no_use_are_refused(void **state) {
    static uint64_t memory[16];
    tl_cpu_backend_desc desc;
    tl_cpu_bank bank = { NULL, 0 };
    tl_backend backend;
    tl_env env = silent_env();
    uint64_t block;
    int row;
    (void)state;
    memset(&desc, 0, sizeof desc);
    for (row = 0; row < 3; row++) {
        desc.banks = row ? &bank : NULL;
        desc.bank_count = row == 0 ? 1 : row == 1 ? -1 : TL_MOST_BANKS;
        assert_int_equal(tl_init_cpu_backend(&env, &desc, &backend), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text, "tl_init_cpu_backend: bank_count: must be 0 to 7, the number of banks beside memory");
        assert_true(is_zero(&backend, sizeof backend));
    }
    desc.banks = &bank;
    desc.bank_count = 1;
    for (row = 0; row < 2; row++) {     // no memory, or none that holds an aligned byte
        bank.memory = row ? memory : NULL;
        bank.memory_bytes = row ? 63 : 128;
        assert_int_equal(tl_init_cpu_backend(&env, &desc, &backend), TL_ERROR_INVALID_ARG);
        assert_non_null(strstr(env.error.text, "memory_bytes: "));
    }
    bank.memory_bytes = sizeof memory;
    desc.alignment_bytes = 8;
    assert_int_equal(tl_init_cpu_backend(&env, &desc, &backend), TL_OK);
    assert_int_equal(backend.add_arena(backend.self, TL_TIER_DEVICE, 2, 8, &block), TL_ERROR_INVALID_ARG);
    assert_int_equal(backend.add_arena(backend.self, TL_TIER_HOST, 1, 8, &block), TL_ERROR_INVALID_ARG);
    assert_int_equal(backend.add_arena(backend.self, TL_TIER_DEVICE, -1, 8, &block), TL_ERROR_INVALID_ARG);
    assert_int_equal(backend.add_arena(backend.self, TL_TIER_DEVICE, 1, sizeof memory + 8, &block), TL_ERROR_NO_MEMORY);
    assert_int_equal(backend.add_arena(backend.self, TL_TIER_DEVICE, 1, sizeof memory, &block), TL_OK);
    assert_int_equal(backend.free_block(backend.self, block), TL_OK);
    assert_int_equal(tl_free_cpu_backend(&env, &backend), TL_OK);
}

static void every_allocation_of_a_run_in_banks_fails_in_turn(void **state) {
    static uint64_t memory[64], more[128];
    static const tl_bank two[2] = { { 128, 1, 0 }, { 0, 3, 0 } };
    static bed b;
    tl_graph graph = graph_of(chain);
    tl_env env = silent_env();
    tl_places_desc places;
    tl_device device;
    tl_plan plan;
    long at;
    (void)state;
    memset(&places, 0, sizeof places);
    memset(&device, 0, sizeof device);
    device.alignment_bytes = 8;
    places.graph = &graph;
    places.device = &device;
    places.banks = two;
    places.bank_count = 2;
    assert_int_equal(tl_plan_keep_all(&env, &graph, 0, &plan), TL_OK);
    assert_int_equal(tl_plan_places(&env, &places, &plan, NULL), TL_OK);
    for (at = 0;; at++) {
        failing_alloc f = { 0, 0, 0, 0 };
        tl_env failing = failing_env(&f, at);
        tl_cpu_backend_desc desc;
        tl_cpu_bank bank;
        tl_backend backend;
        tl_run *run = NULL;
        tl_result result;
        memset(&desc, 0, sizeof desc);
        desc.alignment_bytes = 8;
        desc.memory = memory;
        desc.memory_bytes = sizeof memory;
        bank.memory = more;
        bank.memory_bytes = sizeof more;
        desc.banks = &bank;
        desc.bank_count = 1;
        bed_open(&b, &graph, 0, 0, 4);
        result = tl_init_cpu_backend(&failing, &desc, &backend);
        b.desc.backend = &backend;
        b.desc.plan = &plan;
        if (!result) result = tl_init_run(&failing, &b.desc, &run);
        tl_free_run(run);
        if (backend.self) assert_int_equal(tl_free_cpu_backend(&failing, &backend), TL_OK);
        bed_close(&b);
        assert_int_equal(f.live, 0);
        if (f.count <= at) { assert_int_equal(result, TL_OK); break; }
        assert_int_equal(result, TL_ERROR_NO_MEMORY);
    }
    tl_free_plan(&env, &plan);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_runs_in_banks_of_exactly_its_bytes),
        cmocka_unit_test(arenas_are_cut_where_the_backend_asks_for_it),
        cmocka_unit_test(an_order_that_fits_in_one_piece_only_is_planned_again),
        cmocka_unit_test(banks_and_blocks_that_no_backend_has_are_refused),
        cmocka_unit_test(banks_beside_memory_of_the_env_take_exactly_their_bytes),
        cmocka_unit_test(guard_bytes_are_named_where_they_have_no_room),
        cmocka_unit_test(a_bad_plan_is_refused_in_the_name_of_the_run),
        cmocka_unit_test(memories_of_no_use_are_refused),
        cmocka_unit_test(every_allocation_of_a_run_in_banks_fails_in_turn),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
