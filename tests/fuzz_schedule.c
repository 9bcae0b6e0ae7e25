// make fuzz-schedule, or:
// clang -g -O1 -std=c99 -fsanitize=fuzzer,address,undefined tests/fuzz_schedule.c && ./a.out tests/corpus/fuzz_schedule
//
// A schedule from hostile text, simulated on one graph that has every feature. What was parsed prints to a text that
// parses to the same steps; what is valid simulates again to the same report; what is broken names its step. A plan in
// which calls begin has the costs and the counts of the same plan in which each of them ends at once.
// The first byte chooses inference, any order, and a device.
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include <stdlib.h>
#include <string.h>

static const char *const graph_text =
    "tlg 1\n"
    "node 0 x input fwd=0 bwd=0 out=8,4 needs=none in=-\n"
    "node 1 a conv fwd=3 bwd=5 out=132 needs=in in=0 saved=4 fwork=2 bwork=6\n"
    "node 2 b relu fwd=1 bwd=2 out=132 needs=out in=1 inplace=0\n"
    "node 3 s split fwd=4 bwd=3 out=3,5,0 needs=out1 in=2,0.1\n"
    "node 4 c add fwd=2 bwd=2 out=4 needs=in0 in=3.0,3.1,1 keep\n"
    "node 5 frozen mask fwd=7 bwd=0 out=2 needs=none in=1 grad=no\n";

static void check(int ok) { if (!ok) abort(); }

static void simulate(const tl_graph *graph, const tl_plan *plan, unsigned choice) {
    tl_env env;
    tl_device device;
    tl_simulate_desc desc;
    tl_report report, again;
    tl_result result;
    memset(&env, 0, sizeof env);
    memset(&device, 0, sizeof device);
    device.link_bytes_per_second = choice & 8 ? 300000000 : 0;
    device.link_latency_ns = 5;
    device.codec_bytes_per_second = choice & 16 ? 70000000 : 0;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    desc.device = choice & 4 ? &device : NULL;
    desc.live_bytes = (uint64_t *)calloc((size_t)plan->step_count + 1, sizeof(uint64_t));
    result = tl_simulate_plan(&env, &desc, &report);
    check(result == TL_OK || result == TL_ERROR_INVALID_PLAN);
    check((result == TL_OK) == (report.broken_step < 0) && report.broken_step <= plan->step_count);
    check(result == TL_OK || !strncmp(env.error.text, "tl_simulate_plan: ", 18));
    if (!result) {
        check(report.peak_step >= -1 && report.peak_step < plan->step_count && report.peak_bytes >= report.end_bytes);
        check(report.peak_step < 0 || desc.live_bytes[report.peak_step] == report.peak_bytes);
        check(report.cost >= report.compute_cost);
    }
    desc.live_bytes[0] = 0;
    check(tl_simulate_plan(&env, &desc, &again) == result && !memcmp(&report, &again, sizeof report));
    free(desc.live_bytes);
}

// The step before a step on the same node; -1 = there is none.
static int32_t find_before(const tl_plan *plan, int32_t index) {
    int32_t i = index - 1;
    while (i >= 0 && (plan->steps[i].node != plan->steps[index].node || plan->steps[i].slot != plan->steps[index].slot)) i--;
    return i;
}

static void end_calls_at_once(const tl_graph *graph, const tl_plan *plan) {
    tl_step *steps = (tl_step *)malloc(((size_t)plan->step_count + 1) * sizeof *steps);
    tl_simulate_desc desc;
    tl_report begun, ended;
    tl_plan all = *plan;
    int32_t i, before;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    all.steps = steps;
    all.step_count = 0;
    for (i = 0; i < plan->step_count; i++) {
        before = plan->steps[i].kind == TL_STEP_WAIT ? find_before(plan, i) : -1;
        if (before >= 0 && plan->steps[before].begins) continue;
        steps[all.step_count] = plan->steps[i];
        steps[all.step_count++].begins = 0;
    }
    if (all.step_count < plan->step_count && !tl_simulate_plan(NULL, &desc, &begun)) {
        desc.plan = &all;
        check(!tl_simulate_plan(NULL, &desc, &ended));
        check(ended.peak_bytes <= begun.peak_bytes && ended.end_bytes == begun.end_bytes && ended.cost == begun.cost);
        check(ended.forward_count == begun.forward_count && ended.backward_count == begun.backward_count);
        check(ended.allocation_count == begun.allocation_count);
    }
    free(steps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static tl_graph graph;
    tl_plan plan, back;
    unsigned choice = size ? data[0] : 0;
    char *text;
    size_t length;
    if (!graph.node_count) check(!tl_parse_graph(NULL, graph_text, strlen(graph_text), &graph));
    if (!size || tl_parse_schedule(NULL, (const char *)data + 1, size - 1, &plan)) return 0;
    length = tl_print_schedule(&plan, NULL, 0);
    text = (char *)malloc(length + 1);
    check(tl_print_schedule(&plan, text, length + 1) == length);
    check(!tl_parse_schedule(NULL, text, length, &back) && back.step_count == plan.step_count);
    check(!plan.step_count || !memcmp(back.steps, plan.steps, (size_t)plan.step_count * sizeof *plan.steps));
    check(back.slot_count == plan.slot_count && back.entry_count == plan.entry_count);
    check(!plan.entry_count || !memcmp(back.entry, plan.entry, (size_t)plan.entry_count * sizeof *plan.entry));
    free(text);
    tl_free_plan(NULL, &back);
    plan.inference = choice & 1;
    plan.any_order = choice >> 1 & 1;
    simulate(&graph, &plan, choice);
    if (plan.step_count < 2000) end_calls_at_once(&graph, &plan);   // its time grows with the square
    tl_free_plan(NULL, &plan);
    return 0;
}
