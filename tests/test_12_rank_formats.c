// [12] RUN on ranks in other precisions than f32: formats per node with conversions, one precision for all, chains fused as
// well. Reference: one process that runs the same choice, node by node and bit by bit.
#define _POSIX_C_SOURCE 200809L  // NOLINT: reserved for this; clock_gettime
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/rank_hub.h"
#include "support/support.h"
#include "support/random_graph.h"
#include "support/run_support.h"
#include "support/texts.h"

enum { ELEMENTS = 96, MOST_NODES = 40, RANKS = 3, BATCHES = 6 };

// -- kernels: sums of their inputs with a weight of their own, whatever the formats are --

typedef struct side {
    spy         spy;
    tl_env      env, backend_env;
    tl_backend  backend;
    tl_kernel   kernels[3];
    tl_run_desc desc;
    tl_run     *run;
    float       outputs[BATCHES][MOST_NODES][ELEMENTS], gradients[BATCHES][MOST_NODES][ELEMENTS];
    float       weights[MOST_NODES];        // their gradients
    long        narrow;                     // operands that were not f32
} side;

// In runs of one precision all but inputs is in it; else each operand says its format.
static tl_codec codec_of(side *s, const tl_operand *operand) {
    uint32_t can = s->desc.kernel_precisions;
    int is_whole = operand->range.bytes == 4 * ELEMENTS;
    tl_format format = operand->format;
    if (can & 1u << TL_PRECISION_BF16 && !is_whole) format = TL_FORMAT_BF16;
    if (can & 1u << TL_PRECISION_HALF && !is_whole) format = TL_FORMAT_F16;
    s->narrow += format != TL_FORMAT_F32;
    return format == TL_FORMAT_F16 ? TL_CODEC_F16 : format == TL_FORMAT_BF16 ? TL_CODEC_BF16 : TL_CODEC_NONE;
}

static size_t get(side *s, const tl_operand *operand, float *values) {
    tl_codec codec = codec_of(s, operand);
    size_t n = (size_t)(operand->range.bytes / (codec ? 2 : 4));
    tl_expand_bytes(codec, values, operand->host, 4 * n);
    return n;
}

static void put_values(side *s, const tl_operand *operand, const float *values, size_t n) {
    tl_compress_bytes(codec_of(s, operand), operand->host, values, 4 * n);
}

static tl_result forward(const tl_kernel_call *call, void *user) {
    side *s = (side *)user;
    const tl_node *node = &call->graph->nodes[call->node];
    float in[ELEMENTS], out[ELEMENTS] = { 0 };
    size_t n = 0, i;
    int32_t k;
    assert_ptr_equal(call->graph->inputs, s->desc.graph->inputs);
    for (k = 0; k < node->input_count; k++) {
        n = get(s, &call->inputs[k], in);
        for (i = 0; i < n; i++) out[i] += in[i] * (0.75f - 0.5f * (float)k) * (1.0f + 0.01f * (float)call->node);
    }
    put_values(s, &call->outputs[0], out, n);
    (void)get(s, &call->outputs[0], s->outputs[call->micro_batch][call->node] + call->first);
    return TL_OK;
}

static tl_result backward(const tl_kernel_call *call, void *user) {
    side *s = (side *)user;
    const tl_node *node = &call->graph->nodes[call->node];
    float in[ELEMENTS], d[ELEMENTS], sum[ELEMENTS];
    size_t n = get(s, &call->output_grads[0], d), i;
    int32_t k;
    memcpy(s->gradients[call->micro_batch][call->node] + call->first, d, n * sizeof *d);
    if (call->inputs[0].range.bytes) (void)get(s, &call->inputs[0], in);
    for (i = 0; i < n && call->inputs[0].range.bytes; i++) s->weights[call->node] += in[i] * d[i];
    for (k = 0; k < node->input_count; k++) {
        if (!call->input_grads[k].range.bytes) continue;
        (void)get(s, &call->input_grads[k], sum);
        for (i = 0; i < n; i++) sum[i] += d[i] * (0.75f - 0.5f * (float)k) * (1.0f + 0.01f * (float)call->node);
        put_values(s, &call->input_grads[k], sum, n);
    }
    return TL_OK;
}

static tl_result load(tl_run *run, int32_t micro_batch, void *user) {
    float x[ELEMENTS];
    tl_tensor tensor = { 0, 0 };
    tl_result result;
    int i;
    (void)user;
    for (i = 0; i < ELEMENTS; i++) x[i] = (float)(tl_mix_u64(9, (uint64_t)(micro_batch * ELEMENTS + i)) >> 40) / 4194304.0f - 2.0f;
    result = tl_write_tensor(run, tensor, x, sizeof x);
    return result == TL_ERROR_NOT_FOUND ? TL_OK : result;      // an input of another rank
}

