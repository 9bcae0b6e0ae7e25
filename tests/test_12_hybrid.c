// [12] RUN in hybrid mode: dynamic nodes report their bytes. Readers see these, what is behind them is used for forwards that
// need not run again, outcomes stay, no pass takes more than was planned, and a wrong report is refused.
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


// -- kernels that report --

// How much of their bounds dynamic nodes make.
typedef enum share { SHARE_BOUND, SHARE_HALF, SHARE_NONE, SHARE_RANDOM } share;

typedef struct reporter {
    const tl_graph *graph;       // with the bounds
    share     shares;
    uint64_t  salt;
    uint64_t  gradients[MIXER_NODES];
    uint64_t  real[MIXER_NODES];  // by tensor, in this pass
    int       ran[MIXER_NODES];   // forwards in this pass
    long      forwards, again, reports;
    uint64_t  excess;            // the next report is above the bound by so much
    int       ignores;           // 1 = what tl_report_bytes says is not passed on
    int       is_silent_again;   // 1 = no report where a node runs again
    int       changes_again;     // 1 = another report where a node runs again
} reporter;

static uint64_t real_bytes(const reporter *r, uint64_t step, int32_t tensor) {
    uint64_t bound = r->graph->outputs[tensor].bytes, number = tl_mix_u64(tl_mix_u64(r->salt, step), (uint64_t)tensor);
    switch (r->shares) {
    case SHARE_BOUND: break;
    case SHARE_HALF: return bound / 2;
    case SHARE_NONE: return 0;
    case SHARE_RANDOM: return number % 4 ? number / 4 % (bound + 1) : bound;
    }
    return bound;
}

static tl_result report_forward(const tl_kernel_call *call, void *user) {
    reporter *r = (reporter *)user;
    const tl_node *node = &r->graph->nodes[call->node];
    uint64_t sum = tl_mix_u64(call->seed, (uint64_t)call->node);
    int32_t i;
    r->forwards++;
    r->again += r->ran[call->node] > 0;
    assert_int_equal(call->recompute, r->ran[call->node] > 0);
    for (i = 0; i < node->input_count; i++) {
        int32_t tensor = r->graph->inputs[node->first_input + i].tensor;
        const tl_node *from = &r->graph->nodes[r->graph->outputs[tensor].node];
        assert_int_equal(call->inputs[i].range.bytes, from->dynamic ? r->real[tensor] : r->graph->outputs[tensor].bytes);
        sum = mix_bytes(sum, &call->inputs[i]);
    }
    mix_into(sum + 1000, &call->scratch, 1);
    for (i = 0; i < node->output_count; i++) {
        tl_operand output = call->outputs[i];
        int32_t tensor = node->first_output + i;
        if (node->dynamic) {
            uint64_t bytes = real_bytes(r, call->step, tensor);
            if (!r->ran[call->node]) r->real[tensor] = bytes;
            assert_int_equal(output.range.bytes, r->ran[call->node] ? bytes : r->graph->outputs[tensor].bytes);
            if (r->excess) bytes = r->graph->outputs[tensor].bytes + r->excess;
            if (r->changes_again && r->ran[call->node]) bytes++;
            if (!r->ran[call->node] || !r->is_silent_again) {
                tl_result result = tl_report_bytes(call->run, i, bytes);
                r->reports++;
                if (result && !r->ignores) return result;
                if (result) bytes = 0;
            }
            if (bytes < output.range.bytes) output.range.bytes = bytes;    // what is behind stays untouched
        }
        if (!call->outputs_ready) mix_into(sum + (uint64_t)i, &output, 0);
    }
    mix_into(sum + 77, &call->saved, 0);
    r->ran[call->node]++;
    return TL_OK;
}

static tl_result report_backward(const tl_kernel_call *call, void *user) {
    reporter *r = (reporter *)user;
    const tl_node *node = &r->graph->nodes[call->node];
    uint64_t sum = tl_mix_u64((uint64_t)call->node, call->seed);
    int32_t i;
    if (node->dynamic) assert_int_equal(tl_report_bytes(call->run, 0, 0), TL_ERROR_INVALID_ARG);
    for (i = 0; i < node->input_count; i++) sum = mix_bytes(sum, &call->inputs[i]);
    for (i = 0; i < node->output_count; i++) {
        int32_t tensor = node->first_output + i;
        assert_int_equal(call->output_grads[i].range.bytes, node->dynamic ? r->real[tensor] : r->graph->outputs[tensor].bytes);
        sum = mix_bytes(sum, &call->outputs[i]);
        sum = mix_bytes(sum, &call->output_grads[i]);
    }
    sum = mix_bytes(sum, &call->saved);
    mix_into(sum + 1000, &call->scratch, 1);
    r->gradients[call->node] = tl_mix_u64(r->gradients[call->node], sum);
    for (i = 0; i < node->input_count; i++) mix_into(sum + (uint64_t)i, &call->input_grads[i], 1);
    return TL_OK;
}

// -- a bed whose kernels report --

typedef struct hybrid_bed { bed b; reporter r; tl_strategy strategy; } hybrid_bed;

