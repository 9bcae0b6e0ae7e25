// [7] PRECISION: kept activations in fewer bits: which ones, and runs that show what is lost.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

#include "support/support.h"
#include "support/random_steps.h"
#include "support/run_support.h"
#include "support/gradients.h"
#include "support/texts.h"

static tl_packing_desc packing_desc(const tl_graph *graph, const tl_plan *plan, tl_codec codec) {
    tl_packing_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    desc.codec = codec;
    return desc;
}

static void packed_by(const tl_packing_desc *desc, tl_plan *plan) {
    tl_env env = silent_env();
    if (tl_plan_packing(&env, desc, plan)) fail_msg("%s", env.error.text);
}

static tl_plan scheduled(const char *text) {
    tl_env env = silent_env();
    tl_plan plan;
    if (tl_parse_schedule(&env, text, strlen(text), &plan)) fail_msg("%s", env.error.text);
    return plan;
}

// The schedule on one line.
static void assert_schedule(const tl_plan *plan, const char *expected) {
    char text[2048], *at = text;
    assert_true(tl_print_schedule(plan, text, sizeof text) < sizeof text);
    while (*at == '#' || *at == '\n') {
        while (*at && *at != '\n') at++;
        while (*at == '\n') at++;
    }
    memmove(text, at, strlen(at) + 1);
    for (at = text; *at; at++)
        if (*at == '\n') *at = at[1] ? ';' : 0;
    assert_string_equal(text, expected);
}

#define CHAIN                                                        \
    "tlg 1\n"                                                        \
    "node 0 x input fwd=0 bwd=0 out=128 needs=none in=-\n"           \
    "node 1 a layer fwd=1 bwd=1 out=128 needs=in in=0\n"             \
    "node 2 b layer fwd=1 bwd=1 out=128 needs=in in=1\n"             \
    "node 3 c layer fwd=1 bwd=1 out=128 needs=in in=2\n"             \
    "node 4 d layer fwd=1 bwd=1 out=128 needs=in in=3\n"

static void a_chain_is_packed_behind_its_last_reader(void **state) {
    tl_graph graph = graph_of(CHAIN);
    tl_env env = silent_env();
    tl_packing_desc desc = packing_desc(&graph, NULL, TL_CODEC_Q8);
    tl_device device;
    tl_plan plan, raw;
    (void)state;
    if (tl_plan_keep_all(&env, &graph, 0, &raw)) fail_msg("%s", env.error.text);
    assert_int_equal(raw.peak_bytes, 6 * 128);  // x, a, b, c, and two gradients beside c
    memset(&device, 0, sizeof device);
    device.codec_bytes_per_second = 1000000000;
    desc.device = &device;
    packed_by(&desc, &plan);
    assert_schedule(&plan, "F 1;F 2;C 1.0 q8;F 3;C 2.0 q8;F 4;D 4.0;B 4;D 3.0;X 2.0;B 3;D 2.0;X 1.0;B 2;D 1.0;B 1");
    assert_int_equal(plan.peak_bytes, 4 * 128 + 2 * 36);
    assert_int_equal(plan.cost, 8 + 4 * 128);
    assert_int_equal(plan.base_cost, 8);
    tl_free_plan(&env, &plan);
    tl_free_plan(&env, &raw);
    tl_free_graph(&env, &graph);
}

