// The code that a microcontroller needs to train inside a budget: the manager and the executor, planned and online, on
// the CPU backend, in memory of the caller. Linked with unused sections dropped, its size is measured (make size).
#ifndef SIZE_OPTIONS  // the table of make size gives its own
#define TL_NO_STDIO
#define TL_NO_THREADS
#define TL_NO_TEXT
#define TL_NO_TRACE
#define TL_NO_PLANNERS
#define TL_NO_CHECKS
#define TL_NO_PRECISION  // f32 only
#define TL_NO_OFFLOAD
#define TL_NO_ACCOUNTS  // one run or manager uses the backend at a time
#endif
#define TL_MALLOC(user, size) ((void)(user), (void)(size), (void *)0)
#define TL_FREE(user, ptr) ((void)(user), (void)(ptr))
#define TL_ASSERT(x) ((void)(x))
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

static char memory[16384];

static tl_result forward(const tl_kernel_call *call, void *user) {
    (void)user;
    *(int32_t *)call->outputs[0].host = *(const int32_t *)call->inputs[0].host / 2;
    return TL_OK;
}

static tl_result backward(const tl_kernel_call *call, void *user) {
    (void)user;
    if (call->input_grads[0].host) *(int32_t *)call->input_grads[0].host += *(const int32_t *)call->output_grads[0].host / 2;
    return TL_OK;
}

#ifndef TL_NO_ONLINE
static tl_result use_manager(tl_env *env, const tl_backend *backend) {
    tl_manager_desc desc;
    tl_save_desc save;
    tl_manager *manager;
    int32_t value = 1;
    tl_result result;
    tli_zero(&desc, sizeof desc);
    tli_zero(&save, sizeof save);
    desc.device_budget_bytes = 64;
    save.data = &value;
    save.bytes = sizeof value;
    result = tl_init_manager(env, backend, &desc, &manager);
    if (!result) result = tl_save_checkpoint(env, manager, &save);
    if (!result) result = tl_take_checkpoint(env, manager, save.key, &value, sizeof value);
    tl_free_manager(manager);
    return result;
}
#endif

static tl_result use_run(tl_env *env, const tl_backend *backend, const tl_plan *plan) {
    tl_run_desc desc;
    tl_layer layers[4];
    tl_run *run;
    tl_result result;
    int32_t i;
    tli_zero(&desc, sizeof desc);
    tli_zero(layers, sizeof layers);
    for (i = 0; i < 4; i++) {
        layers[i].forward = forward;
        layers[i].backward = backward;
        layers[i].output_bytes = sizeof(int32_t);
    }
    desc.backend = backend;
    desc.plan = plan;
    desc.budget_bytes = 40;
    result = tl_init_layer_run(env, &desc, layers, 4, sizeof(int32_t), &run);
    if (!result) result = tl_run_plan(run);
    tl_free_run(run);
    return result;
}

int main(void) {
    static const tl_step steps[] = {
        { TL_STEP_FORWARD, 0, 0, 1, -1, 0 }, { TL_STEP_FORWARD, 0, 0, 2, -1, 0 }, { TL_STEP_FORWARD, 0, 0, 3, -1, 0 },
        { TL_STEP_FORWARD, 0, 0, 4, -1, 0 }, { TL_STEP_DROP, 0, 0, 4, -1, 0 }, { TL_STEP_BACKWARD, 0, 0, 4, -1, 0 },
        { TL_STEP_DROP, 0, 0, 3, -1, 0 }, { TL_STEP_BACKWARD, 0, 0, 3, -1, 0 }, { TL_STEP_DROP, 0, 0, 2, -1, 0 },
        { TL_STEP_BACKWARD, 0, 0, 2, -1, 0 }, { TL_STEP_DROP, 0, 0, 1, -1, 0 }, { TL_STEP_BACKWARD, 0, 0, 1, -1, 0 },
    };
    tl_env env;
    tl_backend backend;
    tl_cpu_backend_desc desc;
    tl_plan plan;
    tl_result result = tl_init_arena(&env, memory, sizeof memory);
    tli_zero(&desc, sizeof desc);
    tli_zero(&plan, sizeof plan);
    plan.steps = steps;
    plan.step_count = (int32_t)(sizeof steps / sizeof steps[0]);
    if (!result) result = tl_init_cpu_backend(&env, &desc, &backend);
    if (!result) result = use_run(&env, &backend, &plan);
#ifndef TL_NO_ONLINE
    if (!result) result = use_manager(&env, &backend);
    if (!result) result = use_run(&env, &backend, 0);
#endif
    tl_free_cpu_backend(&env, &backend);
    return (int)result;
}
