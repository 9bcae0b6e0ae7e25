// A plan and its graph as const tables, run with nothing but memory of the caller: no planner, no text, no malloc, and
// on the device exactly the bytes that the table names. Another table stands in the same program, and the first one once more
// in narrow numbers and without names, read where it is: a run of it takes no byte of the env beyond what the plain one takes.
#define TL_NO_STDIO
#define TL_NO_TEXT
#define TL_NO_TRACE
#define TL_NO_PLANNERS
#define TL_MALLOC(user, size) ((void)(user), (void)(size), (void *)0)
#define TL_FREE(user, ptr) ((void)(user), (void)(ptr))
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "../support/table.h"
#include "../support/table_narrow.h"
#include "../support/table_small.h"

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

// One pass of a plan, or without one online, with all that it wants: what the kernels saw. The input may be written where
// it lies.
static int run_table(tl_env *env, tl_backend *backend, const tl_graph *graph, const tl_plan *plan, unsigned char *input,
                     uint64_t *gradients) {
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
    desc.graph = graph;
    desc.plan = plan;
    desc.backend = backend;
    desc.kernels = kernels;
    desc.kernel_count = 6;
    desc.budget_bytes = plan ? plan->arena_bytes : 0;
    if (tl_init_run(env, &desc, &run)) return 1;
    if (input) *input = 5;
    failed = tl_run_plan(run) != TL_OK;
    tl_measure_run(run, &report);
    tl_free_run(run);
    if (plan && report.measured_peak_bytes != plan->peak_bytes) return 1;
    if (plan && report.taken_bytes != plan->arena_bytes) return 1;
    return failed || (plan == &table_plan || plan == &narrow_plan) != (report.recompute_count > 0);
}

// Make the backend over a block of the caller, as many bytes as a table says.
static int open_block(tl_env *env, void *block, uint64_t bytes, tl_backend *backend) {
    tl_cpu_backend_desc desc;
    tli_zero(&desc, sizeof desc);
    desc.memory = block;
    desc.memory_bytes = bytes;
    desc.alignment_bytes = 8;
    return tl_init_cpu_backend(env, &desc, backend) != TL_OK;
}

// A training step in exactly its bytes: the words on both sides stay as they are, and a byte less is refused.
static int train(tl_env *env, const tl_graph *graph, const tl_plan *plan, uint64_t *planned) {
    static uint64_t arena[TABLE_ARENA_BYTES / 8 + 2];
    tl_backend backend;
    uint64_t none;
    int failed;
    arena[0] = arena[TABLE_ARENA_BYTES / 8 + 1] = 77;
    if (open_block(env, arena + 1, TABLE_ARENA_BYTES - 8, &backend)) return 1;
    failed = !run_table(env, &backend, graph, plan, NULL, &none);
    failed |= tl_free_cpu_backend(env, &backend) != TL_OK;
    if (open_block(env, arena + 1, TABLE_ARENA_BYTES, &backend)) return 1;
    failed |= run_table(env, &backend, graph, plan, NULL, planned);
    failed |= tl_free_cpu_backend(env, &backend) != TL_OK;
    return failed || arena[0] != 77 || arena[TABLE_ARENA_BYTES / 8 + 1] != 77;
}

// A pass forward: the input is written to the arena and the result read from it, at the offsets of the table.
static int infer(tl_env *env, int writes, uint64_t *result) {
    static uint64_t arena[SMALL_ARENA_BYTES / 8];
    const uint64_t *at = arena + SMALL_RESULT_JOIN_OFFSET / 8;
    tl_backend backend;
    uint64_t none;
    int failed, i;
    if (open_block(env, arena, SMALL_ARENA_BYTES, &backend)) return 1;
    failed = run_table(env, &backend, &small_graph, &small_plan,
                       writes ? (unsigned char *)arena + SMALL_INPUT_X_OFFSET : NULL, &none);
    failed |= tl_free_cpu_backend(env, &backend) != TL_OK;
    *result = 0;
    for (i = 0; i < SMALL_RESULT_JOIN_BYTES / 8; i++) *result = tl_mix_u64(*result, at[i]);
    return failed;
}

int main(void) {
    static uint64_t memory[4096], plenty[512];
    tl_env env;
    tl_backend backend;
    uint64_t planned, narrow, plain, of_zeroes, of_input;
    if (tl_init_arena(&env, memory, sizeof memory)) return 1;
    if (train(&env, &table_graph, &table_plan, &planned)) return 2;
    if (train(&env, &narrow_graph, &narrow_plan, &narrow) || narrow != planned || NARROW_ARENA_BYTES != TABLE_ARENA_BYTES) return 7;
    if (open_block(&env, plenty, sizeof plenty, &backend)) return 3;
    if (run_table(&env, &backend, &table_graph, NULL, NULL, &plain)) return 4;
    if (tl_free_cpu_backend(&env, &backend)) return 5;
    if (infer(&env, 0, &of_zeroes) || infer(&env, 1, &of_input) || of_zeroes == of_input) return 6;
    return planned != plain || TABLE_NODE_JOIN != SMALL_NODE_JOIN || TABLE_ALIGNMENT != 8;
}
