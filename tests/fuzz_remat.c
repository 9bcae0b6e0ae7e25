// clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz_remat.c -o build/fuzz_remat && build/fuzz_remat -max_len=256 tests/corpus/fuzz_remat
//
// Bytes become a small graph, a budget and a limit of work. Whatever they are, an answer holds: a plan is valid, within its
// budget, and costs no less than the bound; infeasible names a budget that is above the one asked for; the same again is
// the same; and a plan with the budget that was named exists, where work is not short.

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/fuzz_bytes.h"

static int add_node(tl_graph *graph, reader *r) {
    static const char *const needs[] = { "none", "in", "out", "in,out", "in0", "out0", "in0,out", "in,out0" };
    tl_node_desc desc;
    tl_tensor inputs[3];
    uint64_t bytes[3];
    uint32_t shape = next_byte(r), flags = next_byte(r);
    memset(&desc, 0, sizeof desc);
    if (!graph->node_count || shape >= 250) desc.op = "input";
    next_tensors(r, graph, shape, &desc, inputs, bytes);
    desc.keep = flags & 1;
    if (desc.op) return tl_add_node(NULL, graph, &desc, NULL) == TL_OK;
    desc.no_grad = flags >> 1 & flags >> 2 & 1;
    desc.needs = desc.no_grad ? "none" : needs[flags >> 3 & 7];
    desc.fwd_cost = next_amount(r);
    if (!desc.no_grad) desc.bwd_cost = next_amount(r);
    if (flags & 64) desc.fwork_bytes = next_amount(r);
    if (flags & 128 && !desc.no_grad) { desc.saved_bytes = next_amount(r); desc.bwork_bytes = next_amount(r); }
    return tl_add_node(NULL, graph, &desc, NULL) == TL_OK;
}

static tl_result plan_once(const tl_remat_desc *desc, tl_plan *plan, tl_remat_report *report) {
    static const tl_plan empty;
    tl_env env;
    tl_simulate_desc replay;
    tl_report simulated;
    uint64_t budget = desc->budget_bytes ? desc->budget_bytes : UINT64_MAX;
    tl_result result;
    memset(&env, 0, sizeof env);
    result = tl_plan_remat(&env, desc, plan, report);
    if (result) {
        MUST(result == TL_ERROR_INFEASIBLE || result == TL_ERROR_OVERFLOW);
        MUST(env.error.code == result && env.error.text[0]);
        MUST(!memcmp(plan, &empty, sizeof empty));
        if (result == TL_ERROR_OVERFLOW) return result;
        MUST(!report->least_budget_bytes || report->least_budget_bytes > budget);
        MUST(!report->least_budget_bytes || report->bound_budget_bytes <= report->least_budget_bytes);
        MUST(!report->proven || report->bound_budget_bytes > budget);
        return result;
    }
    memset(&replay, 0, sizeof replay);
    replay.graph = desc->graph;
    replay.plan = plan;
    if (tl_simulate_plan(&env, &replay, &simulated)) { fprintf(stderr, "%s\n", env.error.text); abort(); }
    MUST(simulated.peak_bytes == plan->peak_bytes && simulated.cost == plan->cost);
    MUST(desc->base_bytes <= budget && plan->peak_bytes <= budget - desc->base_bytes);
    MUST(report->cost == plan->cost && report->bound_cost <= plan->cost && plan->bound_cost == report->bound_cost);
    MUST(report->proven == (report->bound_cost == report->cost));
    return TL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint64_t limits[] = { 1, 100, 10000, 300000 };
    reader r;
    tl_graph graph;
    tl_remat_desc desc;
    tl_remat_report report, again;
    tl_plan plan, other;
    tl_result result;
    uint32_t head, count, i;
    r.at = data;
    r.end = data + size;
    head = next_byte(&r);
    memset(&desc, 0, sizeof desc);
    desc.inference = (int32_t)(head & 1);
    desc.work_limit = limits[head >> 1 & 3];
    desc.budget_bytes = head & 8 ? UINT64_MAX - (head >> 4) : 4 * next_amount(&r);
    desc.base_bytes = head & 16 ? next_amount(&r) : 0;
    count = 2 + next_byte(&r) % (head & 32 ? 24 : 9);
    tl_init_graph(&graph);
    for (i = 0; i < count; i++)
        if (!add_node(&graph, &r)) break;
    desc.graph = &graph;
    desc.live = 1;
    if (i == count && !tl_check_graph(NULL, &graph)) {
        result = plan_once(&desc, &plan, &report);
        MUST(plan_once(&desc, &other, &again) == result && !memcmp(&report, &again, sizeof report));
        if (!result) {
            MUST(plan.step_count == other.step_count);
            MUST(!plan.step_count || !memcmp(plan.steps, other.steps, (size_t)plan.step_count * sizeof *plan.steps));
        }
        tl_free_plan(NULL, &plan);
        tl_free_plan(NULL, &other);
        if (result == TL_ERROR_INFEASIBLE && report.least_budget_bytes) {
            desc.budget_bytes = report.least_budget_bytes;
            MUST(plan_once(&desc, &plan, &again) == TL_OK);
            tl_free_plan(NULL, &plan);
        }
    }
    tl_free_graph(NULL, &graph);
    return 0;
}
