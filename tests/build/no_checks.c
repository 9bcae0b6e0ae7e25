// TL_NO_CHECKS: the variants for tests of the CPU backend are dropped; asking for one is an error.
#define TL_NO_CHECKS
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

static int refuses(int32_t checked, int32_t deferred) {
    tl_env env;
    tl_cpu_backend_desc desc;
    tl_backend backend;
    int refused;
    tli_zero(&env, sizeof env);
    tli_zero(&desc, sizeof desc);
    desc.checked = checked;
    desc.deferred = deferred;
    refused = tl_init_cpu_backend(&env, &desc, &backend) == TL_ERROR_UNSUPPORTED && !backend.self;
    tl_free_cpu_backend(&env, &backend);
    return refused;
}

int main(void) { return refuses(0, 0) || !refuses(1, 0) || !refuses(0, 1); }
