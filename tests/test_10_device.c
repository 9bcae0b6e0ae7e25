// [10] BACKEND: tl_measure_device, on a CPU backend whose clock runs as a model says.
#define _POSIX_C_SOURCE 199309L

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

#include "support/support.h"

#include <time.h>

// A CPU backend whose functions take the time of a model: latency + bytes / rate.
typedef struct model {
    tl_backend inner;
    uint64_t now, host_block;
    uint64_t latency[3], rates[4];   // of device copies, out and in; the same and codecs
    uint64_t compute_rates[TL_PRECISION_COUNT];  // FLOP/s; 0 = unsupported
    int      outliers;               // 1 = every seventh call takes ten times as long
    int      cannot_wait, is_deaf, no_codecs, compute_fails;
    uint64_t largest_block;          // 0 = no limit
    uint64_t budgets[TL_TIER_COUNT]; // 0 = as the CPU says
    long     calls, fail_at;         // the call that fails; -1 = none
    tl_result code;
} model;

static model m;

static tl_result pass(uint64_t latency, uint64_t bytes, uint64_t rate) {
    uint64_t ns = latency + (rate ? bytes * UINT64_C(1000000000) / rate : 0);
    if (m.calls++ == m.fail_at) return m.code;
    m.now += m.outliers && m.calls % 7 == 0 ? 10 * ns : ns;
    return TL_OK;
}

static tl_result model_add_block(void *self, tl_tier tier, uint64_t bytes, uint64_t *block) {
    tl_result result = pass(0, 0, 0);
    *block = 0;
    if (!result && m.largest_block && bytes > m.largest_block) result = TL_ERROR_NO_MEMORY;
    if (!result) result = m.inner.add_block(self, tier, bytes, block);
    if (!result && tier == TL_TIER_HOST) m.host_block = *block;
    return result;
}

static tl_result model_claim(void *self, tl_range range) {
    tl_result result = pass(0, 0, 0);
    return result ? result : m.inner.claim(self, range);
}

static tl_result model_copy(void *self, tl_range to, tl_range from) {
    int out = to.block == m.host_block, in = from.block == m.host_block;
    tl_result result = pass(m.latency[out ? 1 : in ? 2 : 0], from.bytes, m.rates[out ? 1 : in ? 2 : 0]);
    return result ? result : m.inner.copy(self, to, from);
}

static tl_result model_compress(void *self, tl_codec codec, tl_range to, tl_range from) {
    tl_result result = pass(m.latency[0], from.bytes, m.rates[3] * (uint64_t)codec);
    return result ? result : m.inner.compress(self, codec, to, from);
}

static tl_result model_expand(void *self, tl_codec codec, tl_range to, tl_range from) {
    tl_result result = pass(m.latency[0], to.bytes, 2 * m.rates[3] * (uint64_t)codec);
    return result ? result : m.inner.expand(self, codec, to, from);
}

static tl_result model_fill(void *self, tl_range to, uint32_t word) {
    tl_result result = pass(0, 0, 0);
    return result ? result : m.inner.fill(self, to, word);
}

static tl_result model_submit(void *self, tl_ticket *ticket) {
    tl_result result = pass(0, 0, 0);
    return result ? result : m.inner.submit(self, ticket);
}

static tl_result model_wait(void *self, tl_ticket ticket) {
    tl_result result = pass(0, 0, 0);
    if (m.cannot_wait) return TL_NOT_READY;
    return result ? result : m.inner.wait(self, ticket);
}

static uint64_t no_clock(void *self) { (void)self; return 0; }

static uint64_t model_now_ns(void *self) {
    (void)self;
    return m.now;
}

static void model_limits(void *self, tl_backend_limits *limits) {
    int tier;
    m.inner.limits(self, limits);
    if (m.is_deaf) limits->host_visible = 0;
    if (m.no_codecs) limits->codecs = 0;
    for (tier = 0; tier < TL_TIER_COUNT; tier++)
        if (m.budgets[tier]) limits->budget_bytes[tier] = m.budgets[tier];
}

