// [12] RUN on Vulkan: random graphs and strategies, compiled by the run itself, with the kernels of examples/vk_nn.h. What
// was planned is what the backend and an interposer below it count, and results and gradients are, bit for bit, those of a
// run that keeps everything in the same formats.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#define TL_VK_BACKEND_IMPLEMENTATION
#include "../tl_vk_backend.h"
#include "support/support.h"
#include "support/vk_support.h"
#include "support/vk_counted.h"
#include "support/compiled_cases.h"
#include "vk_nn.h"

enum {
    WIDTH = 16,                          // floats of a row
    MOST_FLOATS = 8 * WIDTH * 48,        // of a tensor
    WEIGHT_FLOATS = 320,                 // of a node, a matrix or scales and at WIDTH * WIDTH the bias: all ranges begin where a
                                         // descriptor may
    SAVED_FLOATS = 64                    // likewise, of what kernels saved
};

static const case_op ops[] = {
    { "linear", "in", 1, 0, 0 }, { "norm", "in", 1, 0, 8 }, { "gelu", "in", 1, 1, 0 }, { "dropout", "none", 1, 1, 0 },
    { "add", "none", 2, 1, 0 }, { "fold", "none", 1, 0, 0 },
};
enum { OP_COUNT = (int)(sizeof ops / sizeof ops[0]) };

// Operands of a call, expanded: inputs, output, their gradients.
typedef enum stage { STAGE_IN, STAGE_IN2, STAGE_OUT, STAGE_DOUT, STAGE_DIN, STAGE_DIN2, STAGE_COUNT } stage;

// What is summed over the calls of a run: gradients of outputs and of weights, and what kernels saved for backward.
typedef enum sum { SUM_GRADIENTS, SUM_WEIGHTS, SUM_SAVED, SUM_COUNT } sum;

static const uint64_t sum_floats[SUM_COUNT] = { MOST_FLOATS, WEIGHT_FLOATS, SAVED_FLOATS };

// -- the device, opened once --

static struct {
    vkt         v;
    int         is_open;
    tl_env      env;
    tl_backend  backend;
    vk_nn       nn;
    tl_range    stages[STAGE_COUNT];
    tl_range    weights, sums[SUM_COUNT];       // by node
    float      *seen[CASE_SIDES][SUM_COUNT];    // the sums after a run
    tl_kernel   kernels[OP_COUNT];
    uint64_t    base_bytes;                     // of VkDeviceMemory, without the run
    long        calls, blocks, arenas;
} g;

static void ok(tl_result result) {
    if (result) fail_msg("%s: %s", tl_name_result(result), g.env.error.text);
}

static tl_range add_range(uint64_t floats) {
    tl_range range;
    memset(&range, 0, sizeof range);
    range.bytes = 4 * floats;
    ok(g.backend.add_block(g.backend.self, TL_TIER_DEVICE, range.bytes, &range.block));
    ok(g.backend.claim(g.backend.self, range));
    return range;
}

static void free_range(tl_range range) {
    ok(g.backend.release(g.backend.self, range));
    ok(g.backend.free_block(g.backend.self, range.block));
}

static tl_range part_of(tl_range whole, uint64_t first, uint64_t floats) {
    whole.offset += 4 * first;
    whole.bytes = 4 * floats;
    return whole;
}

static void write_weights(void) {
    float *floats;
    int i;
    ok(g.backend.map(g.backend.self, g.weights, TL_MAP_WRITE, (void **)&floats));
    for (i = 0; i < CASE_NODES * WEIGHT_FLOATS; i++) floats[i] = (float)(tl_mix_u64(3, (uint64_t)i) % 1001) / 2000.0f - 0.2f;
    ok(g.backend.unmap(g.backend.self, g.weights, TL_MAP_WRITE, floats));
}

static tl_result forward(const tl_kernel_call *call, void *user);
static tl_result backward(const tl_kernel_call *call, void *user);

