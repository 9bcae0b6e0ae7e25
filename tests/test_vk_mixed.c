// Conversions of formats that a run carries out on a device: the bits are those of tl_compress_bytes, forward and
// backward are recorded without a kernel and without a wait, and the peak is the one that was planned. And a loss scaler of
// weights that the graph owns, for which the run reads gradients in the pass.
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
#include "support/vk_support.h"
#include "support/vk_shared.h"

enum { ELEMENTS = 5000 };

static shared_device g;

static void ok(tl_result result) { shared_ok(&g, result); }

static int has_device(const char *test) {
    if (!vkt_has_vulkan(test)) return 0;
    shared_open(&g);
    return 1;
}

static int close_device(void **state) {
    (void)state;
    return g.is_open ? shared_close(&g) : 0;
}

#define NEED_DEVICE() do { if (!has_device(__func__)) skip(); } while (0)

// x in f16 and back, in bf16 and back, from f16 in bf16 and the other way round.
static const char ladder[] =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=20000 needs=none in=-\n"
    "node 1 a convert fwd=1 bwd=1 keep out=10000 needs=none in=0\n"
    "node 2 b convert fwd=1 bwd=1 keep out=20000 needs=none in=1\n"
    "node 3 c convert fwd=1 bwd=1 keep out=10000 needs=none in=2\n"
    "node 4 d convert fwd=1 bwd=1 fwork=20000 bwork=20000 keep out=10000 needs=none in=3\n"
    "node 5 e convert fwd=1 bwd=1 keep out=20000 needs=none in=4\n";
static const uint8_t ladder_formats[] = { TL_FORMAT_F32, TL_FORMAT_F16, TL_FORMAT_F32, TL_FORMAT_BF16, TL_FORMAT_F16,
                                          TL_FORMAT_F32 };

static void expect_tensor(tl_run *run, int32_t id, const void *expected, uint64_t bytes) {
    static unsigned char got[4 * ELEMENTS];
    tl_tensor tensor;
    tensor.node = id;
    tensor.output = 0;
    ok(tl_read_tensor(run, tensor, got, bytes));
    if (memcmp(got, expected, (size_t)bytes)) fail_msg("tensor %d", (int)id);
}

static void expect_ladder(tl_run *run, const uint32_t *x) {
    static uint16_t half[ELEMENTS], other[ELEMENTS];
    static float wide[ELEMENTS];
    tl_compress_bytes(TL_CODEC_F16, half, x, sizeof wide);
    expect_tensor(run, 1, half, sizeof half);
    tl_expand_bytes(TL_CODEC_F16, wide, half, sizeof wide);
    expect_tensor(run, 2, wide, sizeof wide);
    tl_compress_bytes(TL_CODEC_BF16, other, wide, sizeof wide);
    expect_tensor(run, 3, other, sizeof other);
    tl_expand_bytes(TL_CODEC_BF16, wide, other, sizeof wide);
    tl_compress_bytes(TL_CODEC_F16, half, wide, sizeof wide);
    expect_tensor(run, 4, half, sizeof half);
    tl_expand_bytes(TL_CODEC_F16, wide, half, sizeof wide);
    expect_tensor(run, 5, wide, sizeof wide);
}

static void conversions_run_on_the_device(void **state) {
    static uint32_t x[ELEMENTS];
    tl_tensor input = { 0, 0 };
    tl_graph graph;
    int inference, i;
    (void)state;
    NEED_DEVICE();
    ok(tl_parse_graph(&g.env, ladder, strlen(ladder), &graph));
    for (i = 0; i < ELEMENTS; i++) x[i] = (uint32_t)tl_mix_u64(8, (uint64_t)i);  // any bits
    for (inference = 0; inference < 2; inference++) {
        tl_run_desc desc;
        tl_run_report report;
        tl_loss_scaler scaler;
        tl_run *run;
        memset(&desc, 0, sizeof desc);
        memset(&scaler, 0, sizeof scaler);
        desc.graph = &graph;
        desc.backend = &g.backend;
        desc.formats = ladder_formats;
        desc.kernel_precisions = 1u << TL_PRECISION_MIXED;
        desc.inference = inference;
        desc.loss_scaler = &scaler;
        ok(tl_init_run(&g.env, &desc, &run));
        ok(tl_write_tensor(run, input, x, sizeof x));
        ok(tl_run_plan(run));
        expect_ladder(run, x);
        tl_measure_run(run, &report);
        assert_int_equal(report.convert_count, inference ? 5 : 10);
        assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
        tl_free_run(run);
    }
    tl_free_graph(&g.env, &graph);
}