static tl_result hybrid_load(tl_run *run, int32_t micro_batch, void *user) {
    hybrid_bed *h = (hybrid_bed *)user;
    memset(h->r.ran, 0, sizeof h->r.ran);
    return bed_load(run, micro_batch, &h->b);
}

static void hybrid_open(hybrid_bed *h, const tl_graph *graph, int kind, uint64_t seed, uint64_t alignment, share shares) {
    int32_t k;
    memset(&h->r, 0, sizeof h->r);
    bed_open(&h->b, graph, kind, seed, alignment);
    h->r.graph = graph;
    h->r.shares = shares;
    h->r.salt = seed;
    for (k = 0; k < h->b.desc.kernel_count; k++) {
        h->b.kernels[k].forward = report_forward;
        h->b.kernels[k].backward = report_backward;
        h->b.kernels[k].user = &h->r;
    }
    h->b.desc.load = hybrid_load;
    h->b.desc.load_user = h;
    memset(&h->strategy, 0, sizeof h->strategy);
    h->strategy.mode = TL_MODE_HYBRID;
    h->strategy.memory = TL_MEMORY_POOLED;
    h->strategy.gradient.computes = 1;
    h->strategy.gradient.checkpointed = 1;
    h->b.desc.strategy = &h->strategy;
}

// What a step computed: gradients, and the real bytes of results.
static uint64_t hybrid_outcome(hybrid_bed *h) {
    const tl_graph *graph = h->r.graph;
    unsigned char bytes[512];
    uint64_t sum = 1, count, k;
    int32_t i;
    for (i = 0; i < graph->node_count; i++) sum = tl_mix_u64(sum, h->r.gradients[i]);
    for (i = 0; i < graph->tensor_count; i++) {
        tl_tensor tensor;
        if (!graph->nodes[graph->outputs[i].node].keep) continue;
        tensor.node = graph->outputs[i].node;
        tensor.output = graph->outputs[i].output;
        assert_int_equal(tl_find_tensor_bytes(h->b.run, tensor, &count), TL_OK);
        if (graph->nodes[tensor.node].dynamic) assert_int_equal(count, h->r.real[i]);
        if (tl_read_tensor(h->b.run, tensor, bytes, count)) fail_msg("%s", h->b.env.error.text);
        if (count) assert_int_equal(tl_read_tensor(h->b.run, tensor, bytes, count - 1), TL_ERROR_INVALID_ARG);
        for (k = 0; k < count; k++) sum = tl_mix_u64(sum, bytes[k]);
    }
    return sum;
}

static uint64_t hybrid_step(hybrid_bed *h) {
    if (tl_run_plan(h->b.run)) fail_msg("%s (%s)", h->b.env.error.text, h->b.backend_env.error.text);
    return hybrid_outcome(h);
}

// Outcome of steps that keep everything, with the same reports; the arena of them.
static uint64_t hybrid_keep_all(const tl_graph *graph, uint64_t seed, share shares, int steps, uint64_t *arena) {
    static hybrid_bed h;
    tl_plan plan;
    uint64_t sum = 0;
    hybrid_open(&h, graph, 0, seed, 1, shares);
    if (tl_plan_keep_all(&h.b.env, graph, 0, &plan)) fail_msg("%s", h.b.env.error.text);
    h.b.desc.strategy = NULL;
    h.b.desc.plan = &plan;
    bed_must_init(&h.b);
    while (steps-- > 0) sum = hybrid_step(&h);
    *arena = bed_report(&h.b).planned_taken_bytes;
    assert_int_equal(bed_report(&h.b).spared_bytes, 0);
    bed_close(&h.b);
    tl_free_plan(&h.b.env, &plan);
    return sum;
}

// -- what dynamic changes --

// A chain whose middle is dynamic.
static tl_graph dynamic_chain(void) {
    tl_graph graph;
    tl_env env;
    char text[4096];
    int length = snprintf(text, sizeof text, "tlg 1\nnode 0 x input fwd=0 bwd=0 out=40 needs=none in=-\n"), i;
    memset(&env, 0, sizeof env);
    for (i = 1; i <= 12; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, "node %d n%d op%d fwd=10 bwd=10 out=%d needs=in in=%d%s\n", i, i, i,
                           i == 6 ? 200 : 40, i - 1, i == 6 ? " dynamic" : i == 12 ? " keep" : "");
    if (tl_parse_graph(&env, text, strlen(text), &graph)) fail_msg("%s", env.error.text);
    return graph;
}

// One step of a chain in a mode, with so much reported.
static tl_run_report run_chain(const tl_graph *graph, tl_mode mode, int fuses, share shares, uint64_t budget, uint64_t *outcome) {
    static hybrid_bed h;
    tl_run_report report;
    hybrid_open(&h, graph, BACKEND_CHECKED, 7, 8, shares);
    h.strategy.mode = mode;
    h.strategy.enable_fusion = fuses;
    h.b.desc.budget_bytes = budget;
    h.b.desc.work_limit = 0;        // the bytes that are asserted are those of the best plan
    bed_must_init(&h.b);
    (void)hybrid_step(&h);
    *outcome = hybrid_step(&h);
    report = bed_report(&h.b);
    bed_close(&h.b);
    return report;
}

