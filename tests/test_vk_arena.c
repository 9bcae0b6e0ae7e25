// Memory of runs on Vulkan: what vkAllocateMemory is asked for, counted by an interposer, is the planned arena;
// what no kernel, no block, no heap can hold is refused at init; a run and a manager share one budget.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TL_STRATEGY_IMPLEMENTATION
#define TL_VK_BACKEND_IMPLEMENTATION
#include "support/vk_faults.h"
#include "support/vk_counted.h"

#define MIB ((uint64_t)1 << 20)

// -- runs of random graphs, with kernels that do nothing --

static tl_result do_nothing(const tl_kernel_call *call, void *user) {
    (void)call;
    (void)user;
    return TL_OK;
}

static const tl_kernel kernel = { "k", do_nothing, do_nothing, NULL };

static void add_node(tl_graph *graph, uint64_t bytes, const tl_tensor *inputs, int32_t input_count, int keep) {
    tl_env env = {0};
    tl_node_desc node;
    int32_t id;
    memset(&node, 0, sizeof node);
    node.op = input_count ? "k" : "input";
    node.inputs = inputs;
    node.input_count = input_count;
    node.output_bytes = &bytes;
    node.output_count = 1;
    node.needs = input_count == 2 ? "in0,in1" : input_count ? "in" : NULL;
    node.fwd_cost = input_count ? bytes : 0;
    node.bwd_cost = input_count ? 2 * bytes : 0;
    node.keep = keep;
    if (tl_add_node(&env, graph, &node, &id)) fail_msg("%s", env.error.text);
}

// A chain with skips; tensors of `least` to 16 times as many bytes.
static void make_graph(tl_graph *graph, uint64_t seed, int32_t count, uint64_t least) {
    tl_random random;
    int32_t i;
    tl_init_graph(graph);
    random.state = seed;
    add_node(graph, least, NULL, 0, 0);
    for (i = 1; i < count; i++) {
        uint64_t bytes = (least << tl_next_random_below(&random, 4)) + 4 * tl_next_random_below(&random, least / 4);
        tl_tensor inputs[2] = {{0}};
        inputs[0].node = i - 1;
        inputs[1].node = (int32_t)tl_next_random_below(&random, (uint64_t)i);
        add_node(graph, bytes, inputs, i > 2 && inputs[1].node != i - 1 && tl_next_random_below(&random, 3) == 0 ? 2 : 1,
                 i == count - 1);
    }
}

// Of each plan that a run makes: runs are tested here, not how good their plans are.
#define PLAN_WORK 1000000

static tl_result start_run(tl_env *env, const tl_backend *backend, const tl_graph *graph, uint64_t budget,
                           tl_run **run) {
    tl_strategy strategy = tl_with_precision(
        tl_with_gradient(tl_strategy_new(), tl_gradient_checkpointed(0)), TL_PRECISION_SINGLE);
    tl_run_desc desc;
    memset(&desc, 0, sizeof desc);
    strategy = tl_with_memory(tl_with_mode(strategy, TL_MODE_LAZY), TL_MEMORY_POOLED);
    desc.graph = graph;
    desc.backend = backend;
    desc.kernels = &kernel;
    desc.kernel_count = 1;
    desc.strategy = &strategy;
    desc.budget_bytes = budget;
    desc.work_limit = PLAN_WORK;
    return tl_init_run(env, &desc, run);
}

static uint64_t keep_all_bytes(const tl_graph *graph) {
    tl_graph_statistics statistics;
    uint64_t bytes;
    if (tl_measure_graph(NULL, graph, &statistics)) fail_msg("no statistics");
    bytes = statistics.keep_all_bytes;
    tl_free_graph_statistics(NULL, &statistics);
    return bytes;
}

// Start a run at a budget; below the least that works, at that.
static tl_run *start_feasible(tl_env *env, const tl_backend *backend, const tl_graph *graph, uint64_t budget) {
    tl_run *run = NULL;
    tl_result result = start_run(env, backend, graph, budget, &run);
    if (result == TL_ERROR_INFEASIBLE)
        result = start_run(env, backend, graph, tl_find_least_budget(&env->error), &run);
    if (result) fail_msg("%s", env->error.text);
    return run;
}

