// What tests/build/only_tables.c and small_sizes.c do: train a table, plain and narrow, in 2 KiB of state and exactly the bytes
// that the table names, without malloc. Include after the implementation.
#ifndef TESTS_TABLES_ONLY_H
#define TESTS_TABLES_ONLY_H

#include "table.h"
#include "table_narrow.h"

static tl_result tables_kernel(const tl_kernel_call *call, void *user) {
    const tl_operand *from = call->kind == TL_STEP_BACKWARD ? call->output_grads : call->inputs;
    const tl_operand *to = call->kind == TL_STEP_BACKWARD ? call->input_grads : call->outputs;
    uint64_t *sum = (uint64_t *)user, i;
    for (i = 0; i < from[0].range.bytes; i++) *sum = tl_mix_u64(*sum, ((const unsigned char *)from[0].host)[i]);
    for (i = 0; i < to[0].range.bytes && !call->outputs_ready; i++)
        ((unsigned char *)to[0].host)[i] = (unsigned char)(tl_mix_u64((uint64_t)call->node, i) & 255u);
    return TL_OK;
}

// A training step; *sum: of what its kernels read. plan: NULL is refused.
static tl_result tables_train(const tl_graph *graph, const tl_plan *plan, uint64_t *sum) {
    static const char *const ops[] = { "linear", "relu", "split", "gate", "join", "ce" };
    static uint64_t memory[256], arena[TABLE_ARENA_BYTES / 8];
    tl_env env;
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_kernel kernels[6];
    tl_run_desc desc;
    tl_run_report report;
    tl_run *run;
    tl_result result = tl_init_arena(&env, memory, sizeof memory);
    int32_t i;
    *sum = 0;
    tli_zero(arena, sizeof arena);
    for (i = 0; i < 6; i++) {
        kernels[i].op = ops[i];
        kernels[i].forward = kernels[i].backward = tables_kernel;
        kernels[i].user = sum;
    }
    tli_zero(&cpu, sizeof cpu);
    cpu.memory = arena;
    cpu.memory_bytes = sizeof arena;
    cpu.alignment_bytes = TABLE_ALIGNMENT;
    if (!result) result = tl_init_cpu_backend(&env, &cpu, &backend);
    if (result) return result;
    tli_zero(&desc, sizeof desc);
    desc.graph = graph;
    desc.plan = plan;
    desc.backend = &backend;
    desc.kernels = kernels;
    desc.kernel_count = 6;
    result = tl_init_run(&env, &desc, &run);
    if (!result) {
        result = tl_run_plan(run);
        tl_measure_run(run, &report);
        tl_free_run(run);
        if (!result && report.step_count != plan->step_count) result = TL_ERROR_MISMATCH;
    }
    (void)tl_free_cpu_backend(&env, &backend);
    return result;
}

static int tables_fail(void) {
    uint64_t plain, narrow, none;
    if (tables_train(&table_graph, &table_plan, &plain) || tables_train(&narrow_graph, &narrow_plan, &narrow)) return 1;
    return plain != narrow || !plain || tables_train(&table_graph, NULL, &none) != TL_ERROR_UNSUPPORTED || none;
}

#endif