static void what_is_not_reported_is_used_for_forwards_that_need_not_run_again(void **state) {
    tl_graph graph = dynamic_chain();
    uint64_t arena, lazy_sum, sum, expected = hybrid_keep_all(&graph, 7, SHARE_HALF, 2, &arena);
    tl_run_report lazy, hybrid, fused;
    (void)state;
    lazy = run_chain(&graph, TL_MODE_LAZY, 0, SHARE_HALF, 600, &lazy_sum);
    hybrid = run_chain(&graph, TL_MODE_HYBRID, 0, SHARE_HALF, 600, &sum);
    printf("lazy: peak %d of %d bytes taken, %d forwards; hybrid: peak %d of %d, %d forwards, %d spared, %d bytes\n",
           (int)lazy.measured_peak_bytes, (int)lazy.taken_bytes, (int)lazy.forward_count, (int)hybrid.measured_peak_bytes,
           (int)hybrid.taken_bytes, (int)hybrid.forward_count, (int)hybrid.spared_count, (int)hybrid.spared_bytes);
    assert_true(lazy_sum == expected && sum == expected);
    assert_int_equal(hybrid.taken_bytes, lazy.taken_bytes);
    assert_int_equal(hybrid.spared_bytes, 100);
    assert_int_equal(lazy.spared_bytes, 0);
    assert_true(lazy.recompute_count > 0 && hybrid.forward_count < lazy.forward_count);
    assert_int_equal(hybrid.spared_count, lazy.forward_count - hybrid.forward_count);
    assert_true(hybrid.planned_cost < lazy.planned_cost);
    fused = run_chain(&graph, TL_MODE_HYBRID, 1, SHARE_HALF, 600, &sum);     // where nothing is to be fused
    assert_int_equal(sum, expected);
    assert_true(fused.table_bytes > hybrid.table_bytes);    // of the strategy that was compiled
    fused.table_bytes = hybrid.table_bytes;
    assert_memory_equal(&fused, &hybrid, sizeof hybrid);
    // Where nothing runs again the peak is lower.
    lazy = run_chain(&graph, TL_MODE_LAZY, 0, SHARE_HALF, 0, &lazy_sum);
    hybrid = run_chain(&graph, TL_MODE_HYBRID, 0, SHARE_HALF, 0, &sum);
    assert_true(lazy_sum == expected && sum == expected);
    printf("without a budget: lazy peak %d, hybrid %d\n", (int)lazy.measured_peak_bytes, (int)hybrid.measured_peak_bytes);
    assert_true(hybrid.measured_peak_bytes < lazy.measured_peak_bytes);
    assert_int_equal(hybrid.forward_count, lazy.forward_count);
    // The bound is reached: as in lazy mode, to the step.
    lazy = run_chain(&graph, TL_MODE_LAZY, 0, SHARE_BOUND, 600, &lazy_sum);
    hybrid = run_chain(&graph, TL_MODE_HYBRID, 0, SHARE_BOUND, 600, &sum);
    assert_int_equal(sum, lazy_sum);
    assert_true(hybrid.table_bytes > lazy.table_bytes);     // it keeps the bounds beside
    hybrid.table_bytes = lazy.table_bytes;
    assert_memory_equal(&hybrid, &lazy, sizeof hybrid);
    tl_free_graph(NULL, &graph);
}

