// TL_NO_PLANNERS: plans made elsewhere and online runs remain; a lazy run that would need one to be made is refused, also
// for the order of memory minimal-peak, and so is mixed precision, and memory cached with versions.
// flags: -Wall
// lang: both
#define TL_NO_PLANNERS
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

static tl_result compute(const tl_kernel_call *call, void *user) {
    (void)call;
    (void)user;
    return TL_OK;
}

static uint64_t (*version)(int32_t node, int32_t micro_batch, void *user);   // of the next run

static const void *rows;    // of the next run: regions of rows, which nobody reads

static uint64_t version_one(int32_t node, int32_t micro_batch, void *user) {
    (void)node;
    (void)micro_batch;
    (void)user;
    return 1;
}

// A run of one layer; lazy where there is a strategy, else online, with formats or a loss scaler where given.
static tl_result init_run(const tl_strategy *strategy, const uint8_t *formats, tl_loss_scaler *scaler) {
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
    desc.loss_scaler = scaler;
    desc.version = version;
    desc.rows = (const struct tl_rows_plan *)rows;
    layer.forward = layer.backward = compute;
    layer.output_bytes = 4;
    result = tl_init_layer_run(&env, &desc, &layer, 1, 4, &run);
    tl_free_run(run);
    tl_free_cpu_backend(&env, &backend);
    return result;
}

static tl_result init_lazy(tl_gradient gradient, tl_memory memory) {
    tl_strategy strategy = tl_with_gradient(tl_with_precision(tl_strategy_new(), TL_PRECISION_SINGLE), gradient);
    strategy.mode = TL_MODE_LAZY;
    strategy.memory = memory;
    return init_run(&strategy, NULL, NULL);
}

// Mode eager decides online, so memory cached runs, but keeps nothing.
static tl_result init_cached(int has_versions) {
    tl_strategy strategy = tl_with_gradient(tl_with_precision(tl_strategy_new(), TL_PRECISION_SINGLE), tl_gradient_none());
    tl_result result;
    strategy.mode = TL_MODE_EAGER;
    strategy.memory = TL_MEMORY_CACHED;
    version = has_versions ? version_one : NULL;
    result = init_run(&strategy, NULL, NULL);
    version = NULL;
    return result;
}

static tl_result init_rows(void) {
    tl_result result;
    rows = &version;
    result = init_run(NULL, NULL, NULL);
    rows = NULL;
    return result;
}

int main(void) {
    static const uint8_t formats[2] = { TL_FORMAT_F32, TL_FORMAT_F32 };
    tl_loss_scaler scaler = tl_default_loss_scaler(NULL);
    return init_run(NULL, formats, NULL) != TL_ERROR_UNSUPPORTED || init_run(NULL, NULL, &scaler) != TL_ERROR_UNSUPPORTED ||
           init_run(NULL, NULL, NULL) != TL_OK || init_rows() != TL_ERROR_UNSUPPORTED || init_lazy(tl_gradient_checkpointed(0), TL_MEMORY_STANDARD) != TL_ERROR_UNSUPPORTED ||
           init_lazy(tl_gradient_checkpointed(2), TL_MEMORY_POOLED) != TL_ERROR_UNSUPPORTED ||
           init_lazy(tl_gradient_full(), TL_MEMORY_MINIMAL_PEAK) != TL_ERROR_UNSUPPORTED ||
           init_lazy(tl_gradient_none(), TL_MEMORY_MINIMAL_PEAK) != TL_ERROR_UNSUPPORTED ||
           init_cached(1) != TL_ERROR_UNSUPPORTED || init_cached(0) != TL_OK;
}
