// TL_NO_CLOCK: the CPU backend has the clock of its desc, or none; no function of the system is named for it.
#define TL_NO_CLOCK
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

#if defined(CLOCK_MONOTONIC) || defined(TLI_CLOCK_POSIX) || defined(TLI_CLOCK_HIDDEN) || defined(TLI_CLOCK_WINDOWS)
#error "a clock of the system is there"
#endif

static uint64_t clock_of_mine(void *user) { return ++*(uint64_t *)user; }

int main(void) {
    tl_env env;
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    uint64_t now = 6;
    int failed;
    tli_zero(&env, sizeof env);
    tli_zero(&cpu, sizeof cpu);
    if (tl_init_cpu_backend(&env, &cpu, &backend)) return 1;
    failed = backend.now_ns(backend.self) != 0;
    failed |= tl_free_cpu_backend(&env, &backend) != TL_OK;
    cpu.now_ns = clock_of_mine;
    cpu.user = &now;
    if (tl_init_cpu_backend(&env, &cpu, &backend)) return 1;
    failed |= backend.now_ns(backend.self) != 7;
    return failed || tl_free_cpu_backend(&env, &backend) != TL_OK;
}
