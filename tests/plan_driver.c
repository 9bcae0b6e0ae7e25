// Random graphs and schedules, valid and broken, with what the simulator says of them, for differential_plan.py.
//
//     plan_driver FIRST_SEED COUNT > cases.txt
//
// One case: a line "case <seed> <inference> <any_order> <link rate> <latency> <codec rate> <alignment> <slots>", the graph as
// .tlg, the schedule after a line "steps", the offsets after a line "offsets", and one line
//     ok <peak> <arena> <host peak> <cost> <compute cost> <base cost> <end bytes> <allocations>
//     broken <step>
// After ok, what the plan allocates with the places that tl_plan_places gives it: a line
// "places <arena> <bound> <proven> <lifetimes>", and for each lifetime
//     <use> <node> <output> <occurrence> <bytes> <first> <end> <offset> <slot>
#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/random_graph.h"
#include "support/random_steps.h"
#include <stdio.h>
#include <stdlib.h>

static void check(int ok, const char *what, unsigned long long seed) {
    if (ok) return;
    fprintf(stderr, "plan_driver: seed %llu: %s\n", seed, what);
    exit(1);
}

static void random_device(tl_random *random, tl_device *device) {
    static const uint64_t rates[] = { 0, 1, 1000000000, 500000000, 300000000, 70000000, 4000000000u, 999999999 };
    memset(device, 0, sizeof *device);
    device->link_bytes_per_second = rates[2 + tl_next_random_below(random, 6)];
    if (random_chance(random, 10)) device->link_bytes_per_second = rates[tl_next_random_below(random, 2)];
    device->link_latency_ns = tl_next_random_below(random, 3) * 7;
    device->codec_bytes_per_second = rates[tl_next_random_below(random, 8)];
    device->alignment_bytes = (uint64_t)1 << tl_next_random_below(random, 5);
    if (random_chance(random, 20)) device->alignment_bytes = 0;
}

static void print_case(unsigned long long seed, const tl_graph *graph, const tl_device *device, const tl_plan *plan) {
    size_t length = tl_print_graph(graph, NULL, 0);
    char *text = (char *)malloc(length + 1);
    int32_t i;
    printf("case %llu %d %d %llu %llu %llu %llu %d\n", seed, (int)plan->inference, (int)plan->any_order,
           (unsigned long long)device->link_bytes_per_second, (unsigned long long)device->link_latency_ns,
           (unsigned long long)device->codec_bytes_per_second, (unsigned long long)device->alignment_bytes,
           (int)tli_count_slots(plan));
    tl_print_graph(graph, text, length + 1);
    printf("%s", text);
    length = tl_print_schedule(plan, NULL, 0);
    text = (char *)realloc(text, length + 1);
    tl_print_schedule(plan, text, length + 1);
    printf("steps\n%soffsets", text);
    for (i = 0; i < plan->offset_count; i++) printf(" %llu", (unsigned long long)plan->offsets[i]);
    printf("\n");
    free(text);
}

