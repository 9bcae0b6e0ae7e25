// What a start by the short way takes: processor time, the plan's cost above its bound, planning work and bytes beside the
// arena, of chains of 20, 40, 200 and 1000 ops at parts of what keeping everything takes, and at the least budget; by default,
// and with the plan handed over.
#define _POSIX_C_SOURCE 199309L
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "timing.h"
#include <stdio.h>
#include <string.h>

enum { MOST = 1000 };
static tl_op ops[MOST];
static tl_env env;
static tl_backend cpu;

static tl_result nothing(const tl_kernel_call *call, void *user) {
    (void)call; (void)user;
    return TL_OK;
}

static void fill_ops(int count, int is_uneven) {
    tl_random random = { 7 };
    int i;
    memset(ops, 0, sizeof ops);
    for (i = 0; i < count; i++) {
        ops[i].output_bytes = i == count - 1 ? 4 : is_uneven ? 1024 * (1 + tl_next_random(&random) % 16) : 8192;
        if (!i) continue;
        ops[i].forward = ops[i].backward = nothing;
        ops[i].needs = i == count - 1 ? "in" : "in,out";
        ops[i].fwd_cost = is_uneven ? 100 + tl_next_random(&random) % 900 : 1;
        ops[i].bwd_cost = 2 * ops[i].fwd_cost;
    }
    ops[0].kind = "input";
    ops[count - 1].keep = 1;
}

static void time_start(int count, double ratio, uint64_t least) {
    tl_run_desc desc;
    tl_run_report report;
    tl_plan plan, kept;
    tl_run *run;
    double start, made, given;
    memset(&desc, 0, sizeof desc);
    desc.backend = &cpu;
    desc.budget_ratio = ratio;
    if (ratio == 0) desc.budget_bytes = least;
    start = processor_ms();
    if (tl_init_op_run(&env, &desc, ops, count, &run)) {
        printf("%5.0f %%   refused after %.1f ms\n", 100 * ratio, processor_ms() - start);
        return;
    }
    made = processor_ms() - start;
    tl_measure_run(run, &report);
    tl_find_run_plan(run, &plan);
    if (tl_copy_plan(&env, &plan, &kept)) exit(1);
    tl_free_run(run);
    desc.budget_ratio = 0;
    desc.budget_bytes = 0;
    desc.plan = &kept;
    start = processor_ms();
    if (tl_init_op_run(&env, &desc, ops, count, &run)) exit(1);
    given = processor_ms() - start;
    if (ratio > 0) printf("%5.0f %%", 100 * ratio);
    else printf("  least");
    printf(" %9.1f ms %9.2f ms %8.2f %% %10.3f %10d %10d\n", made, given,
           plan.bound_cost ? 100.0 * (double)(plan.cost - plan.bound_cost) / (double)plan.bound_cost : -1.0,
           (double)plan.cost / (double)plan.base_cost, (int)plan.arena_bytes, (int)report.table_bytes);
    tl_free_run(run);
    tl_free_plan(&env, &kept);
}

int main(void) {
    static const int sizes[] = { 20, 40, 200, 1000 };
    static const double ratios[] = { 0.6, 0.3, 0.15, 0 };
    static tl_cpu_backend_desc memory;
    int s, r, is_uneven;
    if (tl_init_cpu_backend(&env, &memory, &cpu)) return 1;
    for (is_uneven = 0; is_uneven < 2; is_uneven++)
        for (s = 0; s < 4; s++) {
            tl_run_figures figures;
            tl_run_desc desc;
            tl_run *run;
            double start = processor_ms();
            memset(&desc, 0, sizeof desc);
            desc.backend = &cpu;
            desc.figures = &figures;
            fill_ops(sizes[s], is_uneven);
            if (tl_init_op_run(&env, &desc, ops, sizes[s], &run)) return puts(env.error.text), 1;
            tl_free_run(run);
            printf("\n%d %s ops, figures in %.1f ms: keep all %d, least %d\n", sizes[s], is_uneven ? "uneven" : "equal",
                   processor_ms() - start, (int)figures.keep_all_bytes, (int)figures.least_bytes);
            printf("budget      planned here   handed over    above bound  cost / base     arena     tables\n");
            for (r = 0; r < 4; r++) time_start(sizes[s], ratios[r], figures.least_bytes);
        }
    tl_free_cpu_backend(&env, &cpu);
    return 0;
}
