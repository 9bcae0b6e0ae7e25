// A plan and its graph as const tables, run with nothing but memory of the caller: no planner, no text, no malloc.
#define TL_NO_STDIO
#define TL_NO_TEXT
#define TL_NO_TRACE
#define TL_NO_PLANNERS
#define TL_MALLOC(user, size) ((void)(user), (void)(size), (void *)0)
#define TL_FREE(user, ptr) ((void)(user), (void)(ptr))
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "../support/table.h"

static void mix(const tl_operand *operand, uint64_t *sum) {
    const unsigned char *at = (const unsigned char *)operand->host;
    uint64_t i;
    for (i = 0; i < operand->range.bytes; i++) *sum = tl_mix_u64(*sum, at[i]);
}

static void fill(const tl_operand *operand, uint64_t sum) {
    unsigned char *at = (unsigned char *)operand->host;
    uint64_t i;
    for (i = 0; i < operand->range.bytes; i++) at[i] = (unsigned char)(at[i] * 3u + (tl_mix_u64(sum, i) & 255u));
}

static void clear(const tl_operand *operand) {
    unsigned char *at = (unsigned char *)operand->host;
    uint64_t i;
    for (i = 0; i < operand->range.bytes; i++) at[i] = 0;
}

static tl_result forward(const tl_kernel_call *call, void *user) {
    const tl_node *node = &call->graph->nodes[call->node];
    uint64_t sum = (uint64_t)call->node;
    int32_t i;
    (void)user;
    for (i = 0; i < node->input_count; i++) mix(&call->inputs[i], &sum);
    for (i = 0; i < node->output_count; i++) { clear(&call->outputs[i]); fill(&call->outputs[i], sum + (uint64_t)i); }
    clear(&call->saved);
    fill(&call->saved, sum + 9);
    return TL_OK;
}

static tl_result backward(const tl_kernel_call *call, void *user) {
    const tl_node *node = &call->graph->nodes[call->node];
    uint64_t sum = (uint64_t)call->node, *gradients = (uint64_t *)user;
    int32_t i;
    for (i = 0; i < node->input_count; i++) mix(&call->inputs[i], &sum);
    for (i = 0; i < node->output_count; i++) { mix(&call->outputs[i], &sum); mix(&call->output_grads[i], &sum); }
    mix(&call->saved, &sum);
    for (i = 0; i < node->input_count; i++) fill(&call->input_grads[i], sum + (uint64_t)i);
    *gradients = tl_mix_u64(*gradients, sum);
    return TL_OK;
}

// One training step from the tables, or online, with all that it wants: what the backward kernels saw.
static int run_table(tl_env *env, tl_backend *backend, int online, uint64_t *gradients) {
    static const char *const ops[] = { "linear", "relu", "split", "gate", "join", "ce" };
    tl_kernel kernels[6];
    tl_run_desc desc;
    tl_run_report report;
    tl_run *run;
    int32_t i;
    int failed;
    *gradients = 0;
    for (i = 0; i < 6; i++) {
        kernels[i].op = ops[i];
        kernels[i].forward = forward;
        kernels[i].backward = backward;
        kernels[i].user = gradients;
    }
    tli_zero(&desc, sizeof desc);
    desc.graph = &table_graph;
    desc.plan = online ? NULL : &table_plan;
    desc.backend = backend;
    desc.kernels = kernels;
    desc.kernel_count = 6;
    desc.budget_bytes = online ? 0 : table_plan.arena_bytes;
    if (tl_init_run(env, &desc, &run)) return 1;
    failed = tl_run_plan(run) != TL_OK;
    tl_measure_run(run, &report);
    tl_free_run(run);
    if (!online && report.measured_peak_bytes != table_plan.peak_bytes) return 1;
    if (!online && report.taken_bytes != table_plan.arena_bytes) return 1;
    return failed || online != !report.recompute_count;
}

int main(void) {
    static uint64_t memory[4096], device[512];
    tl_cpu_backend_desc desc;
    tl_env env;
    tl_backend backend;
    uint64_t planned, plain;
    if (tl_init_arena(&env, memory, sizeof memory)) return 1;
    tli_zero(&desc, sizeof desc);
    desc.memory = device;
    desc.memory_bytes = sizeof device;
    desc.alignment_bytes = 8;
    if (tl_init_cpu_backend(&env, &desc, &backend)) return 2;
    if (run_table(&env, &backend, 0, &planned)) return 3;
    if (run_table(&env, &backend, 1, &plain)) return 4;
    tl_free_cpu_backend(&env, &backend);
    return planned != plain;
}
