// [7] PRECISION: times of kernels by a clock that this file winds up: what is measured is known to the nanosecond.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

#include "support/support.h"
#include "support/texts.h"

#define BIT(scheme) (1u << (scheme))

// Two sizes of linear, one of relu, and an op that the library's table does not know.
#define NET "tlg 1\n" \
    "node 0 x input fwd=0 bwd=0 out=400 needs=none in=-\n" \
    "node 1 a linear fwd=1000 bwd=0 out=400 needs=in in=0\n" \
    "node 2 b Linear fwd=3000 bwd=0 out=400 needs=in in=1\n" \
    "node 3 c linear fwd=9000 bwd=0 out=4000 needs=in in=2\n" \
    "node 4 r relu fwd=100 bwd=0 out=4000 needs=out in=3\n" \
    "node 5 o odd fwd=700 bwd=0 out=4000 keep needs=in in=4\n"
enum { NODES = 6 };

// ns of a call; 0 = the scheme has no kernel.
static const uint64_t times[NODES][TL_SCHEME_COUNT] = {
    { 0 }, { 1000, 2000, 0, 0, 500, 400 }, { 3000, 4000, 0, 0, 1500, 1000 }, { 9000, 9000, 0, 0, 3000, 0 },
    { 100, 0, 0, 0, 50 }, { 700, 0, 0, 0, 350 }
};

typedef struct bed {
    uint64_t now;
    int prepared, runs, calls, turns[NODES][TL_SCHEME_COUNT];
    int noisy;                    // 1 = of four turns, two are disturbed
    int fail_node, stop_at;
    int last_node, last_scheme;
} bed;

static uint64_t now(void *clock) { return ((bed *)clock)->now; }

static tl_result prepare(int32_t node, tl_scheme scheme, void *user) {
    bed *b = (bed *)user;
    b->now += 123456;             // not timed
    b->prepared++;
    b->last_node = (int)node;
    b->last_scheme = (int)scheme;
    return TL_OK;
}

static tl_result run(int32_t node, tl_scheme scheme, int32_t count, void *user) {
    bed *b = (bed *)user;
    int turn = b->turns[node][scheme]++;
    assert_true(count >= 1 && node > 0 && times[node][scheme] > 0);
    assert_int_equal(b->last_node, node);
    assert_int_equal(b->last_scheme, scheme);
    b->now += times[node][scheme] * (uint64_t)count;
    if (b->noisy && turn % 4 > 1) b->now += 7777 * (uint64_t)count;
    b->runs++;
    b->calls += (int)count;
    return node == b->fail_node ? TL_ERROR_OVERFLOW : TL_OK;
}

static tl_result convert(int32_t tensor, tl_format format, int32_t count, void *user) {
    static const uint64_t bytes[TL_FORMAT_COUNT] = { 0, 8, 0, 6, 5 };
    bed *b = (bed *)user;
    assert_true(tensor > 0 && bytes[format]);
    b->now += (uint64_t)count * 2 * (tensor < 3 ? 100 : 1000) * (format == TL_FORMAT_F16 ? 2 : bytes[format]);
    return TL_OK;
}

static int stop(int32_t done, int32_t all, void *user) {
    assert_true(done >= 1 && done <= all);
    return done == ((bed *)user)->stop_at;
}

static tl_measure_profiles_desc desc_of(const tl_graph *graph, bed *b) {
    static uint32_t schemes[NODES];
    tl_measure_profiles_desc desc;
    int i, k;
    memset(&desc, 0, sizeof desc);
    memset(b, 0, sizeof *b);
    b->fail_node = -1;
    for (i = 0; i < NODES; i++)
        for (schemes[i] = 0, k = 0; k < TL_SCHEME_COUNT; k++) schemes[i] |= times[i][k] ? BIT(k) : 0;
    desc.graph = graph;
    desc.name = "my board";
    desc.node_schemes = schemes;
    desc.prepare = prepare;
    desc.run = run;
    desc.convert = convert;
    desc.user = desc.clock = b;
    desc.now_ns = now;
    desc.progress = stop;
    return desc;
}

static const tl_precision_profile *row_of(const tl_measured_profiles *m, const tl_graph *graph, int32_t node) {
    return tl_find_profile(m->profiles, m->profile_count, graph, node, NULL);
}

static void times_are_lower_quartiles_of_turns(void **state) {
    tl_graph graph = graph_of(NET);
    tl_measured_profiles m;
    bed b;
    tl_measure_profiles_desc desc = desc_of(&graph, &b);
    int i, k;
    (void)state;
    b.noisy = 1;
    assert_int_equal(tl_measure_profiles(NULL, &desc, &m), TL_OK);
    for (i = 0; i < NODES; i++)
        for (k = 0; k < TL_SCHEME_COUNT; k++)
            assert_int_equal(m.costs[i * TL_SCHEME_COUNT + k], times[i][k] ? times[i][k] : TL_FORBIDDEN);
    assert_int_equal(b.prepared, b.runs);
    assert_int_equal(b.turns[1][TL_SCHEME_I8], 16);            // 15 and the one that warms up
    assert_true(b.calls > 15 * (100000 / 9000) && b.calls < 15 * 14 * 2100);  // samples last 100 us
    tl_free_measured_profiles(NULL, &m);
    assert_null(m.memory);
    tl_free_graph(NULL, &graph);
}

