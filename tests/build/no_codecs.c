// TL_NO_CODECS: nothing is compressed, and whatever would be is refused with a sentence that names the option.
// lang: both
#define TL_NO_CODECS
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

#include <string.h>

static tl_result compute(const tl_kernel_call *call, void *user) {
    (void)call;
    (void)user;
    return TL_OK;
}

static int refuses(const tl_env *env, tl_result result) {
    return result == TL_ERROR_UNSUPPORTED && strstr(env->error.text, "TL_NO_CODECS");
}

// A run of one layer of 4 bytes.
static tl_result init_run(tl_env *env, const tl_backend *backend, const char *schedule, tl_codec codec) {
    tl_run_desc desc;
    tl_layer layer;
    tl_plan plan;
    tl_run *run;
    tl_result result;
    tli_zero(&desc, sizeof desc);
    tli_zero(&layer, sizeof layer);
    result = tl_parse_schedule(env, schedule, tli_text_length(schedule), &plan);
    if (result) return result;
    desc.backend = backend;
    desc.plan = plan.step_count ? &plan : NULL;
    desc.codec = codec;
    layer.forward = layer.backward = compute;
    layer.output_bytes = 4;
    result = tl_init_layer_run(env, &desc, &layer, 1, 4, &run);
    tl_free_run(run);
    tl_free_plan(env, &plan);
    return result;
}

int main(void) {
    tl_env env;
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_backend_limits limits;
    tl_manager_desc desc;
    tl_manager *manager;
    tl_range range;
    int failed;
    tli_zero(&env, sizeof env);
    tli_zero(&cpu, sizeof cpu);
    tli_zero(&desc, sizeof desc);
    tli_zero(&range, sizeof range);
    if (tl_init_cpu_backend(&env, &cpu, &backend)) return 1;
    backend.limits(backend.self, &limits);
    failed = limits.codecs != 0;
    failed |= !refuses(&env, backend.compress(backend.self, TL_CODEC_F16, range, range));
    failed |= !refuses(&env, backend.expand(backend.self, TL_CODEC_F16, range, range));
    failed |= init_run(&env, &backend, "F 1\nB 1\n", TL_CODEC_NONE) != TL_OK;
    failed |= !refuses(&env, init_run(&env, &backend, "F 1\nC 1 f16\nX 1\nB 1\n", TL_CODEC_NONE));
    failed |= !refuses(&env, init_run(&env, &backend, "", TL_CODEC_Q8));
    failed |= tl_init_manager(&env, &backend, &desc, &manager) != TL_OK;
    tl_free_manager(manager);
    desc.codec = TL_CODEC_BF16;
    failed |= !refuses(&env, tl_init_manager(&env, &backend, &desc, &manager)) || manager;
    tl_free_cpu_backend(&env, &backend);
    return failed;
}
