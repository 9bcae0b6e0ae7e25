// TL_NO_PRECISION: runs in one precision remain, planned or online; a run with formats or a loss scaler is refused.
// flags: -Wall
// lang: both
#define TL_NO_PRECISION
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

static tl_result compute(const tl_kernel_call *call, void *user) {
    (void)call;
    (void)user;
    return TL_OK;
}

// A run of one layer; with a strategy, formats, a loss scaler where given.
static tl_result init_run(const tl_strategy *strategy, const uint8_t *formats, void *scaler) {
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
    desc.strategy = strategy;
    desc.budget_bytes = strategy ? 1000 : 0;
    desc.formats = formats;
    desc.loss_scaler = (tl_loss_scaler *)scaler;
    layer.forward = layer.backward = compute;
    layer.output_bytes = 4;
    result = tl_init_layer_run(&env, &desc, &layer, 1, 4, &run);
    tl_free_run(run);
    tl_free_cpu_backend(&env, &backend);
    return result;
}

static tl_result init_lazy(tl_precision precision) {
    tl_strategy strategy = tl_with_precision(tl_strategy_new(), precision);
    strategy.mode = TL_MODE_LAZY;
    return init_run(&strategy, NULL, NULL);
}

int main(void) {
    static const uint8_t formats[2] = { TL_FORMAT_F32, TL_FORMAT_F32 };
    int scaler = 0;
    return init_run(NULL, formats, NULL) != TL_ERROR_UNSUPPORTED || init_run(NULL, NULL, &scaler) != TL_ERROR_UNSUPPORTED ||
           init_lazy(TL_PRECISION_MIXED) != TL_OK || init_run(NULL, NULL, NULL) != TL_OK ||
           init_lazy(TL_PRECISION_SINGLE) != TL_OK;
}