static tl_run_report run_passes(tl_env *env, tl_run *run, int passes) {
    tl_run_report report;
    int i;
    for (i = 0; i < passes; i++)
        if (tl_run_plan(run)) fail_msg("%s", env->error.text);
    tl_measure_run(run, &report);
    assert_int_equal(report.taken_bytes, report.planned_taken_bytes);
    assert_true(report.taken_bytes >= report.measured_arena_bytes);
    return report;
}

// Free a run; its memory goes back when the device has finished its work, at the latest.
static void end_run(const tl_backend *backend, tl_run *run) {
    tl_ticket ticket;
    tl_free_run(run);
    assert_int_equal(backend->submit(backend->self, &ticket), TL_OK);
    assert_int_equal(backend->wait(backend->self, ticket), TL_OK);
}

typedef struct bench { vkt v; tl_env env; tl_backend backend; uint64_t staging_bytes; } bench;

static void open_bench(bench *t) {
    vkt_desc device = {0};
    tl_vk_backend_desc desc = {0};
    tl_vk_counters counters;
    memset(t, 0, sizeof *t);
    count_start(vkt_loader());
    device.get_instance_proc = count_instance_proc;
    vkt_open(&device, &t->v);
    desc.device = t->v.device;
    counted.bytes = counted.peak_bytes = 0;  // without what the tests' own objects take
    if (tl_vk_init_backend(&t->env, &desc, &t->backend)) fail_msg("%s", t->env.error.text);
    tl_vk_measure(&t->backend, &counters);
    t->staging_bytes = counters.staging_bytes;
    assert_int_equal(counted.bytes, t->staging_bytes);  // nothing but staging is taken at init
}

static void close_bench(bench *t) {
    if (tl_vk_free_backend(&t->env, &t->backend)) fail_msg("%s", t->env.error.text);
    assert_int_equal(counted.bytes, 0);
    vkt_close(&t->v);
    assert_int_equal(vkt_messages(&t->v), 0);
}

// Beside staging, VkDeviceMemory is the arena, taken at init; no pass allocates, and all of it goes back.
static void device_memory_is_the_planned_arena(void **state) {
    double worst = 0, sum = 0;
    uint64_t seed, count = (uint64_t)scaled(30);   // each waits for the planner
    bench t;
    (void)state;
    if (!vkt_has_vulkan("device_memory_is_the_planned_arena")) skip();
    open_bench(&t);
    for (seed = 1; seed <= count; seed++) {
        tl_run_report report;
        tl_vk_counters counters;
        tl_graph graph;
        tl_run *run;
        uint64_t calls, taken;
        double ratio;
        make_graph(&graph, seed, 40, 16384);
        counted.peak_bytes = counted.bytes;
        run = start_feasible(&t.env, &t.backend, &graph, keep_all_bytes(&graph) * (3 + seed % 7) / 10);
        calls = counted.calls;
        taken = counted.bytes - t.staging_bytes;
        report = run_passes(&t.env, run, 2);
        assert_int_equal(counted.calls, calls);
        assert_int_equal(counted.peak_bytes - t.staging_bytes, taken);
        assert_int_equal(report.taken_bytes, taken);  // what the run reports is what the driver was asked for
        tl_vk_measure(&t.backend, &counters);
        assert_int_equal(counters.arena_bytes, taken);
        assert_int_equal(counters.memory_bytes, counted.bytes);
        ratio = (double)taken / (double)report.planned_arena_bytes;
        if (ratio > worst) worst = ratio;
        sum += ratio;
        end_run(&t.backend, run);
        assert_int_equal(counted.bytes, t.staging_bytes);
        tl_free_graph(NULL, &graph);
    }
    assert_true(worst <= 1.02);
    printf("VkDeviceMemory / planned arena on %d graphs: mean %.6f, worst %.6f; staging %d bytes\n", (int)count,
           sum / (double)count, worst, (int)t.staging_bytes);
    close_bench(&t);
}