// What becomes of the steps of a plan after a report that leaves much room.
static void what_was_run_again_is_kept(void **state) {
#define X "tlg 1\nnode 0 x input fwd=0 bwd=0 out=8 needs=none in=-\n"
    static const struct { const char *graph, *plan, *rest; int spared; } cases[] = {
        // The first forward saves what a later one made.
        { X "node 1 d o1 fwd=1 bwd=1 out=400 needs=none in=0 dynamic\nnode 2 a o2 fwd=1 bwd=1 out=40 needs=in in=1 saved=16\n"
            "node 3 b o3 fwd=1 bwd=1 out=40 needs=in in=2\nnode 4 c o4 fwd=1 bwd=1 out=40 needs=in in=3\n"
            "node 5 e o5 fwd=1 bwd=1 out=8 needs=in in=4 keep\n",
          "F 1\nF 2\nF 3\nD 2.0\nF 4\nD 3.0\nF 5\nB 5\nD 4.0\nF 2\nF 3\nD 2.0\nB 4\nD 3.0\nS 2\nB 3\nD 2.0\nB 2\nD 1.0\nB 1\n",
          "F 1\nS 2\nF 3\nF 4\nF 5\nB 5\nD 4.0\nB 4\nD 3.0\nB 3\nD 2.0\nB 2\nD 1.0\nB 1\n", 3 },
        // What ran again only for that is not run either.
        { X "node 1 a o1 fwd=1 bwd=1 out=40 needs=none in=0\nnode 2 b o2 fwd=1 bwd=1 out=40 needs=none in=1\n"
            "node 3 d o3 fwd=1 bwd=1 out=400 needs=none in=2 dynamic\nnode 4 c o4 fwd=1 bwd=1 out=8 needs=in0 in=2,3 keep\n",
          "F 1\nF 2\nD 1.0\nF 3\nF 4\nD 2.0\nD 3.0\nF 1\nF 2\nD 1.0\nB 4\nD 2.0\nB 3\nB 2\nB 1\n",
          "F 1\nF 2\nD 1.0\nF 3\nF 4\nD 3.0\nB 4\nD 2.0\nB 3\nB 2\nB 1\n", 2 },
        // What was overwritten is not.
        { X "node 1 d o1 fwd=1 bwd=1 out=400 needs=none in=0 dynamic\nnode 2 b o2 fwd=1 bwd=1 out=40 needs=none in=1\n"
            "node 3 r o3 fwd=1 bwd=1 out=40 needs=in in=2 inplace=0\nnode 4 e o4 fwd=1 bwd=1 out=8 needs=none in=3 keep\n",
          "F 1\nF 2\nI 3\nF 4\nD 3.0\nB 4\nF 2\nD 1.0\nB 3\nD 2.0\nB 2\nB 1\n",
          "F 1\nF 2\nF 3\nF 4\nD 3.0\nB 4\nD 1.0\nB 3\nD 2.0\nB 2\nB 1\n", 1 },
    };
#undef X
    static hybrid_bed h;
    int i;
    (void)state;
    for (i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        char text[1000];
        tl_graph graph;
        tl_plan plan, rest;
        tl_env env;
        uint64_t arena, expected;
        memset(&env, 0, sizeof env);
        if (tl_parse_graph(&env, cases[i].graph, strlen(cases[i].graph), &graph)) fail_msg("%s", env.error.text);
        if (tl_parse_schedule(&env, cases[i].plan, strlen(cases[i].plan), &plan)) fail_msg("%s", env.error.text);
        expected = hybrid_keep_all(&graph, 3, SHARE_HALF, 1, &arena);
        hybrid_open(&h, &graph, BACKEND_CHECKED, 3, 4, SHARE_HALF);
        h.b.desc.plan = &plan;
        bed_must_init(&h.b);
        assert_int_equal(hybrid_step(&h), expected);
        tl_find_run_plan(h.b.run, &rest);
        (void)tl_print_schedule(&rest, text, sizeof text);
        assert_string_equal(text, cases[i].rest);
        assert_int_equal(bed_report(&h.b).spared_count, cases[i].spared);
        bed_close(&h.b);
        tl_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
}

// -- random graphs --

static void make_dynamic(tl_random *random, tl_graph *graph, int percent) {
    tl_node *nodes = (tl_node *)graph->nodes;
    int32_t i;
    for (i = 0; i < graph->node_count; i++) nodes[i].takes_blocks = 0;
    for (i = 0; i < graph->node_count; i++) {
        if (!random_chance(random, percent)) continue;
        nodes[i].dynamic = 1;
        if (tl_check_graph(NULL, graph)) nodes[i].dynamic = 0;
    }
}

// A plan that drops a part of what is kept and runs forwards again, with spills now and then.
static void dropping_plan(const tl_graph *graph, long round, uint64_t arena, tl_plan *plan) {
    tl_env env;
    tl_remat_desc remat;
    tl_policy_desc policy;
    memset(&env, 0, sizeof env);
    memset(&remat, 0, sizeof remat);
    memset(&policy, 0, sizeof policy);
    remat.graph = policy.graph = graph;
    remat.budget_bytes = arena * (50 + (uint64_t)round % 40) / 100;
    remat.work_limit = 20000;
    if (round % 7 == 0) remat.host_budget_bytes = arena;
    policy.policy.kind = TL_POLICY_CHEN_SQRT;
    if (round % 3 == 0 && tl_plan_remat(&env, &remat, plan, NULL) == TL_OK) return;
    if (tl_plan_policy(&env, &policy, plan)) fail_msg("%s", env.error.text);
}

static void outcomes_stay_and_nothing_takes_more_than_was_planned(void **state) {
    static hybrid_bed h;
    tl_random random = { 15 };
    long round, rounds = scaled(600), runs = 0, spared = 0, recomputes = 0, less = 0, lower = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        static const uint64_t alignments[] = { 1, 4, 16, 64 };
        tl_graph graph;
        uint64_t arena, expected, lazy_sum = 0, alignment = alignments[round % 4];
        share shares = round % 5 == 0 ? SHARE_NONE : round % 5 == 1 ? SHARE_BOUND : round % 5 == 2 ? SHARE_HALF : SHARE_RANDOM;
        tl_run_report lazy, hybrid;
        tl_plan plan;
        int mode;
        if (random_effect_graph(NULL, &random, round % 3 ? 24 : 60, round % 4 * 8, &graph)) fail_msg("%s", "no graph");
        make_dynamic(&random, &graph, 40);
        expected = hybrid_keep_all(&graph, (uint64_t)round, shares, 3, &arena);
        memset(&lazy, 0, sizeof lazy);
        dropping_plan(&graph, round, arena, &plan);
        for (mode = 0; mode < 2; mode++) {
            hybrid_open(&h, &graph, (int)(round % BACKEND_KINDS), (uint64_t)round, alignment, shares);
            h.strategy.mode = mode ? TL_MODE_HYBRID : TL_MODE_LAZY;
            h.b.desc.plan = &plan;
            if (round % 60 == 0) {      // the strategy makes the plan
                h.b.desc.plan = NULL;
                h.b.desc.budget_bytes = arena * (60 + (uint64_t)round % 40) / 100 + 16 * alignment;
            }
            h.r.is_silent_again = round % 2 == 0;
            if (bed_init(&h.b)) {
                assert_int_equal(h.b.env.error.code, TL_ERROR_INFEASIBLE);
                assert_false(mode && lazy_sum);
                bed_close(&h.b);
                continue;
            }
            (void)hybrid_step(&h);
            (void)hybrid_step(&h);
            lazy_sum = hybrid_step(&h);
            if (lazy_sum != expected) fail_msg("round %ld, mode %d: other gradients or results", round, mode);
            hybrid = bed_report(&h.b);
            assert_int_equal(hybrid.measured_peak_bytes, hybrid.planned_peak_bytes);
            assert_int_equal(hybrid.measured_arena_bytes, hybrid.planned_arena_bytes);
            bed_check_taken(&hybrid);
            assert_true(hybrid.measured_arena_bytes <= hybrid.planned_taken_bytes);
            if (!mode) lazy = hybrid;
            else {
                assert_int_equal(hybrid.taken_bytes, lazy.taken_bytes);
                assert_true(hybrid.forward_count <= lazy.forward_count && hybrid.planned_cost <= lazy.planned_cost);
                assert_int_equal(hybrid.backward_count, lazy.backward_count);
                assert_int_equal(hybrid.spared_count, lazy.recompute_count - hybrid.recompute_count);
                hybrid.table_bytes = lazy.table_bytes;
                if (shares == SHARE_BOUND) assert_memory_equal(&hybrid, &lazy, sizeof lazy);
                runs++;
                less += hybrid.spared_bytes > 0;
                spared += hybrid.spared_count;
                recomputes += lazy.recompute_count;
                lower += hybrid.measured_peak_bytes < lazy.measured_peak_bytes;
            }
            bed_close(&h.b);
        }
        tl_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld runs, %ld with fewer bytes than the bounds; %ld of %ld forwards again spared, %ld lower peaks\n", runs, less, spared,
           recomputes, lower);
    assert_true(runs > rounds / 2 && less > runs / 3 && spared > recomputes / 50 && lower > runs / 20);
}