static tl_result model_compute(tl_precision precision, uint64_t *flops, void *user) {
    assert_ptr_equal(user, &m);
    *flops = 3000000;
    if (m.compute_fails) return TL_ERROR_BACKEND;
    if (!m.compute_rates[precision]) return TL_ERROR_UNSUPPORTED;
    m.now += *flops * UINT64_C(1000000000) / m.compute_rates[precision];
    return TL_OK;
}

static tl_backend model_open(tl_env *env, uint64_t capacity, uint64_t alignment) {
    tl_cpu_backend_desc desc;
    tl_backend backend;
    memset(&m, 0, sizeof m);
    memset(&desc, 0, sizeof desc);
    desc.capacity_bytes[TL_TIER_DEVICE] = capacity;
    desc.alignment_bytes = alignment;
    desc.checked = 1;
    assert_int_equal(tl_init_cpu_backend(env, &desc, &m.inner), TL_OK);
    m.fail_at = -1;
    m.latency[0] = 700; m.latency[1] = 12000; m.latency[2] = 9000;
    m.rates[0] = UINT64_C(9000000000);
    m.rates[1] = UINT64_C(3000000000); m.rates[2] = UINT64_C(2500000000);
    m.rates[3] = UINT64_C(1500000000);
    m.compute_rates[TL_PRECISION_SINGLE] = UINT64_C(40000000000);
    m.compute_rates[TL_PRECISION_HALF] = UINT64_C(70000000000);
    m.compute_rates[TL_PRECISION_BF16] = UINT64_C(30000000000);
    m.compute_rates[TL_PRECISION_DOUBLE] = UINT64_C(5000000000);
    backend = m.inner;
    backend.add_block = model_add_block; backend.claim = model_claim;
    backend.copy = model_copy; backend.compress = model_compress; backend.expand = model_expand;
    backend.fill = model_fill; backend.submit = model_submit; backend.wait = model_wait;
    backend.now_ns = model_now_ns; backend.limits = model_limits;
    return backend;
}

static void model_close(tl_env *env) {
    tl_backend_counters counters;
    int tier;
    m.inner.counters(m.inner.self, &counters);
    for (tier = 0; tier < TL_TIER_COUNT; tier++) {
        assert_int_equal(counters.live_bytes[tier], 0);
        assert_int_equal(counters.block_count[tier], 0);
    }
    tl_free_cpu_backend(env, &m.inner);
}

static tl_measure_device_desc measure_desc(void) {
    tl_measure_device_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.bytes = 1 << 20;
    desc.compute = model_compute;
    desc.user = &m;
    return desc;
}

static void assert_about(double measured, double expected) {
    if (measured < expected * 0.999 || measured > expected * 1.001)
        fail_msg("%.1f is not %.1f", measured, expected);
}

static void assert_zero(const tl_device *device) {
    tl_device zero;
    memset(&zero, 0, sizeof zero);
    assert_memory_equal(device, &zero, sizeof zero);
}

static void figures_are_those_of_the_model(void **state) {
    static const uint64_t sizes[] = { 1 << 20, 600000, 3000000 };
    int i;
    (void)state;
    for (i = 0; i < 6; i++) {
        tl_env env = silent_env();
        tl_backend backend = model_open(&env, UINT64_C(1) << 28, i % 2 ? 256 : 1);
        tl_measure_device_desc desc = measure_desc();
        tl_device device;
        m.outliers = i >= 3;
        desc.bytes = sizes[i % 3];
        desc.sample_count = i % 3 == 2 ? 3 : 9;
        desc.name = "model";
        assert_int_equal(tl_measure_device(&env, &backend, &desc, &device), TL_OK);
        assert_int_equal(tl_check_device(&env, &device), TL_OK);
        assert_string_equal(device.name, "model");
        assert_about((double)device.bytes_per_second, 18e9);
        // of 33 calls each seventh takes ten times as long, or none
        assert_true(device.call_latency_ns >= 698 && device.call_latency_ns <= (m.outliers ? 2400u : 702u));
        assert_about((double)device.link_bytes_per_second, 3e9);
        assert_about((double)device.upload_bytes_per_second, 2.5e9);
        assert_true(device.link_latency_ns >= 11998 && device.link_latency_ns <= 12002);
        assert_int_equal(device.copy_channels, TL_COPIES_IN_TURN);      // each call ends before the next one begins
        assert_int_equal(device.wait_latency_ns, 0);
        assert_about((double)device.codec_bytes_per_second, 1.5e9);
        assert_about(device.flops_per_second[TL_PRECISION_DOUBLE], 5e9);
        assert_about(device.flops_per_second[TL_PRECISION_SINGLE], 40e9);
        assert_about(device.flops_per_second[TL_PRECISION_HALF], 70e9);
        assert_about(device.flops_per_second[TL_PRECISION_BF16], 30e9);
        assert_true(device.flops_per_second[TL_PRECISION_MIXED] == 0);
        assert_int_equal(device.supported,
                         1u << TL_PRECISION_DOUBLE | 1u << TL_PRECISION_SINGLE | 1u << TL_PRECISION_HALF);
        assert_int_equal(device.device_capacity_bytes, UINT64_C(1) << 28);
        assert_int_equal(device.host_capacity_bytes, 0);
        assert_int_equal(device.alignment_bytes, i % 2 ? 256 : 1);
        assert_int_equal(device.worker_count, 0);
        model_close(&env);
    }
}