// Plan for a budget, or for the least that works; what its arena takes.
static uint64_t make_plan(bench *t, const tl_graph *graph, uint64_t budget, tl_plan *plan) {
    tl_backend_limits limits;
    tl_remat_desc desc;
    tl_result result;
    t->backend.limits(t->backend.self, &limits);
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.budget_bytes = budget;
    desc.alignment_bytes = limits.alignment_bytes;
    desc.work_limit = PLAN_WORK;
    result = tl_plan_remat(&t->env, &desc, plan, NULL);
    if (result == TL_ERROR_INFEASIBLE) {
        desc.budget_bytes = tl_find_least_budget(&t->env.error);
        result = tl_plan_remat(&t->env, &desc, plan, NULL);
    }
    if (result) fail_msg("%s", t->env.error.text);
    return (plan->arena_bytes + limits.granularity_bytes - 1) / limits.granularity_bytes * limits.granularity_bytes +
           limits.block_overhead_bytes[TL_TIER_DEVICE];
}

static tl_result run_given(bench *t, const tl_graph *graph, const tl_plan *plan, uint64_t budget, tl_run **run) {
    tl_run_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.graph = graph;
    desc.backend = &t->backend;
    desc.kernels = &kernel;
    desc.kernel_count = 1;
    desc.plan = plan;
    desc.budget_bytes = budget;
    return tl_init_run(&t->env, &desc, run);
}

