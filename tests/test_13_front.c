// [13] TRACE: a Pareto front as a picture.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

#include "support/support.h"
#include "support/random_graph.h"
#include "support/sink_support.h"
#include "support/word_lengths.h"

static tl_precision_point point_of(double loss, double speedup, uint64_t cost, uint64_t bound) {
    tl_precision_point point;
    memset(&point, 0, sizeof point);
    point.loss = loss;
    point.speedup = speedup;
    point.cost = cost;
    point.bound_cost = bound;
    point.bytes = 4 * cost;
    return point;
}

static tl_precision_front front_of(const tl_precision_point *points, int32_t count, int32_t knee) {
    tl_precision_front front;
    memset(&front, 0, sizeof front);
    front.points = points;
    front.point_count = count;
    front.knee = knee;
    return front;
}

// The picture of a front, to be freed.
static char *drawn(const tl_precision_front *front) {
    tl_env env = silent_env();
    memory_sink m;
    tl_sink sink = sink_of(&m, -1);
    if (tl_write_front_svg(&env, front, sink)) fail_msg("%s", env.error.text);
    must_be_xml(m.text);
    assert_int_equal(count_of(m.text, "nan"), 0);
    assert_int_equal(count_of(m.text, "inf"), 0);
    return m.text;
}

static void a_front_is_stairs_with_a_knee(void **state) {
    static tl_precision_point points[4];
    tl_precision_front front = front_of(points, 4, 2);
    char *text;
    (void)state;
    points[0] = point_of(0, 1, 1000, 1000);
    points[1] = point_of(1e-5, 1.25, 800, 800);
    points[2] = point_of(1e-3, 2, 500, 400);
    points[3] = point_of(1e-2, 2.5, 400, 400);
    text = drawn(&front);
    must_hold(text, "<title>Precision: the speed-up that a loss buys</title>");
    must_hold(text, "<path class=\"front k0\" d=\"M99 462H139V417.75H666.33V285H930V196.5H930\"><title>found</title></path>");
    must_hold(text, "<path class=\"bound k1\" d=\"M99 462V417.75H139V196.5H666.33V196.5H930\">");
    must_hold(text, "<circle class=\"mark k2\" cx=\"666.33\" cy=\"285\" r=\"6\"><title>loss 0.001, speed-up 2, 1.95 KiB</title>");
    must_hold(text, "<text x=\"676.33\" y=\"305\" class=\"value\">knee: 2x at 0.001</text>");
    must_hold(text, ">1.5x</text>");
    must_hold(text, ">2e-5</text>");
    must_hold(text, ">0</text>");
    assert_int_equal(count_of(text, "<circle"), 4);
    free(text);
    points[2].bound_cost = 500;
    front.complete = 1;
    text = drawn(&front);  // nothing lies between what was found and what is certain
    assert_int_equal(count_of(text, "no choice is faster") + count_of(text, "class=\"bound"), 0);
    must_hold(text, "all there are, each proven");
    free(text);
}

static void one_point_and_no_loss_can_be_drawn(void **state) {
    static tl_precision_point points[3];
    tl_precision_front front = front_of(points, 1, 0);
    char *text;
    (void)state;
    points[0] = point_of(0, 1, 7, 7);
    text = drawn(&front);
    must_hold(text, "knee: 1x at 0");
    assert_int_equal(count_of(text, "<circle"), 1);
    free(text);
    points[0] = point_of(0.02, 0, 7, 0);
    text = drawn(&front);
    must_hold(text, "knee: 0x at 0.02");
    free(text);
    points[0] = point_of(0, 1, 9, 9);
    points[1] = point_of(0, 3, 3, 0);  // no bound is known: drawn up to twice the fastest
    points[2] = point_of(0, 3, 3, 1);
    front.point_count = 3;
    text = drawn(&front);
    must_hold(text, "class=\"bound k1\"");
    free(text);
}

// Every place lies within the picture.
static void must_lie_within(const char *text) {
    const char *at = text;
    while ((at = strstr(at, " d=\"M")) != NULL) {
        const char *end = strchr(at + 5, '"');
        for (at += 4; at < end; at++) {
            double x;
            if (*at < 'A' || *at > 'Z') continue;
            x = strtod(at + 1, NULL);
            assert_true(x >= 0 && x <= (*at == 'V' ? 520 : 960));
        }
    }
}