static int has_device(const char *test) {
    vkt_desc device;
    tl_vk_backend_desc backend;
    int i, k;
    if (!vkt_has_vulkan(test)) return 0;
    if (g.is_open) return 1;
    memset(&device, 0, sizeof device);
    memset(&backend, 0, sizeof backend);
    count_start(vkt_loader());
    device.get_instance_proc = count_instance_proc;
    vkt_open(&device, &g.v);
    backend.device = g.v.device;
    ok(tl_vk_init_backend(&g.env, &backend, &g.backend));
    ok(vk_nn_init(&g.backend, &g.nn));
    for (i = 0; i < STAGE_COUNT; i++) g.stages[i] = add_range(MOST_FLOATS);
    g.weights = add_range(CASE_NODES * WEIGHT_FLOATS);
    write_weights();
    for (i = 0; i < SUM_COUNT; i++) {
        g.sums[i] = add_range(CASE_NODES * sum_floats[i]);
        for (k = 0; k < CASE_SIDES; k++) assert_non_null(g.seen[k][i] = (float *)malloc((size_t)g.sums[i].bytes));
    }
    for (i = 0; i < OP_COUNT; i++) {
        g.kernels[i].op = ops[i].op;
        g.kernels[i].forward = forward;
        g.kernels[i].backward = backward;
    }
    g.is_open = 1;
    return 1;
}

static void finish(void) {
    tl_ticket ticket;
    ok(g.backend.submit(g.backend.self, &ticket));
    ok(g.backend.wait(g.backend.self, ticket));
}

static int close_device(void **state) {
    int i, k;
    (void)state;
    if (!g.is_open) return 0;
    for (i = 0; i < STAGE_COUNT; i++) free_range(g.stages[i]);
    free_range(g.weights);
    for (i = 0; i < SUM_COUNT; i++) {
        free_range(g.sums[i]);
        for (k = 0; k < CASE_SIDES; k++) free(g.seen[k][i]);
    }
    finish();
    vk_nn_free(&g.nn);
    ok(tl_vk_free_backend(&g.env, &g.backend));
    vkt_close(&g.v);
    return vkt_messages(&g.v);
}

// -- kernels: f32, between conversions of what has 16 bits --

static tl_codec codec_of(tl_format format) { return format == TL_FORMAT_F16 ? TL_CODEC_F16 : TL_CODEC_BF16; }

// The operand as the kernel sees it, with the values that it has where the kernel reads them.
static tl_result widen(const tl_operand *operand, stage at, int is_read, tl_operand *wide) {
    *wide = *operand;
    if (operand->format == TL_FORMAT_F32 || !operand->range.bytes) return TL_OK;
    wide->format = TL_FORMAT_F32;
    wide->range = part_of(g.stages[at], 0, operand->range.bytes / 2);
    return is_read ? g.backend.expand(g.backend.self, codec_of(operand->format), wide->range, operand->range) : TL_OK;
}

static tl_result narrow(const tl_operand *operand, const tl_operand *wide) {
    if (operand->format == TL_FORMAT_F32 || !operand->range.bytes) return TL_OK;
    return g.backend.compress(g.backend.self, codec_of(operand->format), operand->range, wide->range);
}

// A call with f32 operands, and the net that the kernels of vk_nn.h ask.
typedef struct wide_call {
    tl_kernel_call call;
    tl_operand     inputs[2], output, output_grad, input_grads[2];
    int32_t        input_count;
    vk_nn_node     nodes[2 * CASE_NODES];
    vk_nn_net      net;
} wide_call;