// Where bf16 takes a third of the time, and conversions a little.
static const tl_device *fast_device(void) {
    static tl_device device;
    device.flops_per_second[TL_PRECISION_SINGLE] = 1e9;
    device.flops_per_second[TL_PRECISION_BF16] = 3e9;
    device.bytes_per_second = UINT64_C(20000000000);
    device.supported = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_BF16;
    return &device;
}

static void open_side(side *s, const tl_graph *graph, uint32_t precisions) {
    static const char *const ops[] = { "conv2d", "add", "sum" };
    int i;
    memset(s, 0, sizeof *s);
    s->env = silent_env();
    s->backend = spy_open(&s->backend_env, BACKEND_CHECKED, 7, 64, &s->spy);
    for (i = 0; i < 3; i++) {
        s->kernels[i].op = ops[i];
        s->kernels[i].forward = forward;
        s->kernels[i].backward = backward;
        s->kernels[i].user = s;
    }
    s->desc.graph = graph;
    s->desc.device = fast_device();
    s->desc.backend = &s->backend;
    s->desc.kernels = s->kernels;
    s->desc.kernel_count = 3;
    s->desc.kernel_precisions = precisions;
    s->desc.load = load;
    s->desc.load_user = s;
}

static void init_side(side *s) {
    if (tl_init_run(&s->env, &s->desc, &s->run)) fail_msg("%s", s->env.error.text);
}

static void close_side(side *s) {
    tl_free_run(s->run);
    s->run = NULL;
    spy_close(&s->backend_env, &s->spy);
}