// -- online, inference, mixed with other options --

static void every_mode_gives_readers_what_was_reported(void **state) {
    static const tl_mode modes[] = { TL_MODE_EAGER, TL_MODE_LAZY, TL_MODE_HYBRID };
    static const tl_memory memories[] = { TL_MEMORY_STANDARD, TL_MEMORY_POOLED, TL_MEMORY_CACHED, TL_MEMORY_MINIMAL_PEAK };
    static hybrid_bed h;
    tl_random random = { 8 };
    long round, rounds = scaled(60), runs = 0;
    (void)state;
    for (round = 0; round < rounds; round++) {
        tl_graph graph;
        uint64_t arena, expected;
        int mode, memory;
        if (random_graph(NULL, &random, 12, &graph)) fail_msg("%s", "no graph");
        make_dynamic(&random, &graph, 50);
        expected = hybrid_keep_all(&graph, (uint64_t)round, SHARE_RANDOM, 1, &arena);
        for (mode = 0; mode < 3; mode++)
            for (memory = 0; memory < 4; memory++) {
                if (!mode && memory == 3) continue;     // needs a plan
                hybrid_open(&h, &graph, (int)(round % BACKEND_KINDS), (uint64_t)round, 4, SHARE_RANDOM);
                h.strategy.mode = modes[mode];
                h.strategy.memory = memories[memory];
                h.strategy.gradient.checkpoint_interval = round % 2 ? 2 : 0;
                h.b.desc.budget_bytes = round % 3 && !h.strategy.gradient.checkpoint_interval ? arena : 0;
                h.b.desc.codec = TL_CODEC_NONE;
                if (bed_init(&h.b)) {
                    assert_int_equal(h.b.env.error.code, TL_ERROR_INFEASIBLE);
                } else {
                    if (hybrid_step(&h) != expected) fail_msg("round %ld: mode %d, memory %d", round, mode, memory);
                    if (mode < 2 || memory % 3 == 0) assert_true(mode == 2 || !bed_report(&h.b).spared_bytes);
                    runs++;
                }
                bed_close(&h.b);
            }
        tl_free_graph(NULL, &graph);
    }
    printf("%ld runs\n", runs);
    assert_true(runs > 8 * rounds);
}

// Where memory runs out inside a pass the rest stays as it was planned.
typedef struct starving { int32_t left; } starving;
static void *starve(void *user, size_t bytes) { return ((starving *)user)->left-- > 0 ? malloc(bytes ? bytes : 1) : NULL; }
static void starve_release(void *user, void *at) { (void)user; free(at); }

