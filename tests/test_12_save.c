// [12] RUN: saving and loading, between passes and at every step of a pass with nothing under way; and hostile data.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/random_steps.h"
#include "support/run_support.h"
#include "support/run_bed.h"


typedef struct saved { unsigned char *bytes; size_t count, capacity; long fails_after; } saved;

static tl_result keep_bytes(void *user, const char *text, size_t length) {
    saved *s = (saved *)user;
    if (s->fails_after >= 0 && s->fails_after-- == 0) return TL_ERROR_IO;
    while (s->count + length > s->capacity) {
        s->capacity = 2 * s->capacity + 4096;
        s->bytes = (unsigned char *)realloc(s->bytes, s->capacity);
        assert_non_null(s->bytes);
    }
    memcpy(s->bytes + s->count, text, length);
    s->count += length;
    return TL_OK;
}

static tl_result save(tl_run *run, saved *s) {
    tl_sink sink;
    s->count = 0;
    s->fails_after = -1;
    sink.write = keep_bytes;
    sink.user = s;
    return tl_save_run(run, sink);
}

// What the kernels of the bed keep from call to call is state of the caller.
static void open_bed(bed *b, tl_variable *states, const tl_graph *graph, const tl_plan *plan, int kind, int32_t k) {
    bed_open(b, graph, kind, 6, 4);
    memset(states, 0, 3 * sizeof *states);
    states[0].node = states[1].node = states[2].node = -1;
    states[0].kind = TL_VARIABLE_GRADIENT;
    states[0].host = b->mixer.gradients;
    states[0].bytes = (uint64_t)graph->node_count * sizeof *b->mixer.gradients;
    states[1].kind = TL_VARIABLE_STATISTICS;
    states[1].host = b->mixer.seeds;
    states[1].bytes = (uint64_t)graph->node_count * sizeof *b->mixer.seeds;
    states[2].kind = TL_VARIABLE_RANDOM;
    states[2].host = b->mixer.ran;
    states[2].bytes = (uint64_t)graph->node_count * sizeof *b->mixer.ran;
    b->desc.variables = states;
    b->desc.variable_count = 3;
    b->desc.plan = plan;
    b->desc.in_flight = k;
    bed_must_init(b);
}

// Run up to a step, or to the end; one step at a time.
static int32_t run_steps(bed *b, int32_t until) {
    int32_t done = 0, index = 0;
    while (!done && index < until) {
        tl_run_step step;
        tl_result result;
        do result = tl_next_step(b->run, &step, &done); while (result == TL_NOT_READY);
        if (result) fail_msg("%s", b->env.error.text);
        if (!done && step.is_compute && tl_run_step_kernel(b->run, &step)) fail_msg("%s", b->env.error.text);
        if (!done) index = step.index + 1;
    }
    return done;
}

static void start(bed *b) {
    if (bed_load(b->run, 0, b) || tl_start_pass(b->run, 0)) fail_msg("%s", b->env.error.text);
}

static int is_valid(const tl_graph *graph, const tl_plan *plan, int *copies) {
    tl_env env;
    tl_simulate_desc desc;
    tl_report report;
    memset(&env, 0, sizeof env);
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    if (tl_simulate_plan(&env, &desc, &report)) return 0;
    *copies = report.copy_count > 0;
    return 1;
}

// Load into a new run, go on there to the end of the pass, and run one more.
static uint64_t go_on(const tl_graph *graph, const tl_plan *plan, int kind, int32_t k, const saved *s) {
    static bed b;
    static tl_variable states[3];
    uint64_t sum;
    open_bed(&b, states, graph, plan, kind, k);
    if (tl_load_run(b.run, s->bytes, s->count)) fail_msg("%s", b.env.error.text);
    assert_int_equal(tl_load_run(b.run, s->bytes, s->count), TL_ERROR_INVALID_ARG);
    b.loads = 1;    // states are loaded, not written
    (void)run_steps(&b, INT32_MAX);
    sum = bed_outcome(&b, plan->inference);
    start(&b);
    (void)run_steps(&b, INT32_MAX);
    sum = tl_mix_u64(sum, bed_outcome(&b, plan->inference));
    bed_close(&b);
    return sum;
}

static void make_graph(tl_random *random, int with_states, int dies, tl_graph *graph) {
    tl_env env;
    tl_graph plain;
    memset(&env, 0, sizeof env);
    if (random_graph(&env, random, 12, &plain)) fail_msg("%s", env.error.text);
    *graph = plain;
    if (dies) (void)random_let_inputs_die(random, graph);
    if (!with_states) return;
    if (random_add_states(&env, random, &plain, random_count(random, 1, 5), graph)) fail_msg("%s", env.error.text);
    tl_free_graph(NULL, &plain);
}