// Chains that may be fused, convolutions, and edges across all of them.
static tl_graph random_mix(tl_random *random) {
    static char text[16384];
    char *at = text;
    int n = 8 + (int)tl_next_random_below(random, MOST_NODES - 9), id;
    at += sprintf(at, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=%d needs=none in=-\n", 4 * ELEMENTS);
    for (id = 1; id < n; id++) {
        int last = id + 1 == n, conv = id == 1 || random_chance(random, 40), other = (int)tl_next_random_below(random, (uint64_t)id);
        at += sprintf(at, "node %d n%d %s fwd=%d bwd=%d out=%d needs=%s in=%d", id, id, last ? "sum" : conv ? "conv2d" : "add",
                      conv ? 4000 : 40, conv ? 8000 : 40, 4 * ELEMENTS, conv ? "in" : "none", id - 1);
        if (!conv && other && other != id - 1) at += sprintf(at, ",%d", other);
        at += sprintf(at, "%s%s\n", conv ? " param=64" : " takes_blocks",
                      last || (conv && random_chance(random, 15)) ? " keep" : "");
    }
    return graph_of(text);
}

// -- all ranks in one thread --

typedef struct crew {
    rank_hub hub;
    side     sides[RANKS];
} crew;

static void open_crew(crew *c, const tl_graph *graph, uint32_t precisions) {
    int r;
    hub_open(&c->hub, RANKS, 0, NULL);
    for (r = 0; r < RANKS; r++) {
        open_side(&c->sides[r], graph, precisions);
        c->sides[r].desc.transport = &c->hub.transports[r];
    }
}

static tl_result run_side(int32_t rank, void *user) {
    side *s = &((crew *)user)->sides[rank];
    tl_result result = tl_run_plan(s->run);
    if (result && result != TL_NOT_READY) fail_msg("rank %d: %s", (int)rank, s->env.error.text);
    return result;
}

static void run_crew(crew *c) {
    int r;
    hub_take_turns(&c->hub, NULL, run_side, c);
    for (r = 0; r < RANKS; r++) {
        tl_run_report report;
        tl_measure_run(c->sides[r].run, &report);
        assert_int_equal(report.planned_peak_bytes, report.measured_peak_bytes);
        assert_int_equal(report.planned_arena_bytes, report.measured_arena_bytes);
    }
}

static void close_crew(crew *c) {
    int r;
    for (r = 0; r < RANKS; r++) close_side(&c->sides[r]);
    hub_close(&c->hub);
}

// Every node's outputs and gradients, of every micro-batch, are there on one rank, and are those of one process.
static void compare_crew(const crew *c, const side *whole) {
    static float sums[BATCHES][MOST_NODES][ELEMENTS];
    const tl_graph *graph = whole->desc.graph;
    int32_t id, b, i, r;
    for (id = 1; id < graph->node_count; id++) {
        int owners = 0;
        for (r = 0; r < RANKS; r++) {
            const side *s = &c->sides[r];
            int there = tl_find_compiled_plan(s->run)->nodes[id] >= 0;
            owners += there;
            if (!there) continue;
            for (b = 0; b < BATCHES; b++) {
                assert_memory_equal(s->outputs[b][id], whole->outputs[b][id], sizeof s->outputs[b][id]);
                assert_memory_equal(s->gradients[b][id], whole->gradients[b][id], sizeof s->gradients[b][id]);
            }
            assert_memory_equal(&s->weights[id], &whole->weights[id], sizeof s->weights[id]);
        }
        assert_int_equal(owners, 1);
    }
    memset(sums, 0, sizeof sums);
    for (b = 0, i = 0; b < BATCHES; b++)
        for (id = 1; id < graph->node_count; id++) i += memcmp(whole->gradients[b][id], sums[b][id], sizeof sums[b][id]) != 0;
    assert_true(i > BATCHES * (graph->node_count - 1) / 2);    // there is something to compare
}

// Results, here of the last micro-batch, are read on one rank: that of their node, or of what converts them back.
static void compare_results(crew *c, side *whole) {
    const tl_graph *graph = whole->desc.graph;
    int32_t id, r;
    for (id = 1; id < graph->node_count; id++) {
        float expected[ELEMENTS], found[ELEMENTS];
        tl_tensor tensor = { 0, 0 };
        uint64_t bytes = 0;
        int there = 0;
        if (!graph->nodes[id].keep) continue;
        tensor.node = id;
        if (tl_find_tensor_bytes(whole->run, tensor, &bytes)) fail_msg("%s", whole->env.error.text);
        if (tl_read_tensor(whole->run, tensor, expected, bytes)) fail_msg("%s", whole->env.error.text);
        for (r = 0; r < RANKS; r++) {
            if (tl_choose_slot(c->sides[r].run, BATCHES - 1)) fail_msg("%s", c->sides[r].env.error.text);
            if (tl_read_tensor(c->sides[r].run, tensor, found, bytes)) continue;
            there++;
            assert_memory_equal(found, expected, (size_t)bytes);
        }
        assert_int_equal(there, 1);
    }
}

static void run_alone(side *whole, const tl_graph *graph, const tl_strategy *strategy, uint32_t precisions) {
    open_side(whole, graph, precisions);
    whole->desc.strategy = strategy;
    whole->desc.repeat_count = BATCHES;
    init_side(whole);
    if (tl_run_plan(whole->run)) fail_msg("%s", whole->env.error.text);
}

// -- tests --

enum { MIXED, ALL_BF16, ALL_F16, KINDS };

static tl_strategy strategy_of(int kind, int fuses) {
    static const tl_precision precisions[KINDS] = { TL_PRECISION_MIXED, TL_PRECISION_BF16, TL_PRECISION_HALF };
    tl_strategy strategy = tl_with_parallelism(tl_strategy_training(), tl_parallelism_none());
    strategy = tl_with_fusion(tl_with_precision(strategy, precisions[kind]), fuses);
    strategy.gradient = tl_gradient_full();
    return strategy;
}

static void pipelines_in_other_precisions_have_the_bits_of_one_process(void **state) {
    static crew c;
    static side whole;
    static const uint32_t can[KINDS] = { 1u << TL_PRECISION_MIXED | 1u << TL_PRECISION_SINGLE, 1u << TL_PRECISION_BF16,
                                         1u << TL_PRECISION_HALF };
    tl_random random = { 5 };
    long round, rounds = scaled(60), narrow = 0, conversions = 0, fused = 0, sent = 0, sent_wide = 0;
    int r;
    (void)state;
    for (round = 0; round < rounds; round++) {
        int kind = (int)(round % KINDS);
        tl_graph graph = random_mix(&random);
        tl_strategy alone = strategy_of(kind, (int)(round / KINDS % 2)), strategy = alone;
        strategy.parallelism = tl_parallelism_pipeline(RANKS);
        strategy.gradient.accumulation_steps = BATCHES;
        run_alone(&whole, &graph, &alone, can[kind]);
        open_crew(&c, &graph, can[kind]);
        for (r = 0; r < RANKS; r++) {
            c.sides[r].desc.strategy = &strategy;
            init_side(&c.sides[r]);
        }
        run_crew(&c);
        compare_crew(&c, &whole);
        compare_results(&c, &whole);
        for (r = 0; r < RANKS; r++) {
            const tl_compiled_plan *compiled = tl_find_compiled_plan(c.sides[r].run);
            int32_t id;
            narrow += c.sides[r].narrow;
            conversions += compiled->choice.conversion_count;
            fused += compiled->choice.fused_count;
            for (id = 0; id < compiled->graph->node_count; id++)
                if (tli_find_message(compiled, id) == TLI_MESSAGE_SEND) {
                    sent += (long)compiled->graph->outputs[compiled->graph->inputs[compiled->graph->nodes[id].first_input].tensor].bytes;
                    sent_wide += 4 * ELEMENTS;
                }
        }
        close_crew(&c);
        close_side(&whole);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld operands were narrow, %ld conversions and %ld fused nodes on ranks; %ld bytes sent where f32 are %ld\n", narrow,
           conversions, fused, sent, sent_wide);
    assert_true(narrow > 0 && sent < sent_wide && (is_thinned() || (conversions > 20 && fused > 20)));
}

static void compile_whole(const tl_graph *graph, const tl_strategy *strategy, uint32_t can, tl_compiled_plan *compiled) {
    tl_env env = silent_env();
    tl_precision_desc formats;
    tl_compile_desc desc;
    memset(&desc, 0, sizeof desc);
    memset(&formats, 0, sizeof formats);
    formats.loss_limit = INFINITY;
    formats.schemes = 1u << TL_SCHEME_F32 | 1u << TL_SCHEME_BF16;
    formats.allow_sensitive = formats.allow_unknown = 1;
    desc.graph = graph;
    desc.strategy = strategy;
    desc.device = fast_device();
    desc.alignment_bytes = 64;
    desc.kernel_precisions = can;
    if (strategy->precision == TL_PRECISION_MIXED) desc.precision = &formats;
    if (tl_compile(&env, &desc, compiled)) fail_msg("%s", env.error.text);
}

static uint64_t most_taken(const tl_compiled_ranks *ranks) {
    uint64_t most = 0;
    int32_t r;
    for (r = 0; r < ranks->rank_count; r++)
        if (ranks->ranks[r].compiled.plan.arena_bytes > most) most = ranks->ranks[r].compiled.plan.arena_bytes;
    return most;
}

// Of a compiled plan, with chunks and without, keeping everything and within half of that where it fits.
static void ranks_of_a_compiled_plan_have_its_bits(void **state) {
    static crew c;
    static side whole;
    tl_random random = { 11 };
    long round, rounds = scaled(24), halved = 0, again = 0, chunks = 0;
    int r, tight;
    (void)state;
    for (round = 0; round < rounds; round++) {
        uint32_t can = 1u << TL_PRECISION_MIXED | 1u << TL_PRECISION_SINGLE;
        tl_graph graph = random_mix(&random);
        tl_strategy strategy = strategy_of(MIXED, (int)(round % 2));
        tl_compiled_plan compiled;
        tl_compiled_ranks ranks;
        tl_ranks_desc desc;
        tl_env env = silent_env();
        compile_whole(&graph, &strategy, can, &compiled);
        open_side(&whole, &graph, can);
        whole.desc.compiled = &compiled;
        whole.desc.repeat_count = BATCHES;
        init_side(&whole);
        if (tl_run_plan(whole.run)) fail_msg("%s", whole.env.error.text);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.compiled = &compiled;
        desc.rank_count = RANKS;
        desc.micro_batch_count = BATCHES;
        desc.alignment_bytes = 64;
        desc.weights_apart = 1;
        if (round / 2 % 2 && compiled.graph->node_count > 2 * RANKS + 2) {
            desc.pipeline = TL_PIPELINE_INTERLEAVED;
            desc.chunk_count = 2;
            chunks++;
        }
        for (tight = 0; tight < 2; tight++) {
            tl_result result = tl_compile_ranks(&env, &desc, &ranks);
            if (tight && result == TL_ERROR_INFEASIBLE) break;
            if (result) fail_msg("%s", env.error.text);
            desc.budget_bytes = most_taken(&ranks) * 3 / 4;
            open_crew(&c, &graph, can);
            for (r = 0; r < RANKS; r++) {
                c.sides[r].desc.compiled = &ranks.ranks[r].compiled;
                init_side(&c.sides[r]);
            }
            run_crew(&c);
            compare_crew(&c, &whole);
            compare_results(&c, &whole);
            for (r = 0; r < RANKS; r++) {
                tl_run_report report;
                tl_measure_run(c.sides[r].run, &report);
                again += report.recompute_count;
            }
            halved += tight;
            close_crew(&c);
            tl_free_compiled_ranks(&env, &ranks);
        }
        close_side(&whole);
        tl_free_compiled_plan(&env, &compiled);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld within three quarters, %ld forwards run again, %ld with chunks\n", halved, again, chunks);
    assert_true(is_thinned() || (halved > 3 && again > 10 && chunks > 5));
}

static tl_graph long_chain(void) {
    static char text[4096];
    char *at = text;
    int id;
    at += sprintf(at, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=%d needs=none in=-\n", 4 * ELEMENTS);
    for (id = 1; id < 31; id++)
        at += sprintf(at, "node %d n%d conv2d fwd=4000 bwd=8000 out=%d needs=in in=%d%s\n", id, id, 4 * ELEMENTS, id - 1,
                      id == 30 ? " keep" : "");
    return graph_of(text);
}

// Where the cheapest formats do not fit a rank, those of fewest bytes are taken; where these do not fit either, the refusal
// names bytes with which the same strategy runs.
static void fewer_bytes_are_taken_where_the_cheapest_do_not_fit(void **state) {
    static crew c;
    static const uint32_t can = 1u << TL_PRECISION_MIXED | 1u << TL_PRECISION_SINGLE;
    tl_strategy strategy = strategy_of(MIXED, 0);
    tl_graph graph = long_chain();
    uint64_t free_bytes = 0, tight = 0;
    long conversions[2] = { 0, 0 };
    int turn, r;
    (void)state;
    strategy.parallelism = tl_parallelism_pipeline(RANKS);
    strategy.gradient.accumulation_steps = BATCHES;
    for (turn = 0; turn < 2; turn++) {
        open_crew(&c, &graph, can);
        if (turn) {     // f32 is as fast here: nothing is narrow unless bytes ask for it
            c.sides[0].desc.budget_bytes = 1;
            c.sides[0].desc.strategy = &strategy;
            c.sides[0].desc.device = NULL;
            assert_int_equal(tl_init_run(&c.sides[0].env, &c.sides[0].desc, &c.sides[0].run), TL_ERROR_INFEASIBLE);
            tight = c.sides[0].env.error.values[1];
            assert_true(tight > 1 && tight < free_bytes);
        }
        for (r = 0; r < RANKS; r++) {
            c.sides[r].desc.strategy = &strategy;
            c.sides[r].desc.device = NULL;
            c.sides[r].desc.budget_bytes = tight;
            init_side(&c.sides[r]);
            conversions[turn] += tl_find_compiled_plan(c.sides[r].run)->choice.conversion_count;
        }
        run_crew(&c);
        for (r = 0; r < RANKS; r++) {
            tl_run_report report;
            tl_measure_run(c.sides[r].run, &report);
            if (!turn && report.taken_bytes > free_bytes) free_bytes = report.taken_bytes;
            if (turn) assert_true(report.taken_bytes <= tight);
        }
        close_crew(&c);
    }
    printf("%d bytes of one rank at most, %d within the least\n", (int)free_bytes, (int)tight);
    assert_true(conversions[0] == 0 && conversions[1] > 0);
    tl_free_graph(NULL, &graph);
}

static void failing_allocations_lose_nothing(void **state) {
    tl_random random = { 31 };
    tl_graph graph = random_mix(&random);
    tl_strategy strategy = strategy_of(MIXED, 1);
    tl_compiled_plan compiled;
    tl_ranks_desc desc;
    long at, step = 1;
    (void)state;
    compile_whole(&graph, &strategy, 1u << TL_PRECISION_MIXED | 1u << TL_PRECISION_SINGLE, &compiled);
    assert_non_null(compiled.formats);
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.compiled = &compiled;
    desc.rank_count = RANKS;
    desc.micro_batch_count = BATCHES;
    for (at = 0; ; at += step) {
        failing_alloc f = { 0, 0, 0, 0 };
        tl_env env = failing_env(&f, at);
        tl_compiled_ranks ranks;
        tl_result result = tl_compile_ranks(&env, &desc, &ranks);
        if (!result) tl_free_compiled_ranks(&env, &ranks);
        assert_int_equal(f.live, 0);
        if (f.count <= at) {
            assert_int_equal(result, TL_OK);
            break;
        }
        if (result) assert_int_equal(result, TL_ERROR_NO_MEMORY);
        step = 1 + at / 200 * thinned();
    }
    assert_true(at > 50);
    tl_free_compiled_plan(NULL, &compiled);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipelines_in_other_precisions_have_the_bits_of_one_process),
        cmocka_unit_test(ranks_of_a_compiled_plan_have_its_bits),
        cmocka_unit_test(fewer_bytes_are_taken_where_the_cheapest_do_not_fit),
        cmocka_unit_test(failing_allocations_lose_nothing),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