static void without_memory_in_a_pass_the_plan_holds(void **state) {
    static hybrid_bed h;
    tl_graph graph = dynamic_chain();
    uint64_t arena, expected = hybrid_keep_all(&graph, 7, SHARE_HALF, 1, &arena);
    int32_t left, spared = 0, kept = 0;
    (void)state;
    for (left = 0; left < 80; left++) {
        starving s = { INT32_MAX };
        tl_run_report report;
        hybrid_open(&h, &graph, 0, 7, 8, SHARE_HALF);
        h.b.env.alloc = starve;
        h.b.env.release = starve_release;
        h.b.env.user = &s;
        h.b.env.log = NULL;
        h.b.desc.budget_bytes = 600;
        bed_must_init(&h.b);
        s.left = left;
        assert_int_equal(hybrid_step(&h), expected);
        report = bed_report(&h.b);
        assert_int_equal(report.spared_bytes, 100);
        assert_true(h.b.env.error.code != TL_ERROR_NO_MEMORY);
        spared += report.spared_count > 0;
        kept += report.spared_count == 0;
        bed_close(&h.b);
    }
    printf("%d spared, %d kept\n", (int)spared, (int)kept);
    assert_true(spared > 0 && kept > 5);
    tl_free_graph(NULL, &graph);
}

// The plan of a run is the steps that the last pass took, valid in the graph of the run.
static void the_plan_of_a_pass_is_valid_for_the_bytes_that_were_reported(void **state) {
    static hybrid_bed h;
    tl_graph graph = dynamic_chain();
    tl_simulate_desc simulate;
    tl_report replay;
    tl_plan plan;
    int32_t first, k, forwards = 0;
    (void)state;
    hybrid_open(&h, &graph, 0, 7, 8, SHARE_HALF);
    h.b.desc.budget_bytes = 600;
    bed_must_init(&h.b);
    tl_find_run_plan(h.b.run, &plan);
    first = plan.step_count;
    assert_int_equal(tl_find_run_graph(h.b.run)->outputs[6].bytes, 200);
    (void)hybrid_step(&h);
    tl_find_run_plan(h.b.run, &plan);
    assert_true(plan.step_count < first);
    assert_int_equal(tl_find_run_graph(h.b.run)->outputs[6].bytes, 100);
    assert_int_equal(graph.outputs[6].bytes, 200);
    memset(&simulate, 0, sizeof simulate);
    simulate.graph = tl_find_run_graph(h.b.run);
    simulate.plan = &plan;
    if (tl_simulate_plan(&h.b.env, &simulate, &replay)) fail_msg("%s", h.b.env.error.text);
    assert_int_equal(replay.forward_count, bed_report(&h.b).forward_count);
    assert_int_equal(replay.cost, plan.cost);
    assert_true(replay.peak_bytes <= plan.peak_bytes && replay.arena_bytes <= plan.arena_bytes);
    for (k = 0; k < plan.step_count; k++) forwards += tl_find_step(&plan, k).kind == TL_STEP_FORWARD;
    assert_int_equal(forwards, bed_report(&h.b).forward_count);
    bed_close(&h.b);
    tl_free_graph(NULL, &graph);
}

// -- wrong reports --

static void a_report_above_the_bound_is_refused_and_the_run_goes_on(void **state) {
    static hybrid_bed h;
    tl_graph graph = dynamic_chain();
    uint64_t arena, expected = hybrid_keep_all(&graph, 7, SHARE_HALF, 1, &arena);
    int mode, ignores;
    (void)state;
    for (mode = 0; mode < 3; mode++)
        for (ignores = 0; ignores < 2; ignores++) {
            hybrid_open(&h, &graph, BACKEND_CHECKED, 7, 8, SHARE_HALF);
            h.strategy.mode = (tl_mode)mode;
            h.b.desc.budget_bytes = 600;
            bed_must_init(&h.b);
            h.r.excess = 1;
            h.r.ignores = ignores;
            assert_int_equal(tl_run_plan(h.b.run), TL_ERROR_INVALID_ARG);
            assert_string_equal(h.b.env.error.text, "tl_report_bytes: bytes: 201 are more than the 200 that are its bound: output of node n6");
            assert_true(h.b.env.error.values[0] == 201 && h.b.env.error.values[1] == 200);
            h.r.excess = UINT64_MAX - 200;
            assert_int_equal(tl_run_plan(h.b.run), TL_ERROR_INVALID_ARG);
            h.r.excess = 0;
            memset(h.r.gradients, 0, sizeof h.r.gradients);
            assert_int_equal(hybrid_step(&h), expected);    // the same training step again
            bed_close(&h.b);
        }
    // Where the node runs again the report must be the same.
    for (ignores = 0; ignores < 2; ignores++) {
        tl_plan plan;
        uint8_t keep[13];
        memset(keep, 1, sizeof keep);
        keep[6] = 0;
        if (tl_plan_kept_set(NULL, &graph, keep, &plan)) fail_msg("%s", "no plan");
        hybrid_open(&h, &graph, 0, 7, 8, SHARE_HALF);
        h.strategy.mode = TL_MODE_LAZY;
        h.b.desc.plan = &plan;
        bed_must_init(&h.b);
        h.r.changes_again = 1;
        h.r.ignores = ignores;
        assert_int_equal(tl_run_plan(h.b.run), TL_ERROR_INVALID_ARG);
        assert_string_equal(h.b.env.error.text, "tl_report_bytes: bytes: 101, but 100 where it ran before in this pass: output of node n6");
        h.r.changes_again = 0;
        memset(h.r.gradients, 0, sizeof h.r.gradients);
        assert_int_equal(hybrid_step(&h), expected);
        bed_close(&h.b);
        tl_free_plan(NULL, &plan);
    }
    tl_free_graph(NULL, &graph);
}