// -- a loss scaler of states: the device fills gradients, the run reads them before the first update --

static const char weights[] =
    "tlg 2\n"
    "state 0 u copy w=20000\n"
    "state 1 v copy w=20000\n"
    "node 2 x input fwd=0 bwd=0 out=20000 needs=none in=-\n"
    "node 3 a fill fwd=1 bwd=1 out=20000 needs=none in=2,0\n"
    "node 4 b fill fwd=1 bwd=1 out=20000 needs=none in=3,1\n"
    "end 5\n";

typedef struct filled { uint32_t words[2]; int updates; float scale; } filled;

static tl_result fill_output(const tl_kernel_call *call, void *user) {
    (void)user;
    return g.backend.fill(g.backend.self, call->outputs[0].range, 0);
}

static tl_result fill_gradient(const tl_kernel_call *call, void *user) {
    return g.backend.fill(g.backend.self, call->input_grads[1].range, ((const filled *)user)->words[call->node - 3]);
}

static tl_result copy_gradient(const tl_kernel_call *call, void *user) {
    filled *f = (filled *)user;
    f->updates++;
    f->scale = call->loss_scale;
    return g.backend.copy(g.backend.self, call->outputs[0].range, call->output_grads[0].range);
}

static void an_overflow_on_the_device_skips_all_updates(void **state) {
    static const uint32_t one = 0x3F800000u, infinity = 0xFF800000u, nan = 0x7FC00001u, two = 0x40000000u;
    const uint32_t gradients[5][2] = { { one, two }, { infinity, one }, { two, nan }, { one, infinity }, { two, one } };
    const int applies[5] = { 1, 0, 0, 0, 1 };
    static uint32_t expected[2][ELEMENTS];
    filled f;
    tl_kernel kernels[2];
    tl_graph graph;
    tl_run_desc desc;
    tl_loss_scaler scaler;
    tl_run *run;
    int step, layer, i, updates = 0;
    float scale = 1024.0f;
    (void)state;
    NEED_DEVICE();
    ok(tl_parse_graph(&g.env, weights, strlen(weights), &graph));
    memset(&f, 0, sizeof f);
    memset(&desc, 0, sizeof desc);
    memset(&scaler, 0, sizeof scaler);
    memset(kernels, 0, sizeof kernels);
    kernels[0].op = "fill";
    kernels[0].forward = fill_output;
    kernels[0].backward = fill_gradient;
    kernels[1].op = "copy";
    kernels[1].backward = copy_gradient;
    kernels[0].user = kernels[1].user = &f;
    desc.graph = &graph;
    desc.backend = &g.backend;
    desc.kernels = kernels;
    desc.kernel_count = 2;
    desc.loss_scaler = &scaler;
    scaler.scale = scale;
    ok(tl_init_run(&g.env, &desc, &run));
    memset(expected, 0, sizeof expected);
    for (step = 0; step < 5; step++) {
        tl_run_report report;
        memcpy(f.words, gradients[step], sizeof f.words);
        f.scale = 0.0f;
        ok(tl_run_plan(run));
        updates += 2 * applies[step];
        assert_int_equal(f.updates, updates);
        assert_true(f.scale == (applies[step] ? scale : 0.0f));
        if (!applies[step]) scale *= 0.5f;
        assert_true(scaler.scale == scale);
        for (layer = 0; layer < 2; layer++) {
            for (i = 0; i < ELEMENTS && applies[step]; i++) expected[layer][i] = gradients[step][layer];
            expect_tensor(run, layer, expected[layer], sizeof expected[layer]);
        }
        tl_measure_run(run, &report);
        assert_int_equal(report.update_count, 2 * applies[step]);
        assert_int_equal(report.measured_peak_bytes, report.planned_peak_bytes);
    }
    tl_free_run(run);
    tl_free_graph(&g.env, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_overflow_on_the_device_skips_all_updates),
        cmocka_unit_test(conversions_run_on_the_device),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, close_device);
}