// Without codecs the default size is quickly gone through.
static void sixty_four_mebibytes_are_the_default(void **state) {
    tl_env env = silent_env();
    tl_backend backend = model_open(&env, 0, 64);
    tl_device device;
    tl_backend_counters counters;
    (void)state;
    m.no_codecs = 1;
    m.is_deaf = 1;
    assert_int_equal(tl_measure_device(&env, &backend, NULL, &device), TL_OK);
    assert_int_equal(device.codec_bytes_per_second, 0);
    assert_true(device.bytes_per_second > 17999900000u && device.bytes_per_second < 18000100000u);
    m.inner.counters(m.inner.self, &counters);
    // three rates at two sizes; 1 and 33 turns; halves to the host, three on the device, both; to the host, from it, both
    assert_int_equal(counters.copied_bytes, 3 * 6 * (67108864 + 4096) + 6 * 34 * 4096 + UINT64_C(6) * 12 * 33554432);
    assert_int_equal(counters.copy_count, 3 * 6 * 2 + 6 * 34 + 6 * 12);
    model_close(&env);
}

// The slower direction is told, whichever it is, and the larger latency.
static void the_slower_direction_counts(void **state) {
    tl_env env = silent_env();
    tl_backend backend = model_open(&env, 0, 64);
    tl_measure_device_desc desc = measure_desc();
    tl_device device;
    (void)state;
    m.rates[1] = UINT64_C(1000000000);
    m.latency[2] = 20000;
    assert_int_equal(tl_measure_device(&env, &backend, &desc, &device), TL_OK);
    assert_about((double)device.link_bytes_per_second, 1e9);
    assert_about((double)device.upload_bytes_per_second, 2.5e9);
    assert_true(device.link_latency_ns >= 19998 && device.link_latency_ns <= 20002);
    assert_int_equal(device.device_capacity_bytes, 0);
    model_close(&env);
}

// The slowest of those that are asked for and that the backend has, and no other is called.
static void codecs_that_are_named_alone_make_the_rate(void **state) {
    tl_env env = silent_env();
    tl_backend backend = model_open(&env, 0, 64);
    tl_measure_device_desc desc = measure_desc();
    tl_device device;
    long calls;
    int codec, other;
    (void)state;
    for (codec = TL_CODEC_NONE + 1; codec < TL_CODEC_COUNT; codec++) {
        desc.codecs = 1u << codec;
        m.calls = 0;
        assert_int_equal(tl_measure_device(&env, &backend, &desc, &device), TL_OK);
        assert_about((double)device.codec_bytes_per_second, 1.5e9 * codec);
        calls = m.calls;
        for (other = codec + 1; other < TL_CODEC_COUNT; other++) {
            desc.codecs = 1u << codec | 1u << other;
            m.calls = 0;
            assert_int_equal(tl_measure_device(&env, &backend, &desc, &device), TL_OK);
            assert_about((double)device.codec_bytes_per_second, 1.5e9 * codec);
            assert_true(m.calls > calls);
        }
    }
    m.no_codecs = 1;
    assert_int_equal(tl_measure_device(&env, &backend, &desc, &device), TL_OK);
    assert_int_equal(device.codec_bytes_per_second, 0);
    model_close(&env);
}

