// Conversions of formats that a run carries out on a device: the bits are those of tl_compress_bytes, forward and
// backward are recorded without a kernel and without a wait, and the peak is the one that was planned.
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

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conversions_run_on_the_device),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, close_device);
}