// Callers that carry out the steps themselves report between tl_next_step and tl_finish_step.
static void a_caller_reports_before_it_finishes_the_step(void **state) {
    static hybrid_bed h;
    tl_graph graph = dynamic_chain();
    tl_run_step step;
    int32_t done = 0, seen = 0;
    (void)state;
    hybrid_open(&h, &graph, 0, 7, 8, SHARE_HALF);
    bed_must_init(&h.b);
    assert_int_equal(tl_report_bytes(h.b.run, 0, 1), TL_ERROR_INVALID_ARG);     // no pass
    assert_int_equal(tl_start_pass(h.b.run, 0), TL_OK);
    assert_int_equal(tl_report_bytes(h.b.run, 0, 1), TL_ERROR_INVALID_ARG);     // no step
    while (!tl_next_step(h.b.run, &step, &done) && !done) {
        if (!step.is_compute) continue;
        if (step.call.node != 6 || step.call.kind == TL_STEP_BACKWARD) {
            assert_int_equal(tl_report_bytes(h.b.run, 0, 1), TL_ERROR_INVALID_ARG);
            assert_string_equal(h.b.env.error.text, "tl_report_bytes: run: no forward of a dynamic node is being carried out");
            if (step.call.node == 7 && step.call.kind == TL_STEP_FORWARD) assert_int_equal(step.call.inputs[0].range.bytes, 60);
            if (step.call.node == 6) assert_int_equal(step.call.output_grads[0].range.bytes, 60);
            if (step.call.node == 7 && step.call.kind == TL_STEP_BACKWARD) assert_int_equal(step.call.input_grads[0].range.bytes, 60);
            assert_int_equal(tl_finish_step(h.b.run, &step), TL_OK);
            continue;
        }
        seen++;
        assert_int_equal(tl_report_bytes(h.b.run, 1, 1), TL_ERROR_INVALID_ARG);
        assert_string_equal(h.b.env.error.text, "tl_report_bytes: output: the node makes no such one");
        assert_int_equal(tl_report_bytes(h.b.run, -1, 1), TL_ERROR_INVALID_ARG);
        assert_int_equal(tl_report_bytes(h.b.run, 0, 201), TL_ERROR_INVALID_ARG);
        assert_int_equal(tl_finish_step(h.b.run, &step), TL_ERROR_INVALID_ARG);
        assert_non_null(strstr(h.b.env.error.text, "201 are more than the 200"));
        assert_int_equal(tl_next_step(h.b.run, &step, &done), TL_ERROR_INVALID_ARG);     // it was not carried out
        assert_int_equal(tl_report_bytes(h.b.run, 0, 80), TL_OK);
        assert_int_equal(tl_report_bytes(h.b.run, 0, 60), TL_OK);       // the last one counts
        assert_int_equal(tl_finish_step(h.b.run, &step), TL_OK);
        assert_int_equal(tl_report_bytes(h.b.run, 0, 60), TL_ERROR_INVALID_ARG);    // too late
    }
    assert_true(done && seen == 1);
    assert_int_equal(bed_report(&h.b).spared_bytes, 140);
    bed_close(&h.b);
    tl_free_graph(NULL, &graph);
}

// A backend that cannot shorten keeps the bounds, and one that fails gives the pass up.
static void shortening_is_the_choice_of_the_backend(void **state) {
    static hybrid_bed h;
    tl_graph graph = dynamic_chain();
    uint64_t arena, expected = hybrid_keep_all(&graph, 7, SHARE_HALF, 1, &arena);
    (void)state;
    hybrid_open(&h, &graph, 0, 7, 8, SHARE_HALF);
    h.b.backend.shorten = NULL;
    bed_must_init(&h.b);
    assert_int_equal(hybrid_step(&h), expected);
    assert_int_equal(bed_report(&h.b).spared_bytes, 0);
    bed_close(&h.b);
    hybrid_open(&h, &graph, 0, 7, 8, SHARE_HALF);
    h.b.spy.fail_function = SPY_SHORTEN;
    bed_must_init(&h.b);
    assert_int_equal(tl_run_plan(h.b.run), TL_ERROR_BACKEND);
    memset(h.r.gradients, 0, sizeof h.r.gradients);
    assert_int_equal(hybrid_step(&h), expected);
    bed_close(&h.b);
    tl_free_graph(NULL, &graph);
}

