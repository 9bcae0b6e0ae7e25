// TL_NO_ACCOUNTS: the CPU backend has no accounts; a run and then a manager use it all the same, and what else is claimed
// during a pass is found.
// lang: both
#define TL_NO_ACCOUNTS
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

static tl_result compute(const tl_kernel_call *call, void *user) {
    (void)call;
    (void)user;
    return TL_OK;
}

// An online pass over two layers. With others = 1 somebody else claims 4 bytes meanwhile.
static tl_result train(tl_env *env, const tl_backend *backend, int others) {
    tl_run_desc desc;
    tl_layer layers[2];
    tl_range range;
    tl_run *run;
    tl_result result;
    tli_zero(&desc, sizeof desc);
    tli_zero(layers, sizeof layers);
    tli_zero(&range, sizeof range);
    desc.backend = backend;
    layers[0].forward = layers[0].backward = layers[1].forward = layers[1].backward = compute;
    layers[0].output_bytes = layers[1].output_bytes = 4;
    result = tl_init_layer_run(env, &desc, layers, 2, 4, &run);
    if (result) return result;
    range.bytes = 4;
    if (others) result = backend->add_block(backend->self, TL_TIER_DEVICE, 4, &range.block);
    if (!result) result = tl_start_pass(run, 0);
    if (!result && others) result = backend->claim(backend->self, range);
    while (!result) {
        tl_run_step step;
        int32_t done;
        result = tl_next_step(run, &step, &done);
        if (done) break;
        if (!result && step.is_compute) result = tl_run_step_kernel(run, &step);
    }
    tl_free_run(run);
    return result;
}

static tl_result save(tl_env *env, const tl_backend *backend) {
    tl_manager_desc desc;
    tl_save_desc checkpoint;
    tl_manager *manager;
    int32_t value = 1;
    tl_result result;
    tli_zero(&desc, sizeof desc);
    tli_zero(&checkpoint, sizeof checkpoint);
    desc.device_budget_bytes = 64;
    checkpoint.data = &value;
    checkpoint.bytes = sizeof value;
    result = tl_init_manager(env, backend, &desc, &manager);
    if (!result) result = tl_save_checkpoint(env, manager, &checkpoint);
    if (!result) result = tl_take_checkpoint(env, manager, checkpoint.key, &value, sizeof value);
    tl_free_manager(manager);
    return result;
}

int main(void) {
    tl_env env;
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    int failed;
    tli_zero(&env, sizeof env);
    tli_zero(&cpu, sizeof cpu);
    if (tl_init_cpu_backend(&env, &cpu, &backend)) return 1;
    failed = backend.open_account || backend.close_account || backend.claim_on || backend.release_on ||
             backend.measure_account;
    failed |= train(&env, &backend, 0) != TL_OK || save(&env, &backend) != TL_OK;
    failed |= train(&env, &backend, 1) != TL_ERROR_MISMATCH || train(&env, &backend, 0) != TL_OK;
    return failed || tl_free_cpu_backend(&env, &backend) != TL_OK;
}
