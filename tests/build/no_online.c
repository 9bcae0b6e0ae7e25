// TL_NO_ONLINE: plans are run, given or made for a lazy strategy; a run without a plan, or an eager one, is refused.
// lang: both
#define TL_NO_ONLINE
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

#include <string.h>

static int calls;

static tl_result compute(const tl_kernel_call *call, void *user) {
    (void)call;
    (void)user;
    calls++;
    return TL_OK;
}

// A pass over two layers by a plan, a strategy or neither.
static tl_result train(tl_env *env, const tl_backend *backend, const char *schedule, const tl_strategy *strategy) {
    tl_run_desc desc;
    tl_layer layers[2];
    tl_plan plan;
    tl_run *run;
    tl_result result = tl_parse_schedule(env, schedule, strlen(schedule), &plan);
    tli_zero(&desc, sizeof desc);
    tli_zero(layers, sizeof layers);
    desc.backend = backend;
    desc.strategy = strategy;
    desc.plan = plan.step_count ? &plan : NULL;
    layers[0].forward = layers[0].backward = layers[1].forward = layers[1].backward = compute;
    layers[0].output_bytes = layers[1].output_bytes = 4;
    if (!result) result = tl_init_layer_run(env, &desc, layers, 2, 4, &run);
    if (!result) {
        result = tl_run_plan(run);
        tl_free_run(run);
    }
    tl_free_plan(env, &plan);
    return result;
}

static int refuses(const tl_env *env, tl_result result) {
    return result == TL_ERROR_UNSUPPORTED && strstr(env->error.text, "TL_NO_ONLINE");
}

int main(void) {
    tl_env env;
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_strategy strategy = tl_with_precision(tl_strategy_new(), TL_PRECISION_SINGLE);
    int failed;
    tli_zero(&env, sizeof env);
    tli_zero(&cpu, sizeof cpu);
    if (tl_init_cpu_backend(&env, &cpu, &backend)) return 1;
    failed = train(&env, &backend, "F 1\nF 2\nD 2\nB 2\nD 1\nB 1\n", NULL) != TL_OK || calls != 4;
    strategy.mode = TL_MODE_LAZY;
    failed |= train(&env, &backend, "", &strategy) != TL_OK || calls != 6;
    strategy.mode = TL_MODE_EAGER;
    failed |= !refuses(&env, train(&env, &backend, "", &strategy));
    failed |= !refuses(&env, train(&env, &backend, "", NULL)) || calls != 6;
    tl_free_cpu_backend(&env, &backend);
    return failed;
}