// -- saving what was reported --

typedef struct kept_bytes { unsigned char bytes[1 << 16]; size_t count; } kept_bytes;

static tl_result keep_saved(void *user, const char *text, size_t length) {
    kept_bytes *k = (kept_bytes *)user;
    assert_true(k->count + length <= sizeof k->bytes);
    memcpy(k->bytes + k->count, text, length);
    k->count += length;
    return TL_OK;
}

static void open_lazy(hybrid_bed *h, const tl_graph *graph, const tl_plan *plan, int kind, uint64_t seed) {
    hybrid_open(h, graph, kind, seed, 4, SHARE_RANDOM);
    h->b.desc.strategy = NULL;
    h->b.desc.plan = plan;
    bed_must_init(&h->b);
}

// Carry out so many steps of a pass; 1 = the pass has ended.
static int32_t take_steps(hybrid_bed *h, int32_t count) {
    int32_t done = 0;
    while (!done && count-- > 0) {
        tl_run_step step;
        tl_result result;
        do result = tl_next_step(h->b.run, &step, &done); while (result == TL_NOT_READY);
        if (result) fail_msg("%s", h->b.env.error.text);
        if (!done && step.is_compute && tl_run_step_kernel(h->b.run, &step)) fail_msg("%s", h->b.env.error.text);
    }
    return done;
}

// A pass that goes on in another run goes on with the bytes that were reported before: kernels see these, and so does who asks.
static void what_was_reported_goes_with_a_saved_pass(void **state) {
    static hybrid_bed a, b;
    static kept_bytes s;
    tl_random random = { 71 };
    long round, saves = 0, reported = 0;
    (void)state;
    for (round = 0; round < scaled(60); round++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_plan plan;
        int32_t at, i;
        if (random_graph(&env, &random, 10, &graph)) fail_msg("%s", env.error.text);
        for (i = 0; i < graph.node_count; i++) {     // without one the graph has none that is dynamic
            int may = !graph.nodes[i].is_input && !graph.nodes[i].takes_blocks && graph.nodes[i].inplace < 0;
            ((tl_node *)graph.nodes)[i].dynamic = (uint8_t)(may && random_chance(&random, 50));
        }
        if (tl_check_graph(&env, &graph) || tl_plan_keep_all(&env, &graph, 0, &plan)) { tl_free_graph(&env, &graph); continue; }
        for (at = 0; at < plan.step_count; at++) {
            tl_sink sink;
            int kind = (int)(round % BACKEND_KINDS);
            open_lazy(&a, &graph, &plan, kind, (uint64_t)round);
            if (hybrid_load(a.b.run, 0, &a) || tl_start_pass(a.b.run, 0)) fail_msg("%s", a.b.env.error.text);
            (void)take_steps(&a, at);
            s.count = 0;
            sink.write = keep_saved;
            sink.user = &s;
            if (tl_save_run(a.b.run, sink)) { bed_close(&a.b); continue; }
            open_lazy(&b, &graph, &plan, (kind + 1) % BACKEND_KINDS, (uint64_t)round);
            b.r = a.r;
            if (tl_load_run(b.b.run, s.bytes, s.count)) fail_msg("%s", b.b.env.error.text);
            for (i = 0; i < graph.tensor_count; i++) {
                tl_tensor tensor = { graph.outputs[i].node, graph.outputs[i].output };
                uint64_t one = 0, other = 0;
                assert_int_equal(tl_find_tensor_bytes(a.b.run, tensor, &one), TL_OK);
                assert_int_equal(tl_find_tensor_bytes(b.b.run, tensor, &other), TL_OK);
                assert_int_equal(one, other);
                reported += one < graph.outputs[i].bytes;
            }
            (void)take_steps(&a, INT32_MAX);
            (void)take_steps(&b, INT32_MAX);
            assert_int_equal(hybrid_outcome(&a), hybrid_outcome(&b));
            bed_close(&a.b);
            bed_close(&b.b);
            saves++;
        }
        tl_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    printf("%ld saves, %ld tensors smaller than their bounds\n", saves, reported);
    assert_true(is_thinned() || (saves > 50 && reported > 50));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_reported_is_used_for_forwards_that_need_not_run_again),
        cmocka_unit_test(what_was_run_again_is_kept),
        cmocka_unit_test(outcomes_stay_and_nothing_takes_more_than_was_planned),
        cmocka_unit_test(every_mode_gives_readers_what_was_reported),
        cmocka_unit_test(without_memory_in_a_pass_the_plan_holds),
        cmocka_unit_test(the_plan_of_a_pass_is_valid_for_the_bytes_that_were_reported),
        cmocka_unit_test(a_report_above_the_bound_is_refused_and_the_run_goes_on),
        cmocka_unit_test(a_caller_reports_before_it_finishes_the_step),
        cmocka_unit_test(shortening_is_the_choice_of_the_backend),
        cmocka_unit_test(what_was_reported_goes_with_a_saved_pass),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
