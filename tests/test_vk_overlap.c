// [2] MEMORY of the companion: copies between the tiers vanish behind kernels, and steps take what plans predict, on the modelled
// device of support/vk_clock.h, which says when a discrete GPU would have done what was submitted. That it does so is held against
// figures of an NVIDIA H200.
#define _POSIX_C_SOURCE 200809L
#define OVERLAP_WITHOUT_MAIN
#include "bench/bench_vk_overlap.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static int has_driver(const char *test) {
    tl_vk_device_desc desc;
    int32_t count = 0;
    const char *strict = getenv("STRICT");
    memset(&desc, 0, sizeof desc);
    is_model = 1;
    vkshim_reset(NULL);
    desc.get_instance_proc = vkshim_get_instance_proc;
    if (!tl_vk_read_devices(&env, &desc, NULL, 0, &count) && count) return 1;
    printf("SKIPPED %s: no Vulkan driver\n", test);
    if (strict && !strcmp(strict, "1")) fail_msg("%s", "no Vulkan driver");
    return 0;
}

static void expect_near(double is, double expected, double part, const char *what) {
    if (is < expected * (1 - part) || is > expected * (1 + part)) fail_msg("%s: %.3f, not %.3f", what, is, expected);
}

// In ms: kernels alone, copies alone, both on one queue, on two without dependencies, and as a plan has them.
static const struct { uint64_t megabytes, ns; bare_times t; } h200[] = {
    { 1376, 2858333, { 137.2, 54.8, 189.0, 137.2, 140.0 } },
    { 134, 297917, { 14.3, 5.6, 19.4, 14.5, 16.4 } },
};

static void the_model_gives_the_times_of_a_gpu(void **state) {
    size_t i;
    (void)state;
    if (!has_driver("the_model_gives_the_times_of_a_gpu")) skip();
    for (i = 0; i < sizeof h200 / sizeof *h200; i++) {
        uint64_t bytes;
        bare_times t = time_pattern(h200[i].megabytes, h200[i].ns, &bytes);
        expect_near(t.compute, h200[i].t.compute, 0.05, "kernels");
        expect_near(t.copies, h200[i].t.copies, 0.05, "copies");
        expect_near(t.one_queue, h200[i].t.one_queue, 0.05, "one queue");
        expect_near(t.free, h200[i].t.free, 0.05, "two queues");
        expect_near(t.planned, h200[i].t.planned, 0.05, "as planned");
    }
}

static void the_backend_overlaps_as_vulkan_alone_does(void **state) {
    size_t i;
    (void)state;
    if (!has_driver("the_backend_overlaps_as_vulkan_alone_does")) skip();
    for (i = 0; i < sizeof h200 / sizeof *h200; i++) {
        uint64_t bytes;
        bare_times t = time_pattern(h200[i].megabytes, h200[i].ns, &bytes);
        double one_link = time_backend(h200[i].ns, bytes, ONE_LINK), two_links = time_backend(h200[i].ns, bytes, TWO_LINKS);
        printf("%d MB: Vulkan alone %.2f ms, one transfer queue %.2f, two %.2f\n", (int)h200[i].megabytes, t.planned, one_link, two_links);
        assert_true(one_link <= t.planned / 0.95 && two_links <= t.planned / 0.95);
    }
}

static void what_the_device_is_can_be_measured(void **state) {
    static const int32_t channels[WAY_COUNT] = { TL_COPIES_IN_TURN, 1, 2 };
    int how;
    (void)state;
    if (!has_driver("what_the_device_is_can_be_measured")) skip();
    for (how = 0; how < WAY_COUNT; how++) {
        tl_device device = measure((way)how);
        assert_int_equal(device.copy_channels, channels[how]);
        expect_near((double)device.link_bytes_per_second * SHRINK, 51.2e9, 0.02, "bytes a second to the host");
        expect_near((double)device.upload_bytes_per_second * SHRINK, 49.3e9, 0.02, "bytes a second to the device");
        expect_near((double)device.wait_latency_ns, how == ONE_QUEUE ? 0 : 45000, 0.02, "a wait");
        assert_true(device.link_latency_ns > 30000 && device.link_latency_ns < 80000);
    }
}

static void check_net(const size *s) {
    static const int percents[] = { 40, 60 };
    tl_device beside;
    net n;
    tl_plan all, plan;
    measured base, blind;
    int i, how;
    make_net(&n, s);
    must(tl_plan_keep_all(&env, &n.graph, 0, &all), "keep all");
    base = run_plan(&n, &all, NULL, ONE_QUEUE);
    for (i = 0; i < (getenv("SOAK") ? 2 : 1); i++)
        for (how = 0; how < WAY_COUNT; how++) {
            tl_device device = measure((way)how);
            measured m;
            double predicted;
            make_plan(&n, &device, all.peak_bytes, percents[i], 1, &plan);
            m = run_plan(&n, &plan, &device, (way)how);
            predicted = (double)plan.cost / (double)all.cost;
            printf("%s, %d %%, %s: predicted %.3f, measured %.3f, %d submits, %d waits of the host\n", s->name, percents[i], way_names[how],
                   predicted, m.ms / base.ms, (int)m.counters.submit_count, (int)m.counters.host_wait_count);
            expect_near(m.ms / base.ms, predicted, 0.05, "a step");
            assert_int_equal(m.counters.host_wait_count, 1);    // for its end
            if (m.longest_ms > 1.2 * m.planned_longest_ms) fail_msg("a submit of %.2f ms", m.longest_ms);
            assert_true(m.planned_longest_ms < 3.0);            // 2 ms, or one call
            tl_free_plan(&env, &plan);
        }
    // A plan that takes copies for free, on a device where they take turns with kernels.
    beside = measure(ONE_QUEUE);
    beside.copy_channels = 1;
    make_plan(&n, &beside, all.peak_bytes, 60, 1, &plan);
    blind = run_plan(&n, &plan, NULL, ONE_QUEUE);
    if (blind.ms / base.ms < 1.3) fail_msg("copies on the queue of the kernels take no time: %.3f", blind.ms / base.ms);
    tl_free_plan(&env, &plan);
    tl_free_plan(&env, &all);
    tl_free_graph(&env, &n.graph);
}

static void steps_with_copies_take_what_was_predicted(void **state) {
    (void)state;
    if (!has_driver("steps_with_copies_take_what_was_predicted")) skip();
    plan_work = 40000000;
    check_net(&sizes[0]);
    check_net(&sizes[1]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_model_gives_the_times_of_a_gpu),
        cmocka_unit_test(the_backend_overlaps_as_vulkan_alone_does),
        cmocka_unit_test(what_the_device_is_can_be_measured),
        cmocka_unit_test(steps_with_copies_take_what_was_predicted),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