static void a_pass_goes_on_where_it_was_saved(void **state) {
    static bed b;
    static tl_variable states[3];
    tl_random random;
    saved s = { NULL, 0, 0, -1 };
    long runs = 0, saves = 0, refused = 0, with_copies = 0;
    (void)state;
    random.state = 21;
    while (runs < scaled(100)) {
        tl_env env;
        tl_graph graph;
        tl_plan plan;
        int copies = 0, kind = (int)(runs % BACKEND_KINDS);
        memset(&env, 0, sizeof env);
        make_graph(&random, runs % 3 == 2, runs % 5 > 2, &graph);
        if (random_plan(&env, &random, &graph, &plan)) fail_msg("%s", "out of memory");
        if (is_valid(&graph, &plan, &copies)) {
            int32_t k = random_count(&random, 1, 4), at;
            uint64_t expected, sum;
            open_bed(&b, states, &graph, &plan, kind, k);
            start(&b);
            (void)run_steps(&b, INT32_MAX);
            start(&b);
            (void)run_steps(&b, INT32_MAX);
            expected = bed_outcome(&b, plan.inference);
            start(&b);
            (void)run_steps(&b, INT32_MAX);
            expected = tl_mix_u64(expected, bed_outcome(&b, plan.inference));
            bed_close(&b);
            for (at = 0; at <= plan.step_count; at++) {
                tl_result result;
                open_bed(&b, states, &graph, &plan, kind, k);
                start(&b);
                (void)run_steps(&b, INT32_MAX);
                start(&b);
                (void)run_steps(&b, at);
                result = save(b.run, &s);
                if (result == TL_ERROR_INVALID_ARG) {
                    assert_true(copies);
                    assert_string_equal(b.env.error.text, "tl_save_run: run: a step or a copy is under way");
                    assert_int_equal(s.count, 0);
                    refused++;
                } else if (result == TL_ERROR_UNSUPPORTED) {    // nothing has bytes: there is no arena
                    refused++;
                } else {
                    if (result) fail_msg("%s", b.env.error.text);
                    sum = go_on(&graph, &plan, (kind + at) % BACKEND_KINDS, k, &s);
                    if (sum != expected) fail_msg("run %ld: another outcome after step %d", runs, (int)at);
                    saves++;
                }
                (void)run_steps(&b, INT32_MAX);     // saving has changed nothing
                sum = bed_outcome(&b, plan.inference);
                start(&b);
                (void)run_steps(&b, INT32_MAX);
                assert_int_equal(tl_mix_u64(sum, bed_outcome(&b, plan.inference)), expected);
                bed_close(&b);
            }
            runs++;
            with_copies += copies;
        }
        random_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    free(s.bytes);
    printf("%ld runs, %ld saves in a pass, %ld refused; %ld runs with copies\n", runs, saves, refused, with_copies);
    assert_true(is_thinned() || (saves > 5 * runs && refused > 0 && with_copies > 5));
}

// Between passes the plan does not matter.
static void a_training_goes_on_under_another_plan(void **state) {
    static bed b, other;
    static tl_variable states[3], others[3];
    tl_random random;
    saved s = { NULL, 0, 0, -1 };
    long runs = 0;
    (void)state;
    random.state = 22;
    while (runs < scaled(100)) {
        tl_env env;
        tl_graph graph;
        tl_plan all, kept;
        uint8_t keep[256];
        int32_t i;
        uint64_t expected;
        memset(&env, 0, sizeof env);
        if (random_graph(&env, &random, 16, &graph)) fail_msg("%s", env.error.text);
        for (i = 0; i < graph.tensor_count; i++) keep[i] = (uint8_t)random_chance(&random, 50);
        if (tl_plan_keep_all(&env, &graph, 0, &all) || tl_plan_kept_set(&env, &graph, keep, &kept)) fail_msg("%s", env.error.text);
        open_bed(&b, states, &graph, &all, (int)(runs % BACKEND_KINDS), 1);
        start(&b);
        (void)run_steps(&b, INT32_MAX);
        if (save(b.run, &s)) fail_msg("%s", b.env.error.text);
        if (tl_start_pass(b.run, 0)) fail_msg("%s", b.env.error.text);     // with the inputs that are there
        mixer_start_pass(&b.mixer);
        (void)run_steps(&b, INT32_MAX);
        expected = bed_outcome(&b, 0);
        open_bed(&other, others, &graph, &kept, (int)((runs + 1) % BACKEND_KINDS), random_count(&random, 1, 3));
        if (tl_load_run(other.run, s.bytes, s.count)) fail_msg("%s", other.env.error.text);
        if (tl_start_pass(other.run, 0)) fail_msg("%s", other.env.error.text);
        mixer_start_pass(&other.mixer);
        (void)run_steps(&other, INT32_MAX);
        assert_int_equal(bed_outcome(&other, 0), expected);
        bed_close(&b);
        bed_close(&other);
        tl_free_plan(&env, &all);
        tl_free_plan(&env, &kept);
        tl_free_graph(&env, &graph);
        runs++;
    }
    free(s.bytes);
}

static const char graph_text[] =
    "tlg 1\nnode 0 x input fwd=0 bwd=0 out=8,4 needs=none in=-\nnode 1 a conv fwd=3 bwd=5 out=12 needs=in in=0 saved=4 fwork=2 bwork=6\n"
    "node 2 b relu fwd=1 bwd=2 out=12 needs=out in=1 inplace=0\nnode 3 s split fwd=4 bwd=3 out=3,5 needs=out1 in=2,0.1\n"
    "node 4 c add fwd=2 bwd=2 out=4 needs=in0 in=3.0,3.1,1 keep\n";
static const char steps_text[] = "S 1\nO 1\nF 2\nW 1\nF 3\nL 1\nD 2\nW 1\nF 4\nB 4\nF 2\nB 3\nB 2\nB 1\n";

// What a step is under way for is refused, and a sink that fails says so.
static void what_is_under_way_is_not_saved(void **state) {
    static bed b;
    static tl_variable states[3];
    tl_env env;
    tl_graph graph;
    tl_plan plan;
    tl_run_step step;
    tl_sink sink;
    saved s = { NULL, 0, 0, -1 };
    int32_t done = 0, k;
    (void)state;
    memset(&env, 0, sizeof env);
    if (tl_parse_graph(&env, graph_text, strlen(graph_text), &graph)) fail_msg("%s", env.error.text);
    if (tl_parse_schedule(&env, steps_text, strlen(steps_text), &plan)) fail_msg("%s", env.error.text);
    for (k = 1; k <= 2; k++) {
        open_bed(&b, states, &graph, &plan, 0, k);
        start(&b);
        if (tl_next_step(b.run, &step, &done)) fail_msg("%s", b.env.error.text);
        assert_int_equal(save(b.run, &s), TL_ERROR_INVALID_ARG);
        assert_int_equal(s.count, 0);
        if (tl_run_step_kernel(b.run, &step)) fail_msg("%s", b.env.error.text);
        if (save(b.run, &s)) fail_msg("%s", b.env.error.text);
        if (tl_next_step(b.run, &step, &done)) fail_msg("%s", b.env.error.text);
        assert_int_equal(step.step.kind, TL_STEP_SPILL);
        assert_int_equal(save(b.run, &s), TL_ERROR_INVALID_ARG);
        if (tl_reset_run(b.run)) fail_msg("%s", b.env.error.text);
        s.count = 0;
        s.fails_after = 0;
        sink.write = keep_bytes;
        sink.user = &s;
        assert_int_equal(tl_save_run(b.run, sink), TL_ERROR_IO);
        assert_string_equal(b.env.error.text, "tl_save_run: sink: stopped with i/o error after 0 bytes");
        bed_close(&b);
    }
    free(s.bytes);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

static void set_checksum(unsigned char *bytes, size_t count) {
    uint64_t sum = tli_checksum_bytes(0, bytes, count - 8);
    int i;
    for (i = 0; i < 8; i++) bytes[count - 8 + (size_t)i] = (unsigned char)(sum >> (8 * i));
}

// The run that refused data runs a pass as if there had been none.
static void check_undisturbed(bed *b, uint64_t expected) {
    memset(&b->mixer, 0, sizeof b->mixer);
    b->mixer.fail_at = -1;
    if (tl_start_pass(b->run, 0)) fail_msg("%s", b->env.error.text);
    (void)run_steps(b, INT32_MAX);
    assert_int_equal(bed_outcome(b, 0), expected);
    if (tl_load_run(b->run, NULL, 0) != TL_ERROR_PARSE) fail_msg("%s", "nothing was loaded");
    assert_string_equal(b->env.error.text, "tl_load_run: data: not what tl_save_run writes");
    if (tl_load_run(b->run, "hello, world", 12) != TL_ERROR_PARSE) fail_msg("%s", "a greeting was loaded");
    assert_string_equal(b->env.error.text, "tl_load_run: data: not what tl_save_run writes");
}

static void hostile_data_is_refused_and_nothing_lost(void **state) {
    static bed b;
    static tl_variable states[3];
    tl_env env;
    tl_graph graph;
    tl_plan plan;
    tl_random random;
    saved s = { NULL, 0, 0, -1 };
    unsigned char *bytes;
    uint64_t expected;
    long round, taken = 0, refused = 0;
    int in_pass;
    size_t cut;
    (void)state;
    memset(&env, 0, sizeof env);
    random.state = 23;
    if (tl_parse_graph(&env, graph_text, strlen(graph_text), &graph)) fail_msg("%s", env.error.text);
    if (tl_parse_schedule(&env, steps_text, strlen(steps_text), &plan)) fail_msg("%s", env.error.text);
    for (in_pass = 0; in_pass < 2; in_pass++) {
        open_bed(&b, states, &graph, &plan, BACKEND_CHECKED, 2);
        if (bed_load(b.run, 0, &b)) fail_msg("%s", b.env.error.text);
        if (in_pass) { start(&b); (void)run_steps(&b, 9); }
        if (save(b.run, &s)) fail_msg("%s", b.env.error.text);
        bytes = (unsigned char *)malloc(s.count + 16);
        bed_close(&b);
        open_bed(&b, states, &graph, &plan, BACKEND_CHECKED, 2);
        start(&b);
        (void)run_steps(&b, INT32_MAX);
        b.desc.seed = 0;
        memset(&b.mixer, 0, sizeof b.mixer);
        b.mixer.fail_at = -1;
        bed_close(&b);
        open_bed(&b, states, &graph, &plan, BACKEND_CHECKED, 2);
        start(&b);
        (void)run_steps(&b, INT32_MAX);
        expected = bed_outcome(&b, 0);      // of training step 0; later ones have other seeds
        bed_close(&b);
        for (cut = 0; cut < s.count; cut += cut < 200 || cut + 64 > s.count ? 1 : 97) {
            unsigned char *short_copy = (unsigned char *)malloc(cut + 1);
            open_bed(&b, states, &graph, &plan, BACKEND_CHECKED, 2);
            if (bed_load(b.run, 0, &b)) fail_msg("%s", b.env.error.text);
            memcpy(short_copy, s.bytes, cut);
            assert_int_equal(tl_load_run(b.run, short_copy, cut), TL_ERROR_PARSE);
            if (cut >= 8) {
                set_checksum(short_copy, cut);
                assert_true(tl_load_run(b.run, short_copy, cut) != TL_OK);
            }
            check_undisturbed(&b, expected);
            bed_close(&b);
            free(short_copy);
        }
        for (round = 0; round < scaled(2000); round++) {
            size_t at = (size_t)tl_next_random_below(&random, random_chance(&random, 60) ? 200 : s.count);
            tl_result result;
            if (at >= s.count) continue;
            open_bed(&b, states, &graph, &plan, BACKEND_CHECKED, 2);
            if (bed_load(b.run, 0, &b)) fail_msg("%s", b.env.error.text);
            memcpy(bytes, s.bytes, s.count);
            bytes[at] ^= (unsigned char)(1 + tl_next_random_below(&random, 255));
            assert_int_equal(tl_load_run(b.run, bytes, s.count), TL_ERROR_PARSE);
            if (at < s.count - 8) set_checksum(bytes, s.count);
            result = tl_load_run(b.run, bytes, s.count);    // of a number in a tensor nobody can say that it is wrong
            if (result) { check_undisturbed(&b, expected); refused++; }
            else {
                if (tl_reset_run(b.run)) fail_msg("%s", b.env.error.text);
                taken++;
            }
            bed_close(&b);
        }
        free(bytes);
    }
    printf("%ld altered ones refused, %ld taken\n", refused, taken);
    assert_true(is_thinned() || (refused > 500 && taken > 100));
    free(s.bytes);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// The same of tl_load_variables: refused, and no state has changed, or taken.
static void hostile_states_are_refused(void **state) {
    static bed b;
    static tl_variable states[3];
    static mixer before;
    tl_env env;
    tl_graph graph;
    tl_plan plan;
    tl_random random;
    tl_saved saves[2];
    saved s = { NULL, 0, 0, -1 };
    unsigned char *bytes;
    long round, taken = 0, refused = 0;
    (void)state;
    memset(&env, 0, sizeof env);
    random.state = 24;
    if (tl_parse_graph(&env, graph_text, strlen(graph_text), &graph)) fail_msg("%s", env.error.text);
    if (tl_parse_schedule(&env, steps_text, strlen(steps_text), &plan)) fail_msg("%s", env.error.text);
    open_bed(&b, states, &graph, &plan, BACKEND_CHECKED, 2);
    start(&b);
    (void)run_steps(&b, INT32_MAX);
    if (save(b.run, &s)) fail_msg("%s", b.env.error.text);
    before = b.mixer;
    bytes = (unsigned char *)malloc(s.count);
    saves[0].data = s.bytes;
    saves[0].length = s.count;
    saves[1].data = bytes;
    for (round = 0; round < scaled(6000); round++) {
        int cuts = random_chance(&random, 30), both = random_chance(&random, 50);
        size_t at = (size_t)tl_next_random_below(&random, s.count - 8);
        tl_result result;
        saves[1].length = cuts ? at + 8 : s.count;
        memcpy(bytes, s.bytes, s.count);
        if (!cuts) bytes[at] ^= (unsigned char)(1 + tl_next_random_below(&random, 255));
        assert_int_equal(tl_load_variables(b.run, saves + 1 - both, 1 + both), TL_ERROR_PARSE);
        set_checksum(bytes, saves[1].length);
        result = tl_load_variables(b.run, saves + 1 - both, 1 + both);
        refused += result != TL_OK;
        taken += !result;
        if (result) assert_memory_equal(&before, &b.mixer, sizeof before);
        b.mixer = before;
    }
    memcpy(bytes, s.bytes, s.count);
    assert_int_equal(bytes[112], TL_VARIABLE_GRADIENT);      // the kind of the first range
    bytes[112] = TL_VARIABLE_COUNT;
    set_checksum(bytes, s.count);
    saves[1].length = s.count;
    assert_int_equal(tl_load_variables(b.run, &saves[1], 1), TL_ERROR_PARSE);
    free(bytes);
    free(s.bytes);
    printf("%ld altered ones refused, %ld taken\n", refused, taken);
    assert_true(is_thinned() || (refused > 1000 && taken > 500));
    bed_close(&b);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// Data of another graph, seed, plan or state is told apart.
static void data_of_another_run_is_refused(void **state) {
    static bed b;
    static tl_variable states[3];
    tl_env env;
    tl_graph graph, other;
    tl_plan plan, all;
    saved s = { NULL, 0, 0, -1 }, in_pass = { NULL, 0, 0, -1 };
    static const char other_text[] = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\nnode 1 a conv fwd=1 bwd=1 out=8 needs=in in=0\n";
    (void)state;
    memset(&env, 0, sizeof env);
    if (tl_parse_graph(&env, graph_text, strlen(graph_text), &graph)) fail_msg("%s", env.error.text);
    if (tl_parse_graph(&env, other_text, strlen(other_text), &other)) fail_msg("%s", env.error.text);
    if (tl_parse_schedule(&env, steps_text, strlen(steps_text), &plan)) fail_msg("%s", env.error.text);
    if (tl_plan_keep_all(&env, &graph, 0, &all)) fail_msg("%s", env.error.text);
    open_bed(&b, states, &graph, &plan, 0, 1);
    if (save(b.run, &s)) fail_msg("%s", b.env.error.text);
    start(&b);
    (void)run_steps(&b, 1);
    if (save(b.run, &in_pass)) fail_msg("%s", b.env.error.text);
    bed_close(&b);
    open_bed(&b, states, &graph, &all, 0, 1);
    assert_int_equal(tl_load_run(b.run, in_pass.bytes, in_pass.count), TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text, "tl_load_run: data: saved in a pass of another plan");
    assert_int_equal(tl_load_run(b.run, s.bytes, s.count), TL_OK);
    bed_close(&b);
    open_bed(&b, states, &graph, &plan, 0, 2);
    assert_int_equal(tl_load_run(b.run, in_pass.bytes, in_pass.count), TL_ERROR_INVALID_ARG);
    bed_close(&b);
    bed_open(&b, &other, 0, 0, 4);
    bed_must_init(&b);
    assert_int_equal(tl_load_run(b.run, s.bytes, s.count), TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text, "tl_load_run: data: of another graph, precision or number of slots");
    bed_close(&b);
    bed_open(&b, &graph, 0, 0, 4);
    bed_must_init(&b);
    assert_int_equal(tl_load_run(b.run, s.bytes, s.count), TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text, "tl_load_run: data: other variables than this run has");
    tl_free_run(b.run);
    b.desc.seed = 5;
    bed_must_init(&b);
    assert_int_equal(tl_load_run(b.run, s.bytes, s.count), TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text, "tl_load_run: data: of another seed");
    bed_close(&b);
    free(s.bytes);
    free(in_pass.bytes);
    tl_free_plan(&env, &plan);
    tl_free_plan(&env, &all);
    tl_free_graph(&env, &graph);
    tl_free_graph(&env, &other);
}

// -- entries, scalers, and what fails --

// The graph above without its gradients, with an entry that no step frees, one that a step frees, and one that goes to the host.
static const char *const entry_texts[] = {
    "E 1.0\nF 2\nF 3\nF 4\n", "E 1.0\nF 2\nF 3\nF 4\nD 1\n", "E 1.0\nF 2\nF 3\nO 1\nW 1\nL 1\nW 1\nF 4\n",
};
#define ENTRIES (int)(sizeof entry_texts / sizeof *entry_texts)

static void parse_entry(tl_env *env, int which, tl_plan *plan) {
    if (tl_parse_schedule(env, entry_texts[which], strlen(entry_texts[which]), plan)) fail_msg("%s", env->error.text);
    plan->inference = 1;
}

static void write_entry(bed *b) {
    unsigned char bytes[12];
    tl_tensor tensor = { 1, 0 };
    int i;
    for (i = 0; i < 12; i++) bytes[i] = (unsigned char)(7 * i + 1);
    if (tl_write_tensor(b->run, tensor, bytes, 12)) fail_msg("%s", b->env.error.text);
}

static uint64_t finish_entry(bed *b) {
    (void)run_steps(b, INT32_MAX);
    return bed_outcome(b, 1);
}

// Saved between two passes, and at every step of one; what a step has freed is not there again.
static void an_entry_goes_on_where_it_was_saved(void **state) {
    static bed b, other;
    static tl_variable states[3], others[3];
    tl_env env;
    tl_graph graph;
    saved s = { NULL, 0, 0, -1 };
    int which, kind;
    int32_t at;
    (void)state;
    memset(&env, 0, sizeof env);
    if (tl_parse_graph(&env, graph_text, strlen(graph_text), &graph)) fail_msg("%s", env.error.text);
    for (which = 0; which < ENTRIES; which++)
        for (kind = 0; kind < BACKEND_KINDS; kind++) {
            tl_plan plan;
            parse_entry(&env, which, &plan);
            for (at = -1; at <= plan.step_count; at++) {
                uint64_t expected;
                tl_result result;
                open_bed(&b, states, &graph, &plan, kind, 1);
                write_entry(&b);
                if (bed_load(b.run, 0, &b)) fail_msg("%s", b.env.error.text);
                if (at >= 0) { start(&b); (void)run_steps(&b, at); }
                result = save(b.run, &s);
                if (result) {       // the entry is on its way to the host, or back
                    assert_int_equal(which, 2);
                    assert_int_equal(result, TL_ERROR_INVALID_ARG);
                    bed_close(&b);
                    continue;
                }
                open_bed(&other, others, &graph, &plan, (kind + 1) % BACKEND_KINDS, 1);
                if (tl_load_run(other.run, s.bytes, s.count)) fail_msg("%s", other.env.error.text);
                if (at < 0) { start(&b); start(&other); }
                expected = finish_entry(&b);
                assert_int_equal(finish_entry(&other), expected);
                start(&b);
                start(&other);
                expected = finish_entry(&b);
                assert_int_equal(finish_entry(&other), expected);
                bed_close(&other);
                bed_close(&b);
            }
            tl_free_plan(&env, &plan);
        }
    free(s.bytes);
    tl_free_graph(&env, &graph);
}

// A run that has run passes, of which results and what steps have freed are still there, takes over the entry all the same.
static void an_entry_is_loaded_into_a_run_that_has_run(void **state) {
    static bed b, other;
    static tl_variable states[3], others[3];
    tl_env env;
    tl_graph graph;
    saved s = { NULL, 0, 0, -1 };
    int which, kind;
    (void)state;
    memset(&env, 0, sizeof env);
    if (tl_parse_graph(&env, graph_text, strlen(graph_text), &graph)) fail_msg("%s", env.error.text);
    for (which = 0; which < ENTRIES; which++)
        for (kind = 0; kind < BACKEND_KINDS; kind++) {
            tl_plan plan;
            tl_backend_counters before, after;
            parse_entry(&env, which, &plan);
            open_bed(&b, states, &graph, &plan, kind, 1);
            write_entry(&b);
            start(&b);
            (void)finish_entry(&b);
            if (save(b.run, &s)) fail_msg("%s", b.env.error.text);
            open_bed(&other, others, &graph, &plan, (kind + 1) % BACKEND_KINDS, 1);
            before = spy_count(&other.spy);
            write_entry(&other);
            start(&other);
            (void)finish_entry(&other);
            start(&other);
            (void)finish_entry(&other);
            if (tl_load_run(other.run, s.bytes, s.count)) fail_msg("%s", other.env.error.text);
            after = spy_count(&other.spy);      // inputs and entry, and no result
            assert_int_equal(after.live_bytes[TL_TIER_DEVICE], before.live_bytes[TL_TIER_DEVICE]);
            assert_int_equal(after.claim_count[TL_TIER_DEVICE], before.claim_count[TL_TIER_DEVICE]);
            start(&b);
            start(&other);
            assert_int_equal(finish_entry(&other), finish_entry(&b));
            bed_close(&other);
            bed_close(&b);
            tl_free_plan(&env, &plan);
        }
    free(s.bytes);
    tl_free_graph(&env, &graph);
}

static uint64_t number_at(const saved *s, size_t *at, int bytes) {
    uint64_t value = 0;
    int i;
    for (i = 0; i < bytes; i++) value |= (uint64_t)s->bytes[*at + (size_t)i] << (8 * i);
    *at += (size_t)bytes;
    return value;
}

// What stands where, byte by byte: saves are read by later versions.
static void the_form_of_a_save_is_what_it_was(void **state) {
    static bed b;
    static tl_variable states[3];
    tl_env env;
    tl_graph graph;
    tl_plan plan;
    tl_loss_scaler scaler;
    saved s = { NULL, 0, 0, -1 };
    int scales, i;
    (void)state;
    memset(&env, 0, sizeof env);
    if (tl_parse_graph(&env, graph_text, strlen(graph_text), &graph)) fail_msg("%s", env.error.text);
    if (tl_parse_schedule(&env, steps_text, strlen(steps_text), &plan)) fail_msg("%s", env.error.text);
    for (scales = 0; scales < 2; scales++) {
        size_t at = 0;
        memset(&scaler, 0, sizeof scaler);
        open_bed(&b, states, &graph, &plan, 0, 1);
        tl_free_run(b.run);
        b.desc.loss_scaler = scales ? &scaler : NULL;
        b.desc.repeat_count = 2;
        bed_must_init(&b);
        start(&b);
        (void)run_steps(&b, INT32_MAX);
        if (save(b.run, &s)) fail_msg("%s", b.env.error.text);
        assert_memory_equal(s.bytes, "TLRUN\r\n\032", 8);
        at = 8;
        assert_int_equal(number_at(&s, &at, 4), 2);         // version
        assert_in_range(number_at(&s, &at, 4), 0, 1);       // byte order
        assert_int_equal(number_at(&s, &at, 4), 0);         // in no pass
        at += 8;                                            // of the graph
        assert_int_equal(number_at(&s, &at, 4), TL_PRECISION_SINGLE);
        assert_int_equal(number_at(&s, &at, 4), 1);         // slots
        assert_int_equal(number_at(&s, &at, 8), 42);        // seed
        assert_int_equal(number_at(&s, &at, 4), 0);         // no stages
        at += 8;                                            // of the formats
        assert_int_equal(number_at(&s, &at, 4), 0);         // loss_gradient_word
        assert_int_equal(number_at(&s, &at, 4), 0);         // not forward only
        at += 8;                                            // of the micro-batches
        assert_int_equal(number_at(&s, &at, 8), 0);         // nothing is lost in copies
        assert_int_equal(number_at(&s, &at, 4), scales ? 0x47800000 : 0x3f800000);  // scale of the loss
        assert_int_equal(number_at(&s, &at, 8), 0);         // training step
        assert_int_equal(number_at(&s, &at, 4), 1);         // of which one pass has ended
        assert_int_equal(number_at(&s, &at, 8), 1);         // the next training step
        assert_int_equal(number_at(&s, &at, 4), 3);         // variables
        for (i = 0; i < 3; i++) {
            assert_int_equal(number_at(&s, &at, 4), 0xffffffff);
            assert_int_equal(number_at(&s, &at, 4), states[i].kind);
            assert_int_equal(number_at(&s, &at, 8), states[i].bytes);
            assert_memory_equal(s.bytes + at, states[i].host, (size_t)states[i].bytes);
            at += (size_t)states[i].bytes;
        }
        assert_int_equal(number_at(&s, &at, 4), scales);    // a scaler
        if (scales) {
            assert_int_equal(number_at(&s, &at, 4), 0x47800000);
            assert_int_equal(number_at(&s, &at, 4), 0);
            assert_int_equal(number_at(&s, &at, 8), 0);
            assert_int_equal(number_at(&s, &at, 4), 0x3f800000);
            assert_int_equal(number_at(&s, &at, 4), 0x4b800000);
            assert_int_equal(number_at(&s, &at, 4), 2000);
        }
        assert_int_equal(number_at(&s, &at, 8), 8);         // the inputs
        at += 8;
        assert_int_equal(number_at(&s, &at, 8), 4);
        at += 4;
        at += 8;                                            // of the run's graph
        assert_int_equal(number_at(&s, &at, 4), 0);         // no entry
        assert_int_equal(number_at(&s, &at, 4), 0);         // no versions
        assert_int_equal(at + 8, s.count);
        bed_close(&b);
    }
    free(s.bytes);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// Data with another entry, or with none, is not that of a plan with one; and bytes that are altered are refused, or are other numbers.
static void another_entry_is_refused(void **state) {
    static const char text[] = "E 2.0\nF 1\nF 3\nF 4\n";
    static const char *const refusal = "tl_load_run: data: another entry than the plan has";
    static bed b;
    static tl_variable states[3];
    tl_env env;
    tl_graph graph;
    tl_plan plan, entry, all;
    tl_random random = { 31 };
    saved s = { NULL, 0, 0, -1 }, without = { NULL, 0, 0, -1 };
    long round, taken = 0, refused = 0;
    (void)state;
    memset(&env, 0, sizeof env);
    if (tl_parse_graph(&env, graph_text, strlen(graph_text), &graph)) fail_msg("%s", env.error.text);
    if (tl_parse_schedule(&env, text, strlen(text), &entry)) fail_msg("%s", env.error.text);
    if (tl_plan_keep_all(&env, &graph, 1, &all)) fail_msg("%s", env.error.text);
    entry.inference = 1;
    parse_entry(&env, 0, &plan);
    open_bed(&b, states, &graph, &all, 0, 1);
    if (save(b.run, &without)) fail_msg("%s", b.env.error.text);
    bed_close(&b);
    open_bed(&b, states, &graph, &entry, 0, 1);
    assert_int_equal(tl_load_run(b.run, without.bytes, without.count), TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text, refusal);
    bed_close(&b);
    open_bed(&b, states, &graph, &plan, 0, 1);
    write_entry(&b);
    if (bed_load(b.run, 0, &b) || save(b.run, &s)) fail_msg("%s", b.env.error.text);
    bed_close(&b);
    open_bed(&b, states, &graph, &entry, 0, 1);
    assert_int_equal(tl_load_run(b.run, s.bytes, s.count), TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text, refusal);
    bed_close(&b);
    open_bed(&b, states, &graph, &all, 0, 1);
    assert_int_equal(tl_load_run(b.run, s.bytes, s.count), TL_OK);      // it asks for none
    bed_close(&b);
    open_bed(&b, states, &graph, &plan, BACKEND_CHECKED, 1);
    for (round = 0; round < 600; round++) {
        size_t at = round < 80 ? s.count - 9 - (size_t)round : (size_t)tl_next_random_below(&random, s.count - 8);
        unsigned char was = s.bytes[at];
        s.bytes[at] ^= (unsigned char)(1 + tl_next_random_below(&random, 255));
        set_checksum(s.bytes, s.count);
        if (tl_load_run(b.run, s.bytes, s.count)) refused++;
        else taken++;
        s.bytes[at] = was;
    }
    set_checksum(s.bytes, s.count);
    if (tl_load_run(b.run, s.bytes, s.count)) fail_msg("%s", b.env.error.text);
    start(&b);
    (void)finish_entry(&b);
    assert_true(refused > 100 && taken > 20);
    bed_close(&b);
    free(s.bytes);
    free(without.bytes);
    tl_free_plan(&env, &plan);
    tl_free_plan(&env, &entry);
    tl_free_plan(&env, &all);
    tl_free_graph(&env, &graph);
}

// The caller's loss scaler goes with the states, and one with no scale that can be is refused.
static void a_loss_scaler_is_saved_with_the_states(void **state) {
    static bed b;
    static tl_variable states[3];
    tl_env env;
    tl_graph graph;
    tl_plan plan;
    tl_loss_scaler scaler;
    saved s = { NULL, 0, 0, -1 };
    size_t at, found = 0;
    (void)state;
    memset(&env, 0, sizeof env);
    memset(&scaler, 0, sizeof scaler);
    if (tl_parse_graph(&env, graph_text, strlen(graph_text), &graph)) fail_msg("%s", env.error.text);
    if (tl_parse_schedule(&env, steps_text, strlen(steps_text), &plan)) fail_msg("%s", env.error.text);
    open_bed(&b, states, &graph, &plan, 0, 1);
    tl_free_run(b.run);
    b.desc.loss_scaler = &scaler;
    bed_must_init(&b);
    start(&b);
    (void)run_steps(&b, INT32_MAX);
    scaler.scale = 12345.5f;
    scaler.clean_count = 77;
    scaler.skipped_count = 3;
    if (save(b.run, &s)) fail_msg("%s", b.env.error.text);
    scaler.scale = 1;
    scaler.clean_count = 0;
    scaler.skipped_count = 0;
    if (tl_load_run(b.run, s.bytes, s.count)) fail_msg("%s", b.env.error.text);
    assert_true(scaler.scale == 12345.5f && scaler.clean_count == 77 && scaler.skipped_count == 3);
    for (at = 0; at + 8 < s.count && !found; at++)
        if (!memcmp(s.bytes + at, "\x00\xe6\x40\x46\x4d\x00\x00\x00", 8)) found = at;
    assert_true(found > 0);
    s.bytes[found + 3] |= 0x80;             // below zero
    set_checksum(s.bytes, s.count);
    assert_int_equal(tl_load_run(b.run, s.bytes, s.count), TL_ERROR_PARSE);
    memcpy(s.bytes + found, "\x00\x00\x80\x7f", 4);     // without end
    set_checksum(s.bytes, s.count);
    assert_int_equal(tl_load_run(b.run, s.bytes, s.count), TL_ERROR_PARSE);
    assert_true(scaler.scale == 12345.5f);
    tl_free_run(b.run);
    b.desc.loss_scaler = NULL;
    bed_must_init(&b);
    assert_int_equal(tl_load_run(b.run, s.bytes, s.count), TL_ERROR_INVALID_ARG);
    assert_string_equal(b.env.error.text, "tl_load_run: data: other variables than this run has");
    bed_close(&b);
    free(s.bytes);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// A backend that cannot map, order or claim while a run is saved or loaded is told, and a run that was to be loaded starts anew.
static void saving_and_loading_survive_a_backend_that_fails(void **state) {
    static const int functions[] = { SPY_MAP, SPY_UNMAP, SPY_ORDER, SPY_CLAIM };
    static bed b, other;
    static tl_variable states[3], others[3];
    tl_env env;
    tl_graph graph;
    tl_plan plans[2];
    saved s = { NULL, 0, 0, -1 };
    long failures = 0;
    size_t f;
    int which;
    (void)state;
    memset(&env, 0, sizeof env);
    if (tl_parse_graph(&env, graph_text, strlen(graph_text), &graph)) fail_msg("%s", env.error.text);
    if (tl_parse_schedule(&env, steps_text, strlen(steps_text), &plans[0])) fail_msg("%s", env.error.text);
    parse_entry(&env, 0, &plans[1]);
    for (which = 0; which < 2; which++)
        for (f = 0; f < sizeof functions / sizeof *functions; f++) {
            long at;
            int fails = 1;
            for (at = 0; fails; at++) {
                tl_result result;
                int32_t steps = which ? 2 : 9;
                open_bed(&b, states, &graph, &plans[which], 0, 1);
                if (which) write_entry(&b);
                start(&b);
                (void)run_steps(&b, steps);
                fails = 0;
                if (functions[f] != SPY_CLAIM) {
                    b.spy.fail_function = functions[f];
                    b.spy.fail_at = b.spy.calls[functions[f]] + at;
                    result = save(b.run, &s);
                    fails = b.spy.calls[functions[f]] > b.spy.fail_at;
                    assert_true(fails == (result != TL_OK));
                    b.spy.fail_function = -1;
                    failures += fails;
                }
                if (save(b.run, &s)) fail_msg("%s", b.env.error.text);
                open_bed(&other, others, &graph, &plans[which], 0, 1);
                other.spy.fail_function = functions[f];
                other.spy.fail_at = other.spy.calls[functions[f]] + at;
                result = tl_load_run(other.run, s.bytes, s.count);
                if (other.spy.calls[functions[f]] > other.spy.fail_at) {
                    fails = 1;
                    failures++;
                    assert_true(result != TL_OK);
                }
                other.spy.fail_function = -1;
                if (tl_load_run(other.run, s.bytes, s.count) && result) {       // unless it was taken over
                    if (tl_reset_run(other.run)) fail_msg("%s", other.env.error.text);
                    if (tl_load_run(other.run, s.bytes, s.count)) fail_msg("%s", other.env.error.text);
                }
                (void)run_steps(&b, INT32_MAX);
                (void)run_steps(&other, INT32_MAX);
                assert_int_equal(bed_outcome(&b, which), bed_outcome(&other, which));
                bed_close(&other);
                bed_close(&b);
            }
        }
    printf("%ld failures\n", failures);
    assert_true(failures > 10);
    free(s.bytes);
    tl_free_plan(&env, &plans[0]);
    tl_free_plan(&env, &plans[1]);
    tl_free_graph(&env, &graph);
}

// Data with something behind its end, or of no bytes; and a pass of a run that decides by itself.
static void what_no_saved_run_is_is_refused(void **state) {
    static bed b;
    static tl_variable states[3];
    tl_env env;
    tl_graph graph;
    tl_plan plan;
    tl_strategy strategy = tl_with_gradient(tl_strategy_new(), tl_gradient_full());
    saved s = { NULL, 0, 0, -1 };
    unsigned char *longer;
    (void)state;
    memset(&env, 0, sizeof env);
    if (tl_parse_graph(&env, graph_text, strlen(graph_text), &graph)) fail_msg("%s", env.error.text);
    if (tl_parse_schedule(&env, steps_text, strlen(steps_text), &plan)) fail_msg("%s", env.error.text);
    open_bed(&b, states, &graph, &plan, 0, 1);
    if (bed_load(b.run, 0, &b) || save(b.run, &s)) fail_msg("%s", b.env.error.text);
    longer = (unsigned char *)calloc(s.count + 4, 1);
    memcpy(longer, s.bytes, s.count - 8);
    set_checksum(longer, s.count + 4);
    assert_int_equal(tl_load_run(b.run, longer, s.count + 4), TL_ERROR_PARSE);
    assert_string_equal(b.env.error.text, "tl_load_run: data: ends too early, or holds what no run has");
    tl_free_run(b.run);
    b.desc.plan = NULL;
    b.desc.in_flight = 0;
    b.desc.strategy = &strategy;
    strategy.mode = TL_MODE_EAGER;
    strategy.precision = TL_PRECISION_SINGLE;
    bed_must_init(&b);
    start(&b);
    (void)run_steps(&b, 2);
    assert_int_equal(save(b.run, &s), TL_ERROR_UNSUPPORTED);
    assert_string_equal(b.env.error.text, "tl_save_run: run: in a pass, only a plan with places that is run as it is can be saved");
    bed_close(&b);
    free(longer);
    free(s.bytes);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pass_goes_on_where_it_was_saved),
        cmocka_unit_test(a_training_goes_on_under_another_plan),
        cmocka_unit_test(what_is_under_way_is_not_saved),
        cmocka_unit_test(hostile_data_is_refused_and_nothing_lost),
        cmocka_unit_test(hostile_states_are_refused),
        cmocka_unit_test(data_of_another_run_is_refused),
        cmocka_unit_test(an_entry_goes_on_where_it_was_saved),
        cmocka_unit_test(an_entry_is_loaded_into_a_run_that_has_run),
        cmocka_unit_test(the_form_of_a_save_is_what_it_was),
        cmocka_unit_test(another_entry_is_refused),
        cmocka_unit_test(a_loss_scaler_is_saved_with_the_states),
        cmocka_unit_test(saving_and_loading_survive_a_backend_that_fails),
        cmocka_unit_test(what_no_saved_run_is_is_refused),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
