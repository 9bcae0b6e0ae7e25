// TL_NO_PLANNERS: plans made elsewhere and online runs remain; a lazy run that would need one to be made is refused, and so
// is mixed precision.
// flags: -Wall
// lang: both
#define TL_NO_PLANNERS
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"

static tl_result compute(const tl_kernel_call *call, void *user) {
    (void)call;
    (void)user;
    return TL_OK;
}

// A chain of one layer under a lazy strategy.
static tl_result init_lazy(tl_gradient gradient) {
    tl_env env;
    tl_strategy strategy = tl_with_gradient(tl_with_precision(tl_strategy_new(), TL_PRECISION_SINGLE), gradient);
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_run_desc desc;
    tl_layer layer;
    tl_run *run;
    tl_result result;
    tli_zero(&env, sizeof env);
    tli_zero(&cpu, sizeof cpu);
    tli_zero(&desc, sizeof desc);
    tli_zero(&layer, sizeof layer);
    strategy.mode = TL_MODE_LAZY;
    if (tl_init_cpu_backend(&env, &cpu, &backend)) return TL_ERROR_NO_MEMORY;
    desc.backend = &backend;
    desc.strategy = &strategy;
    desc.budget_bytes = 1000;
    layer.forward = layer.backward = compute;
    layer.output_bytes = 4;
    result = tl_init_layer_run(&env, &desc, &layer, 1, 4, &run);
    tl_free_run(run);
    tl_free_cpu_backend(&env, &backend);
    return result;
}

// An online run with formats, or with a loss scaler.
static tl_result init_mixed(const uint8_t *formats, tl_loss_scaler *scaler) {
    tl_env env;
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_run_desc desc;
    tl_layer layer;
    tl_run *run;
    tl_result result;
    tli_zero(&env, sizeof env);
    tli_zero(&cpu, sizeof cpu);
    tli_zero(&desc, sizeof desc);
    tli_zero(&layer, sizeof layer);
    if (tl_init_cpu_backend(&env, &cpu, &backend)) return TL_ERROR_NO_MEMORY;
    desc.backend = &backend;
    desc.formats = formats;
    desc.loss_scaler = scaler;
    layer.forward = layer.backward = compute;
    layer.output_bytes = 4;
    result = tl_init_layer_run(&env, &desc, &layer, 1, 4, &run);
    tl_free_run(run);
    tl_free_cpu_backend(&env, &backend);
    return result;
}

int main(void) {
    static const uint8_t formats[2] = { TL_FORMAT_F32, TL_FORMAT_F32 };
    tl_loss_scaler scaler = tl_default_loss_scaler(NULL);
    return init_mixed(formats, NULL) != TL_ERROR_UNSUPPORTED || init_mixed(NULL, &scaler) != TL_ERROR_UNSUPPORTED ||
           init_mixed(NULL, NULL) != TL_OK || init_lazy(tl_gradient_checkpointed(0)) != TL_ERROR_UNSUPPORTED ||
           init_lazy(tl_gradient_checkpointed(2)) != TL_ERROR_UNSUPPORTED ||
           init_lazy(tl_gradient_none()) != TL_ERROR_UNSUPPORTED;
}