// The places of the plan as plan_driver's head says. The plan itself is not changed.
static void print_places(unsigned long long seed, tl_env *env, tl_random *random, const tl_graph *graph, const tl_device *device,
                         const tl_plan *plan) {
    static const uint64_t limits[] = { 1, 2000, 50000, 1000000 };
    tl_places_desc desc;
    tl_places_report report;
    tl_lifetimes bare, lifetimes;
    tl_plan placed;
    int32_t i;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.device = device;
    desc.work_limit = limits[tl_next_random_below(random, 4)];
    check(!tl_find_lifetimes(env, graph, plan, &bare), "no lifetimes", seed);
    check(!tl_copy_plan(env, plan, &placed), "no copy", seed);
    check(!tl_plan_places(env, &desc, &placed, &report), env->error.text, seed);
    check(!tl_find_lifetimes(env, graph, &placed, &lifetimes), "no lifetimes of what was placed", seed);
    check(bare.count == lifetimes.count, "places change lifetimes", seed);
    check(report.arena_bytes == placed.arena_bytes, "arena", seed);
    check(report.host_arena_bytes == placed.host_arena_bytes, "host arena", seed);
    printf("places %llu %llu %llu %llu %d %d\n", (unsigned long long)report.arena_bytes, (unsigned long long)report.bound_bytes,
           (unsigned long long)report.host_arena_bytes, (unsigned long long)report.host_bound_bytes, (int)report.proven,
           (int)lifetimes.count);
    for (i = 0; i < lifetimes.count; i++) {
        const tl_lifetime *life = &lifetimes.items[i];
        printf("%s %d %d %d %llu %d %d %llu %d\n", tl_name_use(life->use), (int)life->node, (int)life->output, (int)life->occurrence,
               (unsigned long long)life->bytes, (int)life->first_step, (int)life->end_step, (unsigned long long)life->offset,
               (int)life->slot);
    }
    tl_free_lifetimes(env, &bare);
    tl_free_lifetimes(env, &lifetimes);
    tl_free_plan(env, &placed);
}

static void run_case(unsigned long long seed) {
    tl_env env;
    tl_random random;
    tl_graph graph;
    tl_device device;
    tl_plan plan;
    tl_report report, again;
    tl_simulate_desc desc;
    uint64_t *live, highest = 0;
    int32_t slots;
    tl_result result;
    int32_t i;
    memset(&env, 0, sizeof env);
    random.state = seed;
    check(!random_graph(&env, &random, 12, &graph), "no graph", seed);
    random_device(&random, &device);
    slots = random_chance(&random, 40) ? random_count(&random, 1, RANDOM_SLOTS) : 0;
    check(!random_slot_plan(&env, &random, &graph, slots, &plan), "no plan", seed);
    if (!slots && random_chance(&random, 5)) random_plan_within(&env, &random, &graph, &device, &plan);
    if (random_chance(&random, 50)) check(!random_offsets(&env, &random, &graph, &device, &plan), "no offsets", seed);
    memset(&desc, 0, sizeof desc);
    desc.graph = &graph;
    desc.plan = &plan;
    desc.device = &device;
    live = (uint64_t *)calloc((size_t)plan.step_count + 1, sizeof *live);
    desc.live_bytes = live;
    result = tl_simulate_plan(&env, &desc, &report);
    check(result == TL_OK || result == TL_ERROR_INVALID_PLAN, env.error.text, seed);
    print_case(seed, &graph, &device, &plan);
    if (result) {
        printf("broken %d %s\n", (int)report.broken_step, env.error.text);
    } else {
        printf("ok %llu %llu %llu %llu %llu %llu %llu %d\n", (unsigned long long)report.peak_bytes,
               (unsigned long long)report.arena_bytes, (unsigned long long)report.host_peak_bytes,
               (unsigned long long)report.cost, (unsigned long long)report.compute_cost,
               (unsigned long long)report.base_cost, (unsigned long long)report.end_bytes, (int)report.allocation_count);
        for (i = 0; i < plan.step_count; i++) if (live[i] > highest) highest = live[i];
        check(highest == report.peak_bytes || (!plan.step_count && !highest) || report.peak_step < 0, "live_bytes and peak differ", seed);
        check(report.peak_step < 0 || live[report.peak_step] == report.peak_bytes, "peak_step", seed);
        check(!tl_simulate_plan(&env, &desc, &again) && !memcmp(&again, &report, sizeof report), "not repeatable", seed);
        print_places(seed, &env, &random, &graph, &device, &plan);
    }
    free(live);
    random_free_plan(&env, &plan);
    tl_free_graph(&env, &graph);
}

int main(int argc, char **argv) {
    unsigned long long first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, i;
    for (i = 0; i < count; i++) run_case(first + i);
    return 0;
}