// Compressed first, c is beside everything: that alone is the peak. Packing b as well lowers nothing.
static void what_lowers_no_peak_stays_raw(void **state) {
    tl_graph graph = graph_of(
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
        "node 1 a layer fwd=1 bwd=1 out=128 needs=in in=0\n"
        "node 2 b layer fwd=1 bwd=1 out=128 needs=in in=1\n"
        "node 3 c layer fwd=1 bwd=1 out=128 needs=in in=2 fwork=1000\n"
        "node 4 d layer fwd=1 bwd=1 out=4 needs=in in=3\n");
    tl_packing_desc desc = packing_desc(&graph, NULL, TL_CODEC_F16);
    uint8_t allowed[5] = { 0, 1, 1, 1, 1 };
    tl_env env = silent_env();
    tl_plan plan;
    (void)state;
    packed_by(&desc, &plan);  // at F 3 a waits packed; b is read there, c made there
    assert_schedule(&plan, "F 1;F 2;C 1.0 f16;F 3;F 4;D 4.0;B 4;D 3.0;B 3;D 2.0;X 1.0;B 2;D 1.0;B 1");
    assert_int_equal(plan.peak_bytes, 4 + 64 + 128 + 128 + 1000);
    tl_free_plan(&env, &plan);
    allowed[1] = 0;
    desc.tensors = allowed;
    packed_by(&desc, &plan);
    assert_schedule(&plan, "F 1;F 2;F 3;F 4;D 4.0;B 4;D 3.0;B 3;D 2.0;B 2;D 1.0;B 1");
    assert_int_equal(plan.peak_bytes, 4 + 3 * 128 + 1000);
    tl_free_plan(&env, &plan);
    desc.tensors = NULL;
    desc.least_bytes = 129;
    packed_by(&desc, &plan);
    assert_int_equal(plan.peak_bytes, 4 + 3 * 128 + 1000);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// a and b are read last by c. Were b compressed first, or expanded last, its two copies would stand beside a raw.
static void at_one_place_the_small_is_compressed_first_and_expanded_last(void **state) {
    tl_graph graph = graph_of(
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
        "node 1 b layer fwd=1 bwd=0 out=1280 needs=none in=0 grad=no\n"
        "node 2 a layer fwd=1 bwd=0 out=128 needs=none in=0 grad=no\n"
        "node 3 c layer fwd=1 bwd=1 out=4 needs=in in=1,2\n"
        "node 4 m probe fwd=1 bwd=0 out=1300 needs=none in=3 grad=no\n");
    tl_packing_desc desc = packing_desc(&graph, NULL, TL_CODEC_F16);
    tl_env env = silent_env();
    tl_plan plan;
    (void)state;
    packed_by(&desc, &plan);
    assert_schedule(&plan, "F 1;F 2;F 3;C 2.0 f16;C 1.0 f16;F 4;D 3.0;D 4.0;X 1.0;X 2.0;B 3;D 1.0;D 2.0");
    assert_int_equal(plan.peak_bytes, 4 + 64 + 640 + 4 + 1300);
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// b runs again and reads a: a waits until then. c takes part in a copy, and e is a result: both stay.
static void copies_and_results_are_left_alone(void **state) {
    tl_graph graph = graph_of(
        "tlg 1\n"
        "node 0 x input fwd=0 bwd=0 out=128 needs=none in=-\n"
        "node 1 a layer fwd=1 bwd=1 out=128 needs=in in=0\n"
        "node 2 b layer fwd=1 bwd=1 out=128 needs=in in=1\n"
        "node 3 c layer fwd=1 bwd=1 out=128 needs=in in=2\n"
        "node 4 e layer fwd=1 bwd=1 out=128 needs=in,out in=3 keep\n"
        "node 5 f layer fwd=1 bwd=1 out=128 needs=none in=4\n"
        "node 6 g layer fwd=1 bwd=1 out=1280 needs=none in=5\n");
    tl_plan base = scheduled("F 1\nF 2\nF 3\nD 2\nO 3\nF 4\nW 3\nF 5\nF 6\nD 5\nD 6\nB 6\nB 5\nL 3\nW 3\nB 4\nD 3\nF 2\nB 3\nD 2\nB 2\nD 1\nB 1\n");
    tl_packing_desc desc = packing_desc(&graph, &base, TL_CODEC_BF16);
    tl_env env = silent_env();
    tl_plan plan;
    (void)state;
    base.repeat_count = 3;
    base.base_bytes = 17;
    packed_by(&desc, &plan);
    assert_schedule(&plan, "F 1;F 2;C 1.0 bf16;F 3;D 2;O 3;F 4;W 3;F 5;F 6;D 5;D 6;B 6;B 5;L 3;W 3;B 4;D 3;X 1.0;F 2;B 3;D 2;"
                           "B 2;D 1;B 1");
    assert_int_equal(plan.repeat_count, 3);
    assert_int_equal(plan.base_bytes, 17);
    assert_true(plan.host_peak_bytes == 128);
    tl_free_plan(&env, &plan);
    tl_free_plan(&env, &base);
    tl_free_graph(&env, &graph);
}

// -- random plans: held against every subset --

#define MOST_WAITING 7

typedef struct waiting { int32_t tensor, compress_after, expand_before; } waiting;

// The plan with C of a tensor after one step, and X before another one (-1 = none): 1 and its peak where it is valid.
static int try_packing(const tl_graph *graph, const tl_plan *base, const waiting *list, int32_t count, unsigned subset,
                       int descending, tl_codec codec, uint64_t *peak) {
    static tl_step steps[2000];
    tl_env env = silent_env();
    tl_plan plan = *base;
    tl_simulate_desc desc;
    tl_report report;
    int32_t made = 0, at, i, k;
    assert_true(base->step_count + 2 * count <= 2000);
    for (at = 0; at <= base->step_count; at++) {
        for (i = 0; i < count; i++) {
            k = descending ? i : count - 1 - i;  // expanded in the other order than compressed
            if (!(subset >> k & 1) || list[k].expand_before != at) continue;
            steps[made++] = tli_step_of(TL_STEP_EXPAND, graph->outputs[list[k].tensor].node, graph->outputs[list[k].tensor].output);
        }
        if (at < base->step_count) steps[made++] = base->steps[at];
        for (i = 0; i < count; i++) {
            k = descending ? count - 1 - i : i;
            if (!(subset >> k & 1) || list[k].compress_after != at) continue;
            steps[made] = tli_step_of(TL_STEP_COMPRESS, graph->outputs[list[k].tensor].node, graph->outputs[list[k].tensor].output);
            steps[made++].codec = (uint8_t)codec;
        }
    }
    plan.steps = steps;
    plan.step_count = made;
    plan.offsets = NULL;
    plan.offset_count = 0;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.plan = &plan;
    if (tl_simulate_plan(&env, &desc, &report)) return 0;
    *peak = report.peak_bytes;
    return 1;
}

static int moves(const tl_plan *plan, const tl_node_output *output) {
    int32_t i;
    for (i = 0; i < plan->step_count; i++) {
        const tl_step *step = &plan->steps[i];
        if (step->kind < TL_STEP_SPILL || step->node != output->node) continue;
        if (step->output == TL_ALL_OUTPUTS || step->output == output->output) return 1;
    }
    return 0;
}

// Who waits, found by trying: C just before the first backward must be possible; earlier and earlier as long as it
// is, and X later and later. A tensor that needs no X is read no more.
static int32_t find_waiting(const tl_graph *graph, const tl_plan *base, tl_codec codec, waiting *list) {
    int32_t started = 0, count = 0, i;
    uint64_t peak;
    while (started < base->step_count && base->steps[started].kind != TL_STEP_BACKWARD) started++;
    if (!started || started == base->step_count) return 0;
    for (i = 0; i < graph->tensor_count; i++) {
        const tl_node_output *output = &graph->outputs[i];
        waiting w;
        w.tensor = i;
        w.compress_after = started - 1;
        w.expand_before = -1;
        if (graph->nodes[output->node].is_input || graph->nodes[output->node].keep || output->bytes % 4) continue;
        if (tl_find_codec_bytes(codec, output->bytes) >= output->bytes || moves(base, output)) continue;
        if (try_packing(graph, base, &w, 1, 1, 0, codec, &peak)) continue;
        w.expand_before = started;
        if (!try_packing(graph, base, &w, 1, 1, 0, codec, &peak)) continue;
        while (w.compress_after > 0) {
            w.compress_after--;
            if (try_packing(graph, base, &w, 1, 1, 0, codec, &peak)) continue;
            w.compress_after++;
            break;
        }
        while (try_packing(graph, base, &w, 1, 1, 0, codec, &peak)) w.expand_before++;
        w.expand_before--;
        if (base->steps[w.expand_before].kind == TL_STEP_DROP) continue;
        if (count == MOST_WAITING) return -1;
        list[count++] = w;
    }
    return count;
}

static int by_bytes(const tl_graph *graph, const waiting *a, const waiting *b) {
    uint64_t x = graph->outputs[a->tensor].bytes, y = graph->outputs[b->tensor].bytes;
    return x < y ? -1 : x > y ? 1 : a->tensor - b->tensor;
}

static void sort_waiting(const tl_graph *graph, waiting *list, int32_t count) {
    int32_t i, k;
    for (i = 1; i < count; i++)
        for (k = i; k > 0 && by_bytes(graph, &list[k], &list[k - 1]) < 0; k--) {
            waiting swap = list[k];
            list[k] = list[k - 1];
            list[k - 1] = swap;
        }
}

// The base plan is still there, and each of the others is a conversion where it has to be. Returns what is packed.
static unsigned packed_set(const tl_graph *graph, const tl_plan *base, const tl_plan *plan, const waiting *list, int32_t count,
                           tl_codec codec) {
    unsigned packed = 0, expanded = 0;
    int32_t at = 0, i, k;
    for (i = 0; i < plan->step_count; i++) {
        const tl_step *step = &plan->steps[i];
        if (at < base->step_count && !memcmp(step, &base->steps[at], sizeof *step)) { at++; continue; }
        for (k = 0; k < count; k++)
            if (graph->outputs[list[k].tensor].node == step->node && graph->outputs[list[k].tensor].output == step->output) break;
        assert_true(k < count);
        if (step->kind == TL_STEP_COMPRESS) {
            assert_int_equal(step->codec, codec);
            assert_int_equal(at - 1, list[k].compress_after);
            assert_false(packed >> k & 1);
            packed |= 1u << k;
        } else {
            assert_int_equal(step->kind, TL_STEP_EXPAND);
            assert_int_equal(at, list[k].expand_before);
            expanded |= 1u << k;
        }
    }
    assert_int_equal(at, base->step_count);
    assert_int_equal(packed, expanded);
    return packed;
}

static int rounds_of(int usual) {
    const char *soak = getenv("SOAK"), *sample = getenv("SAMPLE");
    int rounds = soak && *soak == '1' ? usual * 20 : usual, n = sample ? atoi(sample) : 1;
    return n > 1 ? rounds / n + 1 : rounds;
}

static uint64_t peak_of(const tl_graph *graph, const tl_plan *base, const waiting *list, int32_t count, unsigned subset,
                        tl_codec codec) {
    uint64_t one = 0, other = 0;
    assert_true(try_packing(graph, base, list, count, subset, 0, codec, &one));
    assert_true(try_packing(graph, base, list, count, subset, 1, codec, &other));
    return one < other ? one : other;
}

// Sizes that can be f32, some of them large: without them little is packed.
static void round_sizes(tl_random *random, tl_graph *graph) {
    int32_t i;
    for (i = 0; i < graph->tensor_count; i++) {
        if (random_chance(random, 90)) OUTPUTS(graph)[i].bytes = (graph->outputs[i].bytes + 3) / 4 * 4;
        if (random_chance(random, 40)) NODES(graph)[graph->outputs[i].node].keep = 0;
    }
    for (i = 0; i < graph->node_count; i++) {  // what may run in place has to have the same bytes still
        int32_t k = graph->nodes[i].inplace;
        if (k >= 0 && graph->outputs[graph->inputs[graph->nodes[i].first_input + k].tensor].bytes !=
                      graph->outputs[graph->nodes[i].first_output].bytes) NODES(graph)[i].inplace = -1;
    }
}

// A plan of any kind: random steps with copies and conversions, a kept set, or one that recomputes within a budget.
static int random_base(tl_env *env, tl_random *random, const tl_graph *graph, tl_plan *plan) {
    tl_remat_desc desc;
    tl_plan made;
    tl_result result;
    if (random_chance(random, 60)) {
        if (random_plan(env, random, graph, plan)) fail_msg("%s", env->error.text);
        return 1;
    }
    if (tl_plan_keep_all(env, graph, 0, &made)) fail_msg("%s", env->error.text);
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.budget_bytes = made.peak_bytes - tl_next_random_below(random, made.peak_bytes / 3 + 1);
    desc.work_limit = 20000;
    if (random_chance(random, 30)) desc.host_budget_bytes = 100;
    tl_free_plan(env, &made);
    result = tl_plan_remat(env, &desc, &made, NULL);
    if (result == TL_ERROR_INFEASIBLE) return 0;
    if (result) fail_msg("%s", env->error.text);
    *plan = made;  // with steps that free() takes
    plan->memory = malloc(((size_t)made.step_count + 1) * sizeof *made.steps);
    if (made.step_count) memcpy(plan->memory, made.steps, (size_t)made.step_count * sizeof *made.steps);
    plan->steps = (const tl_step *)plan->memory;
    tl_free_plan(env, &made);
    return 1;
}

typedef struct packing_counts { long plans, packed, lowered, run; } packing_counts;

static void check_packing(tl_random *random, const tl_graph *graph, const tl_plan *base, packing_counts *counts) {
    tl_codec codec = (tl_codec)random_count(random, 1, 3);
    tl_packing_desc desc = packing_desc(graph, base, codec);
    uint64_t least = UINT64_MAX, peak, measured;
    waiting list[MOST_WAITING];
    unsigned subset, packed;
    tl_plan plan;
    int32_t count = find_waiting(graph, base, codec, list), k;
    if (count < 0) return;
    sort_waiting(graph, list, count);
    packed_by(&desc, &plan);
    packed = packed_set(graph, base, &plan, list, count, codec);
    for (subset = 0; subset < 1u << count; subset++) {
        peak = peak_of(graph, base, list, count, subset, codec);
        if (peak < least) least = peak;
    }
    assert_int_equal(plan.peak_bytes, least);
    assert_int_equal(peak_of(graph, base, list, count, packed, codec), least);
    for (k = 0; k < count; k++)  // none in vain
        if (packed >> k & 1) assert_true(peak_of(graph, base, list, count, packed & ~(1u << k), codec) > least);
    counts->plans++;
    counts->packed += packed != 0;
    counts->lowered += plan.peak_bytes < peak_of(graph, base, list, count, 0, codec);
    if (packed && !plan.any_order && random_chance(random, 20)) {
        (void)gradients_of(graph, &plan, &measured);
        assert_int_equal(measured, plan.peak_bytes);
        counts->run++;
    }
    tl_free_plan(NULL, &plan);
}

static void the_peak_is_the_least_of_all_subsets(void **state) {
    tl_random random = { 7102 };
    packing_counts counts = { 0, 0, 0, 0 };
    int round, rounds = rounds_of(8000);  // the first that needs a second look is about the 4500th
    (void)state;
    for (round = 0; round < rounds; round++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_plan base;
        tl_simulate_desc desc;
        tl_report report;
        if (random_graph(&env, &random, 10, &graph)) fail_msg("%s", env.error.text);
        round_sizes(&random, &graph);
        if (random_base(&env, &random, &graph, &base)) {
            memset(&desc, 0, sizeof desc);
            desc.graph = &graph;
            desc.plan = &base;
            if (!base.inference && base.step_count < 900 && !tl_simulate_plan(&env, &desc, &report))
                check_packing(&random, &graph, &base, &counts);
            random_free_plan(&env, &base);
        }
        tl_free_graph(&env, &graph);
    }
    assert_true(counts.plans > rounds / 4 && counts.packed > rounds / 20 && counts.run > rounds / 200);
    assert_int_equal(counts.packed, counts.lowered);
}

// A graph of tl_apply_precision: what is not f32 there stays as it is, and runs measure the peak.
static void what_an_applied_graph_keeps_in_f32_is_packed(void **state) {
    tl_random random = { 7106 };
    int round, rounds = rounds_of(400);
    long packed = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_precision_plan choice;
        tl_precision_node nodes[16];
        tl_precision_graph applied;
        tl_apply_desc apply;
        tl_packing_desc desc;
        tl_plan base, plan;
        uint8_t allowed[200];
        uint64_t measured;
        int32_t i;
        if (random_graph(&env, &random, 10, &graph)) fail_msg("%s", env.error.text);
        round_sizes(&random, &graph);
        memset(&choice, 0, sizeof choice);
        memset(&apply, 0, sizeof apply);
        memset(nodes, 0, sizeof nodes);
        for (i = 0; i < graph.node_count; i++) {
            nodes[i].scheme = graph.nodes[i].is_input || random_chance(&random, 60) ? TL_SCHEME_F32 : TL_SCHEME_BF16;
            nodes[i].speedup = 1;
        }
        choice.nodes = nodes;
        choice.node_count = graph.node_count;
        apply.graph = &graph;
        apply.plan = &choice;
        apply.training = 1;
        if (tl_apply_precision(&env, &apply, &applied)) fail_msg("%s", env.error.text);
        assert_true(applied.graph.tensor_count <= 200);
        for (i = 0; i < applied.graph.tensor_count; i++) allowed[i] = applied.formats[i] == TL_FORMAT_F32;
        if (tl_plan_keep_all(&env, &applied.graph, 0, &base)) fail_msg("%s", env.error.text);
        desc = packing_desc(&applied.graph, &base, (tl_codec)random_count(&random, 1, 3));
        desc.tensors = allowed;
        packed_by(&desc, &plan);
        assert_true(plan.peak_bytes <= base.peak_bytes);
        for (i = 0; i < plan.step_count; i++) {
            const tl_node *node = &applied.graph.nodes[plan.steps[i].node];
            if (plan.steps[i].kind != TL_STEP_COMPRESS) continue;
            assert_int_equal(applied.formats[node->first_output + plan.steps[i].output], TL_FORMAT_F32);
            packed++;
        }
        (void)gradients_of(&applied.graph, &plan, &measured);
        assert_int_equal(measured, plan.peak_bytes);
        tl_free_plan(&env, &plan);
        tl_free_plan(&env, &base);
        tl_free_precision_graph(&env, &applied);
        tl_free_graph(&env, &graph);
    }
    assert_true(packed > rounds / 10);
}

// -- what is lost: a net whose gradients can be told from its activations --
//
// Layer i makes h_i = w_i h_{i-1}; its backward reads h_{i-1} for dw_i = sum of dh_i h_{i-1} and hands w_i dh_i on. So
// gradients of activations are exact whatever is packed, and dw_i is off by what the codec makes of h_{i-1}.

#define LAYERS 6
#define WIDTH 128

typedef struct scales {
    float weights[LAYERS], gradients[LAYERS];
    float input[WIDTH], slope[WIDTH];         // of the loss: the sum of slope x h
} scales;

static tl_result scale_forward(const tl_kernel_call *call, void *user) {
    const scales *s = (const scales *)user;
    const float *in = (const float *)call->inputs[0].host;
    float *out = (float *)call->outputs[0].host, sum = 0;
    int32_t layer = call->node - 1, i;
    if (layer == LAYERS) {
        for (i = 0; i < WIDTH; i++) sum += s->slope[i] * in[i];
        out[0] = sum;
        return TL_OK;
    }
    for (i = 0; i < WIDTH; i++) out[i] = s->weights[layer] * in[i];
    return TL_OK;
}

static tl_result scale_backward(const tl_kernel_call *call, void *user) {
    scales *s = (scales *)user;
    const float *in = (const float *)call->inputs[0].host, *up = (const float *)call->output_grads[0].host;
    float *down = (float *)call->input_grads[0].host;
    int32_t layer = call->node - 1, i;
    for (i = 0; i < WIDTH; i++) {
        float g = layer == LAYERS ? up[0] * s->slope[i] : up[i];
        if (down) down[i] += layer == LAYERS ? g : s->weights[layer] * g;
        if (layer < LAYERS) s->gradients[layer] += g * in[i];
    }
    return TL_OK;
}

static tl_result scale_load(tl_run *run, int32_t micro_batch, void *user) {
    scales *s = (scales *)user;
    tl_tensor x = { 0, 0 };
    (void)micro_batch;
    memset(s->gradients, 0, sizeof s->gradients);
    return tl_write_tensor(run, x, s->input, sizeof s->input);
}

static tl_graph scale_graph(void) {
    char text[2048], *at = text;
    int32_t i;
    at += sprintf(at, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=%d needs=none in=-\n", 4 * WIDTH);
    for (i = 1; i <= LAYERS; i++)
        at += sprintf(at, "node %d h%d scale fwd=1 bwd=1 out=%d needs=in in=%d\n", (int)i, (int)i, 4 * WIDTH, (int)i - 1);
    sprintf(at, "node %d loss sum fwd=1 bwd=1 out=4 needs=none in=%d keep\n", (int)i, (int)i - 1);
    return graph_of(text);
}

static void run_scales(const tl_graph *graph, const tl_plan *plan, scales *s) {
    tl_env env = silent_env();
    tl_backend backend;
    tl_cpu_backend_desc backend_desc;
    tl_kernel kernels[2];
    tl_run_desc desc;
    tl_run_report report;
    tl_run *run;
    int k;
    memset(&backend_desc, 0, sizeof backend_desc);
    backend_desc.checked = 1;
    memset(&desc, 0, sizeof desc);
    if (tl_init_cpu_backend(&env, &backend_desc, &backend)) fail_msg("%s", env.error.text);
    for (k = 0; k < 2; k++) {
        kernels[k].op = k ? "sum" : "scale";
        kernels[k].forward = scale_forward;
        kernels[k].backward = scale_backward;
        kernels[k].user = s;
    }
    desc.graph = graph;
    desc.backend = &backend;
    desc.plan = plan;
    desc.kernels = kernels;
    desc.kernel_count = 2;
    desc.load = scale_load;
    desc.load_user = s;
    if (tl_init_run(&env, &desc, &run) || tl_run_plan(run)) fail_msg("%s", env.error.text);
    tl_measure_run(run, &report);
    assert_int_equal(report.measured_peak_bytes, plan->peak_bytes);
    tl_free_run(run);
    tl_free_cpu_backend(&env, &backend);
}

// The largest error that a codec makes of a value: half a step at its size, and of q8 half a step of its block.
static double codec_error(tl_codec codec, const double *h, int32_t at) {
    double size = h[at] < 0 ? -h[at] : h[at], largest = 0;
    int32_t i;
    if (codec == TL_CODEC_F16) return size / 2048;
    if (codec == TL_CODEC_BF16) return size / 256;
    for (i = at / 32 * 32; i < at / 32 * 32 + 32; i++) {
        double other = h[i] < 0 ? -h[i] : h[i];
        if (other > largest) largest = other;
    }
    return largest / 127 * 0.501;
}

static void gradients_are_off_by_what_the_codec_loses(void **state) {
    tl_graph graph = scale_graph();
    tl_env env = silent_env();
    tl_random random = { 7103 };
    scales raw, lossy;
    tl_plan plan, packed;
    int32_t codec, layer, i;
    (void)state;
    for (i = 0; i < WIDTH; i++) {
        raw.input[i] = (float)(tl_next_random_ratio(&random) * 4 - 2);
        raw.slope[i] = (float)(tl_next_random_ratio(&random) * 2 - 1);
    }
    for (i = 0; i < LAYERS; i++) raw.weights[i] = (float)(tl_next_random_ratio(&random) + 0.5);
    lossy = raw;
    if (tl_plan_keep_all(&env, &graph, 0, &plan)) fail_msg("%s", env.error.text);
    run_scales(&graph, &plan, &raw);
    for (codec = TL_CODEC_F16; codec <= TL_CODEC_Q8; codec++) {
        tl_packing_desc desc = packing_desc(&graph, NULL, (tl_codec)codec);
        double product = 1, h[WIDTH];
        int differ = 0;
        packed_by(&desc, &packed);
        assert_true(packed.peak_bytes < plan.peak_bytes);
        run_scales(&graph, &packed, &lossy);
        for (layer = 0; layer < LAYERS; layer++) {
            double bound = 0, back = 1, difference = (double)lossy.gradients[layer] - (double)raw.gradients[layer];
            int is_packed = 0;
            for (i = layer + 1; i < LAYERS; i++) back *= (double)raw.weights[i];
            for (i = 0; i < WIDTH; i++) h[i] = product * (double)raw.input[i];
            for (i = 0; i < WIDTH; i++) {
                double slope = (double)(raw.slope[i] < 0 ? -raw.slope[i] : raw.slope[i]);
                bound += slope * back * (codec_error((tl_codec)codec, h, i) + 1e-5);
            }
            for (i = 0; i < packed.step_count; i++)
                is_packed |= packed.steps[i].kind == TL_STEP_COMPRESS && packed.steps[i].node == layer;
            if (difference < 0) difference = -difference;
            if (!is_packed) assert_true(lossy.gradients[layer] == raw.gradients[layer]);  // to the last bit
            assert_true(difference <= bound);
            differ += difference > 0;
            product *= (double)raw.weights[layer];
        }
        assert_true(differ >= 3);
        tl_free_plan(&env, &packed);
    }
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// Whole numbers up to 127, 127 in each block of 32, and weights that are powers of two: nothing is rounded.
static void what_the_codec_can_say_is_not_changed(void **state) {
    tl_graph graph = scale_graph();
    tl_env env = silent_env();
    tl_random random = { 7104 };
    scales raw, lossy;
    tl_plan plan, packed;
    int32_t codec, i;
    (void)state;
    for (i = 0; i < WIDTH; i++) {
        raw.input[i] = i % 32 == 5 ? 127.0f : (float)tl_next_random_below(&random, 255) - 127.0f;
        raw.slope[i] = (float)(tl_next_random_ratio(&random) * 2 - 1);
    }
    for (i = 0; i < LAYERS; i++) raw.weights[i] = i % 2 ? 2.0f : 0.25f;
    lossy = raw;
    if (tl_plan_keep_all(&env, &graph, 0, &plan)) fail_msg("%s", env.error.text);
    run_scales(&graph, &plan, &raw);
    for (codec = TL_CODEC_F16; codec <= TL_CODEC_Q8; codec++) {
        tl_packing_desc desc = packing_desc(&graph, &plan, (tl_codec)codec);
        packed_by(&desc, &packed);
        assert_true(packed.peak_bytes < plan.peak_bytes);
        run_scales(&graph, &packed, &lossy);
        assert_memory_equal(lossy.gradients, raw.gradients, sizeof raw.gradients);
        tl_free_plan(&env, &packed);
    }
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

// -- what is refused --

static void assert_refused(const tl_packing_desc *desc, tl_result code, const char *sentence) {
    tl_env env = silent_env();
    tl_plan plan;
    memset(&plan, 0xA5, sizeof plan);
    assert_int_equal(tl_plan_packing(&env, desc, &plan), code);
    assert_string_equal(env.error.text, sentence);
    assert_true(is_zero(&plan, sizeof plan));
}

static void broken_descs_are_refused(void **state) {
    tl_graph graph = graph_of(CHAIN);
    tl_plan base = scheduled("F 1\nF 2\nF 3\nF 4\nB 4\nD 3\nB 3\nB 2\nB 1\n");
    tl_packing_desc desc = packing_desc(&graph, &base, TL_CODEC_NONE);
    tl_env env = silent_env();
    tl_device device;
    uint64_t offset = 0;
    tl_plan plan;
    (void)state;
    assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_plan_packing: codec: must be f16, bf16 or q8");
    desc.codec = TL_CODEC_COUNT;
    assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_plan_packing: codec: must be f16, bf16 or q8");
    desc.codec = (tl_codec)99;
    assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_plan_packing: codec: must be f16, bf16 or q8");
    desc.codec = TL_CODEC_F16;
    base.inference = 1;
    assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_plan_packing: plan: must be one of a training");
    base.inference = 0;
    base.repeat_count = -1;
    assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_plan_packing: repeat_count: must be >= 0");
    base.repeat_count = 0;
    base.step_count = 3;
    assert_refused(&desc, TL_ERROR_INVALID_PLAN, "tl_plan_packing: after the last step: node 1 (a) never ran backward");
    base.step_count = 9;
    ((tl_step *)base.memory)[5].output = 7;
    assert_refused(&desc, TL_ERROR_INVALID_PLAN, "tl_plan_packing: step 5 (D 3.7 c): no such output");
    ((tl_step *)base.memory)[5] = tli_step_of(TL_STEP_BACKWARD, 2, -1);
    assert_refused(&desc, TL_ERROR_INVALID_PLAN,
                   "tl_plan_packing: step 5 (B 2 b): backward out of order: node 3 (c) is next");
    ((tl_step *)base.memory)[5] = tli_step_of(TL_STEP_DROP, 3, 0);
    memset(&device, 0, sizeof device);
    device.alignment_bytes = 3;
    desc.device = &device;
    assert_refused(&desc, TL_ERROR_INVALID_ARG, "tl_check_device: alignment_bytes: must be 0 or a power of two");
    desc.device = NULL;
    base.offsets = &offset;  // not read: what is packed lies elsewhere
    base.offset_count = 1;
    packed_by(&desc, &plan);
    assert_int_equal(plan.offset_count, 0);
    tl_free_plan(&env, &plan);
    OUTPUTS(&graph)[0].node = 7;
    assert_refused(&desc, TL_ERROR_INVALID_ARG,
                   "tl_check_graph: node 0 (x): outputs: each must know its node and number");
    OUTPUTS(&graph)[0].node = 0;
    tl_free_plan(&env, &base);
    tl_free_graph(&env, &graph);
}

// Without a backward nobody waits.
static void a_graph_without_gradients_is_left_alone(void **state) {
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=128 needs=none in=-\n"
                            "node 1 a layer fwd=1 bwd=0 out=128 needs=none in=0 grad=no\n"
                            "node 2 b layer fwd=1 bwd=0 out=128 needs=none in=1 grad=no keep\n");
    tl_packing_desc desc = packing_desc(&graph, NULL, TL_CODEC_Q8);
    tl_env env = silent_env();
    tl_plan plan;
    (void)state;
    packed_by(&desc, &plan);
    assert_schedule(&plan, "F 1;F 2;D 1.0");
    tl_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

static void every_failing_allocation_is_survived(void **state) {
    tl_graph graph = graph_of(CHAIN);
    tl_plan base = scheduled("F 1\nF 2\nF 3\nF 4\nB 4\nD 3\nB 3\nB 2\nB 1\n");
    int given;
    long at;
    (void)state;
    for (given = 0; given < 2; given++) {
        tl_packing_desc desc = packing_desc(&graph, given ? &base : NULL, TL_CODEC_BF16);
        for (at = 0;; at++) {
            failing_alloc f = { 0, 0, 0, 0 };
            tl_env env = failing_env(&f, at);
            tl_plan plan;
            tl_result result = tl_plan_packing(&env, &desc, &plan);
            if (result) {
                assert_int_equal(result, TL_ERROR_NO_MEMORY);
                assert_true(is_zero(&plan, sizeof plan));
                assert_non_null(strstr(env.error.text, "no memory"));
            }
            tl_free_plan(&env, &plan);
            assert_int_equal(f.live, 0);
            if (f.count <= at) break;
        }
        assert_true(at > 9);
    }
    tl_free_plan(NULL, &base);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_is_packed_behind_its_last_reader),
        cmocka_unit_test(what_lowers_no_peak_stays_raw),
        cmocka_unit_test(at_one_place_the_small_is_compressed_first_and_expanded_last),
        cmocka_unit_test(copies_and_results_are_left_alone),
        cmocka_unit_test(the_peak_is_the_least_of_all_subsets),
        cmocka_unit_test(what_an_applied_graph_keeps_in_f32_is_packed),
        cmocka_unit_test(gradients_are_off_by_what_the_codec_loses),
        cmocka_unit_test(what_the_codec_can_say_is_not_changed),
        cmocka_unit_test(broken_descs_are_refused),
        cmocka_unit_test(a_graph_without_gradients_is_left_alone),
        cmocka_unit_test(every_failing_allocation_is_survived),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