static void rows_are_by_op_and_size(void **state) {
    tl_graph graph = graph_of(NET);
    tl_measured_profiles m;
    const tl_precision_profile *row, *large, *known;
    bed b;
    tl_measure_profiles_desc desc = desc_of(&graph, &b);
    int32_t count, i;
    const tl_precision_profile *defaults = tl_find_default_profiles(&count);
    (void)state;
    assert_int_equal(tl_measure_profiles(NULL, &desc, &m), TL_OK);
    assert_int_equal(tl_check_profiles(NULL, m.profiles, m.profile_count), TL_OK);
    row = row_of(&m, &graph, 1);
    assert_true(row == row_of(&m, &graph, 2));                 // case does not matter, the sizes are equal
    assert_true(row->speedup[TL_SCHEME_I8] == 2 && row->speedup[TL_SCHEME_F16] == 0.6667);
    assert_true(row->speedup[TL_SCHEME_I8_CHANNEL] == 2.8571);
    assert_int_equal(row->most_elements, 550);
    assert_string_equal(row->measured_on, "my board");
    known = tl_find_profile(defaults, count, &graph, 1, NULL);
    assert_true(row->loss[TL_SCHEME_I8] == known->loss[TL_SCHEME_I8] && row->recommended == known->recommended);
    assert_int_equal(row->schemes, BIT(0) | BIT(TL_SCHEME_F16) | BIT(TL_SCHEME_I8) | BIT(TL_SCHEME_I8_CHANNEL));
    large = row_of(&m, &graph, 3);
    assert_true(large != row && large->speedup[TL_SCHEME_I8] == 3 && !large->most_elements);
    assert_int_equal(large->recommended, TL_SCHEME_F32);       // i8-channel has no kernel
    assert_string_equal(row_of(&m, &graph, 5)->op, "odd");
    for (i = 0; i < m.profile_count; i++)                      // what was not measured is there, and says so
        if (strcmp(m.profiles[i].op, "conv2d") == 0) break;
    assert_true(i < m.profile_count && !m.profiles[i].measured_on);
    assert_string_equal(m.device.name, "my board");
    assert_true(m.device.flops_per_second[TL_PRECISION_SINGLE] == 1e9);  // 13800 units in 13800 ns
    assert_int_equal(m.device.bytes_per_second, 1000000000);   // a byte a ns, read or written
    assert_int_equal(m.device.codec_bytes_per_second, 2000000000);
    tl_free_measured_profiles(NULL, &m);
    tl_free_graph(NULL, &graph);
}

static void given_losses_are_those_of_rows(void **state) {
    double losses[NODES * TL_SCHEME_COUNT];
    tl_graph graph = graph_of(NET);
    tl_measured_profiles m;
    bed b;
    tl_measure_profiles_desc desc = desc_of(&graph, &b);
    int i;
    (void)state;
    for (i = 0; i < NODES * TL_SCHEME_COUNT; i++) losses[i] = (double)NAN;
    losses[1 * TL_SCHEME_COUNT + TL_SCHEME_I8] = 0.25;
    losses[2 * TL_SCHEME_COUNT + TL_SCHEME_I8] = 0.5;
    desc.losses = losses;
    desc.convert = NULL;
    assert_int_equal(tl_measure_profiles(NULL, &desc, &m), TL_OK);
    assert_true(row_of(&m, &graph, 1)->loss[TL_SCHEME_I8] == 0.5);  // the larger of its nodes
    assert_true(row_of(&m, &graph, 3)->loss[TL_SCHEME_I8] < 0.01);
    assert_int_equal(m.device.bytes_per_second, 0);
    tl_free_measured_profiles(NULL, &m);
    tl_free_graph(NULL, &graph);
}

// A plan by the table prices each node as it was measured, where a row holds nodes of one speed.
static void a_plan_by_the_table_takes_what_was_measured(void **state) {
    tl_graph graph = graph_of(NET);
    tl_measured_profiles m;
    tl_precision_desc plan_desc;
    tl_precision_plan plan;
    bed b;
    tl_measure_profiles_desc desc = desc_of(&graph, &b);
    (void)state;
    assert_int_equal(tl_measure_profiles(NULL, &desc, &m), TL_OK);
    memset(&plan_desc, 0, sizeof plan_desc);
    plan_desc.graph = &graph;
    plan_desc.device = &m.device;
    plan_desc.profiles = m.profiles;
    plan_desc.profile_count = m.profile_count;
    plan_desc.loss_limit = 1;
    plan_desc.allow_unknown = plan_desc.allow_sensitive = 1;
    plan_desc.schemes = BIT(0) | BIT(TL_SCHEME_I8);
    assert_int_equal(tl_plan_precision(NULL, &plan_desc, &plan), TL_OK);
    assert_int_equal(plan.base_cost, 13800);
    assert_int_equal(plan.cost, 500 + 1500 + 3000 + 50 + 350 + 5 * 100 + 5 * 1000);
    assert_string_equal(plan.speeds.measured_on, "my board");
    assert_int_equal(plan.speeds.counts[TL_SPEED_MEASURED], 5);
    tl_free_precision_plan(NULL, &plan);
    tl_free_measured_profiles(NULL, &m);
    tl_free_graph(NULL, &graph);
}