static tl_result widen_call(const tl_kernel_call *call, wide_call *w) {
    int32_t number = case_number(call), i;
    uint64_t at = (uint64_t)number * WEIGHT_FLOATS;
    int is_norm = !strcmp(tl_name_op(call->graph, call->node), "norm");
    uint64_t scales = is_norm ? WIDTH : WIDTH * WIDTH;
    int is_backward = call->kind == TL_STEP_BACKWARD;
    vk_nn_node *node = &w->nodes[call->node];
    tl_result result = TL_OK;
    memset(w, 0, sizeof *w);
    assert_true(call->node < 2 * CASE_NODES);
    node->in_width = node->width = WIDTH;
    node->weight = part_of(g.weights, at, scales);
    node->bias = part_of(g.weights, at + WIDTH * WIDTH, WIDTH);
    node->dweight = part_of(g.sums[SUM_WEIGHTS], at, scales);
    node->dbias = part_of(g.sums[SUM_WEIGHTS], at + WIDTH * WIDTH, WIDTH);
    w->net.nn = &g.nn;
    w->net.nodes = w->nodes;
    w->net.B = 1;
    w->net.T = (uint32_t)(call->total / WIDTH);
    w->net.dropout = 0.25f;
    w->call = *call;
    w->call.seed = tl_mix_u64((uint64_t)number, (uint64_t)call->micro_batch);   // whatever the graph of the run
    w->call.inputs = w->inputs;
    w->call.outputs = &w->output;
    w->call.output_grads = &w->output_grad;
    w->call.input_grads = w->input_grads;
    w->input_count = call->graph->nodes[call->node].input_count;
    for (i = 0; i < w->input_count && !result; i++)
        result = widen(&call->inputs[i], i ? STAGE_IN2 : STAGE_IN, 1, &w->inputs[i]);
    if (!result) result = widen(&call->outputs[0], STAGE_OUT, is_backward, &w->output);
    if (!result && is_backward) result = widen(&call->output_grads[0], STAGE_DOUT, 1, &w->output_grad);
    for (i = 0; i < w->input_count && is_backward && !result; i++)
        result = widen(&call->input_grads[i], i ? STAGE_DIN2 : STAGE_DIN, 1, &w->input_grads[i]);
    return result;
}

static tl_result run_fold(const tl_kernel_call *call, void *user) {
    (void)user;
    if (call->outputs_ready) return TL_OK;
    return g.backend.copy(g.backend.self, call->outputs[0].range, call->inputs[0].range);
}

static tl_result run_fold_backward(const tl_kernel_call *call, void *user) {
    (void)user;
    return vk_nn_add_backward(&g.nn, call->input_grads[0].range, vk_nn_no_range(), call->output_grads[0].range,
                              (uint32_t)call->count);
}

static tl_kernel find_kernel(const char *op) {
    static const tl_kernel fold = { "fold", run_fold, run_fold_backward, NULL };
    tl_kernel kernels[VK_NN_OP_COUNT];
    int i;
    vk_nn_set_kernels(kernels, NULL);
    for (i = 0; i < VK_NN_OP_COUNT; i++)
        if (!strcmp(kernels[i].op, op)) return kernels[i];
    return fold;
}

static int saves_by_itself(const char *op) { return !strcmp(op, "norm"); }

static tl_result spoil_scratch(const tl_kernel_call *call) {
    g.calls++;
    g.blocks += call->count < call->total;
    assert_true(call->first + call->count <= call->total && call->total <= MOST_FLOATS);
    return call->scratch.range.bytes ? g.backend.fill(g.backend.self, call->scratch.range, 0x7FC00000u) : TL_OK;
}

// What other nodes save is the begin of their input.
static tl_result forward(const tl_kernel_call *call, void *user) {
    const char *op = tl_name_op(call->graph, call->node);
    wide_call w;
    tl_result result = spoil_scratch(call);
    (void)user;
    if (!result) result = widen_call(call, &w);
    if (!result) result = find_kernel(op).forward(&w.call, &w.net);
    if (!result && call->saved.range.bytes && !saves_by_itself(op))
        result = g.backend.copy(g.backend.self, call->saved.range, part_of(w.inputs[0].range, 0, call->saved.range.bytes / 4));
    return result || call->outputs_ready ? result : narrow(&call->outputs[0], &w.output);
}