static void random_fronts_are_well_formed(void **state) {
    tl_random random = { 1307 };
    int round;
    (void)state;
    for (round = 0; round < 600; round++) {
        tl_precision_point points[300];
        int32_t count = random_chance(&random, 20) ? random_count(&random, 1, 300) : random_count(&random, 1, 9), i;
        tl_precision_front front = front_of(points, count, random_count(&random, 0, count - 1));
        double loss = random_chance(&random, 40) ? 0 : 1, speed = tl_next_random_ratio(&random) * 3;
        char *text;
        for (i = random_count(&random, 0, 320); loss > 0 && i > 0; i--) loss /= 10;
        for (i = 0; i < count; i++) {
            uint64_t cost = tl_next_random_below(&random, 1000000);
            points[i] = point_of(loss, speed, cost, random_chance(&random, 50) ? cost : tl_next_random_below(&random, cost + 1));
            if (random_chance(&random, 90)) loss = loss > 0 ? loss * (1 + tl_next_random_ratio(&random) * (count > 9 ? 1 : 1000)) : 1e-7;
            if (loss > 1e299) loss = 1e299;
            speed *= 1 + tl_next_random_ratio(&random) * (random_chance(&random, 2) ? 1000 : 0.2);
            if (speed > 1e18) speed = 1e18;
        }
        front.complete = random_chance(&random, 30);
        text = drawn(&front);
        must_lie_within(text);
        assert_true(strlen(text) < 120000);
        assert_int_equal(count_of(text, "class=\"mark k2\""), 1);
        free(text);
    }
}

static void a_planned_front_is_drawn(void **state) {
    tl_random random = { 1308 };
    int round;
    (void)state;
    for (round = 0; round < 40; round++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_precision_desc desc;
        tl_precision_front front;
        char *text;
        if (random_graph(&env, &random, 10, &graph)) fail_msg("%s", env.error.text);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.allow_unknown = 1;
        desc.profiles = word_length_profiles(&desc.profile_count);
        if (tl_plan_precision_front(&env, &desc, 0, &front)) fail_msg("%s", env.error.text);
        text = drawn(&front);
        assert_int_equal(count_of(text, "class=\"bound"), 0);  // small graphs are proven
        free(text);
        tl_free_precision_front(&env, &front);
        tl_free_graph(&env, &graph);
    }
}

// -- what is refused --

static void assert_refused(const tl_precision_front *front, const char *sentence) {
    tl_env env = silent_env();
    memory_sink m;
    tl_sink sink = sink_of(&m, -1);
    assert_int_equal(tl_write_front_svg(&env, front, sink), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, sentence);
    assert_int_equal(m.count, 0);
}

static void broken_fronts_are_refused(void **state) {
    static tl_precision_point points[3];
    tl_precision_front front = front_of(points, 3, 0);
    const double huge = 1e300;
    const double losses[] = { -1, huge * huge, huge * 2, 0.5, 0 };
    const double speeds[] = { -1, huge * huge, 2e18, 0 };
    volatile double zero = 0;
    int i;
    (void)state;
    points[0] = point_of(1, 1, 9, 9);
    points[1] = point_of(2, 2, 5, 5);
    points[2] = point_of(3, 3, 3, 3);
    front.point_count = 0;
    assert_refused(&front, "tl_write_front_svg: points: there must be at least one");
    front.point_count = 3;
    front.points = NULL;
    assert_refused(&front, "tl_write_front_svg: points: there must be at least one");
    front.points = points;
    front.knee = 3;
    assert_refused(&front, "tl_write_front_svg: knee: must be one of the points");
    front.knee = -1;
    assert_refused(&front, "tl_write_front_svg: knee: must be one of the points");
    front.knee = 1;
    for (i = 0; i < 5; i++) {
        points[1].loss = i < 4 ? losses[i] : zero / zero;
        assert_refused(&front, "tl_write_front_svg: point 1: loss: must be 0 to 1e300 and never fall");
    }
    points[1].loss = 2;
    for (i = 0; i < 4; i++) {
        points[2].speedup = i < 3 ? speeds[i] : zero / zero;
        assert_refused(&front, "tl_write_front_svg: point 2: speedup: must be 0 to 1e18");
    }
    points[2].speedup = 3;
    points[0].bound_cost = 10;
    assert_refused(&front, "tl_write_front_svg: point 0: bound_cost: must not be above cost");
}

static void a_failing_sink_ends_the_picture(void **state) {
    static tl_precision_point points[2];
    tl_precision_front front = front_of(points, 2, 1);
    long at;
    (void)state;
    points[0] = point_of(1, 1, 9, 9);
    points[1] = point_of(2, 2, 5, 4);
    for (at = 0;; at++) {
        tl_env env = silent_env();
        memory_sink m;
        tl_sink sink = sink_of(&m, at);
        tl_result result = tl_write_front_svg(&env, &front, sink);
        assert_int_equal(m.after_failure, 0);
        if (!result) { free(m.text); break; }
        assert_int_equal(result, TL_ERROR_DEVICE_LOST);
        must_hold(env.error.text, "tl_write_front_svg: sink: stopped with device lost after ");
        free(m.text);
    }
    assert_true(at > 5);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_front_is_stairs_with_a_knee),
        cmocka_unit_test(one_point_and_no_loss_can_be_drawn),
        cmocka_unit_test(random_fronts_are_well_formed),
        cmocka_unit_test(a_planned_front_is_drawn),
        cmocka_unit_test(broken_fronts_are_refused),
        cmocka_unit_test(a_failing_sink_ends_the_picture),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