static void a_table_is_text_with_its_machine(void **state) {
    tl_graph graph = graph_of(NET);
    tl_measured_profiles m;
    bed b;
    tl_measure_profiles_desc desc = desc_of(&graph, &b);
    char *text, *at;
    size_t length;
    (void)state;
    assert_int_equal(tl_measure_profiles(NULL, &desc, &m), TL_OK);
    length = tl_print_profiles(m.profiles, m.profile_count, &m.device, NULL, 0);
    text = (char *)malloc(length + 1);
    assert_int_equal(tl_print_profiles(m.profiles, m.profile_count, &m.device, text, length + 1), length);
    assert_int_equal(strncmp(text, "profiles 1\n#", 12), 0);
    at = strstr(text, "\nmachine my-board flops=1000000000.0 memory=1000000000 codec=2000000000\nprofile linear most=550 ");
    assert_non_null(at);
    assert_non_null(strstr(at, " i8=0.0009464:2.0 "));
    at = strstr(at, "\nmachine -\nprofile conv2d ");
    assert_non_null(at);
    assert_null(strstr(at + 10, "machine "));
    free(text);
    tl_free_measured_profiles(NULL, &m);
    tl_free_graph(NULL, &graph);
}

static void failures_and_stops(void **state) {
    tl_graph graph = graph_of(NET);
    tl_measured_profiles m;
    bed b;
    tl_measure_profiles_desc desc = desc_of(&graph, &b), good = desc;
    uint32_t bad[NODES] = { 0, 0, 1u << 20 };
    tl_env env;
    (void)state;
    memset(&env, 0, sizeof env);
#define REFUSED(change, code, sentence) \
    desc = good; change; \
    memset(&m, 0xA5, sizeof m); \
    assert_int_equal(tl_measure_profiles(&env, &desc, &m), code); \
    assert_string_equal(env.error.text, "tl_measure_profiles: " sentence); \
    assert_null(m.memory); assert_null(m.profiles); assert_int_equal(m.profile_count, 0)
    REFUSED(desc.name = NULL, TL_ERROR_INVALID_ARG, "name: must not be empty");
    REFUSED(desc.name = "", TL_ERROR_INVALID_ARG, "name: must not be empty");
    REFUSED(desc.run = NULL, TL_ERROR_INVALID_ARG, "run: must not be NULL");
    REFUSED(desc.now_ns = NULL, TL_ERROR_INVALID_ARG, "now_ns: must not be NULL");
    REFUSED(desc.sample_count = 32, TL_ERROR_INVALID_ARG, "sample_count: must be 0 .. 31");
    REFUSED(desc.sample_count = -1, TL_ERROR_INVALID_ARG, "sample_count: must be 0 .. 31");
    REFUSED(desc.schemes = BIT(TL_SCHEME_COUNT), TL_ERROR_INVALID_ARG, "schemes: unknown bit");
    REFUSED(desc.node_schemes = bad, TL_ERROR_INVALID_ARG, "node_schemes: unknown bit");
    REFUSED(b.fail_node = 3, TL_ERROR_KERNEL, "run: node c: overflow");
#undef REFUSED
    b.fail_node = -1;
    b.stop_at = 2;                                              // nodes 0 and 1 alone
    assert_int_equal(tl_measure_profiles(NULL, &good, &m), TL_OK);
    assert_int_equal(m.costs[TL_SCHEME_COUNT], 1000);
    assert_true(m.costs[3 * TL_SCHEME_COUNT] == TL_FORBIDDEN);
    assert_int_equal(tl_check_profiles(NULL, m.profiles, m.profile_count), TL_OK);
    tl_free_measured_profiles(NULL, &m);
    tl_free_graph(NULL, &graph);
}

static void no_memory_is_an_error(void **state) {
    tl_graph graph = graph_of(NET);
    tl_measured_profiles m;
    bed b;
    tl_measure_profiles_desc desc = desc_of(&graph, &b);
    long at;
    (void)state;
    for (at = 0; ; at++) {
        failing_alloc f = { 0 };
        tl_env env = failing_env(&f, at);
        tl_result result = tl_measure_profiles(&env, &desc, &m);
        assert_int_equal(result, f.count > at ? TL_ERROR_NO_MEMORY : TL_OK);
        assert_int_equal(!m.memory, result != TL_OK);
        tl_free_measured_profiles(&env, &m);
        if (!result) break;
    }
    assert_true(at > 1);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_lower_quartiles_of_turns),
        cmocka_unit_test(rows_are_by_op_and_size),
        cmocka_unit_test(given_losses_are_those_of_rows),
        cmocka_unit_test(a_plan_by_the_table_takes_what_was_measured),
        cmocka_unit_test(a_table_is_text_with_its_machine),
        cmocka_unit_test(failures_and_stops),
        cmocka_unit_test(no_memory_is_an_error),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