static tl_result backward(const tl_kernel_call *call, void *user) {
    const char *op = tl_name_op(call->graph, call->node);
    uint64_t number = (uint64_t)case_number(call);
    wide_call w;
    int32_t i;
    tl_result result = spoil_scratch(call);
    (void)user;
    if (!result) result = widen_call(call, &w);
    if (!result) result = find_kernel(op).backward(&w.call, &w.net);
    for (i = 0; !result && i < w.input_count; i++) result = narrow(&call->input_grads[i], &w.input_grads[i]);
    if (!result)
        result = tl_vk_record_add(&g.backend, part_of(g.sums[SUM_GRADIENTS], number * MOST_FLOATS + call->first, call->count),
                                  w.output_grad.range);
    if (!result && call->saved.range.bytes && !saves_by_itself(op))
        result = tl_vk_record_add(&g.backend, part_of(g.sums[SUM_SAVED], number * SAVED_FLOATS, call->saved.range.bytes / 4),
                                  call->saved.range);
    return result;
}

// -- cases --

static void open_side(void *self, case_side side, uint64_t alignment, case_bed *bed) {
    int i;
    (void)self;
    (void)alignment;    // is the device's
    for (i = 0; i < SUM_COUNT; i++) ok(g.backend.fill(g.backend.self, g.sums[i], 0));
    finish();
    if (side == CASE_COMPILED) g.base_bytes = counted.peak_bytes = counted.bytes;
    bed->desc.backend = &g.backend;
    bed->desc.kernels = g.kernels;
    bed->desc.kernel_count = OP_COUNT;
    bed->desc.kernel_precisions = 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_MIXED;
    bed->desc.load = case_load;
}

// The driver gave what was planned when the run was made, and nothing since.
static void check_memory(void *self, const case_bed *bed) {
    tl_run_report report;
    (void)self;
    tl_measure_run(bed->run, &report);
    if (!report.planned_taken_bytes) return;    // every buffer is a block of its own
    assert_int_equal(report.taken_bytes, report.planned_taken_bytes);
    assert_int_equal(counted.bytes - g.base_bytes, report.planned_taken_bytes);
    assert_int_equal(counted.peak_bytes, counted.bytes);
    g.arenas++;
}

static void note_sums(void *self, case_side side) {
    int i;
    (void)self;
    for (i = 0; i < SUM_COUNT; i++) {
        void *mapped;
        ok(g.backend.map(g.backend.self, g.sums[i], TL_MAP_READ, &mapped));
        memcpy(g.seen[side][i], mapped, (size_t)g.sums[i].bytes);
        ok(g.backend.unmap(g.backend.self, g.sums[i], TL_MAP_READ, mapped));
    }
}

static void close_side(void *self, case_side side, case_bed *bed) {
    (void)self;
    (void)side;
    tl_free_run(bed->run);
    finish();
}

static void random_strategies_run_as_planned(void **state) {
    const case_machine machine = { ops, OP_COUNT, WIDTH, open_side, check_memory, note_sums, close_side, NULL };
    case_counts counts = { 0, 0, 0, 0, 0 };
    tl_random random = { 25 };
    long count = scaled(100), trained = 0, i;
    int k;
    (void)state;
    if (!has_device("random_strategies_run_as_planned")) skip();
    for (i = 0; i < count; i++) {
        tl_codec codec = case_run(&machine, &random, &counts);
        trained += !is_zero(g.seen[CASE_KEPT][SUM_WEIGHTS], (size_t)g.sums[SUM_WEIGHTS].bytes);
        for (k = 0; k < SUM_COUNT; k++)
            if (codec) case_assert_near(g.seen[CASE_COMPILED][k], g.seen[CASE_KEPT][k], (size_t)g.sums[k].bytes / 4, codec);
            else if (memcmp(g.seen[CASE_COMPILED][k], g.seen[CASE_KEPT][k], (size_t)g.sums[k].bytes))
                fail_msg("case %ld: other gradients (%d)", i, k);
        assert_int_equal(counted.bytes, g.base_bytes);
    }
    case_print(count, &counts);
    print_message("%ld trained, %ld in one arena, %ld calls, %ld of them for blocks\n", trained, g.arenas, g.calls, g.blocks);
    assert_true(2 * trained > count && 2 * g.arenas > count && counts.again > 0);
    if (count >= 100) assert_true(counts.fused > 20 && g.blocks > 200 && counts.narrow > 10 && counts.split > 10 && counts.compressed > 0);
    assert_int_equal(vkt_messages(&g.v), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_strategies_run_as_planned),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, close_device);
}