static void two_measurements_make_the_same_calls(void **state) {
    tl_env env = silent_env();
    tl_backend backend = model_open(&env, 0, 64);
    tl_measure_device_desc desc = measure_desc();
    tl_device a, b;
    long calls;
    (void)state;
    assert_int_equal(tl_measure_device(&env, &backend, &desc, &a), TL_OK);
    calls = m.calls;
    m.outliers = 1;
    m.calls = 0;
    assert_int_equal(tl_measure_device(&env, &backend, &desc, &b), TL_OK);
    assert_int_equal(m.calls, calls);
    model_close(&env);
}

static void what_cannot_be_measured_stays_unknown(void **state) {
    tl_env env = silent_env();
    tl_backend backend = model_open(&env, 0, 64);
    tl_measure_device_desc desc = measure_desc();
    tl_device device;
    int i;
    (void)state;
    // No kernel where the host cannot see the device.
    m.is_deaf = 1;
    desc.compute = NULL;
    assert_int_equal(tl_measure_device(&env, &backend, &desc, &device), TL_OK);
    for (i = 0; i < TL_PRECISION_COUNT; i++) assert_true(device.flops_per_second[i] == 0);
    assert_int_equal(device.supported, 0);
    assert_about((double)device.bytes_per_second, 18e9);
    // No room at all; and none on the host.
    m.largest_block = 4096;
    assert_int_equal(tl_measure_device(&env, &backend, &desc, &device), TL_OK);
    assert_int_equal(device.bytes_per_second, 0);
    m.largest_block = 0;
    m.budgets[TL_TIER_HOST] = 100;
    assert_int_equal(tl_measure_device(&env, &backend, &desc, &device), TL_OK);
    assert_about((double)device.bytes_per_second, 18e9);
    assert_int_equal(device.link_bytes_per_second, 0);
    assert_int_equal(device.link_latency_ns, 0);
    m.budgets[TL_TIER_HOST] = 0;
    m.budgets[TL_TIER_DEVICE] = 1000;
    assert_int_equal(tl_measure_device(&env, &backend, &desc, &device), TL_OK);
    assert_int_equal(device.bytes_per_second, 0);
    model_close(&env);
}

// Halved until blocks fit, the sizes are smaller and the figures the same.
static void little_room_gives_the_same_figures(void **state) {
    tl_env env = silent_env();
    tl_backend backend = model_open(&env, 0, 64);
    tl_measure_device_desc desc = measure_desc();
    tl_device device;
    (void)state;
    m.largest_block = 700000;
    assert_int_equal(tl_measure_device(&env, &backend, &desc, &device), TL_OK);
    assert_about((double)device.bytes_per_second, 18e9);
    m.largest_block = 0;
    m.budgets[TL_TIER_DEVICE] = 500001;
    m.budgets[TL_TIER_HOST] = 200000;
    assert_int_equal(tl_measure_device(&env, &backend, &desc, &device), TL_OK);
    assert_about((double)device.bytes_per_second, 18e9);
    model_close(&env);
}

