// The code and the memory that a run of a const table needs: the executor of TL_SMALL_SIZES, its table, and kernels that do
// nothing. Its data is all the memory there is beside the arena, which is elsewhere; tests/size.sh has limits for both.
#define TL_SMALL_SIZES
#define TL_NO_STDIO
#define TL_NO_THREADS
#define TL_NO_ERROR_TEXT
#define TL_NO_OFFLOAD
#define TL_NO_MATH
#define TL_MALLOC(user, size) ((void)(user), (void)(size), (void *)0)
#define TL_FREE(user, ptr) ((void)(user), (void)(ptr))
#define TL_ASSERT(x) ((void)(x))
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/table_narrow.h"

extern unsigned char arena[NARROW_ARENA_BYTES];

static uint64_t memory[104];
static tl_env env;
static tl_backend backend;
static tl_run *run;

static tl_result compute(const tl_kernel_call *call, void *user) {
    (void)call;
    (void)user;
    return TL_OK;
}

static tl_result start(void) {
    static const tl_kernel kernels[] = {
        { "linear", compute, compute, NULL }, { "relu", compute, compute, NULL }, { "split", compute, compute, NULL },
        { "gate", compute, compute, NULL },   { "join", compute, compute, NULL }, { "ce", compute, compute, NULL },
    };
    tl_cpu_backend_desc cpu;
    tl_run_desc desc;
    tl_result result = tl_init_arena(&env, memory, sizeof memory);
    tli_zero(&cpu, sizeof cpu);
    tli_zero(&desc, sizeof desc);
    cpu.memory = arena;
    cpu.memory_bytes = sizeof arena;
    cpu.alignment_bytes = NARROW_ALIGNMENT;
    if (!result) result = tl_init_cpu_backend(&env, &cpu, &backend);
    desc.graph = &narrow_graph;
    desc.plan = &narrow_plan;
    desc.backend = &backend;
    desc.kernels = kernels;
    desc.kernel_count = (int32_t)(sizeof kernels / sizeof *kernels);
    return result ? result : tl_init_run(&env, &desc, &run);
}

int main(void) {
    tl_result result = run ? TL_OK : start();
    return (int)(result ? result : tl_run_plan(run));
}