// An arena of the budget runs every plan that was made for it.
static void every_plan_runs_in_an_arena_of_its_budget(void **state) {
    long count = scaled(20), i;
    bench t;
    (void)state;
    if (!vkt_has_vulkan("every_plan_runs_in_an_arena_of_its_budget")) skip();
    open_bench(&t);
    for (i = 0; i < count; i++) {
        uint64_t budget;
        tl_run_report report;
        tl_graph graph;
        tl_plan plan;
        tl_run *run;
        make_graph(&graph, 1000 + (uint64_t)i, 6 + (int32_t)(i % 25), (uint64_t)256 << i % 5);
        budget = make_plan(&t, &graph, keep_all_bytes(&graph) * (uint64_t)(3 + i % 7) / 10, &plan);
        if (run_given(&t, &graph, &plan, budget, &run)) fail_msg("%ld: %s", i, t.env.error.text);
        if (counted.bytes - t.staging_bytes > budget)
            fail_msg("%ld: %d bytes taken in a budget of %d", i, (int)(counted.bytes - t.staging_bytes), (int)budget);
        report = run_passes(&t.env, run, 2);
        assert_true(report.taken_bytes <= budget);
        tl_free_run(run);
        assert_int_equal(run_given(&t, &graph, &plan, budget - 1, &run), TL_ERROR_INFEASIBLE);
        tl_free_plan(NULL, &plan);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld random plans in arenas of their budgets: 0 failures after init\n", count);
    close_bench(&t);
}

// -- what is refused at init --

static void open_machine(world *w, const vkshim_config *config) {
    vkt_desc device = {0};
    open_device(w, config, &device);
    open_backend(w);
}

static void expect_refused(world *w, const tl_graph *graph, tl_result code, const char *text) {
    tl_backend_counters counters;
    tl_run *run;
    assert_int_equal(start_run(&w->env, &w->backend, graph, 0, &run), code);
    assert_null(run);
    if (!strstr(w->env.error.text, text)) fail_msg("\"%s\" without \"%s\"", w->env.error.text, text);
    w->backend.counters(w->backend.self, &counters);
    assert_int_equal(counters.reserved_bytes[TL_TIER_DEVICE], 0);
}

// An input and one node of so many bytes.
static void make_pair(tl_graph *graph, uint64_t bytes) {
    tl_tensor input = {0};
    tl_init_graph(graph);
    add_node(graph, 64, NULL, 0, 0);
    add_node(graph, bytes, &input, 1, 1);
}

static void expect_runs(world *w, const tl_graph *graph) {
    tl_run *run;
    if (start_run(&w->env, &w->backend, graph, 0, &run)) fail_msg("%s", w->env.error.text);
    (void)run_passes(&w->env, run, 1);
    end_run(&w->backend, run);
}

static void a_tensor_that_no_kernel_can_be_given_is_refused_at_init(void **state) {
    vkshim_config config;
    tl_graph graph;
    world w;
    (void)state;
    if (!vkt_has_vulkan("a_tensor_that_no_kernel_can_be_given_is_refused_at_init")) skip();
    vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
    config.storage_range = 1 << 20;
    open_machine(&w, &config);
    make_pair(&graph, MIB);
    expect_runs(&w, &graph);
    tl_free_graph(NULL, &graph);
    make_pair(&graph, MIB + 4);
    expect_refused(&w, &graph, TL_ERROR_UNSUPPORTED,
                   "backend: its kernels can be given at most 1048576 bytes at a time, and node 1 (");
    assert_non_null(strstr(w.env.error.text, " has 1048580"));
    tl_free_graph(NULL, &graph);
    close_backend(&w, "range");
    close_device(&w);
}

static void a_tensor_above_the_largest_allocation_is_refused_at_init(void **state) {
    vkshim_config config;
    tl_graph graph;
    world w;
    (void)state;
    if (!vkt_has_vulkan("a_tensor_above_the_largest_allocation_is_refused_at_init")) skip();
    vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
    config.allocation_bytes = 2 * MIB;
    config.api_version = VK_API_VERSION_1_1;
    open_machine(&w, &config);
    make_pair(&graph, MIB / 2);
    expect_runs(&w, &graph);
    tl_free_graph(NULL, &graph);
    make_pair(&graph, 3 * MIB);
    expect_refused(&w, &graph, TL_ERROR_UNSUPPORTED, "backend: its largest block is 2097152 bytes, and node 1 (");
    assert_non_null(strstr(w.env.error.text, " has 3145728"));
    tl_free_graph(NULL, &graph);
    close_backend(&w, "allocation");
    close_device(&w);
}

// Planned at init, given without places, and given in one block that is too large: it is taken in memory objects within
// the largest allocation, of exactly the planned bytes, at init.
static void arenas_above_the_largest_allocation_are_cut_into_blocks(void **state) {
    vkshim_config config;
    tl_backend_limits limits;
    long round, rounds = scaled(20), most = 0;
    world w;
    (void)state;
    if (!vkt_has_vulkan("arenas_above_the_largest_allocation_are_cut_into_blocks")) skip();
    vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
    config.allocation_bytes = 2 * MIB;
    config.api_version = VK_API_VERSION_1_1;
    open_machine(&w, &config);
    w.backend.limits(w.backend.self, &limits);
    for (round = 0; round < rounds; round++) {
        vkshim_counts before, after, end;
        tl_vk_counters counters;
        tl_backend_counters count;
        tl_run_report report;
        tl_device device = {0};
        tl_places_desc places = {0};
        tl_graph graph;
        tl_plan plan = {0}, made;
        tl_run_desc desc;
        tl_run *run;
        uint64_t sum = 0;
        int32_t k;
        make_graph(&graph, 500 + (uint64_t)round, 12, 2 * MIB / 16);
        vkshim_report(&before);
        if (round % 3 == 0) {
            run = start_feasible(&w.env, &w.backend, &graph, keep_all_bytes(&graph) * 2 / 3);
        } else {
            if (tl_plan_keep_all(&w.env, &graph, 0, &plan)) fail_msg("%s", w.env.error.text);
            places.graph = &graph;
            places.device = &device;
            places.work_limit = PLAN_WORK;
            device.alignment_bytes = limits.alignment_bytes;
            if (round % 3 == 1 && tl_plan_places(&w.env, &places, &plan, NULL)) fail_msg("%s", w.env.error.text);
            memset(&desc, 0, sizeof desc);
            desc.graph = &graph;
            desc.backend = &w.backend;
            desc.kernels = &kernel;
            desc.kernel_count = 1;
            desc.plan = &plan;
            desc.work_limit = PLAN_WORK;
            if (tl_init_run(&w.env, &desc, &run)) fail_msg("%s", w.env.error.text);
        }
        vkshim_report(&after);
        report = run_passes(&w.env, run, 2);
        vkshim_report(&end);
        assert_int_equal(end.live[VKSHIM_MEMORY], after.live[VKSHIM_MEMORY]);      // none in a pass
        tl_find_run_plan(run, &made);
        w.backend.counters(w.backend.self, &count);
        assert_true(made.block_count > 1);
        assert_int_equal(count.block_count[TL_TIER_DEVICE], made.block_count);
        assert_int_equal(after.live[VKSHIM_MEMORY] - before.live[VKSHIM_MEMORY], made.block_count);
        assert_int_equal(after.memory_bytes - before.memory_bytes, report.planned_taken_bytes);
        tl_vk_measure(&w.backend, &counters);
        assert_int_equal(counters.arena_bytes, report.planned_taken_bytes);
        for (k = 0; k < made.block_count; k++) {
            assert_true(made.blocks[k].bytes <= 2 * MIB);
            sum += made.blocks[k].bytes;
        }
        assert_int_equal(sum, made.arena_bytes);
        if (made.block_count > most) most = made.block_count;
        end_run(&w.backend, run);
        tl_free_plan(&w.env, &plan);
        tl_free_graph(NULL, &graph);
    }
    printf("%ld arenas in up to %ld blocks of 2 MiB\n", rounds, most);
    close_backend(&w, "blocks");
    close_device(&w);
}

// The first blocks are there, a later one is not: all go back.
static void blocks_that_were_taken_go_back_where_the_next_is_refused(void **state) {
    vkshim_config config;
    vkshim_counts before, after;
    tl_graph graph;
    world w;
    (void)state;
    if (!vkt_has_vulkan("blocks_that_were_taken_go_back_where_the_next_is_refused")) skip();
    vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
    config.allocation_bytes = 2 * MIB;
    config.real_heap_bytes[0] = 5 * MIB;
    config.api_version = VK_API_VERSION_1_1;
    open_machine(&w, &config);
    make_graph(&graph, 501, 12, 2 * MIB / 16);
    vkshim_report(&before);
    expect_refused(&w, &graph, TL_ERROR_NO_MEMORY, "backend: could not take the arena of ");
    vkshim_report(&after);
    assert_int_equal(after.memory_bytes, before.memory_bytes);
    tl_free_graph(NULL, &graph);
    close_backend(&w, "taken");
    close_device(&w);
}

static void the_device_tier_leaves_its_heap_only_where_that_is_allowed(void **state) {
    tl_vk_counters counters;
    vkshim_config config;
    tl_graph graph;
    int allowed;
    (void)state;
    if (!vkt_has_vulkan("the_device_tier_leaves_its_heap_only_where_that_is_allowed")) skip();
    make_pair(&graph, 3 * MIB);
    for (allowed = 0; allowed < 2; allowed++) {
        vkt_desc device = {0};
        tl_range range;
        world w;
        vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
        config.real_heap_bytes[0] = 2 * MIB;
        open_device(&w, &config, &device);
        w.desc.allow_host_memory = allowed;
        open_backend(&w);
        if (allowed) expect_runs(&w, &graph);
        else expect_refused(&w, &graph, TL_ERROR_NO_MEMORY, "device-local memory is used up, and allow_host_memory");
        assert_int_equal(add_range(&w, TL_TIER_DEVICE, 3 * MIB, &range), allowed ? TL_OK : TL_ERROR_NO_MEMORY);
        tl_vk_measure(&w.backend, &counters);
        assert_int_equal(counters.outside_bytes, allowed ? 3 * MIB : 0);
        assert_int_equal(counters.heap_bytes[0], 0);
        assert_int_equal(counters.heap_bytes[1], counters.memory_bytes);
        assert_int_equal(counters.memory_bytes, counters.staging_bytes + counters.outside_bytes);
        free_range(&w, &range);
        close_backend(&w, "spill");
        close_device(&w);
    }
    tl_free_graph(NULL, &graph);
}

static void an_arena_beyond_the_budget_of_its_heap_is_refused_unless_told_otherwise(void **state) {
    vkshim_config config;
    tl_graph graph;
    int exceed;
    (void)state;
    if (!vkt_has_vulkan("an_arena_beyond_the_budget_of_its_heap_is_refused_unless_told_otherwise")) skip();
    make_pair(&graph, 3 * MIB);
    for (exceed = 0; exceed < 2; exceed++) {
        vkt_desc device = {0};
        uint64_t block;
        world w;
        vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
        config.fakes_budget = 1;
        open_device(&w, &config, &device);
        w.desc.exceed_budget = exceed;
        open_backend(&w);
        expect_runs(&w, &graph);
        vkshim_set_budget(0, 2 * MIB);  // of a heap of 4 GiB
        if (exceed) expect_runs(&w, &graph);
        else expect_refused(&w, &graph, TL_ERROR_NO_MEMORY, "of which 2097152 are free");
        if (!exceed) {
            assert_int_equal(w.backend.add_arena(w.backend.self, TL_TIER_DEVICE, 0, 3 * MIB, &block), TL_ERROR_NO_MEMORY);
            assert_string_equal(w.env.error.text, "add_arena: 3145728 bytes: the budget of the heap leaves 2097152, "
                                                  "and exceed_budget is not set");
        }
        close_backend(&w, "budget");
        close_device(&w);
    }
    tl_free_graph(NULL, &graph);
}

static void limits_tell_where_both_tiers_share_one_heap(void **state) {
    static const vkshim_machine machines[] = { VKSHIM_MACHINE_DISCRETE, VKSHIM_MACHINE_SINGLE };
    int i;
    (void)state;
    if (!vkt_has_vulkan("limits_tell_where_both_tiers_share_one_heap")) skip();
    for (i = 0; i < 2; i++) {
        tl_backend_limits limits;
        vkshim_config config;
        world w;
        vkshim_default(&config, machines[i]);
        open_machine(&w, &config);
        w.backend.limits(w.backend.self, &limits);
        assert_int_equal(limits.tiers_share_memory, i);
        close_backend(&w, "heaps");
        close_device(&w);
    }
}

// The driver rounds buffers up and adds to them: planned and taken bytes agree all the same, and so many bytes as a
// refusal names do.
static void what_the_driver_adds_to_a_buffer_is_planned(void **state) {
    static const uint64_t alignments[] = { 0, 1024, 65536 };
    size_t i;
    (void)state;
    if (!vkt_has_vulkan("what_the_driver_adds_to_a_buffer_is_planned")) skip();
    for (i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        tl_backend_limits limits;
        vkshim_config config;
        tl_graph graph;
        uint64_t budget;
        world w;
        vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
        config.buffer_alignment = alignments[i];
        open_machine(&w, &config);
        w.backend.limits(w.backend.self, &limits);
        assert_true(limits.granularity_bytes >= alignments[i]);
        make_graph(&graph, i, 12, 4096);
        expect_runs(&w, &graph);
        for (budget = 1000; budget < 8000; budget += 777) {
            tl_run *run = start_feasible(&w.env, &w.backend, &graph, budget);
            assert_true(run_passes(&w.env, run, 1).taken_bytes > budget);
            end_run(&w.backend, run);
        }
        tl_free_graph(NULL, &graph);
        close_backend(&w, "rounding");
        close_device(&w);
    }
}

// -- a run and a manager on one backend --

// Saves and passes in turn. Together they never hold more than the capacity, which the budgets of both fill.
static void share(tl_env *env, const tl_backend *backend, const tl_graph *graph, uint64_t capacity) {
    static float data[2048];
    tl_manager_desc desc;
    tl_manager *manager;
    tl_run *run = start_feasible(env, backend, graph, keep_all_bytes(graph) / 2);
    uint64_t rest = capacity - run_passes(env, run, 1).taken_bytes;
    tl_checkpoint_statistics statistics;
    tl_backend_counters counters;
    int round, i;
    memset(&desc, 0, sizeof desc);
    desc.device_budget_bytes = rest;
    desc.eviction = TL_EVICTION_OLDEST;
    if (tl_init_manager(env, backend, &desc, &manager)) fail_msg("%s", env->error.text);
    for (round = 0; round < 4; round++) {
        for (i = 0; i < 40; i++) {
            tl_save_desc save;
            memset(&save, 0, sizeof save);
            save.key.node = i;
            save.data = data;
            save.bytes = sizeof data - (size_t)i * 64;
            if (tl_save_checkpoint(env, manager, &save)) fail_msg("%s", env->error.text);
            backend->counters(backend->self, &counters);
            assert_true(counters.live_bytes[TL_TIER_DEVICE] <= capacity);
        }
        (void)run_passes(env, run, 1);
        backend->counters(backend->self, &counters);
        assert_true(counters.peak_bytes[TL_TIER_DEVICE] <= capacity);
    }
    tl_measure_manager(manager, &statistics);
    assert_true(statistics.evictions > 0);  // its budget was full
    tl_free_manager(manager);
    tl_free_run(run);
}

static void a_run_and_a_manager_never_exceed_one_budget_together(void **state) {
    const uint64_t capacity = 700000;
    tl_cpu_backend_desc cpu;
    tl_backend backend;
    tl_env env = {0};
    tl_graph graph;
    (void)state;
    make_graph(&graph, 5, 20, 8192);
    memset(&cpu, 0, sizeof cpu);
    cpu.capacity_bytes[TL_TIER_DEVICE] = capacity;
    if (tl_init_cpu_backend(&env, &cpu, &backend)) fail_msg("%s", env.error.text);
    share(&env, &backend, &graph, capacity);
    if (tl_free_cpu_backend(&env, &backend)) fail_msg("%s", env.error.text);
    if (vkt_has_vulkan("a_run_and_a_manager_never_exceed_one_budget_together")) {
        vkt_desc device = {0};
        vkshim_config config;
        world w;
        vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
        open_device(&w, &config, &device);
        w.desc.capacity_bytes[TL_TIER_DEVICE] = capacity;
        open_backend(&w);
        share(&w.env, &w.backend, &graph, capacity);
        close_backend(&w, "shared budget");
        close_device(&w);
    }
    tl_free_graph(NULL, &graph);
}

// What chunks take for a manager beside its live bytes: random lengths, saved and evicted.
static void chunks_of_a_manager_are_measured_against_its_live_bytes(void **state) {
    static const uint64_t chunks[] = { MIB, 4 * MIB, 0 };
    static float data[65536];
    size_t c;
    (void)state;
    if (!vkt_has_vulkan("chunks_of_a_manager_are_measured_against_its_live_bytes")) skip();
    for (c = is_slow() ? 2 : 0; c < sizeof chunks / sizeof *chunks; c++) {
        uint64_t live, taken;
        tl_backend_counters counters;
        tl_vk_counters vk;
        tl_manager_desc desc;
        tl_manager *manager;
        tl_random random;
        vkt_desc device = {0};
        vkshim_config config;
        world w;
        int i;
        vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
        open_device(&w, &config, &device);
        w.desc.chunk_bytes = chunks[c];
        open_backend(&w);
        memset(&desc, 0, sizeof desc);
        random.state = 9;
        desc.device_budget_bytes = 24 * MIB;
        desc.eviction = TL_EVICTION_OLDEST;
        if (tl_init_manager(&w.env, &w.backend, &desc, &manager)) fail_msg("%s", w.env.error.text);
        for (i = 0; i < 1000; i++) {
            tl_save_desc save;
            memset(&save, 0, sizeof save);
            save.key.node = i;
            save.data = data;
            save.bytes = 4 * (1 + (size_t)tl_next_random_below(&random, 65536));
            if (tl_save_checkpoint(&w.env, manager, &save)) fail_msg("%s", w.env.error.text);
        }
        w.backend.counters(w.backend.self, &counters);
        tl_vk_measure(&w.backend, &vk);
        live = counters.live_bytes[TL_TIER_DEVICE];
        taken = vk.memory_bytes - vk.staging_bytes;
        assert_true(live <= 24 * MIB && taken >= live);
        printf("a manager of 24 MiB, chunks of %2d MiB: VkDeviceMemory / live bytes %.3f\n",
               (int)((chunks[c] ? chunks[c] : 64 * MIB) / MIB), (double)taken / (double)live);
        tl_free_manager(manager);
        expect_idle(&w, "manager");
        close_backend(&w, "manager");
        close_device(&w);
    }
}

// -- transfers larger than the staging --

static void a_large_transfer_goes_through_the_staging_in_pieces(void **state) {
    const uint64_t bytes = 3 * MIB + 12;
    unsigned char *wanted = (unsigned char *)malloc((size_t)bytes);
    vkshim_config config;
    tl_vk_counters before, after;
    uint64_t calls = 0, i;
    tl_range range, other;
    void *host, *second;
    long allocs = 0;
    int round;
    world w;
    (void)state;
    if (!vkt_has_vulkan("a_large_transfer_goes_through_the_staging_in_pieces")) { free(wanted); skip(); }
    assert_non_null(wanted);
    vkshim_default(&config, VKSHIM_MACHINE_DISCRETE);
    open_machine(&w, &config);
    expect_ok(&w, add_range(&w, TL_TIER_DEVICE, bytes, &range), "add_range");
    expect_ok(&w, add_range(&w, TL_TIER_DEVICE, bytes, &other), "add_range");
    tl_vk_measure(&w.backend, &before);
    for (round = 0; round < 5; round++) {
        if (round == 1) { calls = vkshim_calls("vkAllocateMemory"); allocs = w.alloc.count; }
        expect_ok(&w, w.backend.map(w.backend.self, range, TL_MAP_WRITE, &host), "map");
        for (i = 0; i < bytes; i++) wanted[i] = (unsigned char)(i * 7 + i / 65536 + (uint64_t)round);
        memcpy(host, wanted, (size_t)bytes);
        expect_ok(&w, w.backend.unmap(w.backend.self, range, TL_MAP_WRITE, host), "unmap");
        expect_ok(&w, w.backend.map(w.backend.self, range, TL_MAP_CHANGE, &host), "map");
        assert_memory_equal(host, wanted, (size_t)bytes);
        ((unsigned char *)host)[bytes - 1] ^= 1;
        expect_ok(&w, w.backend.unmap(w.backend.self, range, TL_MAP_CHANGE, host), "unmap");
        expect_ok(&w, w.backend.map(w.backend.self, range, TL_MAP_READ, &host), "map");
        wanted[bytes - 1] ^= 1;
        assert_memory_equal(host, wanted, (size_t)bytes);
        expect_ok(&w, w.backend.unmap(w.backend.self, range, TL_MAP_READ, host), "unmap");
    }
    assert_int_equal(vkshim_calls("vkAllocateMemory"), calls);
    assert_int_equal(w.alloc.count, allocs);
    // Two at a time: the second has memory of its own, until it is unmapped.
    expect_ok(&w, w.backend.map(w.backend.self, range, TL_MAP_READ, &host), "map");
    expect_ok(&w, w.backend.map(w.backend.self, other, TL_MAP_WRITE, &second), "map");
    memcpy(second, host, (size_t)bytes);
    expect_ok(&w, w.backend.unmap(w.backend.self, other, TL_MAP_WRITE, second), "unmap");
    expect_ok(&w, w.backend.unmap(w.backend.self, range, TL_MAP_READ, host), "unmap");
    expect_ok(&w, w.backend.map(w.backend.self, other, TL_MAP_READ, &host), "map");
    assert_memory_equal(host, wanted, (size_t)bytes);
    expect_ok(&w, w.backend.unmap(w.backend.self, other, TL_MAP_READ, host), "unmap");
    tl_vk_measure(&w.backend, &after);
    assert_int_equal(after.staging_bytes, before.staging_bytes);
    free_range(&w, &range);
    free_range(&w, &other);
    expect_idle(&w, "pieces");
    close_backend(&w, "pieces");
    close_device(&w);
    free(wanted);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_memory_is_the_planned_arena),
        cmocka_unit_test(every_plan_runs_in_an_arena_of_its_budget),
        cmocka_unit_test(a_tensor_that_no_kernel_can_be_given_is_refused_at_init),
        cmocka_unit_test(a_tensor_above_the_largest_allocation_is_refused_at_init),
        cmocka_unit_test(arenas_above_the_largest_allocation_are_cut_into_blocks),
        cmocka_unit_test(blocks_that_were_taken_go_back_where_the_next_is_refused),
        cmocka_unit_test(the_device_tier_leaves_its_heap_only_where_that_is_allowed),
        cmocka_unit_test(an_arena_beyond_the_budget_of_its_heap_is_refused_unless_told_otherwise),
        cmocka_unit_test(limits_tell_where_both_tiers_share_one_heap),
        cmocka_unit_test(what_the_driver_adds_to_a_buffer_is_planned),
        cmocka_unit_test(a_run_and_a_manager_never_exceed_one_budget_together),
        cmocka_unit_test(chunks_of_a_manager_are_measured_against_its_live_bytes),
        cmocka_unit_test(a_large_transfer_goes_through_the_staging_in_pieces),
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("vk_arena", tests, NULL, NULL);
}