static uint64_t clock_ns(void *user) {
    struct timespec now;
    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void a_real_machine_has_figures(void **state) {
    tl_env env = silent_env();
    tl_measure_device_desc desc;
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_device device;
    (void)state;
    memset(&cpu, 0, sizeof cpu);
    cpu.now_ns = clock_ns;
    assert_int_equal(tl_init_cpu_backend(&env, &cpu, &backend), TL_OK);
    memset(&desc, 0, sizeof desc);
    desc.bytes = 8 << 20;
    assert_int_equal(tl_measure_device(&env, &backend, &desc, &device), TL_OK);
    print_message("%.1f GB/s memory, %.1f GB/s link, %.1f GB/s codecs, %.2f GFLOP/s f32, %.2f f64\n",
                  (double)device.bytes_per_second / 1e9, (double)device.link_bytes_per_second / 1e9,
                  (double)device.codec_bytes_per_second / 1e9, device.flops_per_second[TL_PRECISION_SINGLE] / 1e9,
                  device.flops_per_second[TL_PRECISION_DOUBLE] / 1e9);
    assert_true(device.bytes_per_second && device.link_bytes_per_second && device.codec_bytes_per_second);
    assert_true(device.flops_per_second[TL_PRECISION_SINGLE] > 0 && device.flops_per_second[TL_PRECISION_DOUBLE] > 0);
    assert_int_equal(device.supported, 1u << TL_PRECISION_DOUBLE | 1u << TL_PRECISION_SINGLE);
    tl_free_cpu_backend(&env, &backend);
}

static void assert_refused(tl_result code, const char *text, const tl_backend *backend,
                           const tl_measure_device_desc *desc) {
    tl_env env = silent_env();
    tl_device device;
    memset(&device, 0xff, sizeof device);
    assert_int_equal(tl_measure_device(&env, backend, desc, &device), code);
    assert_string_equal(env.error.text, text);
    assert_zero(&device);
}

static void wrong_descs_and_failing_kernels_are_named(void **state) {
    tl_env env = silent_env();
    tl_backend backend = model_open(&env, 0, 64);
    tl_measure_device_desc desc = measure_desc();
    (void)state;
    desc.sample_count = 32;
    assert_refused(TL_ERROR_INVALID_ARG, "tl_measure_device: sample_count: must be 0 .. 31", &backend, &desc);
    desc.sample_count = -1;
    assert_refused(TL_ERROR_INVALID_ARG, "tl_measure_device: sample_count: must be 0 .. 31", &backend, &desc);
    desc.sample_count = 0;
    desc.codecs = 1u << TL_CODEC_COUNT;
    assert_refused(TL_ERROR_INVALID_ARG, "tl_measure_device: codecs: unknown bit", &backend, &desc);
    desc.codecs = 1u << TL_CODEC_NONE;
    assert_refused(TL_ERROR_INVALID_ARG, "tl_measure_device: codecs: unknown bit", &backend, &desc);
    desc.codecs = 0;
    backend.now_ns = no_clock;
    assert_refused(TL_ERROR_UNSUPPORTED, "tl_measure_device: backend: has no clock, or one that stands still", &backend, &desc);
    backend.now_ns = model_now_ns;
    m.compute_fails = 1;
    assert_refused(TL_ERROR_KERNEL, "tl_measure_device: compute: reported a failure", &backend, &desc);
    m.cannot_wait = 1;
    assert_refused(TL_ERROR_UNSUPPORTED,
                   "tl_measure_device: backend: cannot wait, so that nothing can be timed", &backend, &desc);
    model_close(&env);
}

static void every_call_of_the_backend_may_fail(void **state) {
    static const tl_result codes[] = { TL_ERROR_BACKEND, TL_ERROR_DEVICE_LOST };
    int k;
    (void)state;
    for (k = 0; k < 2; k++) {
        tl_env env = silent_env();
        tl_backend backend = model_open(&env, 0, 64);
        tl_measure_device_desc desc = measure_desc();
        long at;
        desc.sample_count = 2;
        desc.bytes = 65536;
        for (at = 0; ; at++) {
            tl_device device;
            tl_result result;
            m.calls = 0;
            m.fail_at = at;
            m.code = codes[k];
            result = tl_measure_device(&env, &backend, &desc, &device);
            if (m.calls <= at) { assert_int_equal(result, TL_OK); break; }
            assert_int_equal(result, codes[k]);
            assert_memory_equal(env.error.text, "tl_measure_device: backend: ", 28);
            assert_zero(&device);
        }
        assert_true(at > 40);
        model_close(&env);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_those_of_the_model),
        cmocka_unit_test(sixty_four_mebibytes_are_the_default),
        cmocka_unit_test(the_slower_direction_counts),
        cmocka_unit_test(codecs_that_are_named_alone_make_the_rate),
        cmocka_unit_test(two_measurements_make_the_same_calls),
        cmocka_unit_test(what_cannot_be_measured_stays_unknown),
        cmocka_unit_test(little_room_gives_the_same_figures),
        cmocka_unit_test(a_real_machine_has_figures),
        cmocka_unit_test(wrong_descs_and_failing_kernels_are_named),
        cmocka_unit_test(every_call_of_the_backend_may_fail),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
