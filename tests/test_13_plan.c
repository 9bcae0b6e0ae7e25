// [13] TRACE: plans as pictures; when each step of a simulation begins and ends.
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
#include "support/sink_support.h"
#include "support/texts.h"


// Copies take 100 ns and 1 ns a byte, conversions 2 ns a byte.
static tl_device device_of(void) {
    tl_device device;
    memset(&device, 0, sizeof device);
    device.link_bytes_per_second = 1000000000;
    device.link_latency_ns = 100;
    device.codec_bytes_per_second = 500000000;
    return device;
}

static const char *const network =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
    "node 1 a<&> conv fwd=1000 bwd=2000 out=400 needs=in,out in=0\n"
    "node 2 b\"' conv fwd=1000 bwd=2000 out=400 needs=in,out in=1\n"
    "node 3 c conv fwd=1000 bwd=2000 out=400 needs=in,out in=2\n";
static const char *const spilling =
    "F 1\nF 2\nO 1\nO 2\nW 1\nW 2\nL 2\nW 2\nF 3\nC 3 f16\nX 3\nB 3\nD 3\nL 1\nW 1\nB 2\nD 2\nF 2\nD 2\nB 1\nD 1\nDH 1\nDH 2\n";

// -- times --

static void simulation_tells_when_each_step_begins_and_ends(void **state) {
    //                                 F 1   F 2   O 1   O 2   W 1   W 2   L 2   W 2   F 3   C 3   X 3   B 3
    static const uint64_t starts[] = { 0,    1000, 2000, 2500, 2000, 2500, 3000, 3000, 3500, 4500, 5300, 6100,
    //                                 D 3   L 1   W 1   B 2   D 2    F 2    D 2    B 1    D 1    DH     DH
                                       8100, 8100, 8100, 8600, 10600, 10600, 11600, 11600, 13600, 13600, 13600 };
    static const uint64_t ends[] = {   1000, 2000, 2500, 3000, 2500, 3000, 3500, 3500, 4500, 5300, 6100, 8100,
                                       8100, 8600, 8600, 10600, 10600, 11600, 11600, 13600, 13600, 13600, 13600 };
    tl_graph graph = graph_of(network);
    tl_plan plan = schedule_of(spilling);
    tl_device device = device_of();
    uint64_t start[23], end[23];
    tl_simulate_desc desc;
    tl_report report;
    int32_t i;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.plan = &plan;
    desc.device = &device;
    desc.start_cost = start;
    desc.end_cost = end;
    assert_int_equal(tl_simulate_plan(NULL, &desc, &report), TL_OK);
    assert_int_equal(report.cost, 13600);
    for (i = 0; i < 23; i++) {
        if (start[i] != starts[i] || end[i] != ends[i])
            fail_msg("step %d: %d to %d", (int)i, (int)start[i], (int)end[i]);
    }
    desc.start_cost = NULL;
    memset(end, 0, sizeof end);
    assert_int_equal(tl_simulate_plan(NULL, &desc, &report), TL_OK);
    assert_memory_equal(end, ends, sizeof end);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// Compute steps follow each other, so do copies on the link, and the last to end is the cost.
static void times_of_random_plans_never_overlap_in_a_lane(void **state) {
    tl_random random = { 5 };
    int i, valid = 0;
    (void)state;
    for (i = 0; i < scaled(500); i++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_plan plan;
        tl_device device = device_of();
        tl_simulate_desc desc;
        tl_report report;
        uint64_t *start, *end, now = 0, link = 0, spent = 0;
        int32_t k;
        if (random_graph(&env, &random, 10, &graph) || random_plan(&env, &random, &graph, &plan)) fail_msg("%s", env.error.text);
        start = (uint64_t *)calloc((size_t)plan.step_count + 1, sizeof *start);
        end = (uint64_t *)calloc((size_t)plan.step_count + 1, sizeof *end);
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.plan = &plan;
        desc.device = &device;
        desc.start_cost = start;
        desc.end_cost = end;
        if (!tl_simulate_plan(&env, &desc, &report)) {
            valid++;
            for (k = 0; k < plan.step_count; k++) {
                int kind = plan.steps[k].kind, copies = kind == TL_STEP_SPILL || kind == TL_STEP_FETCH;
                assert_true(end[k] >= start[k]);
                if (copies) {
                    assert_true(start[k] == (link > now ? link : now) && end[k] > start[k]);
                    link = end[k];
                } else {
                    assert_int_equal(start[k], now);
                    if (kind <= TL_STEP_BACKWARD) spent += end[k] - start[k];
                    if (kind == TL_STEP_DROP || kind == TL_STEP_DROP_SAVED || kind == TL_STEP_DROP_HOST)
                        assert_int_equal(start[k], end[k]);
                    now = end[k];
                }
            }
            assert_int_equal(now, report.cost);
            assert_int_equal(spent, report.compute_cost);
        }
        free(start);
        free(end);
        random_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    assert_true(is_thinned() || valid > 100);
}

// -- the picture --

// The picture as text, checked; free() it.
static char *svg_of(const tl_graph *graph, const tl_plan *plan, const tl_device *device) {
    tl_env env = silent_env();
    memory_sink m;
    tl_sink sink = sink_of(&m, -1);
    if (tl_write_plan_svg(&env, graph, plan, device, NULL, sink)) fail_msg("%s", env.error.text);
    must_be_xml(m.text);
    return m.text;
}

static void plan_is_drawn_in_lanes_over_its_memory(void **state) {
    tl_graph graph = graph_of(network);
    tl_plan plan = schedule_of(spilling);
    tl_device device = device_of();
    char *text = svg_of(&graph, &plan, &device);
    (void)state;
    must_hold(text, ">plan of 23 steps on 4 nodes</text>");
    must_hold(text, ">cost 13600, 1.5111 x every call once; peak 1.57 KiB at step 11, backward of c<title>");
    must_hold(text, ">live there: b\"' 400 B, b\"', its gradient 400 B, c 400 B, c, its gradient 400 B, x 4 B<title>");
    // 1086 pixels are 13600 ns: 1000 ns are 79.85 pixels
    must_hold(text, "<rect class=\"f0 cut\" x=\"84\" y=\"128\" width=\"79.85\" height=\"20\"><title>a&lt;&amp;&gt;\nforward, step 0\n"
                    "from 0 to 1000: 1000\n404 B live</title></rect>\n<text x=\"88\" y=\"142\" class=\"bar\">a&lt;&amp;&gt;</text>");
    must_hold(text, "<title>b\"'\nrecompute, step 17\nfrom 10600 to 11600: 1000\n");
    must_hold(text, "<title>a&lt;&amp;&gt;\nspill, step 2\nfrom 2000 to 2500: 500\n");
    must_hold(text, "<title>b\"'\nspill, step 3\nfrom 2500 to 3000: 500\n");
    must_hold(text, "<title>a&lt;&amp;&gt;\nwait, step 4\nfrom 2000 to 2500: 500\n");
    must_hold(text, "<title>b\"'\nfetch, step 6\n");
    must_hold(text, "<title>c\nconvert, step 9\n");
    must_hold(text, "<title>c\nbackward, step 11\n");
    must_hold(text, ">simulated time, us</text>");
    // both spills are issued at 2000 (x 243.7), so the host has their bytes from there; the device gives up a at 2500 (283.63)
    must_hold(text, "<path class=\"curve k6 f6\" d=\"M74 590V542.66H163.85V495.79H283.63V542.66H363.48V495.79H443.33V472.35H571.1"
                    "V402.04H730.8V448.91H770.73V402.04H930.44V448.91H1010.29V495.79H1170V590\"><title>device</title></path>");
    must_hold(text, "<path class=\"curve k7 f7\" d=\"M74 590H243.7V496.25H1170V590\"><title>host</title></path>");
    must_hold(text, ">device memory</text>");
    must_hold(text, ">host memory</text>");
    must_hold(text, "<circle class=\"hover\"");
    must_hold(text, "<title>400 B  b\"'\n400 B  b\"', its gradient\n400 B  c\n400 B  c, its gradient\n4 B  x</title>");
    free(text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void utf8_names_are_drawn_as_they_are(void **state) {
    tl_graph graph = graph_of("tlg 1\nnode 0 x input fwd=0 bwd=0 out=4 needs=none in=-\n"
                              "node 1 gr\xc3\xb6\xc3\x9f\x65 op fwd=10 bwd=20 out=400 needs=in in=0\n"
                              "node 2 \xe5\xb1\xa4\xf0\x9f\x98\x80 op fwd=10 bwd=20 out=400 needs=in in=1\n");
    tl_plan plan = schedule_of("F 1\nF 2\nB 2\nB 1\n");
    char *text = svg_of(&graph, &plan, NULL);  // checked for valid UTF-8
    (void)state;
    must_hold(text, "<title>gr\xc3\xb6\xc3\x9f\x65\nforward, step 0\n");
    must_hold(text, "<title>\xe5\xb1\xa4\xf0\x9f\x98\x80\nbackward, step 2\n");
    free(text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// Explanation, picture, table, report and error sentences name the same step by the same number.
static void steps_are_counted_from_0_everywhere(void **state) {
    tl_graph graph = graph_of(network);
    tl_plan plan = schedule_of(spilling), broken = schedule_of("F 1\nF 3\n");
    tl_device device = device_of();
    tl_env env = silent_env();
    tl_simulate_desc desc;
    tl_report report;
    memory_sink m;
    char sentence[80], *text;
    (void)state;
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.plan = &plan;
    assert_int_equal(tl_simulate_plan(&env, &desc, &report), TL_OK);
    assert_int_equal(report.peak_step, 11);
    assert_true(plan.steps[11].kind == TL_STEP_BACKWARD && plan.steps[11].node == 3);
    assert_int_equal(tl_explain_plan(&env, &graph, &plan, sink_of(&m, -1)), TL_OK);
    must_hold(m.text, ", step 11, backward of c\n");
    free(m.text);
    text = svg_of(&graph, &plan, &device);
    must_hold(text, " at step 11, backward of c<title>");
    must_hold(text, "<title>c\nbackward, step 11\n");
    free(text);
    assert_int_equal(tl_write_plan_table(&env, &graph, &plan, "net", sink_of(&m, -1)), TL_OK);
    must_hold(m.text, "{ TL_STEP_BACKWARD, 0, 0, 3, -1, 0 },  // c: step 11\n");
    free(m.text);
    desc.plan = &broken;
    assert_int_equal(tl_simulate_plan(&env, &desc, &report), TL_ERROR_INVALID_PLAN);
    snprintf(sentence, sizeof sentence, "tl_simulate_plan: step %d (F 3 c): ", (int)report.broken_step);
    assert_int_equal(report.broken_step, 1);
    assert_ptr_equal(strstr(env.error.text, sentence), env.error.text);
    tl_free_plan(NULL, &plan);
    tl_free_plan(NULL, &broken);
    tl_free_graph(NULL, &graph);
}

static void lanes_that_nothing_is_in_are_not_drawn(void **state) {
    tl_graph graph = graph_of(network);
    tl_plan plan;
    char *text;
    (void)state;
    assert_int_equal(tl_plan_keep_all(NULL, &graph, 0, &plan), TL_OK);
    text = svg_of(&graph, &plan, NULL);
    assert_int_equal(count_of(text, ">forward</text>"), 2);  // legend and lane
    assert_int_equal(count_of(text, ">backward</text>"), 2);
    assert_false(contains(text, ">recompute</text>") || contains(text, ">convert</text>") || contains(text, ">wait</text>") ||
                 contains(text, ">spill</text>") || contains(text, ">fetch</text>") || contains(text, ">host memory</text>"));
    must_hold(text, ">cost</text>");
    free(text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void plans_without_time_or_steps_are_drawn_too(void **state) {
    static const char *const idle = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=4096 needs=none in=-\n"
                                    "node 1 a op fwd=0 bwd=0 out=4 needs=in in=0\n";
    static const char *const alone = "tlg 1\nnode 0 x input fwd=0 bwd=0 out=0 needs=none in=-\n";
    tl_graph graph = graph_of(idle);
    tl_plan plan = schedule_of("F 1\nB 1\nD 1\n");
    char *text = svg_of(&graph, &plan, NULL);
    (void)state;
    must_hold(text, ">step</text>");
    must_hold(text, "x=\"84\" y=\"128\" width=\"362\"");
    must_hold(text, "<title>a\nforward, step 0\n4.00 KiB live</title>");
    free(text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
    graph = graph_of(alone);
    memset(&plan, 0, sizeof plan);
    text = svg_of(&graph, &plan, NULL);
    must_hold(text, ">plan of 0 steps on 1 node</text>");
    must_hold(text, ">cost 0; peak 0 B before the first step<title>");
    free(text);
    tl_free_graph(NULL, &graph);
}

// How many steps the bars of a lane stand for, by what they tell the pointer; *bars: how many there are.
static long steps_told(const char *text, const char *lane, long *bars) {
    char start[40];
    long count = 0;
    snprintf(start, sizeof start, "\n%s, step ", lane);
    *bars = 0;
    for (; (text = strstr(text, start)) != NULL; text += strlen(start)) {
        long first, last, members = 1;
        if (sscanf(text + strlen(start), "%ld to %ld: %ld of them", &first, &last, &members) < 3) members = 1;
        count += members;
        ++*bars;
    }
    return count;
}

static void thousands_of_steps_are_drawn_together_and_none_is_lost(void **state) {
    tl_chain_desc chain;
    tl_graph graph;
    tl_plan plan;
    tl_report report;
    tl_simulate_desc desc;
    char *text;
    long bars, all = 0;
    (void)state;
    memset(&chain, 0, sizeof chain);
    memset(&desc, 0, sizeof desc);
    chain.layer_count = 1000;
    chain.input_bytes = 1;
    assert_int_equal(tl_add_chain(NULL, &graph, &chain), TL_OK);
    assert_int_equal(tl_plan_revolve(NULL, &graph, 12, &plan), TL_OK);
    desc.graph = &graph;
    desc.plan = &plan;
    assert_int_equal(tl_simulate_plan(NULL, &desc, &report), TL_OK);
    assert_true(plan.step_count > 5000);
    text = svg_of(&graph, &plan, NULL);
    assert_int_equal(steps_told(text, "forward", &bars), report.forward_count - report.recompute_count);
    all += bars;
    assert_int_equal(steps_told(text, "recompute", &bars), report.recompute_count);
    all += bars;
    assert_int_equal(steps_told(text, "backward", &bars), 1000);
    all += bars;
    assert_true(all < 1500 && all > 100);
    assert_true(strlen(text) < 300000);
    free(text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// Bars stand inside the plot, below the legend; the other rectangles have round corners.
static int must_be_inside(const char *text) {
    int bars = 0;
    for (; (text = strstr(text, "<rect class=\"")) != NULL; text++) {
        double x, y, width, height;
        if (sscanf(strstr(text, " x="), " x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\"", &x, &y, &width, &height) < 4) continue;
        assert_true(x >= 84 && width > 0 && x + width <= 1171 && height == 20 && y >= 128);
        bars++;
    }
    return bars;
}

static void any_plan_that_holds_is_drawn(void **state) {
    tl_random random = { 77 };
    int i, valid = 0;
    (void)state;
    for (i = 0; i < scaled(400); i++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_plan plan;
        tl_device device = device_of();
        tl_simulate_desc desc;
        tl_report report;
        char *text;
        if (random_graph(&env, &random, 14, &graph) || random_plan(&env, &random, &graph, &plan)) fail_msg("%s", env.error.text);
        if (random_chance(&random, 20)) device.link_latency_ns = tl_next_random(&random) >> 20;
        memset(&desc, 0, sizeof desc);
        desc.graph = &graph;
        desc.plan = &plan;
        desc.device = random_chance(&random, 70) ? &device : NULL;
        if (!tl_simulate_plan(&env, &desc, &report)) {
            long bars;
            valid++;
            text = svg_of(&graph, &plan, desc.device);
            assert_true(must_be_inside(text) > 0 || !report.forward_count);
            assert_int_equal(steps_told(text, "backward", &bars), report.backward_count);
            assert_int_equal(steps_told(text, "recompute", &bars), report.recompute_count);
            free(text);
        } else {
            memory_sink m;
            assert_int_equal(tl_write_plan_svg(&env, &graph, &plan, desc.device, NULL, sink_of(&m, -1)), env.error.code);
            assert_int_equal(m.count, 0);
        }
        random_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    assert_true(is_thinned() || valid > 100);
}

// -- the arena --

static const char training[] = "tlg 1\n"
                               "node 0 x input fwd=0 bwd=0 out=1000 needs=none in=-\n"
                               "node 1 first op fwd=10 bwd=20 out=1000,500 needs=in in=0 saved=250\n"
                               "node 2 second op fwd=10 bwd=20 out=1000 needs=in in=1.0,1.1\n";

static tl_plan placed_plan(const tl_graph *graph, tl_plan plan) {
    tl_env env = silent_env();
    tl_places_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    if (tl_plan_places(&env, &desc, &plan, NULL)) fail_msg("%s", env.error.text);
    return plan;
}

static char *styled_svg_of(const tl_graph *graph, const tl_plan *plan, const tl_svg_style *style) {
    tl_env env = silent_env();
    memory_sink m;
    tl_sink sink = sink_of(&m, -1);
    if (tl_write_plan_svg(&env, graph, plan, NULL, style, sink)) fail_msg("%s", env.error.text);
    must_be_xml(m.text);
    return m.text;
}

static void arena_is_drawn_by_address_and_time(void **state) {
    static const tl_svg_line lines[] = { { "budget", 6000 }, { "keep <all>", 9000 }, { NULL, 100000 } };
    tl_graph graph = graph_of(training);
    tl_plan plan = placed_plan(&graph, schedule_of("S 1\nF 2\nB 2\nB 1\n"));
    tl_svg_style style;
    tl_lifetimes lives;
    char wanted[300], *text;
    int32_t i;
    (void)state;
    memset(&style, 0, sizeof style);
    style.title = "net & co";
    style.lines = lines;
    style.line_count = 3;
    text = styled_svg_of(&graph, &plan, &style);
    assert_int_equal(plan.arena_bytes, 6250);
    must_hold(text, "class=\"title\">net &amp; co: plan of 4 steps on 3 nodes</text>");
    must_hold(text, "; arena 6.10 KiB; peak 6.10 KiB at step 2");
    assert_int_equal(count_of(text, "<path class=\"line\""), 3 + 2);  // arena, budget, keep all; arena and budget again
    must_hold(text, ">budget 5.86 KiB</text>");
    must_hold(text, ">keep &lt;all&gt; 8.79 KiB</text>");
    must_hold(text, ">\xe2\x86\x91 97.7 KiB</text>");
    assert_int_equal(count_of(text, ">arena 6.10 KiB</text>"), 2);
    must_hold(text, ">addresses in the arena</text>");
    must_hold(text, ">input</text>");
    must_hold(text, ">made</text>");
    must_hold(text, ">gradient</text>");
    must_hold(text, ">saved</text>");
    assert_false(contains(text, ">made again</text>") || contains(text, ">compressed</text>"));
    assert_int_equal(tl_find_lifetimes(NULL, &graph, &plan, &lives), TL_OK);
    for (i = 0; i < lives.count; i++) {
        const tl_lifetime *life = &lives.items[i];
        snprintf(wanted, sizeof wanted, "<title>%s%s, %s\n%s at %d\nsteps %d to %d</title></rect>", tl_name_node(&graph, life->node),
                 life->node != 1 ? "" : life->output ? ".1" : ".0", tl_name_use(life->use),
                 life->bytes == 1000 ? "1000 B" : life->bytes == 500 ? "500 B" : "250 B", (int)life->offset, (int)life->first_step,
                 (int)life->end_step - 1);
        must_hold(text, wanted);
    }
    assert_int_equal(count_of(text, "</title></rect>"), lives.count + 4);  // and the bars of the steps
    assert_int_equal(count_of(text, " class=\"bar\">second</text>"), 4);   // two steps, its output and its gradient
    tl_free_lifetimes(NULL, &lives);
    free(text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

// The rectangles of the arena lie in its plot, and no two of them share a point.
static long must_be_apart(const char *text) {
    static double boxes[4000][4];
    long count = 0, i;
    for (; (text = strstr(text, "<rect class=\"")) != NULL; text++) {
        double *b = boxes[count];
        const char *end = strstr(text, "</title></rect>"), *at = strstr(text, " at ");
        if (!end || !at || at > end) continue;
        if (sscanf(strstr(text, " x="), " x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\"", &b[0], &b[1], &b[2], &b[3]) < 4) continue;
        assert_true(b[0] >= 84 && b[0] + b[2] <= 1170.001 && b[2] >= 1 && b[3] >= 1 && b[2] * b[3] >= 23.9);
        for (i = 0; i < count; i++) {
            const double *o = boxes[i];
            assert_true(b[0] + b[2] < o[0] + .001 || o[0] + o[2] < b[0] + .001 || b[1] + b[3] < o[1] + .001 || o[1] + o[3] < b[1] + .001);
        }
        if (++count == 4000) break;
    }
    return count;
}

static void rectangles_of_random_arenas_share_no_point(void **state) {
    tl_random random = { 78 };
    long i, valid = 0, all = 0;
    (void)state;
    for (i = 0; i < scaled(200); i++) {
        tl_env env = silent_env();
        tl_graph graph;
        tl_plan plan, copy;
        tl_simulate_desc desc;
        tl_report report;
        char *text;
        memset(&desc, 0, sizeof desc);
        if (random_graph(&env, &random, 14, &graph) || random_plan(&env, &random, &graph, &plan)) fail_msg("%s", env.error.text);
        desc.graph = &graph;
        desc.plan = &plan;
        if (!tl_simulate_plan(&env, &desc, &report) && !tl_copy_plan(&env, &plan, &copy)) {
            copy = placed_plan(&graph, copy);
            text = styled_svg_of(&graph, &copy, NULL);
            all += must_be_apart(text);
            valid++;
            free(text);
            tl_free_plan(&env, &copy);
        }
        random_free_plan(&env, &plan);
        tl_free_graph(&env, &graph);
    }
    assert_true(is_thinned() || (valid > 50 && all > 500));
}

// What is smaller than a pixel is drawn in cells, so that the picture stays small.
static void thousands_of_allocations_are_drawn_in_a_bounded_picture(void **state) {
    tl_chain_desc chain;
    tl_graph graph;
    tl_plan plan;
    char *text;
    (void)state;
    memset(&chain, 0, sizeof chain);
    chain.layer_count = 1000;
    chain.input_bytes = 1;
    assert_int_equal(tl_add_chain(NULL, &graph, &chain), TL_OK);
    assert_int_equal(tl_plan_revolve(NULL, &graph, 6, &plan), TL_OK);
    plan = placed_plan(&graph, plan);
    assert_true(plan.offset_count > 5000);
    text = styled_svg_of(&graph, &plan, NULL);
    assert_true(must_be_apart(text) > 100);
    must_hold(text, "v2h-");
    assert_true(strlen(text) < 600000);
    free(text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void plan_without_places_has_no_arena_to_draw(void **state) {
    tl_graph graph = graph_of(training);
    tl_plan plan;
    char *text;
    (void)state;
    assert_int_equal(tl_plan_keep_all(NULL, &graph, 0, &plan), TL_OK);
    text = styled_svg_of(&graph, &plan, NULL);
    assert_false(contains(text, "addresses in the arena"));
    free(text);
    plan = placed_plan(&graph, plan);
    text = styled_svg_of(&graph, &plan, NULL);
    must_hold(text, "addresses in the arena");
    free(text);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void picture_of_a_plan_holds_its_rules(void **state) {
    tl_graph graph = graph_of(network);
    tl_plan plan = schedule_of("F 1\nB 2\n");
    tl_device device = device_of();
    tl_env env = silent_env();
    memory_sink m;
    tl_sink sink = sink_of(&m, -1);
    tl_svg_style style;
    (void)state;
    assert_int_equal(tl_write_plan_svg(&env, &graph, &plan, NULL, NULL, sink), TL_ERROR_INVALID_PLAN);
    assert_string_equal(env.error.text, "tl_write_plan_svg: step 1 (B 2 b\"'): forward never ran");
    plan.step_count = -1;
    assert_int_equal(tl_write_plan_svg(&env, &graph, &plan, NULL, NULL, sink), TL_ERROR_INVALID_ARG);
    assert_string_equal(env.error.text, "tl_write_plan_svg: step_count: must be the number of steps");
    plan.step_count = 2;
    device.alignment_bytes = 3;
    assert_int_equal(tl_write_plan_svg(&env, &graph, &plan, &device, NULL, sink), TL_ERROR_INVALID_ARG);
    memset(&style, 0, sizeof style);
    for (style.line_count = -1; style.line_count < 10; style.line_count += 10) {
        assert_int_equal(tl_write_plan_svg(&env, &graph, &plan, NULL, &style, sink), TL_ERROR_INVALID_ARG);
        assert_string_equal(env.error.text, "tl_write_plan_svg: style: line_count must be 0 to 8");
    }
    assert_int_equal(m.count, 0);
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

static void picture_of_a_plan_survives_every_failure(void **state) {
    tl_graph graph = graph_of(network);
    tl_plan plan = placed_plan(&graph, schedule_of(spilling));
    tl_device device = device_of();
    memory_sink m;
    long at, writes;
    (void)state;
    for (at = 0; ; at++) {
        failing_alloc f = {0};
        tl_env env = failing_env(&f, at);
        tl_result result = tl_write_plan_svg(&env, &graph, &plan, &device, NULL, sink_of(&m, -1));
        assert_int_equal(f.live, 0);
        writes = m.count;
        free(m.text);
        if (f.count <= at) { assert_int_equal(result, TL_OK); break; }
        assert_int_equal(result, TL_ERROR_NO_MEMORY);
        assert_int_equal(writes, 0);
    }
    for (at = 0; at < writes; at++) {
        failing_alloc f = {0};
        tl_env env = failing_env(&f, -1);
        char wanted[120];
        assert_int_equal(tl_write_plan_svg(&env, &graph, &plan, &device, NULL, sink_of(&m, at)), TL_ERROR_DEVICE_LOST);
        snprintf(wanted, sizeof wanted, "tl_write_plan_svg: sink: stopped with device lost after %d bytes", (int)m.length);
        assert_string_equal(env.error.text, wanted);
        assert_int_equal(m.after_failure, 0);
        assert_int_equal(f.live, 0);
        free(m.text);
    }
    tl_free_plan(NULL, &plan);
    tl_free_graph(NULL, &graph);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simulation_tells_when_each_step_begins_and_ends),
        cmocka_unit_test(times_of_random_plans_never_overlap_in_a_lane),
        cmocka_unit_test(plan_is_drawn_in_lanes_over_its_memory),
        cmocka_unit_test(utf8_names_are_drawn_as_they_are),
        cmocka_unit_test(steps_are_counted_from_0_everywhere),
        cmocka_unit_test(lanes_that_nothing_is_in_are_not_drawn),
        cmocka_unit_test(plans_without_time_or_steps_are_drawn_too),
        cmocka_unit_test(thousands_of_steps_are_drawn_together_and_none_is_lost),
        cmocka_unit_test(any_plan_that_holds_is_drawn),
        cmocka_unit_test(arena_is_drawn_by_address_and_time),
        cmocka_unit_test(rectangles_of_random_arenas_share_no_point),
        cmocka_unit_test(thousands_of_allocations_are_drawn_in_a_bounded_picture),
        cmocka_unit_test(plan_without_places_has_no_arena_to_draw),
        cmocka_unit_test(picture_of_a_plan_holds_its_rules),
        cmocka_unit_test(picture_of_a_plan_survives_every_failure),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
